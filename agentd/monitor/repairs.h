/* SPDX-License-Identifier: MIT */
#ifndef MONITOR_REPAIRS_H
#define MONITOR_REPAIRS_H

/**
 * @file repairs.h
 * What becomes of a target whose GPU a dead worker has left suspended: a repair worker opens a session with
 * NVIDIA's library, which suspends and resumes the GPU, and ends it.  It is tried once after a rescue, and at the
 * start of the agent; where it fails, every later session on that process does the same.
 */

#include "agentd/monitor/workers.h"

/** A rescue has ended.  @param take_left  Its descriptors and its record are taken. */
void repairs_after(struct workers *w, struct rescue_left *take_left);
/** At the start: repair what an earlier agent has left suspended, and what its heir leaves that is still at work. */
void repairs_begin(struct workers *w);
/** Look for that again when it is time to.  @return when it is the next time; 0: all heirs have ended. */
uint64_t repairs_deadline(struct workers *w);
/** A repair worker has ended, and there is nothing else to undo. */
void repairs_ended(const struct worker *k);
/** Is a repair worker at work on @p target? */
bool repairs_has(const struct workers *w, pid_t target);

#endif /* MONITOR_REPAIRS_H */
