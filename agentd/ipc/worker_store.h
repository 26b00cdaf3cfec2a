/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_IPC_WORKER_STORE_H
#define AGENTD_IPC_WORKER_STORE_H

/**
 * @file worker_store.h
 * Messages between a worker whose rule records, and the store.
 */

#include <stdint.h>

/** The first word of every message: its sender, its struct, and the descriptors that come along. */
enum ipc_worker_store_type {
	/* worker -> store */
	/** struct ipc_add; a sealed memfd with metadata line and document; the body, if any. */
	IPC_ADD = 0x400 + 1,
	/* store -> worker */
	IPC_ADDED, /**< struct ipc_added. */
};

/** A worker asks the store to add a record. */
struct ipc_add {
	uint32_t type;
	uint32_t has_body;   /**< A second descriptor comes along, to be read to its end. */
	uint64_t body_bytes; /**< Bytes that come from it, if its writer lives that long. */
};

/** The store's answer to struct ipc_add. */
struct ipc_added {
	uint32_t type;
	int32_t status;	     /**< 0 or -errno. */
	int32_t body_status; /**< The same for the body. */
	char id[32];	     /**< Id of the record. */
};

#endif /* AGENTD_IPC_WORKER_STORE_H */
