/* SPDX-License-Identifier: MIT */
/* Calls that say what is where: inventory, masks, program counters, grids, exceptions. */
#include <stdio.h>
#include <string.h>

#include "sim.h"

/* ---- inventory ---- */

static uint32_t get_num_devices(struct call *c)
{
	call_u32(c, c->p->n_devices);
	return CUDBGABI_SUCCESS;
}

/* Makes a call that answers with a number. */
#define NUMBER(name, value)                                                                        \
	static uint32_t name(struct call *c)                                                       \
	{                                                                                          \
		call_u32(c, value);                                                                \
		return CUDBGABI_SUCCESS;                                                           \
	}
NUMBER(get_num_sms, c->dev->n_sms)
NUMBER(get_num_warps, c->dev->n_warps)
NUMBER(get_num_lanes, SIM_LANES)
NUMBER(get_num_registers, c->dev->n_registers)
NUMBER(get_num_predicates, SIM_PREDICATES)
NUMBER(get_num_uniform_registers, SIM_UREGISTERS)
NUMBER(get_num_uniform_predicates, SIM_PREDICATES)
NUMBER(get_tid, c->warp->grid->tid)
NUMBER(read_valid_lanes, c->warp->valid)
NUMBER(read_active_lanes, c->warp->active)
NUMBER(read_grid_id50, (uint32_t)c->warp->grid->id)

/* Makes a call that answers with a text; the buffer must have room for its NUL. */
#define TEXT(name, value)                                                                          \
	static uint32_t name(struct call *c)                                                       \
	{                                                                                          \
		if (!call_room(c, 0))                                                              \
			return CUDBGABI_ERROR_INVALID_ARGS;                                        \
		if (strlen(value) >= call_room(c, 0))                                              \
			return CUDBGABI_ERROR_BUFFER_TOO_SMALL;                                    \
		call_text(c, value);                                                               \
		return CUDBGABI_SUCCESS;                                                           \
	}
TEXT(get_device_type, c->dev->chip)
TEXT(get_sm_type, c->dev->sm)
TEXT(get_device_name, c->dev->name)

static uint32_t get_pci(struct call *c)
{
	call_u32(c, c->dev->pci_bus);
	call_u32(c, c->dev->pci_device);
	return CUDBGABI_SUCCESS;
}

/* ---- masks ---- */

/* The mask of warps of an SM that are valid, or broken. */
static uint64_t warps_mask(struct call *c, bool broken)
{
	uint64_t mask = 0;

	for (uint32_t i = 0; i < c->dev->n_warps; i++) {
		const struct sim_warp *w =
			sim_warp_at(c->p, (uint32_t)c->in[0], (uint32_t)c->in[1], i);

		if (w->grid && (!broken || w->broken))
			mask |= UINT64_C(1) << i;
	}
	return mask;
}

static uint32_t read_broken_warps(struct call *c)
{
	call_u64(c, warps_mask(c, true));
	return CUDBGABI_SUCCESS;
}

static uint32_t read_valid_warps(struct call *c)
{
	call_u64(c, warps_mask(c, false));
	return CUDBGABI_SUCCESS;
}

static uint32_t read_device_exception(struct call *c)
{
	uint64_t masks[SIM_SMS_MAX / 64];
	size_t words = call_room(c, 0) / 8;

	if (words < (c->dev->n_sms + 63) / 64)
		return CUDBGABI_ERROR_INVALID_ARGS;
	if (words > SIM_SMS_MAX / 64)
		words = SIM_SMS_MAX / 64;
	for (uint32_t i = 0; i < words; i++)
		masks[i] = sim_sm_exceptions(c->p, (uint32_t)c->in[0], i);
	call_out(c, masks, words * 8);
	return CUDBGABI_SUCCESS;
}

static uint32_t read_device_exception80(struct call *c)
{
	call_u64(c, sim_sm_exceptions(c->p, (uint32_t)c->in[0], 0));
	return CUDBGABI_SUCCESS;
}

/* ---- warps and lanes ---- */

static uint32_t read_grid_id(struct call *c)
{
	call_u64(c, c->warp->grid->id);
	return CUDBGABI_SUCCESS;
}

