/* SPDX-License-Identifier: MIT */
/* Calls that read registers, call stacks, memory and code. */
#include "internal.h"

#include <errno.h>

static void zero_words(uint32_t *values, uint32_t n)
{
	memset(values, 0, n * sizeof(*values));
}

/* ------------------------------------------------------------------ registers ---------------- */

int cudbgshim_read_registers(struct cudbgshim *s, const struct cudbgshim_place *at, uint32_t first,
			     uint32_t n, uint32_t *values, uint32_t *ret_n)
{
	uint32_t n_read = 0;
	int r;

	zero_words(values, n);
	if (HAS(s, readRegisterRange)) {
		r = CALL(s, readRegisterRange, LANE_ARGS(at), first, n, values, &n_read);
		n_read = n_read < n ? n_read : n;
		zero_words(values + n_read, n - n_read);
	} else {
		r = CALL(s, readRegisterRange60, LANE_ARGS(at), first, n, values);
		n_read = n;
	}
	RETURN_VALUE(r, ret_n, n_read);
}

int cudbgshim_read_uniform_registers(struct cudbgshim *s, const struct cudbgshim_place *at,
				     uint32_t first, uint32_t n, uint32_t *values)
{
	zero_words(values, n);
	return CALL(s, readUniformRegisterRange, WARP_ARGS(at), first, n, values);
}

int cudbgshim_read_predicates(struct cudbgshim *s, const struct cudbgshim_place *at, uint32_t n,
			      uint32_t *values)
{
	zero_words(values, n);
	return CALL(s, readPredicates, LANE_ARGS(at), n, values);
}

int cudbgshim_read_uniform_predicates(struct cudbgshim *s, const struct cudbgshim_place *at,
				      uint32_t n, uint32_t *values)
{
	zero_words(values, n);
	return CALL(s, readUniformPredicates, WARP_ARGS(at), n, values);
}

int cudbgshim_read_cc(struct cudbgshim *s, const struct cudbgshim_place *at, uint32_t *ret_value)
{
	uint32_t value = 0;

	RETURN_VALUE(CALL(s, readCCRegister, LANE_ARGS(at), &value), ret_value, value);
}

/* ------------------------------------------------------------------ call stack --------------- */

/* Before 12.5 the depth is asked for, then level by level; most lanes were not called. */
static int read_levels(struct cudbgshim *s, const struct cudbgshim_place *at, uint64_t *addresses,
		       uint32_t n, uint32_t *depth, uint32_t *syscall_depth)
{
	int r = CALL(s, readCallDepth, LANE_ARGS(at), depth);

	if (!r && *depth)
		r = CALL(s, readSyscallCallDepth, LANE_ARGS(at), syscall_depth);
	for (uint32_t level = 0; !r && level < n && level < *depth; level++)
		r = CALL(s, readVirtualReturnAddress, LANE_ARGS(at), level, &addresses[level]);
	return r;
}

int cudbgshim_read_call_stack(struct cudbgshim *s, const struct cudbgshim_place *at,
			      uint64_t *addresses, uint32_t n, uint32_t *ret_depth,
			      uint32_t *ret_syscall_depth)
{
	uint32_t depth = 0, syscall_depth = 0;
	int r;

	memset(addresses, 0, n * sizeof(*addresses));
	if (HAS(s, readAllVirtualReturnAddresses))
		r = CALL(s, readAllVirtualReturnAddresses, LANE_ARGS(at), addresses, n, &depth,
			 &syscall_depth);
	else
		r = read_levels(s, at, addresses, n, &depth, &syscall_depth);
	if (r < 0)
		return r;
	*ret_depth = depth;
	*ret_syscall_depth = syscall_depth;
	return 0;
}

/* ------------------------------------------------------------------ memory ------------------- */

int cudbgshim_read_memory(struct cudbgshim *s, enum cudbgshim_space space,
			  const struct cudbgshim_place *at, uint64_t address, void *buf,
			  uint32_t size)
{
	memset(buf, 0, size);
	if (!at && space != CUDBGSHIM_SPACE_GLOBAL && space != CUDBGSHIM_SPACE_PINNED)
		return -EINVAL;
	switch (space) {
	case CUDBGSHIM_SPACE_GLOBAL:
		return CALL(s, readGlobalMemory, address, buf, size);
	case CUDBGSHIM_SPACE_SHARED:
		return CALL(s, readSharedMemory, WARP_ARGS(at), address, buf, size);
	case CUDBGSHIM_SPACE_LOCAL:
		return CALL(s, readLocalMemory, LANE_ARGS(at), address, buf, size);
	case CUDBGSHIM_SPACE_PARAM:
		return CALL(s, readParamMemory, WARP_ARGS(at), address, buf, size);
	case CUDBGSHIM_SPACE_GENERIC:
		return CALL(s, readGenericMemory, LANE_ARGS(at), address, buf, size);
	case CUDBGSHIM_SPACE_CODE:
		return CALL(s, readCodeMemory, at->dev, address, buf, size);
	case CUDBGSHIM_SPACE_PINNED:
		return CALL(s, readPinnedMemory, address, buf, size);
	case CUDBGSHIM_SPACE_COUNT:
		break;
	}
	return -EINVAL;
}

int cudbgshim_get_const_bank(struct cudbgshim *s, const struct cudbgshim_place *at,
			     uint64_t grid_id, uint32_t bank, uint64_t *ret_address,
			     uint32_t *ret_size)
{
	uint64_t address = 0;
	uint32_t size = 0;
	int r;

	if (HAS(s, getConstBankAddress))
		r = CALL(s, getConstBankAddress, at->dev, grid_id, bank, &address, &size);
	else
		r = CALL(s, getConstBankAddress123, WARP_ARGS(at), bank, 0, &address);
	if (r < 0)
		return r;
	*ret_address = address;
	*ret_size = size;
	return 0;
}

int cudbgshim_get_managed_regions(struct cudbgshim *s, uint64_t start,
				  struct cudbgshim_region *regions, uint32_t n, uint32_t *ret_n)
{
	struct cudbgabi_memory_info in[64];
	uint32_t filled = 0, wanted = n < 64 ? n : 64;
	int r;

	memset(in, 0, sizeof(in));
	r = CALL(s, getManagedMemoryRegionInfo, start, in, wanted, &filled);
	if (r < 0)
		return r;
	if (filled > wanted)
		filled = wanted;
	for (uint32_t i = 0; i < filled; i++)
		regions[i] = (struct cudbgshim_region){ in[i].start, in[i].size };
	*ret_n = filled;
	return 0;
}

/* ------------------------------------------------------------------ code --------------------- */

int cudbgshim_get_elf_image(struct cudbgshim *s, uint32_t dev, uint64_t handle, bool relocated,
			    void *buf, uint64_t size)
{
	memset(buf, 0, size);
	return CALL(s, getElfImageByHandle, dev, handle,
		    relocated ? CUDBGABI_ELF_IMAGE_TYPE_RELOCATED
			      : CUDBGABI_ELF_IMAGE_TYPE_NONRELOCATED,
		    buf, size);
}

