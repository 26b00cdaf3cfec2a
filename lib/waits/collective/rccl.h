/* SPDX-License-Identifier: MIT */
#ifndef WAITS_RCCL_H
#define WAITS_RCCL_H

/**
 * @file rccl.h
 * What RCCL of ROCm 5.4 to 6.0 gives its kernels: which communicator, and which operations of it.
 * All of it is what the process wrote, so that nothing is taken that does not fit together.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct waits_collective;

/** Bytes of the arguments, of a communicator with what is read of its first channel, and of the
 * work of a workgroup. */
#define WAITS_RCCL_ARGUMENTS 24u
#define WAITS_RCCL_COMM      96u
#define WAITS_RCCL_WORK      256u
/** Most channels of a communicator, and ranks that are believed. */
#define WAITS_RCCL_CHANNELS_MAX 32u
#define WAITS_RCCL_RANKS_MAX    65536u

/** What a kernel was given. */
struct waits_rccl_launch {
	uint64_t comm; /**< Address of the communicator. */
	uint64_t work; /**< Address of the work of the first workgroup; the others' follow. */
	uint32_t n;    /**< Workgroups: one for each channel. */
	uint32_t channels; /**< A bit for each; the first workgroup has the lowest one. */
};

/** A communicator as one of its ranks has it. */
struct waits_rccl_comm {
	uint32_t rank, ranks;
	uint32_t previous, next; /**< Ranks beside it in the ring of the first channel. */
};

/** Whether a kernel's symbol says that it has these arguments; others lay them out otherwise. */
bool waits_rccl_is_kernel(const char *symbol);

/** @return 0, -EINVAL: these are no such arguments. */
int waits_rccl_launch_read(const void *bytes, size_t size, struct waits_rccl_launch *ret);

/**
 * Read a communicator.
 * @param address  Where it lies.
 * @return 0, -EINVAL: it is none, or of another release.
 */
int waits_rccl_comm_read(const void *bytes, size_t size, uint64_t address,
			 struct waits_rccl_comm *ret);

/**
 * Read the number of the operation that a workgroup executes.
 * @param ret  The same in all ranks: a communicator counts its operations.
 * @return 0, -ENOENT: there are several, or it has no such number, as sends and receives; -EINVAL:
 * it is no work.
 */
int waits_rccl_work_read(const void *bytes, size_t size, uint64_t *ret);

/**
 * @name What a rank receives
 * A connection counts the steps of data that have come; a kernel writes its own count back when it
 * has received all.  Where no more have come than before the kernel, it waits for the other rank.
 * @{
 */

/** Bytes of what is read of a channel, and of a connection. */
#define WAITS_RCCL_CHANNEL    24u
#define WAITS_RCCL_CONNECTION 88u
/** Releases whose channels lie otherwise, and whose connections are found otherwise. */
#define WAITS_RCCL_LAYOUTS 4u

/** A channel of a communicator. */
struct waits_rccl_channel {
	uint64_t peers; /**< Connections, by rank. */
	uint64_t order; /**< Ranks in the order of the ring, 4 bytes each, from this one on. */
	uint32_t previous, next;
};

/** What a workgroup receives. */
struct waits_rccl_receive {
	uint32_t from;	     /**< A rank of the communicator. */
	uint32_t connection; /**< One of those with that rank. */
	uint32_t waves;	     /**< So many, from the first one on, receive it. */
};

/** A connection on the side of who receives. */
struct waits_rccl_connection {
	uint64_t arrived; /**< Address of the count of steps that have come, of 8 bytes. */
	uint64_t taken;	  /**< Steps that kernels have received that have ended. */
};

/** Where a channel lies in a layout. */
uint64_t waits_rccl_channel_at(unsigned int layout, uint64_t comm, uint32_t channel);

/** @return 0, -EINVAL: it is none of a communicator of so many ranks. */
int waits_rccl_channel_read(const void *bytes, size_t size, uint32_t ranks,
			    struct waits_rccl_channel *ret);

/**
 * @return whether the order of a ring, of which three places were read, is that of its channel: what
 * lies where another release has its channels has none that is.
 */
bool waits_rccl_is_order(const struct waits_rccl_comm *comm, const struct waits_rccl_channel *channel,
			 uint32_t first, uint32_t second, uint32_t last);

/** Whether a device function receives of single ranks, as its work says. */
bool waits_rccl_is_pair(const struct waits_collective *function);
/**
 * Whether no rank ends in a device function before it has received of the rank in front of it, which
 * sends as soon as it comes.  Of a broadcast or a reduction that is not so, and other algorithms and
 * protocols count elsewhere.
 */
bool waits_rccl_is_ring(const struct waits_collective *function);

/**
 * Read what a workgroup receives.
 * @param is_pair  By the device function that it is in.
 * @return 0, -ENOENT: nothing that is counted so, or another work follows; -EINVAL: it is no such
 * work.
 */
int waits_rccl_receive_read(unsigned int layout, const void *bytes, size_t size, bool is_pair,
			    const struct waits_rccl_comm *comm,
			    const struct waits_rccl_channel *channel,
			    struct waits_rccl_receive *ret);

/** Where the connections with a rank are, or @p ret_is_pointer, where their address is. */
uint64_t waits_rccl_peer_at(unsigned int layout, const struct waits_rccl_channel *channel, uint32_t rank,
			    bool *ret_is_pointer);
/** Where one of them is, by which this rank receives. */
uint64_t waits_rccl_connection_at(uint64_t peer, uint32_t connection);

/** @return 0, -EINVAL: it is not connected, or none. */
int waits_rccl_connection_read(const void *bytes, size_t size, struct waits_rccl_connection *ret);

/** @} */

#endif /* WAITS_RCCL_H */
