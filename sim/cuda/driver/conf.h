/* SPDX-License-Identifier: MIT */
#ifndef CUDASIM_CONF_H
#define CUDASIM_CONF_H

/**
 * @file conf.h
 * What the two libraries are told from outside: lines "KEY VALUE".
 *
 * A value is read from cudasim.conf beside the library that asks, then from $GPU_AGENT_CUDASIM
 * (pairs separated by ';'), which wins.
 *
 *	gpu PATH	   socket of gpu-agent-cuda-sim; without it there is no GPU
 *	version X.Y	   release of the driver
 *	revision N	   what cudbgGetAPIVersion says, if not what that release has
 *	get-version N	   CUDBGResult of cudbgGetAPIVersion
 *	get-api N	   CUDBGResult of cudbgGetAPI
 *	negotiate lax	   a revision newer than the driver's is granted; `strict`: refused
 *	version-sleep MS   cudbgGetAPIVersion takes that long
 *	link PATH	   initialize() makes that symbolic link anew, as the vendor's in /dev/char
 *	mknod PATH	   initialize() makes that character device, as the vendor's /dev/nvidiactl
 */

#include <stddef.h>
#include <stdint.h>

/** Bytes of the longest value, with its NUL. */
#define CONF_VALUE_MAX 256

/**
 * Look up a value.
 * @param ret  At least CONF_VALUE_MAX bytes; empty when the key is not set.
 */
void conf_get(const char *key, char *ret);
/** A decimal value, or @p fallback. */
uint32_t conf_number(const char *key, uint32_t fallback);
/** The value of `version`, MAJOR.MINOR, as major * 100 + minor; or @p fallback. */
uint32_t conf_release(uint32_t fallback);

#endif /* CUDASIM_CONF_H */
