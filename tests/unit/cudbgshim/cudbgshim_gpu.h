/* SPDX-License-Identifier: MIT */
#ifndef CUDBGSHIM_GPU_H
#define CUDBGSHIM_GPU_H

/**
 * @file cudbgshim_gpu.h
 * A GPU that cudbgshim_fake.h's driver shows: warp by warp and batched, from the same facts.
 */

#include "tests/unit/cudbgshim/cudbgshim_fake.h"

struct gpu_warp {
	uint64_t grid, error_pc, breakpoint, pc[32];
	struct cudbgabi_dim3 block, base;
	struct cudbgabi_dim3 cluster_idx, target; /* In a cluster: grids with an odd number. */
	uint32_t valid, active, exception, syscall;
	bool has_error_pc, has_target;
};

extern struct gpu {
	uint32_t n_sms, n_warps, n_lanes;
	uint64_t exception_sms[4], valid[256], broken[256];
	struct gpu_warp *warps; /* [n_sms * n_warps] */
	struct cudbgabi_dim3 block_dim;
	/* How the batch is laid out. */
	uint32_t n_known; /* Warp attributes of the release, LANE_UPDATE_MASK up to this bit. */
	uint32_t padding; /* Bytes that each fixed part is longer than we know. */
	bool extras;      /* Attributes that we do not know, and lane flags. */
	/* What the client has seen. */
	struct gpu *sent;
	uint32_t n_full, n_update;
	uint32_t layout_result, batch_result;
	int skew; /* Added to the length that the driver reports. */
} gpu;

/** Clusters of odd grids; a release without them shows none. */
extern const struct cudbgabi_dim3 gpu_cluster_dim;

/** An empty GPU; the previous one is forgotten. */
void gpu_reset(uint32_t n_sms, uint32_t n_warps, uint32_t n_lanes);
/** Put random warps everywhere; or change a few. */
void gpu_fill(void);
void gpu_change(void);
/** Make the fake driver show it, in the forms that its release has. */
void gpu_install(void);

/** Strides as slot 129 would tell them. */
struct cudbgshim_layout gpu_layout(void);
/** The batched answer, built into @p buf of @p size bytes.  @return its length. */
size_t gpu_encode(bool full, uint8_t *buf, size_t size);

#endif /* CUDBGSHIM_GPU_H */
