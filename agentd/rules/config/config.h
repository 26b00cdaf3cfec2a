/* SPDX-License-Identifier: MIT */
#ifndef RULES_CONFIG_H
#define RULES_CONFIG_H

/**
 * @file config.h
 * agentd.conf: INI, read in the order vendor file, /etc file, then agentd.conf.d/ fragments by
 * name; later settings win.  docs/man/agentd.conf.5 describes the keys.
 */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rules;

#define CONFIG_NAME_MAX 33
#define CONFIG_LIMIT_MAX 24

struct config {
	/* [agent] */
	char socket[PATH_MAX];
	char user[CONFIG_NAME_MAX];	      /**< The frontend runs as this user. */
	char socket_group[CONFIG_NAME_MAX];   /**< may connect. */
	char admin_group[CONFIG_NAME_MAX];    /**< may debug every process. */
	char observer_group[CONFIG_NAME_MAX]; /**< may look at every process. */
	uint32_t idle_exit_ms; /**< 0: never. */
	/* [limits] */
	uint32_t connections, connections_per_user;
	uint32_t sessions, sessions_per_user;
	uint32_t max_suspended_ms; /**< Longest stop of a target's queues; 0: none for administrators. */
	uint32_t silent_holder_ms; /**< Then others of the same user may take control. */
	/* [kfd] */
	char kfd_device[PATH_MAX];
	char kfd_sysfs[PATH_MAX];
	/* [cuda] */
	char cuda_library[PATH_MAX]; /**< For dlopen() in workers: a name or a path. */
	/* [store]: limits as text, "" is the default (store/store.h) */
	char store_directory[PATH_MAX];
	char store_max_use[CONFIG_LIMIT_MAX], store_keep_free[CONFIG_LIMIT_MAX];
	char store_max_body[CONFIG_LIMIT_MAX];
	char store_max_age[CONFIG_LIMIT_MAX], store_max_record_age[CONFIG_LIMIT_MAX];
	char store_max_records[CONFIG_LIMIT_MAX];
	/**
	 * Where [rule NAME] sections go; borrowed.  After a mistake it may hold some of what was read.
	 * NULL: such sections are a mistake.
	 */
	struct rules *rules;
	/** Rules are obeyed on everybody's processes: only files of root alone may have them. */
	bool rules_need_root;
	/** Groups and users that do not exist are mistakes; else they give nobody any right. */
	bool names_must_exist;
};

void config_init(struct config *c);

/** Room for the messages of a file with many mistakes. */
#define CONFIG_ERROR_SIZE 8192

/**
 * Read one file over what is there.
 * @param error  Of each mistake file, line, key and what is wrong, one on a line; emptied first.
 * @return 0, -ENOENT, -EINVAL, -errno.
 */
int config_read_file(struct config *c, const char *path, char *error, size_t error_size);
/** Read vendor file, main file and fragments, all of them; missing ones are no error. */
int config_read_default(struct config *c, char *error, size_t error_size);
/** Parse text; @p name is used in messages. */
int config_parse(struct config *c, const char *name, const char *text, size_t size, char *error,
		 size_t error_size);

#endif /* RULES_CONFIG_H */
