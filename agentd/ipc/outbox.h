/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_IPC_OUTBOX_H
#define AGENTD_IPC_OUTBOX_H

/**
 * @file outbox.h
 * One end of a SOCK_SEQPACKET pair, with the messages that its other end was too busy to take.
 *
 * Nothing here waits.  Whoever takes no message for a second, while some wait, is taken for broken:
 * the processes of the agent always read.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The messages that the frontend's requests, its workers and all rules bring about in a second are fewer. */
#define OUTBOX_WAITING_MAX 4096

struct outbox_message;

struct outbox {
	int sock; /**< -1: closed. */
	struct outbox_message *first, *last; /**< The other end was too busy to take these. */
	size_t n_waiting;
	uint64_t give_up_at; /**< Unless it takes one until then it is broken (monotonic ns); 0: none waits. */
};

#define OUTBOX_NULL { .sock = -1 }

/**
 * Send a message, or have it wait for outbox_flush().
 * @param fd  To go along, borrowed; or -1.  A message that waits goes without it when this process
 *            has no free descriptor.
 * @return 0, -EPIPE, -ENOBUFS (very many wait), -errno: the other end is broken.
 */
int outbox_send(struct outbox *o, const void *msg, size_t size, int fd);
/**
 * Send a message and sockets of strangers now or not at all: one that waited here could be closed here
 * last, with whatever lies in it.
 * @param fds  Borrowed; up to FD_MESSAGE_MAX.
 * @return 0, -EAGAIN, -errno.
 */
int outbox_pass(struct outbox *o, const void *msg, size_t size, const int *fds, size_t n_fds);
/** It would take another message at once. */
bool outbox_has_room(const struct outbox *o);
/** For poll(). */
short outbox_events(const struct outbox *o);
/**
 * Send what waits, as far as the other end takes it.
 * @return 0, -EAGAIN: it took nothing in time; -errno.
 */
int outbox_flush(struct outbox *o);
/** What waits is not sent any more. */
void outbox_forget(struct outbox *o);

#endif /* AGENTD_IPC_OUTBOX_H */
