/* SPDX-License-Identifier: MIT */
#ifndef WORKER_CUDA_CONNECT_H
#define WORKER_CUDA_CONNECT_H

/**
 * @file connect.h
 * The connect broker, seen from its worker: it makes the connection that the vendor's library asks for.
 */

#include "cudbgshim_session.h"

struct cuda_connect {
	int channel; /**< To the broker; -1: there is none, see `status`. */
	int memory_fd; /**< Our own memory, until the broker has it. */
	int status; /**< 0; -ENOTCONN: there is no broker, or no longer; other -errno. */
	uint64_t deadline_ns; /**< When the time to attach is over; monotonic. */
	int failure; /**< What the broker said last about a connection; 0: it was made. */
	struct cudbgshim_connector connector; /**< For the session. */
};

/**
 * Ask the monitor for a broker, while /proc/self/mem can be opened.  Failures show in `status`.
 * @param deadline_ns  Whatever is asked of the monitor or the broker, no answer is waited for after that.
 */
void cuda_connect_open(struct cuda_connect *c, uint64_t deadline_ns);
/**
 * Let the broker answer for us from now on.
 * @param take_notify  What sandbox_worker_driver() returned; closed here, so that calls of connect(2)
 *                     fail rather than wait when the broker is gone.
 */
void cuda_connect_hand_over(struct cuda_connect *c, int take_notify);
void cuda_connect_close(struct cuda_connect *c);

#endif /* WORKER_CUDA_CONNECT_H */
