/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_IPC_CONNECT_H
#define AGENTD_IPC_CONNECT_H

/**
 * @file connect.h
 * Messages to the connect broker, which makes a CUDA worker's sockets, and connects them to its target and to nothing
 * else.
 *
 * The monitor connects to the broker, names the target, and gives the connection down to the worker,
 * which cannot change what it says.  One connection serves one worker.
 */

#include <stdint.h>

/** The abstract name of the engine's socket, for a label. */
#define IPC_CONNECT_NAME "nv_target_process_%u_0"
/** The broker's socket, in the directory of the agent's own: where a service manager starts it. */
#define IPC_CONNECT_SOCKET "connect.sock"
/** The broker finds the connection here. */
#define IPC_FD_CONNECT 3
/** Labels that a worker may claim: one that is taken is followed by another. */
#define IPC_CONNECT_CLAIMS_MAX 5

enum ipc_connect_type {
	/** Monitor: struct ipc_connect_target; pidfd of the target, its network namespace or nothing. */
	IPC_CONNECT_TARGET = 0x600 + 1,
	/**
	 * Worker: struct ipc_connect_plain; the descriptor on which the kernel tells of the worker's calls
	 * that have to do with sockets (sandbox.h), which the worker then closes, and the worker's own memory, open
	 * for reading.  Where the monitor has said `permissive`, the kernel tells of other calls as well.
	 */
	IPC_CONNECT_WORKER,
	IPC_CONNECT_CLAIM, /**< Worker: struct ipc_connect_claim, the label; answered. */
	/* broker -> worker */
	IPC_CONNECT_READY,   /**< struct ipc_connect_ready, after IPC_CONNECT_WORKER. */
	IPC_CONNECT_CLAIMED, /**< struct ipc_connect_claim: the answer. */
	IPC_CONNECT_FAILED,  /**< struct ipc_connect_claim, at any time: the engine was not reached. */
};

struct ipc_connect_target {
	uint32_t type;
	int32_t pid;
	/** 1: the kernel tells also of calls that are not on the worker's list; they are logged and made. */
	uint32_t permissive;
	uint32_t unused;
	uint64_t pid_ns; /**< Inode of the target's namespace of process numbers; 0: it could not be looked at. */
};

struct ipc_connect_plain {
	uint32_t type;
};

struct ipc_connect_claim {
	uint32_t type;
	uint32_t label;
	/** 0; -EADDRINUSE: another process has the name; other -errno. */
	int32_t status;
};

struct ipc_connect_ready {
	uint32_t type;
	uint32_t unused;
	uint64_t net_dev, net_ino; /**< The network namespace in which the broker connects. */
};

/** Whatever a worker and its broker may tell each other. */
union ipc_connect_message {
	uint32_t type;
	struct ipc_connect_target target;
	struct ipc_connect_plain plain;
	struct ipc_connect_claim claim;
	struct ipc_connect_ready ready;
};

#endif /* AGENTD_IPC_CONNECT_H */
