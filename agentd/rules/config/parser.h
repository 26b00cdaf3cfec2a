/* SPDX-License-Identifier: MIT */
#ifndef RULES_CONFIG_PARSER_H
#define RULES_CONFIG_PARSER_H

/**
 * @file parser.h
 * A process of its own parses agentd.conf, and ends.
 *
 * It has no rights and opens nothing.  It gets the texts of the files in sealed memory, and leaves what they
 * say, in fixed structs, in memory that this process has made.  This process looks names of users up
 * for it, and checks each value when it has ended: what a fallen parser says is no more than what some
 * agentd.conf could say.
 */

#include <stdbool.h>
#include <stddef.h>

#include "agentd/rules/config/config.h"

/**
 * Have files parsed, as config_parse_files() parses them, and look at all rules together.
 * @param c  The caller's also after a failure, and then unchanged.
 * @return as config_parse_files(); -ETIMEDOUT, -ECHILD, -EBADMSG: the parser hung, died, or told nonsense,
 *         which `error` says.
 */
int parser_parse_files(struct config *c, const struct config_reading *how, const struct config_files *f, char *error,
		       size_t error_size);
/** Be that process.  @return its exit status. */
int parser_run(void);

#endif /* RULES_CONFIG_PARSER_H */
