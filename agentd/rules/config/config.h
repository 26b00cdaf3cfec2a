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
	/** Groups and users that do not exist are mistakes; else they give nobody any right. */
	bool names_must_exist;
	/** Where each setting and its place are noted; NULL: nobody wants to know. */
	struct config_dump *dump;
};

/** Set the values of an empty configuration. */
void config_init(struct config *c);

/** Room for the messages of a file with many mistakes. */
#define CONFIG_ERROR_SIZE 8192

/** A file as it lies there, which nobody has looked at yet. */
struct config_file {
	char *path, *text;
	size_t size;
	int status; /**< 0, or why it, or the directory of that name, could not be read: -errno. */
	bool trusted; /**< It may have rules. */
};

/** Files in the order in which they count; starts zeroed. */
struct config_files {
	struct config_file *list;
	size_t n, capacity;
	/** Rules are obeyed on everybody's processes: only files of root alone may have them. */
	bool rules_need_root;
	bool no_memory; /**< Something is not in the list. */
};

/** Most bytes of one file. */
#define CONFIG_FILE_MAX ((size_t)64 << 10)

/** Read one file. */
void config_files_read(struct config_files *f, const char *path);
/** Read vendor file, main file and fragments, all of them; those that are missing are left out. */
void config_files_read_default(struct config_files *f);
/** Free the list. */
void config_files_deinit(struct config_files *f);

/**
 * Parse files, each over what is there.
 * @param error  Of each mistake file, line, key and what is wrong, one on a line; emptied first.
 * @return 0, -EINVAL, -ENOMEM, the first file's status.
 */
int config_parse_files(struct config *c, const struct config_reading *how, const struct config_files *f, char *error,
		       size_t error_size);
/** Parse text; @p name is used in messages. */
int config_parse(struct config *c, const struct config_reading *how, const char *name,
		 const char *text, size_t size, char *error, size_t error_size);

#endif /* RULES_CONFIG_H */
