/* SPDX-License-Identifier: MIT */
#ifndef WAITS_NCCL_H
#define WAITS_NCCL_H

/**
 * @file nccl.h
 * What NCCL 2.19 to 2.30 gives its kernels, and where a communicator says what has come.  All of it is what the
 * process wrote: nothing is taken that does not fit together.  Rings and their order are as RCCL has them (rccl.h).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "waits/collective/rccl.h"

/** Bytes of the arguments, of a communicator without its channels, and of a connection. */
#define WAITS_NCCL_ARGUMENTS  16u
#define WAITS_NCCL_COMM	      96u
#define WAITS_NCCL_CONNECTION 112u
/** Most channels of a communicator, in any release, and most bytes from one to the next. */
#define WAITS_NCCL_CHANNELS_MAX	     64u
#define WAITS_NCCL_CHANNEL_BYTES_MAX 368u
/** Groups of releases that lay out a communicator, its channels or its connections otherwise. */
#define WAITS_NCCL_LAYOUTS 7u

/** What a kernel was given. */
struct waits_nccl_launch {
	uint64_t comm;	   /**< Address of the communicator. */
	uint64_t channels; /**< A bit for each; the first block has the lowest one. */
};

/** Whether a kernel's symbol says that it has these arguments. */
bool waits_nccl_is_kernel(const char *symbol);

/** @return 0, -EINVAL: these are no such arguments. */
int waits_nccl_launch_read(const void *bytes, size_t size, struct waits_nccl_launch *ret);

/** @return the channel of a block; WAITS_NCCL_CHANNELS_MAX: it has none. */
uint32_t waits_nccl_channel_of(uint64_t channels, uint32_t block);

/**
 * Read rank and ranks of a communicator.
 * @param address      Where it lies.
 * @param ret_layouts  A bit for each layout in which its channels follow it.
 * @return 0, -EINVAL: it is none, or of another release.
 */
int waits_nccl_comm_read(const void *bytes, size_t size, uint64_t address, struct waits_rccl_comm *ret,
			 uint32_t *ret_layouts);

/** @return where a channel lies in a layout, counted from the communicator; 0: there is no such channel. */
uint32_t waits_nccl_channel_at(unsigned int layout, uint32_t channel);

/** @return where the connection of collective operations with a rank is, in what a channel has of that rank. */
uint32_t waits_nccl_connection_at(unsigned int layout);

/** Read a connection by which a rank receives.  @return 0, -EINVAL: it is not connected, or none. */
int waits_nccl_connection_read(unsigned int layout, const void *bytes, size_t size,
			       struct waits_rccl_connection *ret);

#endif /* WAITS_NCCL_H */