/* Makes a call that answers with three coordinates. */
#define DIM(name, value)                                                                           \
	static uint32_t name(struct call *c)                                                       \
	{                                                                                          \
		struct sim_dim d = value;                                                          \
                                                                                                   \
		call_dim(c, &d);                                                                   \
		return CUDBGABI_SUCCESS;                                                           \
	}
DIM(read_block_idx, c->warp->block)
DIM(get_grid_dim, c->warp->grid->grid)
DIM(get_block_dim, c->warp->grid->block)
DIM(read_thread_idx, sim_thread_idx(c->warp, (uint32_t)c->in[3]))
DIM(read_cluster_idx, c->warp->cluster)
DIM(get_cluster_dim, c->warp->grid->cluster)

static uint32_t read_virtual_pc(struct call *c)
{
	call_u64(c, sim_lane_pc(c->warp, (uint32_t)c->in[3]));
	return CUDBGABI_SUCCESS;
}

/* The address counted from the start of the function. */
static uint32_t read_pc(struct call *c)
{
	call_u64(c, sim_lane_pc(c->warp, (uint32_t)c->in[3]) - c->warp->grid->function->address);
	return CUDBGABI_SUCCESS;
}

static uint32_t read_lane_status(struct call *c)
{
	call_u8(c, sim_lane_exception(c->warp, (uint32_t)c->in[3]) != CUDBGABI_EXCEPTION_NONE);
	return CUDBGABI_SUCCESS;
}

static uint32_t read_lane_exception(struct call *c)
{
	call_u32(c, sim_lane_exception(c->warp, (uint32_t)c->in[3]));
	return CUDBGABI_SUCCESS;
}

static uint32_t read_error_pc(struct call *c)
{
	call_u64(c, c->warp->error_pc);
	call_u8(c, c->warp->error_pc_valid);
	return CUDBGABI_SUCCESS;
}

static uint32_t read_sm_exception(struct call *c)
{
	const struct sim_device *d = c->dev;

	call_u32(c, d->sm_exception[c->in[1]]);
	call_u64(c, d->sm_error_pc[c->in[1]]);
	call_u8(c, d->sm_error_pc[c->in[1]] != 0);
	return CUDBGABI_SUCCESS;
}

static uint32_t exception_string(struct call *c)
{
	uint32_t e = sim_lane_exception(c->warp, (uint32_t)c->in[3]);
	char text[64] = "";

	if (e)
		snprintf(text, sizeof(text), "Simulated exception %u", e);
	if (strlen(text) >= call_room(c, 0))
		return CUDBGABI_ERROR_BUFFER_TOO_SMALL;
	call_text(c, text);
	call_u32(c, (uint32_t)strlen(text) + 1);
	return CUDBGABI_SUCCESS;
}

static uint32_t cluster_target(struct call *c)
{
	call_dim(c, &c->warp->target_block);
	call_u8(c, c->warp->target_valid);
	return CUDBGABI_SUCCESS;
}

static uint32_t warp_resources(struct call *c)
{
	call_u64(c, (uint64_t)c->warp->grid->function->registers << 32 | c->warp->grid->shared);
	return CUDBGABI_SUCCESS;
}

static uint32_t hit_breakpoint(struct call *c)
{
	call_u64(c, c->warp->breakpoint);
	return CUDBGABI_SUCCESS;
}

static uint32_t barrier_info(struct call *c)
{
	const char *text = c->warp->barrier ? "simulated barrier" : "";

	if (strlen(text) >= call_room(c, 1))
		return CUDBGABI_ERROR_BUFFER_TOO_SMALL;
	call_u32(c, c->warp->barrier);
	call_text(c, text);
	call_u32(c, (uint32_t)strlen(text) + 1);
	return CUDBGABI_SUCCESS;
}

/* ---- call stacks ---- */

/* The call stack of a lane; an empty one if none was planted. */
static const struct sim_stack *stack_of(struct call *c)
{
	static const struct sim_stack empty;

	for (const struct sim_stack *s = c->p->stacks; s; s = s->next)
		if (s->dev == c->in[0] && s->sm == c->in[1] && s->warp == c->in[2] &&
		    s->lanes >> c->in[3] & 1)
			return s;
	return &empty;
}

