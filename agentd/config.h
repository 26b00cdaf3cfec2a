/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_CONFIG_H
#define AGENTD_CONFIG_H

/**
 * @file config.h
 * What agentd.conf and the command line say, apart from rules: values only, so that one process can
 * read them and another one obey them.  docs/man/agentd.conf.5 describes the keys.
 */

#include <limits.h>
#include <stdint.h>

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
	uint32_t observer_stops_ms, observer_stop_rate_ms; /**< For those who may only look: at once, and a second. */
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
};

#endif /* AGENTD_CONFIG_H */
