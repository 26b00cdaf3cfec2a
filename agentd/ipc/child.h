/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_IPC_CHILD_H
#define AGENTD_IPC_CHILD_H

/**
 * @file child.h
 * What a child of the monitor or of the manager is, and what it finds when it begins.
 */

#include <stdint.h>

/* A child finds these descriptors after exec. */
#define IPC_FD_MONITOR  4 /**< Any child: the socket pair to whoever started it. */
#define IPC_FD_FRONT  5 /**< The worker: the socket pair to the frontend. */
#define IPC_FD_TARGET 6 /**< Workers but look: pidfd of the target; the heir that waits: of the monitor. */
/**
 * session, rescue and repair worker: memory of IPC_UNDO_BYTES that outlives the worker.
 *
 * The first word is zero as long as there is nothing in the target that the kernel would not undo.
 * The last word is the monitor's own.  The monitor sets it when the worker has died and the target
 * was seen to wait for the worker's answer to RUNTIME_ENABLE; the rescue worker that gives the
 * answer clears it.
 * The word before is not 0 while a GPU of the target may be left suspended, with nothing else to undo: a
 * session worker that was killed had suspended it, and only a new session can resume it.  It is the start
 * time of that process.  A rescue worker sets it, and the next session or repair worker clears it.  What the
 * session worker noted of the program stays with it, by which a program is told that replaced it (exec).
 * The monitor looks at no more than those three words.
 */
#define IPC_FD_UNDO 7
#define IPC_UNDO_BYTES 4096
#define IPC_UNDO_ANSWER (IPC_UNDO_BYTES - sizeof(uint64_t))
#define IPC_UNDO_SUSPENDED (IPC_UNDO_ANSWER - sizeof(uint64_t))
#define IPC_FD_EDITOR 6 /**< adapter: the editor's socket. */
#define IPC_FD_EARLY  7 /**< adapter: sealed memory with what was read from it. */

/** The kinds of children.  The frontend asks for all but RESCUE, LOOK, CONNECT and REPAIR. */
enum ipc_kind {
	IPC_KIND_SESSION = 1,
	IPC_KIND_INSPECT = 2,
	IPC_KIND_RESCUE = 3, /**< Cleans up behind a dead session worker. */
	IPC_KIND_STORE = 4,
	IPC_KIND_LOOK = 5, /**< Discovers the processes that use a GPU. */
	IPC_KIND_ADAPTER = 6,
	IPC_KIND_CONNECT = 7, /**< A connect broker; only the monitor starts one. */
	IPC_KIND_HOST = 8, /**< Reads what the threads of one process do; answers one call. */
	IPC_KIND_REPAIR = 9, /**< Opens and ends a session, to resume what a dead one has left suspended. */
};

/**
 * Exit status of a session worker that ended as it should, but left threads in the target that wait
 * for an answer that nobody gives any more, or may not see whether there are any: the monitor looks.
 */
#define IPC_EXIT_LOOK 3
/** Exit status of a rescue (agentd/heir) whose target did not get what a dead worker owed it. */
#define IPC_EXIT_OWED 1

/** Is a child of that kind about one process, which the client must be allowed to look at? */
#define IPC_KIND_HAS_TARGET(kind) ((kind) == IPC_KIND_SESSION || (kind) == IPC_KIND_HOST)

/** Values of the schema's `vendor`. */
enum ipc_vendor { IPC_VENDOR_ANY = 0, IPC_VENDOR_AMD = 1, IPC_VENDOR_NVIDIA = 2 };

/** Room for the name of a rule, with its NUL. */
#define IPC_RULE_NAME_SIZE 32
/** A target's queues stand still for no longer than this, unless the configuration says otherwise. */
#define IPC_MAX_SUSPENDED_MS 600000

#endif /* AGENTD_IPC_CHILD_H */
