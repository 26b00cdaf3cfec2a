/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PROCESS_OPTIONS_H
#define WORKER_PROCESS_OPTIONS_H

/** @file options.h  The worker's command line, which only the monitor writes. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/ipc/child.h"

/** What the command line says, and two facts about the worker's start. */
struct worker_options {
	enum ipc_kind kind;
	pid_t pid;	  /**< Target, or 0. */
	uint32_t session; /**< Number of the session; its id is "s" followed by this. */
	uint32_t timeout_ms; /**< Time to attach. */
	/** Longest time that queues stand still at once; 0: no limit for administrators. */
	uint32_t max_suspended_ms;
	/** What clients that may only look may have queues stopped for: at once, and in each second. */
	uint32_t observer_stops_ms, observer_stop_rate_ms;
	uint64_t deadline_ns; /**< When the time to attach is over; monotonic. */
	uid_t peer_uid;
	gid_t peer_gid;
	bool peer_admin, peer_observer;
	bool stops; /**< The client wants threads to be stopped, and may want that. */
	bool peer_near; /**< It lives in the agent's namespaces of users and processes. */
	const char *kfd_device;
	const char *kfd_sysfs;
	const char *cuda_library; /**< NVIDIA's libcuda, for dlopen(). */
	bool permissive; /**< NVIDIA's library may make calls that are not on its list. */
	bool verbose;
	bool privileged; /**< The worker started with the right to trace other users' processes. */
};

/**
 * Parse the command line.
 * @param ret    Its strings are those of @p argv.
 * @param error  Room for a message, at least 160 bytes.
 * @return 0, -EINVAL with the message.
 */
int worker_options_parse(int argc, char **argv, struct worker_options *ret, char *error,
			 size_t error_size);

#endif /* WORKER_PROCESS_OPTIONS_H */
