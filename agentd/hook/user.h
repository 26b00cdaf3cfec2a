/* SPDX-License-Identifier: MIT */
#ifndef HOOK_USER_H
#define HOOK_USER_H

/** @file user.h  The user as which a hook runs. */

#include <stddef.h>
#include <sys/types.h>

#include "agentd/hook.h"

/** A user, as the user database has it. */
struct hook_user {
	uid_t uid;
	gid_t gid;
	gid_t *groups; /**< Supplementary groups, owned; none if the database lacks the user. */
	size_t n_groups;
	char name[HOOK_USER_MAX]; /**< "": the database lacks the user. */
	char home[HOOK_PATH_MAX];
};

/**
 * Find the user of a job.  The call asks the user database, which may take its time.
 * @param why  Says what is wrong.
 * @param ret  Release with hook_user_deinit(); untouched on failure.
 * @return 0, -EPERM (the user is root and the administrator has not said so, or this process has no
 *         right to become that user), -ENOENT (there is no such user), other -errno.
 */
int hook_user_find(const struct hook_job *job, char *why, size_t why_size, struct hook_user *ret);
/** Free the groups. */
void hook_user_deinit(struct hook_user *u);

/** Become that user for good.  @return 0 or -errno. */
int hook_user_become(const struct hook_user *u);

#endif /* HOOK_USER_H */
