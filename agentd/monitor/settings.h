/* SPDX-License-Identifier: MIT */
#ifndef MONITOR_SETTINGS_H
#define MONITOR_SETTINGS_H

/** @file settings.h  What the command line, agentd.conf and the user database together say. */

#include <stdbool.h>
#include <sys/types.h>

#include "agentd/access.h"
#include "agentd/rules/config/config.h"
#include "agentd/rules/engine/rules.h"

/** The command line; NULL: says nothing. */
struct options {
	const char *socket, *config, *kfd, *kfd_sysfs, *cuda_library, *idle_exit, *store;
	bool user, check_config, verbose, version, help;
};

/** Groups and users by their numbers. */
struct settings_ids {
	struct access_rules groups;
	uid_t front_uid; /**< Of the frontend, of the store, and of whoever closes what strangers sent. */
	gid_t front_gid;
};

/**
 * Read the configuration; logs what is wrong.
 * @param rules  What it says of those; the caller's also after a failure.
 * @return 0, -EINVAL, -errno.
 */
int settings_load(const struct options *o, struct config *c, struct rules *rules);
/** Look names up; logs which do not exist.  @return 0, -ENOENT: the frontend has no user. */
int settings_resolve(const struct options *o, const struct config *c, struct settings_ids *ret);
/** A group that does not exist gives nobody any right: ACCESS_NO_GROUP. */
gid_t settings_group(const char *name);

#endif /* MONITOR_SETTINGS_H */
