/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SESSION_CORE_OUTPUT_H
#define WORKER_SESSION_CORE_OUTPUT_H

/**
 * @file core_output.h
 * A core on its way to a client, through a socket that the frontend has made for the two of them.
 *
 * The client has the other end, and may be anybody's enemy.  It can stop reading, but nothing else:
 * a stream socket, unlike a pipe, has no lock that its reader could hold while the worker writes to
 * it or ends, and one that is shut down for reading takes no descriptor from him.  The core goes in
 * slices, between which calls and events get their turn, as fast as it is read.
 */

#include <stdint.h>

#include "protocol/agent_err.h"

struct session;

/**
 * Begin to send the core that session.core_bytes tells of; one on its way before is ended.
 * @param take_fd   Closed in any case.
 * @param stall_ms  When the reader takes nothing for so long, it gets no more.
 */
int core_output_start(struct session *s, int take_fd, uint32_t stall_ms, struct agent_err *err);
/** The reader finds the end of the stream, without a record that the core is whole. */
void core_output_stop(struct session *s);

#endif /* WORKER_SESSION_CORE_OUTPUT_H */
