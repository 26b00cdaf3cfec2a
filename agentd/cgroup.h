/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_CGROUP_H
#define AGENTD_CGROUP_H

/**
 * @file cgroup.h
 * What /proc/PID/cgroup tells: lines `ID:CONTROLLERS:PATH`, cgroups(7).  Groups are named by whoever
 * may make them: every function takes any bytes.
 */

#include <stddef.h>

/** A part of the text that was given; NULL and 0: there is none. */
struct cgroup_part {
	const char *text;
	size_t size;
};

/** The path in the unified hierarchy, else in that of systemd (`name=systemd`). */
struct cgroup_part cgroup_path(const char *text, size_t size);
/** Innermost component of that path that ends with `.service` or `.scope`: a unit of systemd. */
struct cgroup_part cgroup_unit(const char *text, size_t size);
/**
 * The component that names a container, of any hierarchy: the innermost one with a run of 64 hex
 * digits (an OCI container id) or of the form `lxc.payload.NAME`.
 */
struct cgroup_part cgroup_container(const char *text, size_t size);

#endif /* AGENTD_CGROUP_H */
