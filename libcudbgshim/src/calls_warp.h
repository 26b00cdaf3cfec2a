/* SPDX-License-Identifier: MIT */
#ifndef CUDBGSHIM_CALLS_WARP_H
#define CUDBGSHIM_CALLS_WARP_H

/**
 * @file calls_warp.h
 * What the two ways to read warps share.
 */

#include "cudbgshim.h"

/**
 * Clear the members that the bits in @c has do not vouch for.  A cluster of one block counts as
 * none.
 */
void warp_normalise(struct cudbgshim_warp *w);

#endif /* CUDBGSHIM_CALLS_WARP_H */
