/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_OPTIONS_H
#define AGENTD_OPTIONS_H

/**
 * @file options.h
 * The command line of gpu-agentd.  The monitor parses it, and hands it as it is to the rules process,
 * which parses it again and applies it to the configuration.
 */

#include <stdbool.h>

#include "base/argv.h"

/** What the command line says; NULL: it says nothing. */
struct options {
	const char *socket, *config, *kfd, *kfd_sysfs, *cuda_library, *idle_exit, *store;
	bool user, check_config, dump_config, permissive, verbose, version, help;
};

/** The options of this process, once argv_parse() has been given `options_table`. */
extern struct options options;
/** Sets `options`. */
extern const struct argv_option options_table[];

#endif /* AGENTD_OPTIONS_H */
