/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_IPC_MONITOR_WORKER_H
#define AGENTD_IPC_MONITOR_WORKER_H

/**
 * @file monitor_worker.h
 * Messages between the monitor and its other children: workers, stores and adapters.
 */

#include <stdbool.h>
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
	/** struct ipc_threads; the reader's end of a SOCK_SEQPACKET pair: the monitor closes it to refuse. */
	IPC_THREADS,
	IPC_HOOK,  /**< struct ipc_hook; one descriptor, sealed: the document. */
	/**
	 * struct ipc_broker; one end of a SOCK_SEQPACKET pair, over which the monitor sends one byte with a
	 * connection to a connect broker (connect.h).  It closes that end in any case.
	 */
	IPC_BROKER,
	IPC_USED, /**< struct ipc_used. */
	IPC_RECORD_USED, /**< struct ipc_record_used. */
	/* monitor -> worker */
	IPC_RULE,   /**< struct ipc_rule. */
	IPC_LET_IN, /**< struct ipc_let_in; before the frontend hears that the client may call the worker. */
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

/** A worker needs somebody who reads what the threads of its target do. */
struct ipc_threads {
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

enum ipc_use {
	IPC_USE_READ = 1, /**< It reads what a process of another user does. */
	IPC_USE_CONTROL,  /**< It changes something. */
	/* It gets the writer lease, which another client had: */
	IPC_USE_TAKEN_FORCED, /**< by force, */
	IPC_USE_TAKEN_SILENT, /**< because that client has asked for nothing for some time, */
	IPC_USE_TAKEN_LEFT,   /**< or because that client has left the session, as the frontend says. */
	IPC_USE_COUNT,
};

/** @return whether that is about the writer lease, so that there is another client that had it. */
static inline bool ipc_use_is_taken(uint32_t use)
{
	return use >= IPC_USE_TAKEN_FORCED && use <= IPC_USE_TAKEN_LEFT;
}

/** Most IPC_USED that a worker sends in a second; what is above that it counts. */
#define IPC_USED_PER_SECOND 75
/** A worker that sends more in a second is not itself any more, and is killed. */
#define IPC_USED_MAX 1000
/** Room for the name of a method, with its NUL. */
#define IPC_METHOD_SIZE 28

/** A client uses the session: the worker says so before it does what the client wants. */
struct ipc_used {
	uint32_t type;
	uint32_t kind;	 /**< enum ipc_use. */
	uint64_t client; /**< The number of its connection. */
	uint32_t more;	 /**< So many calls of that client more, of any kind, were counted since it was named last. */
	char method[IPC_METHOD_SIZE];
	uint64_t from;	  /**< IPC_USE_TAKEN_...: the number of the connection that had the lease. */
	uint64_t idle_ms; /**< And how long ago it asked for something. */
};

/** Room for the id of a record, with its NUL. */
#define IPC_RECORD_SIZE 32

/** The client of a store reads or changes a record of another user: the store says so when it lets the client do it. */
struct ipc_record_used {
	uint32_t type;
	uint32_t kind; /**< IPC_USE_READ or IPC_USE_CONTROL. */
	uint32_t uid;  /**< Whose record it is; UINT32_MAX: there are several. */
	uint32_t more; /**< So many calls more, of any kind, were counted since the last message. */
	char method[IPC_METHOD_SIZE];
	char record[IPC_RECORD_SIZE]; /**< "": several. */
};

/** Whatever a child may tell the monitor. */
union ipc_child_message {
	uint32_t type;
	struct ipc_guard guard;
	struct ipc_store store;
	struct ipc_threads threads;
	struct ipc_broker broker;
	struct ipc_found found;
	struct ipc_hook hook;
	struct ipc_used used;
	struct ipc_record_used record_used;
};

/** What a rule keeps of an exception; with LIGHT and FULL it is a core besides the document. */
enum ipc_keep { IPC_KEEP_NOTHING = 0, IPC_KEEP_JSON, IPC_KEEP_LIGHT, IPC_KEEP_FULL };

/** What a record has of the threads on the processors. */
enum ipc_frames { IPC_FRAMES_OFF = 0, IPC_FRAMES_PYTHON, IPC_FRAMES_NATIVE };

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
	uint32_t hold_ms; /**< How long an exception may be withheld for a core or for threads. */
	uint32_t frames;  /**< enum ipc_frames; NATIVE: those of Python, too. */
	uint32_t why;	  /**< 1: records say what waves wait for. */
	uint32_t again;	  /**< An earlier try failed, and the log says so already. */
	uint32_t devices[IPC_RULE_DEVICES_MAX];
	char name[IPC_RULE_NAME_SIZE]; /**< "": no rule watches any more. */
};

/**
 * A client may use the session.  The worker serves nobody else, whoever the frontend says that it
 * speaks for, and lets a client do no more than is said here.
 */
struct ipc_let_in {
	uint32_t type;
	uint32_t rights; /**< enum ipc_right. */
	uint64_t client; /**< The number of its connection. */
	uint32_t uid;
	uint32_t admin;
};

/** Whatever the monitor may tell a worker. */
union ipc_worker_message {
	uint32_t type;
	struct ipc_rule rule;
	struct ipc_let_in let_in;
};

#endif /* AGENTD_IPC_MONITOR_WORKER_H */
