/* SPDX-License-Identifier: MIT */
#ifndef CUDASIM_LIBCUDA_H
#define CUDASIM_LIBCUDA_H

/**
 * @file libcuda.h
 * The parts of the stand-in for libcuda.so.1.
 */

#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

/* ---- libcuda_debug.c: what a debugger sees ---- */
/** Do what cuInit does for debuggers before anything else. */
void debug_before_init(void);
/**
 * Do what cuInit does for debuggers when the driver is up: launch path, descriptor for a late
 * attach.
 */
void debug_after_init(void);
/** The value that the debugger wrote last into cudbgIpcFlag. */
uint32_t debug_ipc_flag(void);
/** Report a failed driver call to a debugger that waits at the empty functions. */
void debug_report_error(uint64_t result, const char *function, const char *name, const char *text);

/** Take a lock that attaching needs, as the real one needs those of malloc and the loader. */
EXPORT void cudasim_lock(void);
/** Release that lock. */
EXPORT void cudasim_unlock(void);

/* ---- libcuda_driver.c: what the program calls ---- */
/**
 * Send one line to the simulated GPU, with an optional blob behind it.
 * @param ret  Answer text; malloc'ed; NULL allowed.
 * @return CUresult; 100 (no device) when there is no GPU.
 */
EXPORT uint32_t cudasim_command(const char *line, const void *blob, size_t size, char **ret);

#endif /* CUDASIM_LIBCUDA_H */
