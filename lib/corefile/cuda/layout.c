/* SPDX-License-Identifier: MIT */
#include "corefile/cuda/layout.h"

#include "base/reader.h"
#include "corefile/pack.h"

#define L(name) CUDACORE_LAYOUT_##name
#define FIELDS_END { .count = 0 }

#define ROW struct cudacore_meta
/* A field: offset in the record, kind, count, member of ROW, and the layout that added it. */
#define F(at_, kind_, count_, member_, since_)                                                     \
	{ .at = at_, .kind = CUDA_##kind_, .count = count_, .since = L(since_),                    \
	  .member = offsetof(ROW, member_) }

static const struct cuda_field meta_fields[] = {
	F(0, STRING, 1, generator, R565),
	F(8, U32, 2, gpu_driver, R565),
	F(16, U32, 2, cuda_driver, R565),
	F(24, U32, 1, flags, R565),
	F(28, U32, 1, time_s, R565),
	FIELDS_END,
};

#undef ROW
#define ROW struct cudacore_device
static const struct cuda_field device_fields[] = {
	F(0, STRING, 1, name, R346),
	F(8, STRING, 1, type, R346),
	F(16, STRING, 1, sm_type, R346),
	F(24, U32, 1, id, R346),
	F(28, U32, 1, pci_bus, R346),
	F(32, U32, 1, pci_device, R346),
	F(36, U32, 1, sm_count, R346),
	F(40, U32, 1, warps_per_sm, R346),
	F(44, U32, 1, lanes_per_warp, R346),
	F(48, U32, 1, registers_per_lane, R346),
	F(52, U32, 1, predicates_per_lane, R346),
	F(56, U32, 1, sm_major, R346),
	F(60, U32, 1, sm_minor, R346),
	F(64, U32, 1, instruction_bytes, R346),
	F(68, U32, 1, status, R346),
	F(72, U32, 1, uniform_registers, R400),
	F(76, U32, 1, uniform_predicates, R400),
	F(80, U32, 1, barriers, R575),
	FIELDS_END,
};

#undef ROW
#define ROW struct cudacore_context
static const struct cuda_field context_fields[] = {
	F(0, U64, 1, id, R346),
	F(8, U64, 1, shared_window, R346),
	F(16, U64, 1, local_window, R346),
	F(24, U64, 1, global_window, R346),
	F(32, U32, 1, device_row, R346),
	F(36, U32, 1, tid, R346),
	FIELDS_END,
};

#undef ROW
#define ROW struct cudacore_module
static const struct cuda_field module_fields[] = {
	F(0, U64, 1, handle, R346),
	FIELDS_END,
};

#undef ROW
#define ROW struct cudacore_grid
static const struct cuda_field grid_fields[] = {
	F(0, U64, 1, id, R346),
	F(8, U64, 1, context_id, R346),
	F(16, U64, 1, function, R346),
	F(24, U64, 1, function_entry, R346),
	F(32, U64, 1, module_handle, R346),
	F(40, U64, 1, parent_id, R346),
	F(48, U64, 1, params_offset, R346),
	F(56, U32, 1, kernel_type, R346),
	F(60, U32, 1, origin, R346),
	F(64, U32, 1, status, R346),
	F(68, U32, 1, n_registers, R346),
	F(72, U32, 3, grid_dim, R346),
	F(84, U32, 3, block_dim, R346),
	F(96, U32, 1, launch_blocking, R346),
	F(100, U32, 1, host_tid, R346),
	F(104, U32, 3, cluster_dim, R525),
	F(120, U32, 3, preferred_cluster_dim, R565),
	FIELDS_END,
};

#undef ROW
#define ROW struct cudacore_bank
static const struct cuda_field bank_fields[] = {
	F(0, U64, 1, address, R550),
	F(8, U32, 1, size, R550),
	F(12, U32, 1, id, R550),
	FIELDS_END,
};

