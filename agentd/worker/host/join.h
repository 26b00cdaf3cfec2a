/* SPDX-License-Identifier: MIT */
#ifndef WORKER_HOST_JOIN_H
#define WORKER_HOST_JOIN_H

/** @file join.h  Which native frames run which frames of Python. */

#include "agentd/worker/host/reading.h"

/**
 * Count the frames of Python that each call of the interpreter's evaluation function runs.
 * @param ret  One for each native frame, zeroed.
 * @return whether both tell of the same; if not, all are 0.
 */
bool join_frames(const struct reading_row *row, uint32_t *ret);

#endif /* WORKER_HOST_JOIN_H */
