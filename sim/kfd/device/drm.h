/* SPDX-License-Identifier: MIT */
#ifndef KFDSIM_DRM_H
#define KFDSIM_DRM_H

/**
 * @file drm.h
 * The render node of a GPU: the few questions that a runtime asks it.
 */

#include "sim.h"

/** Bytes of the largest argument. */
#define SIM_DRM_ARG_MAX 64u

/**
 * Run one ioctl of a render node.
 * @param tid   Thread that called; texts and answers behind pointers are written to its process.
 * @param arg   The argument, SIM_DRM_ARG_MAX bytes of which the caller's are first; changed.
 * @param size  Bytes that the caller's command word covers.
 * @return 0, -EINVAL (unknown question), -ENOTTY, -EFAULT.
 */
int sim_drm_ioctl(struct sim *s, const struct sim_gpu *gpu, int tid, uint32_t command,
		  uint8_t arg[SIM_DRM_ARG_MAX], size_t size);

#endif /* KFDSIM_DRM_H */