#undef ROW
#define ROW struct cudacore_sm
static const struct cuda_field sm_fields[] = {
	F(0, U32, 1, id, R346),
	F(8, U32, 1, exception, R555),
	F(12, U32, 1, error_pc_valid, R555),
	F(16, U64, 1, error_pc, R555),
	F(24, U32, 1, cluster_target_valid, R565),
	F(28, U32, 3, cluster_target, R565),
	F(40, STRING, 1, exception_text, R580),
	FIELDS_END,
};

#undef ROW
#define ROW struct cudacore_block
static const struct cuda_field block_fields[] = {
	F(0, U64, 1, grid_id, R346),
	F(8, U32, 3, index, R346),
	F(24, U32, 3, cluster_index, R525),
	F(40, U32, 3, cluster_dim, R565),
	FIELDS_END,
};

#undef ROW
#define ROW struct cudacore_warp
static const struct cuda_field warp_fields[] = {
	F(0, U64, 1, error_pc, R346),
	F(8, U32, 1, id, R346),
	F(12, U32, 1, valid_lanes, R346),
	F(16, U32, 1, active_lanes, R346),
	F(20, U32, 1, broken, R346),
	F(24, U32, 1, error_pc_valid, R346),
	F(32, U32, 1, n_registers, R525),
	F(40, U32, 1, shared_bytes, R570),
	F(48, U32, 1, syscall_lanes, R575),
	F(52, U32, 1, cbu_active, R575),
	F(56, U32, 1, cbu_exited, R575),
	F(60, U32, 1, cbu_collective, R575),
	F(64, U32, 1, barrier_scope, R590),
	F(72, U64, 1, barrier_info, R590),
	FIELDS_END,
};

#undef ROW
#define ROW struct cudacore_lane
static const struct cuda_field lane_fields[] = {
	F(0, U64, 1, virtual_pc, R346),
	F(8, U64, 1, physical_pc, R346),
	F(16, U32, 1, number, R346),
	F(20, U32, 3, thread, R346),
	F(32, U32, 1, exception, R346),
	F(36, U32, 1, call_depth, R346),
	F(40, U32, 1, syscall_depth, R346),
	F(44, U32, 1, cc_register, R346),
	F(48, U32, 1, cbu_state, R575),
	F(56, U32, 2, rpc, R615),
	FIELDS_END,
};

#undef ROW
#define ROW struct cudacore_frame
static const struct cuda_field frame_fields[] = {
	F(0, U64, 1, return_offset, R346),
	F(8, U64, 1, return_address, R346),
	F(16, U32, 1, level, R346),
	FIELDS_END,
};

#undef ROW

/*
 * Sizes in the layouts R346, R400, R525, R550, R555, R565, R570, R575, R580, R590, R615; the first,
 * that of CUDACORE_LAYOUT_DEFAULT, is never used.
 */
#define SIZES(...) { 0, __VA_ARGS__ }
#define ROWS(struct_, array_)                                                                      \
	.age_at = offsetof(struct struct_, age), .row_size = sizeof(struct struct_),               \
	.array_at = offsetof(struct cudacore, array_)
#define BELOW(table_, parent_struct, range_, struct_, member_)                                     \
	.parent = CUDACORE_##table_, .children = offsetof(struct parent_struct, range_),           \
	.parent_at = offsetof(struct struct_, member_)
#define TYPE(n) (UINT32_C(0x80000000) + (n))
#define NAME(text)  .section = text, .section_size = sizeof(text) - 1
#define LABEL(text) .label = text, .label_size = sizeof(text) - 1

