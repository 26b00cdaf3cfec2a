/* SPDX-License-Identifier: MIT */
#ifndef KFDSIM_WORK_H
#define KFDSIM_WORK_H

/**
 * @file work.h
 * What a GPU does with the packets of a process that has made memory objects: copies are done,
 * signals told, barriers waited for.  Kernels are not executed: a dispatch is done at once, or held
 * with waves at its first instruction, as the process was told (struct sim_process).
 */

#include "sim.h"

/** Do what a running compute queue has to do. */
void sim_work_compute(struct sim *s, struct sim_process *p, struct sim_queue *q);
/** Do what a running copy queue has to do. */
void sim_work_copies(struct sim *s, struct sim_process *p, struct sim_queue *q);
/** A queue ran into memory that its GPU has not mapped. */
void sim_work_fault(struct sim *s, struct sim_process *p, struct sim_queue *q, uint64_t va);

#endif /* KFDSIM_WORK_H */
