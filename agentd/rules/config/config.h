/* SPDX-License-Identifier: MIT */
#ifndef RULES_CONFIG_H
#define RULES_CONFIG_H

/**
 * @file config.h
 * agentd.conf: INI, read in the order vendor file, /etc file, then agentd.conf.d/ fragments by
 * name; later settings win.  docs/man/agentd.conf.5 describes the keys.
 */

#include <stdbool.h>
#include <stddef.h>

#include "agentd/config.h"

struct config_dump;
struct rules;

/** How files are read. */
struct config_reading {
	/**
	 * Where [rule NAME] sections go; borrowed.  After a mistake it may hold some of what was read.
	 * NULL: such sections are a mistake.
	 */
	struct rules *rules;
	/** Rules are obeyed on everybody's processes: only files of root alone may have them. */
	bool rules_need_root;
	/** Groups and users that do not exist are mistakes; else they give nobody any right. */
	bool names_must_exist;
	/** Where each setting and its place are noted; NULL: nobody wants to know. */
	struct config_dump *dump;
};

/** Set the values of an empty configuration. */
void config_init(struct config *c);

/** Room for the messages of a file with many mistakes. */
#define CONFIG_ERROR_SIZE 8192

/**
 * Read one file over what is there.
 * @param error  Of each mistake file, line, key and what is wrong, one on a line; emptied first.
 * @return 0, -ENOENT, -EINVAL, -errno.
 */
int config_read_file(struct config *c, const struct config_reading *how, const char *path,
		     char *error, size_t error_size);
/** Read vendor file, main file and fragments, all of them; missing ones are no error. */
int config_read_default(struct config *c, const struct config_reading *how, char *error,
			size_t error_size);
/** Parse text; @p name is used in messages. */
int config_parse(struct config *c, const struct config_reading *how, const char *name,
		 const char *text, size_t size, char *error, size_t error_size);

#endif /* RULES_CONFIG_H */
