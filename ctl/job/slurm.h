/* SPDX-License-Identifier: MIT */
#ifndef CTL_JOB_SLURM_H
#define CTL_JOB_SLURM_H

/** @file slurm.h  Reads what programs of Slurm print. */

#include <stddef.h>
#include <stdint.h>

/**
 * Read `scontrol listpids`: columns PID JOBID STEPID LOCALID GLOBALID below their titles, a process a line.
 * @param job   Only processes of this job; those of other jobs, and lines that are none, are passed over.
 * @param list  Room for @p room numbers; each is there once.
 * @return how many there are, at most @p room.
 */
size_t slurm_read_pids(const char *text, size_t size, const char *job, uint32_t *list, size_t room);

#endif /* CTL_JOB_SLURM_H */
