/* SPDX-License-Identifier: MIT */
#ifndef STORE_SERVICE_H
#define STORE_SERVICE_H

/**
 * @file service.h
 * gpu-agent-store: it works on the record store, for one client or for one session worker.
 *
 * The monitor says on the command line for which one; nothing that comes over the channel can change
 * that.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "agentd/ipc/link.h"
#include "agentd/store/record_uses.h"
#include "store/store.h"

/** The state of this process. */
struct service {
	uid_t client_uid; /**< The client's user, or that of the target whose records are added. */
	pid_t pid;	  /**< The target of a session worker; 0: the process serves a client. */
	bool admin, observer; /**< The client's rights. */
	const char *directory;
	int status; /**< 0, or why there is no store: -errno. */
	struct store store;
	struct ipc_link link; /**< The channel to the frontend, if the process serves a client. */
	/** The body read last, owned; it is open so that it is not removed meanwhile; -1: none. */
	int body_fd;
	char body_id[STORE_ID_SIZE];
	uid_t body_uid; /**< Whose record that is. */
	bool body_zstd;
	struct record_uses uses;
};

/** Serve a client until the channel closes or the monitor dies.  @return exit status. */
int client_run(struct service *s);
/**
 * Add the records of a session worker until the channel closes or the monitor dies.
 * @return as above.
 */
int producer_run(struct service *s);

#endif /* STORE_SERVICE_H */
