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
 */

#include "agentd/frontend/net/net.h"
#include "protocol/rpc_wire.h"

struct access_peer;
struct evbuffer;
struct ipc_message;
struct out;
struct session;

#define CONN_OUT_PAUSE	 ((size_t)1 << 20)
#define CONN_OUT_MAX	 ((size_t)32 << 20)
#define CONN_USER_OUT_MAX ((size_t)128 << 20)
#define CONN_STALL_S	 30
#define CONN_PENDING_MAX 64

LIST_HEAD(attachment_list, attachment);
LIST_HEAD(request_list, request);

struct conn {
	LIST_ENTRY(conn) link;
	struct net *net;
	int fd;
	int peer_fd; /**< Whose credentials count: fd, or the editor's socket behind an adapter. */
	uid_t uid;
	pid_t pid;
	bool admin;
	bool closing; /**< Close when everything is answered and sent. */
	bool dead;    /**< Close without sending anything more. */
	bool paused;  /**< Not reading: too much unsent or too many requests open. */
	bool held;    /**< Not reading: conn_hold(). */
	bool spoken;  /**< Its first message was seen. */
	bool backlog; /**< Messages that arrived before the pause wait in `wire`. */
	struct event *read_event, *write_event, *gone_event;
	struct evbuffer *out;
	int out_fd;	   /**< To be sent with the byte of `out` that comes behind so many; -1: none. */
	size_t out_fd_at;
	bool fd_given; /**< It was sent one before. */
	size_t batched; /**< Bytes of answers that wait for the rest of their batch. */
	struct rpc_wire wire;
	unsigned n_requests; /**< That wait for their answers. */

	/* Kept here for those above, who empty them when it is gone; nothing here looks at them. */
	struct request_list requests; /**< Unanswered ones. */
	struct attachment_list attachments;
	struct session *store; /**< Its process at the record store, or NULL. */
};

/** @return NULL without memory: the socket is closed. */
struct conn *conn_create(struct net *net, int take_fd, const struct access_peer *peer);
/** Send one message (framed here).  @param text Taken over when it is large. */
void conn_send(struct conn *c, struct out *text);
/**
 * The same with a descriptor, which the client gets with the first byte of the message.
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
 * May this client be sent another descriptor?
 * @param promised  One is to come with an answer that it waits for.
 * @return 0, or negative with @p err.
 */
int conn_check_fd(struct conn *c, bool promised, const char *method, struct agent_err *err);
/** Bytes that the socket has not taken yet. */
size_t conn_unsent(const struct conn *c);
/** May one more answer wait for the rest of its batch?  Small ones always may. */
bool conn_may_keep(const struct conn *c, size_t size);
/** Close now.  The object is gone afterwards. */
void conn_close(struct conn *c);
/** A request of @p c waits for its answer: with many of them, reading pauses. */
void conn_request_begun(struct conn *c);
/** A request of @p c was answered: reading may go on. */
void conn_request_done(struct conn *c);

/** Read nothing more; that the client leaves is still noticed. */
void conn_hold(struct conn *c);
/**
 * From now on the process behind @p take_fd speaks for the client, whose own socket is kept for what
 * it says about him.  Only for a connection that nothing was sent on.
 * @return 0, -ENOMEM: nothing is left but conn_close().
 */
int conn_hand_over(struct conn *c, int take_fd);

#endif /* FRONTEND_NET_CONN_H */
