/* SPDX-License-Identifier: MIT */
#ifndef KFDSIM_STORE_H
#define KFDSIM_STORE_H

/**
 * @file store.h
 * The bytes of all memory of GPUs: one sparse file without a name.
 */

#include <stddef.h>
#include <stdint.h>

/** The file, made at the first call.  @return a descriptor that is borrowed, -errno. */
int store_fd(void);

/** The functions of struct sim_os. */
int store_read(uint64_t offset, void *buf, size_t size);
int store_write(uint64_t offset, const void *buf, size_t size);
void store_free(uint64_t offset, uint64_t size);
/** How many bytes of it were ever written or touched, and not given back. */
uint64_t store_used(void);

#endif /* KFDSIM_STORE_H */
