/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_IPC_MONITOR_WORKER_H
#define AGENTD_IPC_MONITOR_WORKER_H

/**
 * @file monitor_worker.h
 * Messages between the monitor and its other children: workers, stores and adapters.
 */

#include <stdint.h>

#include "agentd/ipc/child.h"

/** The first word of every message: its sender, its struct, and the descriptors that come along. */
enum ipc_monitor_worker_type {
	/* child -> monitor */
	IPC_ARM = 0x300 + 1, /**< struct ipc_guard. */
	IPC_DISARM,	     /**< struct ipc_guard. */
	/** struct ipc_store; the store's end of a SOCK_SEQPACKET pair: the monitor closes it to refuse. */
	IPC_STORE,
	IPC_FOUND, /**< struct ipc_found. */
	IPC_HOOK,  /**< struct ipc_hook; one descriptor, sealed: the document. */
	/**
	 * struct ipc_broker; one end of a SOCK_SEQPACKET pair, over which the monitor sends one byte with a
	 * connection to a connect broker (connect.h).  It closes that end in any case.
	 */
	IPC_BROKER,
	/* monitor -> worker */
	IPC_RULE, /**< struct ipc_rule. */
};

/** IPC_ARM: the monitor kills the child unless it disarms in time.  IPC_DISARM: it has. */
struct ipc_guard {
	uint32_t type;
	uint32_t ms; /**< IPC_ARM: the time. */
};

/** A worker needs a store for the records of its rule. */
struct ipc_store {
	uint32_t type;
};

/** A worker needs a connect broker for its target; it gets one in its life. */
struct ipc_broker {
	uint32_t type;
};

/** A worker of kind LOOK has discovered a process that uses a GPU, or may. */
struct ipc_found {
	uint32_t type;
	uint32_t pid;
	uint32_t vendor; /**< enum ipc_vendor; ANY: what it has mapped was not read to the end. */
};

/**
 * What a hook shall find in its environment, as far as the worker knows it.  The target chose most
 * of these words.
 */
struct ipc_fault {
	char record[32]; /**< Id of the record; "": there is none. */
	char comm[16];
	char vendor[16];
	char exception[128];
	char kernel[256];
	char location[256];
	char exe[256];
};

/** The hook of the rule that watches this worker's target is to run. */
struct ipc_hook {
	uint32_t type;
	struct ipc_fault fault;
};

/** Whatever a child may tell the monitor. */
union ipc_child_message {
	uint32_t type;
	struct ipc_guard guard;
	struct ipc_store store;
	struct ipc_broker broker;
	struct ipc_found found;
	struct ipc_hook hook;
};

/** What a rule keeps of an exception; with LIGHT and FULL it is a core besides the document. */
enum ipc_keep { IPC_KEEP_NOTHING = 0, IPC_KEEP_JSON, IPC_KEEP_LIGHT, IPC_KEEP_FULL };

/* Two exceptions are the same if they agree in these, as far as `key_parts` has them. */
#define IPC_KEY_KERNEL 1u
#define IPC_KEY_PC     2u
#define IPC_KEY_CODE   4u

#define IPC_RULE_DEVICES_MAX 16

/**
 * The rule that watches the worker's target from now on; agentd/rules/engine/rules.h says what the
 * members mean.
 */
struct ipc_rule {
	uint32_t type;
	uint32_t keep; /**< enum ipc_keep. */
	uint64_t exceptions;
	uint32_t rate_events, rate_ms;
	uint32_t key_parts, key_ms;
	uint32_t n_devices, has_hook;
	uint32_t hold_ms; /**< LIGHT, FULL: how long an exception may be withheld for the core. */
	uint32_t again;	  /**< An earlier try failed, and the log says so already. */
	uint32_t devices[IPC_RULE_DEVICES_MAX];
	char name[IPC_RULE_NAME_SIZE]; /**< "": no rule watches any more. */
};

#endif /* AGENTD_IPC_MONITOR_WORKER_H */
