/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_NET_CONN_H
#define FRONTEND_NET_CONN_H

/**
 * @file conn.h
 * Client connections: framing in, bounded buffering out.
 *
 * A client that does not read is not waited for: reading its requests pauses while CONN_OUT_PAUSE
 * bytes are unsent, and it is dropped when something is to be sent while CONN_OUT_MAX bytes still
 * are unsent (CONN_USER_OUT_MAX by all of its user), or after CONN_STALL_S without a byte taken.
 * Answers that wait for the rest of their batch count like unsent ones, and are refused instead.
 * A request that has arrived in part only, for which its user's connections have no room left
 * (CONN_USER_IN_MAX), is refused, and its connection ends.
 */

#include "agentd/frontend/net/net.h"
#include "protocol/rpc_wire.h"

struct evbuffer;
struct ipc_client;
struct ipc_message;
struct out;
struct session;

#define CONN_OUT_PAUSE	 ((size_t)1 << 20)
#define CONN_OUT_MAX	 ((size_t)32 << 20)
#define CONN_USER_OUT_MAX ((size_t)128 << 20)
#define CONN_USER_IN_MAX ((size_t)16 << 20)
#define CONN_STALL_S	 30
#define CONN_PENDING_MAX 64

LIST_HEAD(attachment_list, attachment);
LIST_HEAD(request_list, request);

/** One client. */
struct conn {
	LIST_ENTRY(conn) link;
	struct net *net;
	int fd;
	int peer_fd; /**< The client's own socket: fd, or the editor's behind an adapter. */
	uint64_t id; /**< By which the monitor knows who the client is. */
	uid_t uid;
	uid_t charge; /**< User whose quotas it uses up. */
	pid_t pid;
	bool admin;
	bool near;    /**< It lives in the agent's namespaces of users and processes. */
	bool closing; /**< Close when everything is answered and sent. */
	bool dead;    /**< Close without sending anything more. */
	bool paused;  /**< Not reading: too much unsent or too many requests open. */
	bool held;    /**< Not reading: conn_hold(). */
	bool spoken;  /**< Its first message was seen. */
	bool backlog; /**< Messages that arrived before the pause wait in `wire`. */
	struct event *read_event, *write_event, *gone_event;
	struct evbuffer *out;
	int out_fd;	   /**< Descriptor to be sent with byte out_fd_at of `out`; -1: none. */
	size_t out_fd_at;
	bool fd_given; /**< The client was sent a descriptor before. */
	size_t batched; /**< Bytes of answers that wait for the rest of their batch. */
	struct rpc_wire wire;
	unsigned n_requests; /**< Requests that wait for their answers. */
	unsigned n_first;    /**< Of them, those before which nothing else of this client is served. */

	/*
	 * These lists belong to the directories above, which empty them when the connection is
	 * gone.  Nothing in this directory looks at them.
	 */
	struct request_list requests; /**< Unanswered ones. */
	struct attachment_list attachments;
	struct session *store; /**< The process that works on the record store for it, or NULL. */
};

/**
 * Begin to serve a client.
 * @param take_fd  Owned by this function.
 * @param m        Who the client is.
 * @return NULL without memory: the socket is closed, and the monitor knows.
 */
struct conn *conn_create(struct net *net, int take_fd, const struct ipc_client *m);
/** Frame and send one message.  @param text  Its bytes are taken over when they are many. */
void conn_send(struct conn *c, struct out *text);
/**
 * Send one message and a descriptor, which the client gets with the first byte of the message.
 * @param take_fd  Closed in any case; conn_check_fd() said that there is none before it.
 */
void conn_send_fd(struct conn *c, struct out *text, int take_fd);
/**
 * Send one message whose middle part came in a memfd: it is sent from there, without a copy.
 * @param body  With a mapping, which is taken over.
 */
void conn_send_around(struct conn *c, const struct out *begin, struct ipc_message *body,
		      const struct out *end);
/**
 * Check whether this client may be sent another descriptor.
 * @param promised  One is to come with an answer that it waits for.
 * @return 0, or negative with @p err.
 */
int conn_check_fd(struct conn *c, bool promised, const char *method, struct agent_err *err);
/** @return the bytes that the socket has not taken yet. */
size_t conn_unsent(const struct conn *c);
/** @return whether one more answer may wait for the rest of its batch; small ones always may. */
bool conn_may_keep(const struct conn *c, size_t size);
/** Close the connection now.  The object is gone afterwards. */
void conn_close(struct conn *c);
/** Note that a request waits for its answer: with many of them, reading pauses. */
void conn_request_begun(struct conn *c);
/** Note that a request was answered: reading may go on. */
void conn_request_done(struct conn *c);

/** Serve nothing else of this client before a request is answered, or conn_go_on() is called for it. */
void conn_wait(struct conn *c);
void conn_go_on(struct conn *c);

/** Read nothing more; that the client leaves is still noticed. */
void conn_hold(struct conn *c);
/**
 * Let the process behind @p take_fd speak for the client from now on.  The client's own socket is
 * kept, and closed with the connection.  Nothing may have been sent on the connection.
 * @param take_fd  Owned by the connection, also after a failure.
 * @return 0, -ENOMEM: nothing is left but conn_close().
 */
int conn_hand_over(struct conn *c, int take_fd);

#endif /* FRONTEND_NET_CONN_H */
