/* SPDX-License-Identifier: MIT */
#ifndef WORKER_HOST_EVENT_WAIT_H
#define WORKER_HOST_EVENT_WAIT_H

/**
 * @file event_wait.h
 * Which packet of which queue a thread waits for, on AMD devices.
 *
 * A thread that waits for a GPU does so in one request of /dev/kfd, whose arguments name events of the driver.  Each
 * signal of the runtime has such an event, and each packet names the signal that its end changes.  So the thread and
 * the packet meet without any frame.
 */

#include <stdbool.h>

#include "hoststack/memory.h"

/** Events of one thread that are kept. */
#define EVENT_WAIT_MAX 16
/** Packets of one queue that are looked at. */
#define EVENT_PACKETS_MAX 4096

/** What one thread asks the driver for. */
struct event_wait {
	uint32_t events[EVENT_WAIT_MAX];
	uint32_t n;	/**< Of these. */
	uint32_t asked; /**< How many it asks for; 0: it does not wait for events. */
	bool all;	/**< It waits for all of them, and not for the first. */
};

/** Is this request of ioctl(2) the one that waits for events? */
bool event_wait_is_request(uint64_t request);
/**
 * Read what the request asks for.
 * @param arguments  Its argument.
 * @return 0; -EINVAL: it makes no sense; what hoststack_read() returns.
 */
int event_wait_read(struct hoststack_memory *m, uint64_t arguments, struct event_wait *ret);
/** Does the thread wait for one of many things?  Then it serves the runtime: nobody's work waits for one of them. */
bool event_wait_is_service(const struct event_wait *w);

/** Where the packets of a queue are. */
struct event_queue {
	uint32_t queue_id, gpu_id;
	uint64_t ring, ring_bytes;
	uint64_t read_index, write_index; /**< Addresses of the two. */
};

/** A packet that is not done, and its signal. */
struct event_packet {
	uint32_t queue_id, gpu_id;
	uint64_t dispatch; /**< The packet's position, counted from the queue's first one on. */
	uint64_t signal;   /**< Address of it. */
	uint32_t event;
	int64_t value; /**< Of the signal; at 0 and below the work is done. */
};

/** Packets with signals that have an event, oldest first within a queue. */
struct event_packets {
	struct event_packet *list; /**< malloc'ed. */
	size_t n, capacity;
	bool is_cut; /**< A queue has more than EVENT_PACKETS_MAX of them. */
};

/**
 * Read the packets of a queue that are not done.
 * @return 0; -EINVAL: no ring looks like this; -ENOMEM; what hoststack_read() returns.
 */
int event_packets_read(struct hoststack_memory *m, const struct event_queue *q, struct event_packets *p);
/** @return the first packet that one of the events belongs to, or NULL. */
const struct event_packet *event_packets_find(const struct event_packets *p, const struct event_wait *w);
void event_packets_deinit(struct event_packets *p);

#endif /* WORKER_HOST_EVENT_WAIT_H */
