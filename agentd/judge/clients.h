/* SPDX-License-Identifier: MIT */
#ifndef JUDGE_CLIENTS_H
#define JUDGE_CLIENTS_H

/**
 * @file clients.h
 * The connections of clients: accepting them, and who is at the other end of each.
 *
 * Everything that is known about a client was read when its connection was accepted, and only that
 * counts for what it may do later.  The frontend gets the socket and a number, by which it names the
 * connection; a number that it was not given, or has given back, is a lie.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agentd/access.h"
#include "agentd/ipc/monitor_frontend.h"

#define CLIENTS_BUCKETS 128

/** One connection. */
struct client {
	struct client *next; /**< In its bucket. */
	uint64_t id;	     /**< The kernel's number of the socket (SO_COOKIE): it gives none twice. */
	struct access_peer peer;
	unsigned n_holders; /**< The table, and those who decide about it. */
	bool is_over;	    /**< The frontend was told to close it; */
	uint32_t n_late;    /**< so often it has asked since. */
	uint32_t n_refused; /**< Refusals since `refused_ns`. */
	uint64_t refused_ns;
};

struct clients {
	struct client *buckets[CLIENTS_BUCKETS];
	uint32_t n;
	uint32_t n_untold; /**< Sent to the frontend, which has not said that they have arrived. */
};

/** How many there may be. */
struct clients_limits {
	uint32_t all, of_user;
	bool has_reserve; /**< Some are kept for administrators. */
};

/**
 * Accept a connection, read who it is, and decide whether it is served.
 * @param listen_fd  Non-blocking.
 * @param ret        For the frontend.
 * @param ret_fd     Its socket, ready for bytes that are not trusted; owned by the caller.
 * @return 0, -EAGAIN: nobody waits; -EMFILE, -ENFILE, -ENOBUFS, -ENOMEM: try again later.
 */
int clients_accept(struct clients *c, int listen_fd, const struct access_rules *rules,
		   const struct clients_limits *limits, struct ipc_client *ret, int *ret_fd);
/** @return the connection with this id, or NULL: there is none, or not any more. */
struct client *clients_find(const struct clients *c, uint64_t id);
/** The frontend says which it has got and which it has closed.  @return false: that is not true. */
bool clients_told(struct clients *c, const struct ipc_clients *m);
/** It is no connection any more; whoever holds it still may look at it. */
void clients_close(struct clients *c, struct client *k);
/** @return whether this socket is the client's own. */
bool clients_is_socket_of(const struct client *k, int fd);

/** Other groups may do more: judge all again.  @param changed  Is told of those whose `admin` has changed. */
void clients_judge(struct clients *c, const struct access_rules *rules,
		   void (*changed)(void *ctx, const struct ipc_client *m), void *ctx);
/**
 * Its process may have ended since it connected, and with that what it may do.
 * @param ret  For the frontend, if the answer is true.
 * @return whether `admin` has changed.
 */
bool clients_check(struct client *k, struct ipc_client *ret);
/**
 * It was refused something.
 * @param now  Monotonic ns.
 * @return whether that was once too often, so that it is to be closed; true once.
 */
bool clients_refused(struct client *k, uint64_t now);

/** Keep it in memory, also when it is closed. */
struct client *clients_hold(struct client *k);
/** The opposite. */
void clients_release(struct client *k);
/** Forget all of them. */
void clients_deinit(struct clients *c);

#endif /* JUDGE_CLIENTS_H */