static uint32_t read_call_depth(struct call *c)
{
	call_u32(c, stack_of(c)->depth);
	return CUDBGABI_SUCCESS;
}

static uint32_t read_syscall_depth(struct call *c)
{
	call_u32(c, stack_of(c)->syscall_depth);
	return CUDBGABI_SUCCESS;
}

static uint32_t return_address(struct call *c, bool is_virtual)
{
	const struct sim_stack *s = stack_of(c);
	struct sim_function *f;
	struct sim_module *m;
	uint64_t a;

	if (!s->depth)
		return CUDBGABI_ERROR_ZERO_CALL_DEPTH;
	if (c->in[4] >= s->depth)
		return CUDBGABI_ERROR_INVALID_CALL_LEVEL;
	a = s->address[c->in[4]];
	f = is_virtual ? NULL : sim_function_at(c->p, a, &m);
	call_u64(c, f ? a - f->address : a);
	return CUDBGABI_SUCCESS;
}

static uint32_t read_return_address(struct call *c)
{
	return return_address(c, false);
}

static uint32_t read_virtual_return_address(struct call *c)
{
	return return_address(c, true);
}

static uint32_t read_all_return_addresses(struct call *c)
{
	const struct sim_stack *s = stack_of(c);
	size_t n = call_room(c, 0) / 8;

	call_out(c, s->address, (n < s->depth ? n : s->depth) * 8);
	call_u32(c, s->depth);
	call_u32(c, s->syscall_depth);
	return CUDBGABI_SUCCESS;
}

/* ---- grids ---- */

/* Find the grid of a call, which must be on the device. */
static struct sim_grid *grid_of(struct call *c)
{
	struct sim_grid *g = sim_grid_find(c->p, c->in[1]);

	return g && g->dev == c->in[0] ? g : NULL;
}

static uint32_t get_grid_status(struct call *c)
{
	struct sim_grid *g = grid_of(c);

	/* A grid that was once launched has terminated; another id is wrong. */
	if (!g && (!c->in[1] || c->in[1] >= c->p->next_grid))
		return CUDBGABI_ERROR_INVALID_GRID;
	call_u32(c, g ? g->status : (uint32_t)CUDBGABI_GRID_STATUS_TERMINATED);
	return CUDBGABI_SUCCESS;
}

/* Answer with a byte-packed record: 88 bytes, and two dimensions more in newer forms. */
static uint32_t grid_info(struct call *c, size_t size)
{
	struct sim_grid *g = grid_of(c);
	uint8_t b[112], *at = b;

	if (!g)
		return CUDBGABI_ERROR_INVALID_GRID;
#define PUT(value) (memcpy(at, &(value), sizeof(value)), at += sizeof(value))
	PUT(g->dev);
	PUT(g->id);
	PUT(g->tid);
	PUT(g->context);
	PUT(g->module->handle);
	PUT(g->function->handle);
	PUT(g->function->address);
	PUT(g->grid);
	PUT(g->block);
	PUT(g->type);
	PUT(g->parent);
	PUT(g->origin);
	PUT(g->cluster);
	PUT(g->cluster); /* The preferred one. */
	call_out(c, b, size);
	return CUDBGABI_SUCCESS;
}

static uint32_t get_grid_info55(struct call *c)
{
	return grid_info(c, 88);
}
static uint32_t get_grid_info120(struct call *c)
{
	return grid_info(c, 100);
}
static uint32_t get_grid_info(struct call *c)
{
	return grid_info(c, 112);
}

static uint32_t get_cluster_dim120(struct call *c)
{
	struct sim_grid *g = grid_of(c);

	if (!g)
		return CUDBGABI_ERROR_INVALID_GRID;
	call_dim(c, &g->cluster);
	return CUDBGABI_SUCCESS;
}

/* The value of a grid's attribute. */
static uint32_t attribute(const struct sim_grid *g, uint32_t attr, uint64_t *ret)
{
	if (attr > CUDBGABI_ATTR_GRID_TID)
		return CUDBGABI_ERROR_INVALID_ATTRIBUTE;
	*ret = attr == CUDBGABI_ATTR_GRID_TID ? g->tid : 0;
	return CUDBGABI_SUCCESS;
}

