/* SPDX-License-Identifier: MIT */
#ifndef CUDASIM_ENGINE_H
#define CUDASIM_ENGINE_H

/**
 * @file engine.h
 * The stand-in for libcudadebugger.so.1: a thread in the debuggee, the table in the debugger.
 */

#include <stdint.h>

#include "libcudbgshim/src/cudbg_abi.h"

/**
 * The engine's entry in a debuggee.  Non-zero is success; the vendor's libcuda passes six words of
 * unknown meaning.
 */
typedef int engine_injection_fn(uint64_t launch, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
/**
 * The first of these words from the simulated libcuda at cuInit; anything else means a late attach.
 */
#define ENGINE_LAUNCH UINT64_C(0x48434e55414c)
/**
 * The result of the simulated engine when a second attach stays without effect, as with release
 * 12.5.
 */
#define ENGINE_INACTIVE 2

/** Give the table of the release that the configuration names.  @return CUDBGResult. */
uint32_t engine_get_api(uint32_t major, uint32_t minor, uint32_t rev, cudbgabi_any_fn *const **ret);
/** Give the version of that release.  @return CUDBGResult. */
uint32_t engine_get_api_version(uint32_t *major, uint32_t *minor, uint32_t *rev);

#endif /* CUDASIM_ENGINE_H */
