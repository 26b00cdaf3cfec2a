/* SPDX-License-Identifier: MIT */
#include "agentd/rules/engine/users.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stddef.h>

static users_find_fn *asked;

void users_ask(users_find_fn *fn)
{
	asked = fn;
}

static int find_group(const char *name, uint32_t *ret_id)
{
	const struct group *g = getgrnam(name);

	if (!g)
		return -ENOENT;
	*ret_id = g->gr_gid;
	return 0;
}

int users_find(enum users_kind kind, const char *name, uint32_t *ret_id)
{
	const struct passwd *pw;

	if (asked)
		return asked(kind, name, ret_id);
	if (kind == USERS_GROUP)
		return find_group(name, ret_id);
	pw = getpwnam(name);
	if (!pw)
		return -ENOENT;
	*ret_id = pw->pw_uid;
	return 0;
}