const struct cuda_table cuda_tables[CUDACORE_TABLE_COUNT] = {
	[CUDACORE_META] = {
		NAME(".cudbg.meta"), .type = TYPE(22), .single = true,
		.parent = CUDA_NO_PARENT, ROWS(cudacore_meta, meta), .fields = meta_fields,
		.sizes = SIZES(0, 0, 0, 0, 0, 32, 32, 32, 32, 32, 32) },
	[CUDACORE_DEVICES] = {
		NAME(".cudbg.devtbl"), .type = TYPE(9), LABEL("dev"),
		.parent = CUDA_NO_PARENT, .always = true, ROWS(cudacore_device, devices),
		.fields = device_fields,
		.sizes = SIZES(72, 80, 80, 80, 80, 80, 80, 88, 88, 88, 88) },
	[CUDACORE_CONTEXTS] = {
		NAME(".cudbg.ctxtbl"), .type = TYPE(10), LABEL("ctx"),
		BELOW(DEVICES, cudacore_device, contexts, cudacore_context, device),
		.always = true, ROWS(cudacore_context, contexts), .fields = context_fields,
		.sizes = SIZES(40, 40, 40, 40, 40, 40, 40, 40, 40, 40, 40) },
	[CUDACORE_MODULES] = {
		NAME(".cudbg.modtbl"), .type = TYPE(16),
		BELOW(CONTEXTS, cudacore_context, modules, cudacore_module, context),
		.always = true, ROWS(cudacore_module, modules), .fields = module_fields,
		.sizes = SIZES(8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8) },
	[CUDACORE_GRIDS] = {
		NAME(".cudbg.gridtbl"), .type = TYPE(12), LABEL("grid"),
		BELOW(DEVICES, cudacore_device, grids, cudacore_grid, device),
		.always = true, ROWS(cudacore_grid, grids), .fields = grid_fields,
		.sizes = SIZES(104, 104, 120, 120, 120, 136, 136, 136, 136, 136, 136) },
	[CUDACORE_BANKS] = {
		NAME(".cudbg.cbankstbl"), .type = TYPE(21),
		BELOW(GRIDS, cudacore_grid, banks, cudacore_bank, grid),
		ROWS(cudacore_bank, banks), .fields = bank_fields,
		.sizes = SIZES(0, 0, 0, 16, 16, 16, 16, 16, 16, 16, 16) },
	[CUDACORE_SMS] = {
		NAME(".cudbg.smtbl"), .type = TYPE(11), LABEL("sm"),
		BELOW(DEVICES, cudacore_device, sms, cudacore_sm, device),
		.always = true, ROWS(cudacore_sm, sms), .fields = sm_fields,
		.sizes = SIZES(8, 8, 8, 8, 24, 40, 40, 40, 48, 48, 48) },
	[CUDACORE_BLOCKS] = {
		NAME(".cudbg.ctatbl"), .type = TYPE(13), LABEL("cta"),
		BELOW(SMS, cudacore_sm, blocks, cudacore_block, sm),
		ROWS(cudacore_block, blocks), .fields = block_fields,
		.sizes = SIZES(24, 24, 40, 40, 40, 56, 56, 56, 56, 56, 56) },
	[CUDACORE_WARPS] = {
		NAME(".cudbg.wptbl"), .type = TYPE(14), LABEL("wp"),
		BELOW(BLOCKS, cudacore_block, warps, cudacore_warp, block),
		ROWS(cudacore_warp, warps), .fields = warp_fields,
		.sizes = SIZES(32, 32, 40, 40, 40, 40, 48, 64, 64, 80, 80) },
	[CUDACORE_LANES] = {
		NAME(".cudbg.lntbl"), .type = TYPE(15), LABEL("ln"),
		BELOW(WARPS, cudacore_warp, lanes, cudacore_lane, warp),
		ROWS(cudacore_lane, lanes), .fields = lane_fields,
		.sizes = SIZES(48, 48, 48, 48, 48, 48, 48, 56, 56, 56, 64) },
	[CUDACORE_FRAMES] = {
		NAME(".cudbg.bt"), .type = TYPE(8),
		BELOW(LANES, cudacore_lane, frames, cudacore_frame, lane),
		ROWS(cudacore_frame, frames), .fields = frame_fields,
		.sizes = SIZES(24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24) },
};

#define OF(table_, struct_, member_)                                                               \
	.parent = CUDACORE_##table_, .member = offsetof(struct cudacore_##struct_, member_)

