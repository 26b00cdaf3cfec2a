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
/** Called by cuInit before anything else. */
void debug_before_init(void);
/** Called by cuInit when the driver is up: launch path, descriptor for late attach. */
void debug_after_init(void);
/** What the debugger wrote last into cudbgIpcFlag. */
uint32_t debug_ipc_flag(void);
/** Report a failed driver call to a debugger that waits at the empty functions. */
void debug_report_error(uint64_t result, const char *function, const char *name, const char *text);

/** A lock that attaching needs, as the real one needs those of malloc and the loader. */
EXPORT void cudasim_lock(void);
EXPORT void cudasim_unlock(void);

/* ---- libcuda_driver.c: what the program calls ---- */
/**
 * One line to the simulated GPU, with an optional blob behind it.
 * @param ret  Answer text; malloc'ed; NULL allowed.
 * @return CUresult; 100 (no device) when there is no GPU.
 */
EXPORT uint32_t cudasim_command(const char *line, const void *blob, size_t size, char **ret);

#endif /* CUDASIM_LIBCUDA_H */
