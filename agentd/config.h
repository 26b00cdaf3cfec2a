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

/** Texts, with the bytes that each has room for, in the order of agentd.conf(5). */
#define CONFIG_TEXTS(X)                                                                            \
	/* [agent]: the frontend runs as user; who may connect, debug and look at every process */ \
	X(socket, PATH_MAX)                                                                        \
	X(user, CONFIG_NAME_MAX)                                                                   \
	X(socket_group, CONFIG_NAME_MAX)                                                           \
	X(admin_group, CONFIG_NAME_MAX)                                                            \
	X(observer_group, CONFIG_NAME_MAX)                                                         \
	/* [kfd] */                                                                                \
	X(kfd_device, PATH_MAX)                                                                    \
	X(kfd_sysfs, PATH_MAX)                                                                     \
	/* [cuda]: for dlopen() in workers, a name or a path */                                    \
	X(cuda_library, PATH_MAX)                                                                  \
	/* [store]: limits as text, "" is the default (store/store.h) */                           \
	X(store_directory, PATH_MAX)                                                               \
	X(store_max_use, CONFIG_LIMIT_MAX)                                                         \
	X(store_keep_free, CONFIG_LIMIT_MAX)                                                       \
	X(store_max_body, CONFIG_LIMIT_MAX)                                                        \
	X(store_max_age, CONFIG_LIMIT_MAX)                                                         \
	X(store_max_record_age, CONFIG_LIMIT_MAX)                                                  \
	X(store_max_records, CONFIG_LIMIT_MAX)

struct config {
#define CONFIG_TEXT_FIELD(name, size) char name[size];
	CONFIG_TEXTS(CONFIG_TEXT_FIELD)
#undef CONFIG_TEXT_FIELD
	/* [agent] */
	uint32_t idle_exit_ms; /**< 0: never. */
	/* [limits] */
	uint32_t connections, connections_per_user;
	uint32_t sessions, sessions_per_user;
	uint32_t max_suspended_ms; /**< Longest stop of a target's queues; 0: none for administrators. */
	uint32_t observer_stops_ms, observer_stop_rate_ms; /**< For those who may only look: at once, and a second. */
	uint32_t silent_holder_ms; /**< Then others of the same user may take control. */
};

#endif /* AGENTD_CONFIG_H */
