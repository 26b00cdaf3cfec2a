/* SPDX-License-Identifier: MIT */
#ifndef CUDASIM_CONF_H
#define CUDASIM_CONF_H

/**
 * @file conf.h
 * What the two libraries are told from outside: lines "KEY VALUE".
 *
 * First read from cudasim.conf beside the library that asks, then from $GPU_AGENT_CUDASIM (pairs
 * separated by ';'), which wins.  Keys: gpu (socket of gpu-agent-cuda-sim), version (MAJOR.MINOR of
 * the driver), get-api, get-version (a CUDBGResult to answer), negotiate (strict or lax),
 * version-sleep (ms).
 */

#include <stddef.h>
#include <stdint.h>

#define CONF_VALUE_MAX 256

/** @param ret At least CONF_VALUE_MAX bytes; empty when the key is not set. */
void conf_get(const char *key, char *ret);
/** Decimal value, or @p fallback. */
uint32_t conf_number(const char *key, uint32_t fallback);
/** MAJOR.MINOR as major * 100 + minor. */
uint32_t conf_release(uint32_t fallback);

#endif /* CUDASIM_CONF_H */
