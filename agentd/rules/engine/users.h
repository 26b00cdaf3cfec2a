/* SPDX-License-Identifier: MIT */
#ifndef RULES_ENGINE_USERS_H
#define RULES_ENGINE_USERS_H

/**
 * @file users.h
 * Ids of users and groups that agentd.conf names.
 *
 * The user database may be on another machine, and is read by libraries of the system.  The process that
 * parses agentd.conf reaches none of that, and has its parent look names up (config/parser.h).
 */

#include <stdint.h>

enum users_kind { USERS_USER = 1, USERS_GROUP };

/** @return 0, -ENOENT: there is none of that name. */
typedef int users_find_fn(enum users_kind kind, const char *name, uint32_t *ret_id);

/** Look a name up in the user database, or where users_ask() has said. */
users_find_fn users_find;
/** From now on ask @p fn. */
void users_ask(users_find_fn *fn);

#endif /* RULES_ENGINE_USERS_H */
