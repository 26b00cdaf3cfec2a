/* SPDX-License-Identifier: MIT */
#ifndef INFERIOR_PROBE_H
#define INFERIOR_PROBE_H

/** @file probe.h  What session_probe shows of a target without touching it. */

#include "cudbgshim_target.h"

/** Print path, symbols and values of the driver's variables. */
int probe_symbols(const struct cudbgshim_memory *memory, int proc_fd);

#endif /* INFERIOR_PROBE_H */