const struct cuda_blob cuda_blobs[CUDA_BLOB_COUNT] = {
	{ NAME(".cudbg.elfimg"), .type = TYPE(6), OF(MODULES, module, image),
	  .since = L(R346), .bulk = true },
	{ NAME(".cudbg.relfimg"), .type = TYPE(7), OF(MODULES, module, relocated),
	  .since = L(R346), .bulk = true },
	{ NAME(".cudbg.param"), .type = TYPE(18), OF(GRIDS, grid, params),
	  .since = L(R346) },
	{ NAME(".cudbg.shared"), .type = TYPE(4), OF(BLOCKS, block, shared),
	  .since = L(R346), .bulk = true },
	{ NAME(".cudbg.uregs"), .type = TYPE(19), OF(WARPS, warp, uniform_registers),
	  .since = L(R400), .entry_size = 4 },
	{ NAME(".cudbg.upred"), .type = TYPE(20), OF(WARPS, warp, uniform_predicates),
	  .since = L(R400), .entry_size = 4 },
	{ NAME(".cudbg.cbu_bar"), .type = TYPE(23), OF(WARPS, warp, barriers),
	  .since = L(R575), .entry_size = 4 },
	/* Debuggers cannot look at a lane without this section; an empty one reads as zeros. */
	{ NAME(".cudbg.regs"), .type = TYPE(5), OF(LANES, lane, registers),
	  .since = L(R346), .entry_size = 4, .always = true },
	{ NAME(".cudbg.pred"), .type = TYPE(17), OF(LANES, lane, predicates),
	  .since = L(R346), .entry_size = 4 },
	{ NAME(".cudbg.local"), .type = TYPE(3), OF(LANES, lane, local),
	  .since = L(R346), .bulk = true,
	  .address = offsetof(struct cudacore_lane, local_address) },
};

void *cuda_row(const struct cudacore *c, enum cudacore_table table, uint32_t i)
{
	const struct cuda_table *t = &cuda_tables[table];
	char *rows;

	memcpy(&rows, (const char *)c + t->array_at, sizeof(rows));
	return rows + (size_t)i * t->row_size;
}

static size_t field_size(const struct cuda_field *f)
{
	return f->kind == CUDA_U32 ? 4u * f->count : 8;
}

static void encode_field(const struct cuda_field *f, const uint8_t *member, uint8_t *to)
{
	uint64_t wide;

	if (f->kind == CUDA_U64) {
		memcpy(&wide, member, sizeof(wide));
		pack_u64(to, wide);
		return;
	}
	for (unsigned i = 0; i < f->count; i++) {
		uint32_t v;

		memcpy(&v, member + 4 * i, sizeof(v));
		pack_u32(to + 4 * i, v);
	}
}

void cuda_encode(const struct cuda_table *t, enum cudacore_layout layout, const void *row,
		 uint8_t *to)
{
	for (const struct cuda_field *f = t->fields; f->count; f++)
		if (f->since <= layout && f->kind != CUDA_STRING)
			encode_field(f, (const uint8_t *)row + f->member, to + f->at);
}

static void decode_field(const struct cuda_field *f, struct reader *r, uint8_t *member)
{
	reader_seek(r, f->at);
	if (f->kind == CUDA_U64) {
		uint64_t wide = reader_u64(r);

		memcpy(member, &wide, sizeof(wide));
		return;
	}
	for (unsigned i = 0; i < f->count; i++) {
		uint32_t v = reader_u32(r);

		memcpy(member + 4 * i, &v, sizeof(v));
	}
}

/* @return the youngest layout of which every field fits into @p size bytes. */
static uint8_t record_age(const struct cuda_table *t, size_t size)
{
	uint8_t age = L(COUNT) - 1;

	for (const struct cuda_field *f = t->fields; f->count; f++)
		if (f->at + field_size(f) > size && f->since <= age)
			age = f->since - 1;
	return age;
}

void cuda_decode(const struct cuda_table *t, const uint8_t *from, size_t size, void *row)
{
	struct reader r;

	reader_init(&r, from, size);
	for (const struct cuda_field *f = t->fields; f->count; f++)
		if (f->kind != CUDA_STRING && f->at + field_size(f) <= size)
			decode_field(f, &r, (uint8_t *)row + f->member);
	((uint8_t *)row)[t->age_at] = record_age(t, size);
}
