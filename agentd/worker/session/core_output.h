/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SESSION_CORE_OUTPUT_H
#define WORKER_SESSION_CORE_OUTPUT_H

/**
 * @file core_output.h
 * A core on its way to a client, through a socket that the frontend has made for the two of them.
 *
 * The client has the other end, and may be anybody's enemy.  It can stop reading, but nothing else:
 * a stream socket, unlike a pipe, has no lock that its reader could hold while the worker writes to
 * it or ends, and one that is shut down for reading takes no descriptor from it.  The core goes in
 * slices, between which calls and events get their turn, as fast as it is read.
 */

#include <stdint.h>

#include "protocol/agent_err.h"

struct session;

/**
 * Begin to send the core that session.core_bytes tells of; a core that is on its way is ended.
 * @param take_fd  The socket; closed in any case.
 * @param stall_ms  A reader that takes nothing for so long gets no more.
 * @return 0, or negative with @p err.
 */
int core_output_start(struct session *s, int take_fd, uint32_t stall_ms, struct agent_err *err);
/** End the stream early; the reader finds no record that the core is whole. */
void core_output_stop(struct session *s);

#endif /* WORKER_SESSION_CORE_OUTPUT_H */
