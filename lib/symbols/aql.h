/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_AQL_H
#define SYMBOLS_AQL_H

/**
 * @file aql.h
 * Decodes AQL packets and kernel descriptors of AMD devices.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes of a packet, and of a kernel descriptor. */
#define SYMBOLS_AQL_PACKET_SIZE	       64
#define SYMBOLS_KERNEL_DESCRIPTOR_SIZE 64

/**
 * Packet types, as numbered in the header (HSA, Platform System Architecture, "Architected Queuing
 * Language").
 */
enum symbols_aql_type {
	SYMBOLS_AQL_VENDOR_SPECIFIC,
	SYMBOLS_AQL_INVALID,
	SYMBOLS_AQL_KERNEL_DISPATCH,
	SYMBOLS_AQL_BARRIER_AND,
	SYMBOLS_AQL_AGENT_DISPATCH,
	SYMBOLS_AQL_BARRIER_OR,
	SYMBOLS_AQL_BARRIER_VALUE, /**< AMD's own: vendor specific, of format 2 (amd_hsa_queue.h of ROCr). */
	SYMBOLS_AQL_TYPE_COUNT, /**< Stands for every other value. */
};

/** Most signals that a packet waits for. */
#define SYMBOLS_AQL_DEPENDENCIES 5

/** How a barrier-value packet compares, as numbered in it. */
enum symbols_aql_condition {
	SYMBOLS_AQL_EQ,
	SYMBOLS_AQL_NE,
	SYMBOLS_AQL_LT,
	SYMBOLS_AQL_GTE,
	SYMBOLS_AQL_CONDITION_COUNT, /**< Stands for every other value. */
};

/** Scope of a memory fence. */
enum symbols_aql_scope {
	SYMBOLS_AQL_SCOPE_NONE,
	SYMBOLS_AQL_SCOPE_AGENT,
	SYMBOLS_AQL_SCOPE_SYSTEM,
	SYMBOLS_AQL_SCOPE_COUNT, /**< Stands for the reserved value. */
};

struct symbols_aql_packet {
	enum symbols_aql_type type;
	bool barrier;
	enum symbols_aql_scope acquire, release;
	/* Members of a kernel dispatch; zero in other packets. */
	unsigned n_dimensions; /**< 0 to 3, as the application wrote it. */
	uint16_t workgroup_size[3];
	uint32_t grid_size[3]; /**< In work-items. */
	uint32_t private_segment_bytes, group_segment_bytes;
	uint64_t kernel_object, kernarg_address;
	/** Signals that a barrier waits for, by address; 0 where there is none. */
	uint64_t dependencies[SYMBOLS_AQL_DEPENDENCIES];
	/** Of a barrier-value packet: it waits until the signal's value, masked, compares so with this one. */
	int64_t value, mask;
	enum symbols_aql_condition condition;
	/** Only in a kernel dispatch, agent dispatch or barrier. */
	uint64_t completion_signal;
};

/**
 * Decode a packet.
 * @return 0, -EINVAL (fewer than SYMBOLS_AQL_PACKET_SIZE bytes).
 */
int symbols_aql_decode(const void *bytes, size_t size, struct symbols_aql_packet *ret);

/**
 * The compiler's description of a kernel for the hardware (LLVM, User Guide for AMDGPU, "Kernel
 * Descriptor").
 */
struct symbols_kernel_descriptor {
	uint32_t group_segment_bytes, private_segment_bytes, kernarg_bytes;
	uint64_t entry; /**< Address of the first instruction. */
	uint32_t pgm_rsrc1, pgm_rsrc2, pgm_rsrc3;
	uint16_t properties;
};

/**
 * Decode a kernel descriptor.
 * @param address  Address of the descriptor, to which the entry is relative.
 * @return 0, -EINVAL (fewer than SYMBOLS_KERNEL_DESCRIPTOR_SIZE bytes).
 */
int symbols_kernel_descriptor_decode(const void *bytes, size_t size, uint64_t address,
				     struct symbols_kernel_descriptor *ret);

#endif /* SYMBOLS_AQL_H */
