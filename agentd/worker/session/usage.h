/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SESSION_USAGE_H
#define WORKER_SESSION_USAGE_H

/**
 * @file usage.h
 * Who may use the session, as the monitor says, and what the monitor is told of those who do.
 *
 * It is told of every call that changes something, and of calls that read what a process of another
 * user does, of these once in ten seconds for each client and method.  The others are counted, and so
 * are those above IPC_USED_PER_SECOND: the next message that names the client says how many.  A third of
 * that is for the target's own user, one for what others change and one for what they read; in each there
 * is room for methods that a client has not been told of lately, however often it calls another one.
 *
 * It is told, too, when the writer lease goes from one client to another.  Who has it the frontend
 * decides; this process sees it by what the clients call.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/ipc/monitor_frontend.h"
#include "agentd/ipc/monitor_worker.h"
#include "rpc_gen.h"

/** A client that the monitor has let in. */
struct usage_client {
	uint64_t id; /**< The number of its connection. */
	uint64_t order; /**< Who was let in later has a larger one. */
	uid_t uid;
	enum ipc_right rights;
	bool admin;
	bool has_left; /**< The frontend says so; it may have come back, which it says at another time. */
	bool has_called; /**< Since it came. */
	uint64_t told;	  /**< Bits of the methods that were told since */
	uint64_t told_ns; /**< this time. */
	uint32_t untold;  /**< Calls that were only counted, */
	enum ipc_use last_use; /**< and of the last of them the kind */
	enum rpc_method last_method; /**< and the method. */
};

/** How many messages there were in one second. */
struct usage_second {
	uint64_t since_ns;
	uint32_t n;
};

/** Who has the writer lease. */
struct usage_holder {
	uint64_t id;	  /**< The number of its connection; 0: nobody has it. */
	uint64_t asked_ns; /**< When it asked last for anything but more time. */
	bool has_left;	  /**< The frontend says so. */
};

struct usage {
	struct usage_client *list;
	size_t n, capacity;
	uint64_t last_order;
	bool has_forgotten; /**< For want of places somebody who was let in is not, or no longer, in the list. */
	uid_t owner; /**< The target's user. */
	int fd;	     /**< Socket to the monitor, borrowed. */
	struct usage_second own, others_changed, others_read;
	struct usage_holder holder;
};

/** Release memory; a zeroed object is accepted. */
void usage_deinit(struct usage *u);
/**
 * The monitor has let a client in.  Where there is no place it gets that of one who has left, or has not called
 * yet, and where there is none of these it gets none.
 * @return 0, -ENOMEM.
 */
int usage_let_in(struct usage *u, const struct ipc_let_in *m);
/** @return whom the monitor has let in by that number, or NULL; valid until somebody else is let in. */
struct usage_client *usage_find(struct usage *u, uint64_t id);
/** The same for whoever calls now, and keeps the place until it leaves. */
struct usage_client *usage_admit(struct usage *u, uint64_t id);
/** A client that was let in calls a method of the session.  @param now  Monotonic ns. */
void usage_called(struct usage *u, uint64_t id, enum rpc_method method, uint64_t now);
/**
 * By such a call a client has the writer lease from now on.
 * @param forced  Whoever had it has lost it by force.
 */
void usage_takes(struct usage *u, uint64_t id, enum rpc_method method, bool forced, uint64_t now);
/** It has the lease no more. */
void usage_gives_back(struct usage *u, uint64_t id);
/** A client has left the session. */
void usage_left(struct usage *u, uint64_t id, uint64_t now);
/** The session is over: tell the monitor what was only counted. */
void usage_end(struct usage *u);

#endif /* WORKER_SESSION_USAGE_H */
