/* SPDX-License-Identifier: MIT */
#ifndef KFDSIM_AQL_H
#define KFDSIM_AQL_H

/**
 * @file aql.h
 * Packets of HSA's queues: 64 bytes each, as the HSA System Architecture Specification has them, and
 * AMD's own two kinds.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AQL_PACKET_SIZE	   64u
#define AQL_HEADER_INVALID 1u
/** Bytes at the head of a kernel's descriptor, which is in front of its code. */
#define AQL_KERNEL_SIZE 64u
#define AQL_SIGNALS	5u

/** What a packet is. */
enum aql_kind {
	AQL_INVALID,	   /**< Not written yet. */
	AQL_DISPATCH,	   /**< Run a kernel. */
	AQL_BARRIER_AND,   /**< Wait until all signals are zero. */
	AQL_BARRIER_OR,	   /**< Wait until one of them is. */
	AQL_BARRIER_VALUE, /**< AMD: wait until a signal compares so. */
	AQL_COMMANDS,	   /**< AMD: commands of the hardware, whose effects are not visible. */
};

/** How AQL_BARRIER_VALUE compares. */
enum aql_condition { AQL_EQ, AQL_NE, AQL_LT, AQL_GTE };

/** One packet. */
struct aql_packet {
	enum aql_kind kind;
	uint64_t completion; /**< Signal to decrement, or 0. */
	/* AQL_DISPATCH */
	uint32_t dimensions;
	uint32_t workgroup[3], grid[3];
	uint32_t private_size, group_size;
	uint64_t kernel_object, kernarg;
	/* barriers */
	uint64_t signals[AQL_SIGNALS]; /**< 0 where there is none. */
	int64_t value, mask;
	enum aql_condition condition;
};

/** What a kernel's descriptor says. */
struct aql_kernel {
	int64_t entry; /**< Of its first instruction, from the descriptor. */
	uint32_t kernarg_size;
	uint32_t rsrc1, rsrc2, rsrc3;
	uint32_t wave32;
};

/**
 * Read a packet.
 * @return 0, -EINVAL (fewer than AQL_PACKET_SIZE bytes), -ENOTSUP (no kind that a queue of a GPU
 *         takes), -EPROTONOSUPPORT (likewise, a vendor's kind).
 */
int aql_packet_parse(const void *bytes, size_t size, struct aql_packet *ret);
/** Whether signals let a barrier go; @p values are those of its signals, in their order. */
bool aql_barrier_is_open(const struct aql_packet *p, const int64_t values[AQL_SIGNALS]);
/** Read a kernel's descriptor.  @return 0, -EINVAL (fewer than AQL_KERNEL_SIZE bytes). */
int aql_kernel_parse(const void *bytes, size_t size, struct aql_kernel *ret);

#endif /* KFDSIM_AQL_H */
