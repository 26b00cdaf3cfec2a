/* SPDX-License-Identifier: MIT */
#ifndef CUDASIM_ENGINE_H
#define CUDASIM_ENGINE_H

/**
 * @file engine.h
 * The stand-in for libcudadebugger.so.1: a thread in the debuggee, the table in the debugger.
 */

#include <stdint.h>

#include "libcudbgshim/src/cudbg_abi.h"

/** Non-zero is success; the vendor's libcuda passes six words of unknown meaning. */
typedef int engine_injection_fn(uint64_t launch, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
/** First word from our libcuda at cuInit; anything else means a late attach. */
#define ENGINE_LAUNCH UINT64_C(0x48434e55414c)
/** Returned by ours when a second attach stays without effect, as release 12.5 does. */
#define ENGINE_INACTIVE 2

/** The table of the release that the configuration names. */
uint32_t engine_get_api(uint32_t major, uint32_t minor, uint32_t rev, cudbgabi_any_fn *const **ret);
uint32_t engine_get_api_version(uint32_t *major, uint32_t *minor, uint32_t *rev);

#endif /* CUDASIM_ENGINE_H */