static uint32_t get_grid_attribute(struct call *c)
{
	uint64_t v;
	uint32_t r = attribute(c->warp->grid, (uint32_t)c->in[3], &v);

	if (!r)
		call_u64(c, v);
	return r;
}

static uint32_t get_grid_attributes(struct call *c)
{
	struct cudbgabi_attribute_value pairs[2];
	size_t n = c->q->buffers[0].size / sizeof(pairs[0]);

	if (n > 2)
		return CUDBGABI_ERROR_INVALID_ARGS;
	memcpy(pairs, c->q->buffers[0].data, n * sizeof(pairs[0]));
	for (size_t i = 0; i < n; i++) {
		uint32_t r = attribute(c->warp->grid, pairs[i].attribute, &pairs[i].value);

		if (r)
			return r;
	}
	call_out(c, pairs, n * sizeof(pairs[0]));
	return CUDBGABI_SUCCESS;
}

call_fn *const calls_state[SLOT_COUNT] = {
	[SLOT_readGridId50] = read_grid_id50,
	[SLOT_readThreadIdx] = read_thread_idx,
	[SLOT_readBrokenWarps] = read_broken_warps,
	[SLOT_readValidWarps] = read_valid_warps,
	[SLOT_readValidLanes] = read_valid_lanes,
	[SLOT_readActiveLanes] = read_active_lanes,
	[SLOT_readPC] = read_pc,
	[SLOT_readVirtualPC] = read_virtual_pc,
	[SLOT_readLaneStatus] = read_lane_status,
	[SLOT_getBlockDim] = get_block_dim,
	[SLOT_getTID] = get_tid,
	[SLOT_getDeviceType] = get_device_type,
	[SLOT_getSmType] = get_sm_type,
	[SLOT_getNumDevices] = get_num_devices,
	[SLOT_getNumSMs] = get_num_sms,
	[SLOT_getNumWarps] = get_num_warps,
	[SLOT_getNumLanes] = get_num_lanes,
	[SLOT_getNumRegisters] = get_num_registers,
	[SLOT_getGridAttribute] = get_grid_attribute,
	[SLOT_getGridAttributes] = get_grid_attributes,
	[SLOT_readLaneException] = read_lane_exception,
	[SLOT_readBlockIdx] = read_block_idx,
	[SLOT_getGridDim] = get_grid_dim,
	[SLOT_readCallDepth] = read_call_depth,
	[SLOT_readReturnAddress] = read_return_address,
	[SLOT_readVirtualReturnAddress] = read_virtual_return_address,
	[SLOT_readSyscallCallDepth] = read_syscall_depth,
	[SLOT_getGridInfo55] = get_grid_info55,
	[SLOT_readGridId] = read_grid_id,
	[SLOT_getGridStatus] = get_grid_status,
	[SLOT_getDevicePCIBusInfo] = get_pci,
	[SLOT_readDeviceExceptionState80] = read_device_exception80,
	[SLOT_readErrorPC] = read_error_pc,
	[SLOT_getNumPredicates] = get_num_predicates,
	[SLOT_getDeviceName] = get_device_name,
	[SLOT_readDeviceExceptionState] = read_device_exception,
	[SLOT_getNumUniformRegisters] = get_num_uniform_registers,
	[SLOT_getNumUniformPredicates] = get_num_uniform_predicates,
	[SLOT_getGridInfo120] = get_grid_info120,
	[SLOT_getClusterDim120] = get_cluster_dim120,
	[SLOT_readClusterIdx] = read_cluster_idx,
	[SLOT_readAllVirtualReturnAddresses] = read_all_return_addresses,
	[SLOT_readSmException] = read_sm_exception,
	[SLOT_getGridInfo] = get_grid_info,
	[SLOT_getClusterDim] = get_cluster_dim,
	[SLOT_getClusterExceptionTargetBlock] = cluster_target,
	[SLOT_readWarpResources] = warp_resources,
	[SLOT_getCudaExceptionString] = exception_string,
	[SLOT_getHardwareBarrierInfo] = barrier_info,
	[SLOT_getWarpHitBreakpoint] = hit_breakpoint,
};
