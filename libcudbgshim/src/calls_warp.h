/* SPDX-License-Identifier: MIT */
#ifndef CUDBGSHIM_CALLS_WARP_H
#define CUDBGSHIM_CALLS_WARP_H

#include "cudbgshim.h"

/** Clear what the bits in @c has do not vouch for; a cluster of one block is none. */
void warp_normalise(struct cudbgshim_warp *w);

#endif /* CUDBGSHIM_CALLS_WARP_H */
