/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_CGROUP_H
#define AGENTD_CGROUP_H

/**
 * @file cgroup.h
 * What /proc/PID/cgroup tells: lines `ID:CONTROLLERS:PATH`, cgroups(7).  Whoever may make a group
 * chooses its name, so every function takes any bytes.
 */

#include <stddef.h>

/** A part of the caller's text, borrowed; NULL and 0: there is none. */
struct cgroup_part {
	const char *text;
	size_t size;
};

/** Find the path in the unified hierarchy, else in that of systemd (`name=systemd`). */
struct cgroup_part cgroup_path(const char *text, size_t size);
/** Find the innermost component of that path that names a unit of systemd: `.service`, `.scope`. */
struct cgroup_part cgroup_unit(const char *text, size_t size);
/**
 * Find the component that names a container, in any hierarchy: the innermost one with a run of 64
 * hex digits (an OCI container id) or of the form `lxc.payload.NAME`.
 */
struct cgroup_part cgroup_container(const char *text, size_t size);

#endif /* AGENTD_CGROUP_H */
