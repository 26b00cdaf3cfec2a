/* SPDX-License-Identifier: MIT */
#ifndef CUDBGSHIM_TRACER_H
#define CUDBGSHIM_TRACER_H

/**
 * @file tracer.h
 * Sets of registers: what a tracer needs to know of the processor is in tracer_x86_64.c and tracer_aarch64.c.
 */

#include <stddef.h>

#include "cudbgshim_target.h"

/** Read a set of registers (PTRACE_GETREGSET).  @param size  In: room in @p buf; out: bytes.  @return 0, -errno. */
int tracer_get(int tid, int kind, void *buf, size_t *size);
/** Set it.  @return 0, -errno. */
int tracer_set(int tid, int kind, const void *buf, size_t size);

/** CUDBGSHIM_PART_VECTORS.  @return 0, -EOPNOTSUPP (there is more that could not be put back), -errno. */
int tracer_get_vectors(int tid, void *buf, size_t *size);
int tracer_set_vectors(int tid, const void *buf, size_t size);
/** CUDBGSHIM_PART_THREAD_POINTER. */
int tracer_get_thread_pointer(int tid, void *buf, size_t *size);
/** CUDBGSHIM_PART_CALL. */
int tracer_set_call(int tid, const void *buf, size_t size);

#endif /* CUDBGSHIM_TRACER_H */
