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

/** Bytes of what is read of the arguments, of a communicator without its channels, and of a connection. */
#define WAITS_NCCL_ARGUMENTS  16u
#define WAITS_NCCL_COMM	      96u
#define WAITS_NCCL_CONNECTION 112u
/** Most channels of a communicator, in any release, and most bytes from one to the next. */
#define WAITS_NCCL_CHANNELS_MAX	     64u
#define WAITS_NCCL_CHANNEL_BYTES_MAX 368u
/** Groups of releases that lay out a communicator, its channels or its connections otherwise. */
#define WAITS_NCCL_LAYOUTS 7u

/** Slots of the buffer of a connection: a step has the one of its remainder. */
#define WAITS_NCCL_SLOTS 8u
/** Bytes that are read of a slot. */
#define WAITS_NCCL_FLAG 16u

/** How what comes is told, in the order in which connections have a buffer for each. */
enum waits_nccl_protocol { WAITS_NCCL_LL, WAITS_NCCL_LL128, WAITS_NCCL_SIMPLE, WAITS_NCCL_NO_PROTOCOL };

/** From whom a function receives. */
enum waits_nccl_way {
	WAITS_NCCL_NO_WAY, /**< Not told. */
	WAITS_NCCL_RING,   /**< Each rank of the one in front of it. */
	WAITS_NCCL_TREE,   /**< Of those below a rank, and then of the one above it. */
	WAITS_NCCL_PAIR,   /**< Of single ranks, as its work says: so does its protocol. */
};

/** What the name of a kernel or device function says. */
struct waits_nccl_function {
	/** Of a ring in which each rank receives, and of a tree; of others WAITS_NCCL_NO_PROTOCOL. */
	enum waits_nccl_protocol protocol;
	bool is_kernel;	    /**< It has the function that it is named after inside it, and calls all others. */
	bool has_empty_steps; /**< Some of its steps may bring no data: of a few elements, not each rank has one. */
	enum waits_nccl_way way;
};

/** What a kernel was given. */
struct waits_nccl_launch {
	uint64_t comm;	   /**< Address of the communicator. */
	uint64_t channels; /**< A bit for each; the first block has the lowest one. */
	/** Until 2.21: channels may have no data at all, so that no flag says whether anybody is waited for. */
	bool has_empty_channels;
};

/** What is in the slot of a buffer. */
enum waits_nccl_slot { WAITS_NCCL_SLOT_OLD, WAITS_NCCL_SLOT_CAME, WAITS_NCCL_SLOT_WRONG };

/** Whether a kernel's symbol says that it has these arguments. */
bool waits_nccl_is_kernel(const char *symbol);

/**
 * Tell a kernel or device function by its symbol.
 * @return 0, -ENOENT: it is none of NCCL 2.19 and later.
 */
int waits_nccl_function_read(const char *symbol, struct waits_nccl_function *ret);

/**
 * Read the arguments.
 * @param size  Of all of them, of which the first WAITS_NCCL_ARGUMENTS are read.
 * @return 0, -EINVAL: these are no such arguments.
 */
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

/**
 * @name What has come with the protocols LL and LL128
 * They write no count: the data itself says, by a flag of each line, of which step it is.
 * @{
 */

/** @return bytes from one slot to the next, by a communicator that was read; 0: not believable. */
uint32_t waits_nccl_slot_bytes(unsigned int layout, const void *comm, size_t size, enum waits_nccl_protocol protocol);

/**
 * @return where the WAITS_NCCL_FLAG bytes with the flag of the first line of the first slot are; 0: it is not
 * connected, or no connection.
 */
uint64_t waits_nccl_flag_at(const void *connection, size_t size, enum waits_nccl_protocol protocol);

/**
 * Tell whether anything has come by a slot since kernels have taken @p taken steps.
 * @param bytes  Its WAITS_NCCL_FLAG bytes.
 * @return WAITS_NCCL_SLOT_WRONG: no sender has ever written that there.
 */
enum waits_nccl_slot waits_nccl_slot_read(const void *bytes, enum waits_nccl_protocol protocol, uint32_t slot,
					  uint64_t taken);

/** @} */

#endif /* WAITS_NCCL_H */
