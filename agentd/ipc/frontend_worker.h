/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_IPC_FRONTEND_WORKER_H
#define AGENTD_IPC_FRONTEND_WORKER_H

/**
 * @file frontend_worker.h
 * What the heads of ipc/link.h mean between the frontend and a worker or store.
 */

#include <stdint.h>

#include "agentd/ipc/link.h"

/** The types of struct ipc_head; without another word the text is JSON. */
enum ipc_frontend_worker_type {
	/* frontend -> worker */
	IPC_CALL = 0x200 + 1,
	/**
	 * The worker undoes what the writer may not leave behind; `number` is the
	 * enum rpc_resume_reason.
	 */
	IPC_LEASE_LOST,
	IPC_CLIENT_LEFT, /**< The client with the number `client` left; the session goes on. */
	/**
	 * struct ipc_readers.  From a worker: it has changed.  From the frontend, before any call: what an
	 * earlier worker for a process of the same number has told.
	 */
	IPC_READERS,
	/**
	 * struct ipc_looked[].  From an inspect worker: what its look has learned.  From the frontend, before
	 * the call: what the last look for a client of the same rights has.
	 */
	IPC_LOOKED,
	/* worker -> frontend */
	IPC_REPLY,  /**< Text of the result. */
	IPC_ERROR,  /**< Text of the JSON-RPC error object. */
	IPC_NOTIFY, /**< Text of a notification's params; `number`: its enum rpc_notification. */
	/** struct ipc_suspension, cut off behind its last queue; sent each time that it changes. */
	IPC_SUSPENSION,
	IPC_OVER,   /**< The session ended; `number`: its enum rpc_end_reason.  Nothing follows. */
	IPC_COUNTS, /**< Text: struct ipc_counts, the increase since the last one. */
	IPC_TARGET, /**< The worker is attached; `number` is the target's enum rpc_vendor. */
};

/** What happened to the exceptions that a rule is for. */
struct ipc_counts {
	uint64_t begun;	     /**< Sent before the rest is known: the worker may die of one. */
	uint64_t exceptions; /**< All of them; each is in one of the members below, too. */
	uint64_t recorded;   /**< Records made, or runs of the hook where nothing is kept. */
	uint64_t duplicates; /**< Exceptions that are the same as one with a record. */
	uint64_t limited;    /**< Exceptions above rate_limit. */
	uint64_t lost;	     /**< Exceptions whose record could not be made or stored. */
};

/** For how long queues may stand still for clients that may only look (worker/session/readers.h). */
struct ipc_readers {
	uint64_t start_ticks; /**< When the target started; tells a reused pid. */
	int64_t left_ns;
	uint64_t at_ns; /**< CLOCK_MONOTONIC. */
};

/** What a look has learned of a process that takes long to look at (worker/process/seen.h). */
struct ipc_looked {
	uint64_t start_ticks, exe, lib_kib; /**< It is the same as long as these are. */
	uint64_t at_ns; /**< CLOCK_MONOTONIC. */
	uint32_t pid;
	uint32_t what; /**< enum seen_what. */
};

#define IPC_SUSPENSION_QUEUES_MAX 1024

/** What gpu.suspend has done to the target of a session; times are CLOCK_MONOTONIC. */
struct ipc_suspension {
	uint64_t start_ticks;  /**< When the target started; tells a reused pid. */
	uint64_t count;	       /**< How often the target went from running to suspended. */
	uint64_t total_ns;     /**< Duration of all suspensions that are over. */
	uint64_t since_ns;     /**< Start of the one that is not over; 0: nothing is suspended. */
	uint64_t lease_end_ns;
	uint32_t n_queues;
	uint32_t queues[IPC_SUSPENSION_QUEUES_MAX];
};

#endif /* AGENTD_IPC_FRONTEND_WORKER_H */
