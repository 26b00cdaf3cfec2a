/* SPDX-License-Identifier: MIT */
#ifndef KFDSIM_FRONT_H
#define KFDSIM_FRONT_H

/**
 * @file front.h
 * The FUSE face of the simulator: one mount, one descriptor to poll.
 */

#include "sim.h"

struct front;

/**
 * Mount at @p dir (must exist).
 * @param mode  Permission bits of the `kfd` file.
 * @return 0, -ENODEV (no FUSE), -EPERM, -ENOMEM, -EIO (mount failed; libfuse said why on stderr).
 */
int front_create(struct sim *s, const char *dir, unsigned int mode, struct front **ret);
/** Unmounts; NULL is allowed. */
void front_destroy(struct front *f);

int front_fd(const struct front *f);
/** Serve what is readable.  @return 0, or -ENODEV when the mount is gone. */
int front_serve(struct front *f);
/** Look at calls whose callers got signals. */
void front_check_interrupts(struct front *f);

#endif /* KFDSIM_FRONT_H */
