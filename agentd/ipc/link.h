/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_IPC_LINK_H
#define AGENTD_IPC_LINK_H

/**
 * @file link.h
 * A channel between the frontend and a worker or a store, or between the monitor and the rules
 * process: messages with a text of any length.
 *
 * The frontend and an adapter have a stream instead: JSON-RPC, the adapter being the client.  All
 * other channels have messages of fixed size, one header for each pair of processes:
 *
 *	monitor_frontend.h    0x100   monitor <-> frontend
 *	frontend_worker.h     0x200   frontend <-> worker: what the heads of link.h mean
 *	monitor_worker.h      0x300   monitor <-> worker, store and adapter
 *	worker_store.h        0x400   worker <-> store
 *	monitor_rules.h       0x500   monitor <-> rules process: heads of link.h, and structs
 *	connect.h             0x600   monitor and worker <-> connect broker
 *	worker_tracer.h       0x700   worker <-> tracer
 *	monitor_judge.h       0x800   monitor <-> judge, which passes on what the frontend and the monitor say
 *	../hook.h             none    rules process <-> runner of hooks
 *
 * All are SOCK_SEQPACKET pairs made by the monitor, except that a worker makes the pair to the store
 * (IPC_STORE).  A message of another size or type than expected is a protocol error: the receiver
 * closes that link.  The numbers of two links differ: those of a header lie
 * above the number beside it.  Who a client is, the judge reads from the
 * socket that it accepts; the frontend names a connection by the number that the judge has given it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** Longest text, in bytes, that a message carries itself. */
#define IPC_INLINE_MAX (48 * 1024)
/** Longest text of one message in bytes: the most that its memfd may hold. */
#define IPC_TEXT_MAX ((size_t)256 << 20)

#define IPC_FLAG_JOINED	 1u /**< session.attach: the session was open already. */
#define IPC_FLAG_CONTROL 2u /**< The client may use control methods on this target. */
#define IPC_FLAG_HOLDER	 4u /**< holder_uid is valid. */
#define IPC_FLAG_WRITER	 8u /**< The client itself holds the writer lease. */
#define IPC_FLAG_FD	 16u /**< A socket comes along, whose other end the client gets. */
#define IPC_FLAG_ADMIN	 32u /**< The client is an administrator. */
#define IPC_FLAG_FORCED	 64u /**< For this call another client has lost the writer lease by force. */

/** The head of each message between the frontend and a worker or store. */
struct ipc_head {
	uint32_t type;
	uint32_t number; /**< IPC_CALL: enum rpc_method. */
	uint64_t id;	 /**< Id of the call, chosen by front; IPC_NOTIFY: the exceptions that it tells of. */
	uint32_t flags;
	uint32_t holder_uid; /**< IPC_CALL: user who holds the writer lease. */
	uint64_t client; /**< IPC_CALL, IPC_CLIENT_LEFT: whose; the number that the judge has given its connection. */
	uint64_t size;	 /**< Bytes of text; a text above IPC_INLINE_MAX is in a memfd. */
	uint32_t stopped_us; /**< From a worker: queues stood still for so long for a look since its last message. */
	uint32_t pad;
};

/**
 * One end of a channel between the frontend and a worker.  It sends without blocking, and queues the
 * messages that do not fit into the socket.
 */
struct ipc_link {
	int fd; /**< Owned; -1 when closed. */
	struct ipc_queued *head, *tail;
	size_t queued_bytes;
};

#define IPC_LINK_NULL { .fd = -1 }
/** Bytes queued to a peer that does not read; with more, sending fails with -ENOBUFS. */
#define IPC_QUEUE_MAX ((size_t)8 << 20)

/** Begin with an empty queue.  @param take_fd  The link owns it; -1: the link is closed. */
void ipc_link_init(struct ipc_link *l, int take_fd);
/** Close the socket and drop what is queued. */
void ipc_link_deinit(struct ipc_link *l);

/**
 * Send or queue one message.
 * @param text  head->size bytes.
 * @return 0, -EPIPE (the peer is gone, or the link is closed), -ENOBUFS (the queue is full),
 *         -EFBIG (the text is above IPC_TEXT_MAX), -ENOMEM, other -errno.
 */
int ipc_link_send(struct ipc_link *l, const struct ipc_head *head, const char *text);
/**
 * Send or queue one message with a descriptor.
 * @param head     Its flags have IPC_FLAG_FD.
 * @param take_fd  Closed in any case.
 * @return as ipc_link_send(); also -EMSGSIZE: the text is too long to have a descriptor beside it.
 */
int ipc_link_send_fd(struct ipc_link *l, const struct ipc_head *head, const char *text,
		     int take_fd);
/** Send what is queued, as far as the socket takes it.  @return 0, -errno when the link is dead. */
int ipc_link_flush(struct ipc_link *l);
/** @return whether messages wait for the socket to become writable. */
static inline bool ipc_link_has_queued(const struct ipc_link *l)
{
	return l->head != NULL;
}

/** A received message; release with ipc_message_deinit(). */
struct ipc_message {
	struct ipc_head head;
	const char *text; /**< head.size bytes, not NUL-terminated. */
	char *owned;	    /**< The memory behind a short text. */
	const void *mapped; /**< The memory behind a long text. */
	int fd; /**< The descriptor of a message with IPC_FLAG_FD, owned; else -1. */
};

/**
 * Receive one message.
 * @param ret  Release with ipc_message_deinit() when the answer is 1.
 * @return 1, 0 at end of file, -EAGAIN, -EPROTO (malformed), -EMFILE (no descriptor was free for
 *         the memfd: only @p ret->head is valid, the link goes on), other -errno.
 */
int ipc_link_recv(struct ipc_link *l, struct ipc_message *ret);
/** Free the text and close the descriptor. */
void ipc_message_deinit(struct ipc_message *m);

/**
 * Send one plain message and, with it, one end of a new SOCK_SEQPACKET pair.
 * @param ret_fd  The other end, which does not block; end of file there: the peer has refused.
 * @return 0, -errno.
 */
int ipc_send_pair(int sock, const void *msg, size_t size, int *ret_fd);

/** Messages of one peer that are taken before anybody else has a turn, however much it says. */
#define IPC_TURN 64

/**
 * Receive one message of the links that have a header of their own.
 * @param size    Bytes of @p msg; a message of another size is a protocol error.
 * @param ret_fd  Descriptor that came along, or -1; more than one is a protocol error.
 * @return 1, 0 at end of file, -EAGAIN, -EPROTO, other -errno.
 */
int ipc_recv_fixed(int sock, void *msg, size_t size, int *ret_fd);

#endif /* AGENTD_IPC_LINK_H */
