/* SPDX-License-Identifier: MIT */
#ifndef KFDSIM_FRONT_H
#define KFDSIM_FRONT_H

/**
 * @file front.h
 * The FUSE face of the simulator: one mount, one descriptor to poll.  It turns requests of the
 * kernel into calls of sim.h, and completed calls into replies.
 */

#include "sim/kfd/device/sim.h"

struct front;

/**
 * Mount the file system.
 * @param dir   Directory to mount at; must exist.
 * @param mode  Permission bits of the `kfd` file.
 * @return 0, -ENODEV (no FUSE), -EPERM, -ENOMEM, -EIO (mount failed; libfuse said why on stderr).
 */
int front_create(struct sim *s, const char *dir, unsigned int mode, struct front **ret);
/** Unmount and free everything; NULL is allowed.  No call may be pending. */
void front_destroy(struct front *f);

/** The descriptor to poll for requests; borrowed. */
int front_fd(const struct front *f);
/** Serve requests that have arrived.  @return 0, or -ENODEV when the mount is gone. */
int front_serve(struct front *f);
/** Act on the signals that callers of pending calls have got. */
void front_check_interrupts(struct front *f);

#endif /* KFDSIM_FRONT_H */
