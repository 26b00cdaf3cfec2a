/* SPDX-License-Identifier: MIT */
#include "agentd/hook/user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentd/privileges.h"
#include "base/cleanup.h"
#include "base/str.h"

#define GROUPS_MAX 65536 /* The value of NGROUPS_MAX in Linux. */

/* getgrouplist() says in n how many groups there are if they do not fit. */
static int find_groups(const char *name, struct hook_user *u)
{
	auto_free gid_t *groups = NULL;
	int n = 64, have;

	do {
		have = n;
		free(groups);
		groups = calloc((size_t)have, sizeof(*groups));
		if (!groups)
			return -ENOMEM;
	} while (getgrouplist(name, u->gid, groups, &n) < 0 && n > have && n <= GROUPS_MAX);
	if (n > have)
		return -E2BIG;
	u->groups = TAKE_PTR(groups);
	u->n_groups = (size_t)n;
	return 0;
}

static int from_database(const struct passwd *pw, struct hook_user *u)
{
	u->uid = pw->pw_uid;
	u->gid = pw->pw_gid;
	str_copy(u->name, sizeof(u->name), pw->pw_name);
	str_copy(u->home, sizeof(u->home), pw->pw_dir ? pw->pw_dir : "/");
	return find_groups(pw->pw_name, u);
}

int hook_user_find(const struct hook_job *job, char *why, size_t why_size, struct hook_user *ret)
{
	struct hook_user u = { .uid = job->uid, .gid = job->gid };
	const struct passwd *pw = job->user[0] ? getpwnam(job->user) : getpwuid(job->uid);
	int r = 0;

	if (!pw && job->user[0]) {
		snprintf(why, why_size, "there is no user %s", job->user);
		return -ENOENT;
	}
	if (pw)
		r = from_database(pw, &u);
	if (r < 0) {
		snprintf(why, why_size, "groups of uid %u: %s", u.uid, strerror(-r));
	} else if (u.uid == 0 && !job->root_allowed) {
		snprintf(why, why_size,
			 "it would run as root: set hook_user, to root if that is meant");
		r = -EPERM;
	} else if (u.uid != getuid() && !privileges_may_become()) {
		snprintf(why, why_size,
			 "an agent without privileges runs hooks only as its own user");
		r = -EPERM;
	}
	if (r < 0)
		hook_user_deinit(&u);
	else
		*ret = u;
	return r;
}

void hook_user_deinit(struct hook_user *u)
{
	free(u->groups);
	u->groups = NULL;
}

int hook_user_become(const struct hook_user *u)
{
	return privileges_become_login(u->uid, u->gid, u->groups, u->n_groups);
}
