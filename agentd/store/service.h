/* SPDX-License-Identifier: MIT */
#ifndef STORE_SERVICE_H
#define STORE_SERVICE_H

/**
 * @file service.h
 * gpu-agent-store: works on the record store, for one client or for one session worker.
 *
 * spawn says on the command line for whom; nothing that comes over the channel can change that.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "agentd/ipc.h"
#include "store/store.h"

struct service {
	uid_t client_uid; /**< Client, or user of the target whose records are added. */
	pid_t pid;	  /**< Target of a producer; 0: serves a client. */
	bool admin, observer;
	const char *directory;
	int status; /**< 0, or why there is no store: -errno. */
	struct store store;
	struct ipc_link link; /**< Of a client. */
	int body_fd;	      /**< Last one read, open so that it stays; -1: none. */
	char body_id[STORE_ID_SIZE];
	bool body_zstd;
};

/** Until the channel closes or spawn dies.  @return exit status. */
int client_run(struct service *s);
int producer_run(struct service *s);

#endif /* STORE_SERVICE_H */
