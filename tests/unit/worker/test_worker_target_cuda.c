/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agentd/worker/cuda/cuda.h"
#include "libcudbgshim/src/cudbg_abi.h"
#include "testlib.h"

#define LAST_EXCEPTION 36u
_Static_assert(CUDBGABI_EXCEPTION_COUNT == LAST_EXCEPTION + 1, "each has a text");

/* The name has the vendor's number, the reasons are faults that replies can say. */
static void exceptions_are_named_and_sorted_in(void)
{
	CU_ASSERT_PTR_NULL(cuda_exception(0));
	for (uint32_t code = 1; code <= LAST_EXCEPTION; code++) {
		const struct cuda_exception *e = cuda_exception(code);
		char begin[32];

		snprintf(begin, sizeof(begin), "CUDA_EXCEPTION_%u: ", code);
		TEST_ROW_EQ(code, strncmp(e->text, begin, strlen(begin)), 0);
		TEST_ROW_EQ(code, (e->reason & STOP_REASONS_FAULT) != 0, true);
		TEST_ROW_EQ(code, rpc_exception_name(e->announced) != NULL, true);
	}
	/* Of a newer driver, and the driver's own "unknown". */
	TEST_EQ(cuda_exception(LAST_EXCEPTION + 1)->reason, STOP_REASON_BIT(RPC_STOP_REASON_FAULT));
	CU_ASSERT_STRING_EQUAL(cuda_exception(LAST_EXCEPTION + 1)->text,
			       "CUDA_EXCEPTION_37: one that this agent does not know");
	TEST_EQ(cuda_exception(LAST_EXCEPTION + 1) == cuda_exception(LAST_EXCEPTION + 1), true);
	for (uint32_t code = 1000; code < 1100; code++)
		TEST_EQ(cuda_exception(code)->reason, STOP_REASON_BIT(RPC_STOP_REASON_FAULT));
	TEST_EQ(cuda_exception(UINT32_MAX)->announced, RPC_EXCEPTION_WAVE_FAULT);
}

/* What stands for a warp: a lane with an exception, else an active one; errors have a better pc. */
static void warps_become_waves(void)
{
	struct cuda_device d = { .d = { .gpu_id = 3 } };
	struct target_cuda c = { 0 };
	struct cudbgshim_state *s;
	struct cuda_asked asked;
	struct wave w;


	TEST_EQ_FATAL(cudbgshim_state_create(2, 4, 32, &s), 0);
	d.state = s;
	s->warps[6] = (struct cudbgshim_warp){ .grid_id = 9, .valid_lanes = 0xffff, .active_lanes = 0xf0,
					       .block = { 1, 2, 3 } };
	for (uint32_t lane = 0; lane < 32; lane++)
		s->lane_pc[6 * 32 + lane] = 0x1000 + lane;
	cuda_fill_wave(&c, &d, 1, 2, NULL, 0, &asked, &w);
	TEST_EQ(w.pc, 0x1004);
	TEST_EQ(w.has_wave_in_group, false);
	TEST_EQ(w.lanes, 4);
	TEST_EQ(w.state, RPC_WAVE_STATE_RUNNING);
	TEST_EQ(w.unit * 10 + w.index, 12);
	TEST_EQ(w.workgroup[2], 3);
	s->broken_warps[1] = 1u << 2;
	cuda_fill_wave(&c, &d, 1, 2, NULL, 0, &asked, &w);
	TEST_EQ(w.reasons, STOP_REASON_BIT(RPC_STOP_REASON_TRAP));
	s->warps[6].has = CUDBGSHIM_WARP_BREAKPOINT;
	cuda_fill_wave(&c, &d, 1, 2, NULL, 0, &asked, &w);
	TEST_EQ(w.reasons, STOP_REASON_BIT(RPC_STOP_REASON_BREAKPOINT));
	s->lane_exception[6 * 32 + 9] = 6;
	cuda_fill_wave(&c, &d, 1, 2, NULL, 0, &asked, &w);
	TEST_EQ(w.pc, 0x1009);
	TEST_EQ(w.reasons, STOP_REASON_BIT(RPC_STOP_REASON_ADDRESS_ERROR));
	s->lane_exception[6 * 32 + 2] = 6;
	cuda_fill_wave(&c, &d, 1, 2, NULL, 0, &asked, &w);
	TEST_EQ(w.pc, 0x1002);
	s->warps[6].has = CUDBGSHIM_WARP_ERROR_PC;
	s->warps[6].error_pc = 0x900;
	cuda_fill_wave(&c, &d, 1, 2, NULL, 0, &asked, &w);
	TEST_EQ(w.pc, 0x900);
	cudbgshim_state_destroy(s);
}

/* A warp on its own: no driver is asked. */
static void fill_parts(struct cudbgshim_warp *whole, uint64_t pcs[32], uint32_t exceptions[32],
		       bool broken, struct rpc_arena *a, struct wave *ret)
{
	const struct cuda_warp w = { .whole = whole, .pcs = pcs, .exceptions = exceptions,
				     .n_lanes = 32, .lanes = whole->valid_lanes, .broken = broken };
	struct cuda_parts parts = { .arena = a };
	uint32_t speaker = cuda_warp_speaker(&w);

	cuda_warp_fill_wave(&w, speaker, ret);
	cuda_warp_add_parts(&w, speaker, &parts, ret);
	TEST_EQ(parts.n, wave_n_parts(ret));
}

/* Lanes 0-3 have exited, 4-7 are at 0x10 and execute, 8-11 wait there, 12-31 wait at 0x20. */
static void lanes_at_one_place_are_a_part(void)
{
	struct cudbgshim_warp whole = { .valid_lanes = 0xfffffff0, .active_lanes = 0xf0 };
	uint32_t exceptions[32] = { 0 };
	auto_rpc_arena struct rpc_arena arena;
	uint64_t pcs[32] = { 0 };
	struct wave w;

	rpc_arena_init(&arena, 0);
	for (uint32_t lane = 4; lane < 32; lane++)
		pcs[lane] = lane < 12 ? 0x10 : 0x20;
	fill_parts(&whole, pcs, exceptions, false, &arena, &w);
	TEST_EQ_FATAL(wave_n_parts(&w), 3);
	for (uint32_t i = 0; i < 3; i++) {
		TEST_ROW_EQ(i, w.parts->list[i].exec, ((uint32_t[]){ 0xf0, 0xf00, 0xfffff000 })[i]);
		TEST_ROW_EQ(i, w.parts->list[i].lanes, ((uint32_t[]){ 4, 4, 20 })[i]);
		TEST_ROW_EQ(i, w.parts->list[i].lane, ((uint32_t[]){ 4, 8, 12 })[i]);
		TEST_ROW_EQ(i, w.parts->list[i].pc, ((uint32_t[]){ 0x10, 0x10, 0x20 })[i]);
		TEST_ROW_EQ(i, w.parts->list[i].waits, i > 0);
	}
	/* Those that execute ran into the trap. */
	fill_parts(&whole, pcs, exceptions, true, &arena, &w);
	TEST_EQ(w.parts->list[0].reasons, STOP_REASON_BIT(RPC_STOP_REASON_TRAP));
	TEST_EQ(w.parts->list[1].reasons + w.parts->list[2].reasons, 0);
	/* The exception is that of lane 20, whatever the others do, and so is its address. */
	exceptions[20] = 6;
	whole.has = CUDBGSHIM_WARP_ERROR_PC;
	whole.error_pc = 0x18;
	fill_parts(&whole, pcs, exceptions, false, &arena, &w);
	TEST_EQ(w.pc, 0x18);
	TEST_EQ(w.parts->list[0].pc, 0x18);
	TEST_EQ(w.parts->list[0].exec, 0xfffff000);
	TEST_EQ(w.parts->list[0].lane, 20);
	TEST_EQ(w.parts->list[0].reasons, STOP_REASON_BIT(RPC_STOP_REASON_ADDRESS_ERROR));
	TEST_EQ(w.parts->list[1].exec, 0xf0);
	TEST_EQ(w.parts->list[1].reasons + w.parts->list[2].reasons, 0);
	CU_ASSERT_PTR_NULL(w.parts->list[1].exception);
	/* Each part has that of its own lanes. */
	exceptions[9] = 1;
	fill_parts(&whole, pcs, exceptions, false, &arena, &w);
	TEST_EQ(w.parts->list[0].lane, 9);
	TEST_EQ(w.parts->list[0].reasons, STOP_REASON_BIT(RPC_STOP_REASON_MEMORY_VIOLATION));
	TEST_EQ(w.parts->list[1].reasons, 0);
	TEST_EQ(w.parts->list[2].lane, 20);
	TEST_EQ(w.parts->list[2].pc, 0x20);
	TEST_EQ(w.parts->list[2].reasons, STOP_REASON_BIT(RPC_STOP_REASON_ADDRESS_ERROR));
	/* All at one place, whether they execute or not. */
	for (uint32_t lane = 12; lane < 32; lane++)
		pcs[lane] = 0x10;
	fill_parts(&whole, pcs, exceptions, false, &arena, &w);
	TEST_EQ(wave_n_parts(&w), 0);
}

/* Each lane may be somewhere else; what is beyond the bound is counted, and told. */
static void parts_are_bounded(void)
{
	struct cudbgshim_warp whole = { .valid_lanes = UINT32_MAX, .active_lanes = 1 };
	uint32_t exceptions[32] = { 0 };
	auto_rpc_arena struct rpc_arena arena;
	uint64_t pcs[32];
	const struct cuda_warp w = { .whole = &whole, .pcs = pcs, .exceptions = exceptions,
				     .n_lanes = 32, .lanes = UINT32_MAX };
	struct cuda_parts parts = { .arena = &arena };
	struct wave wave = { 0 };

	rpc_arena_init(&arena, TARGET_ARENA_MAX);
	for (uint32_t lane = 0; lane < 32; lane++)
		pcs[lane] = 0x1000 + 16 * lane;
	for (uint32_t i = 0; i < WAVES_PARTS_MAX / 32; i++) {
		wave = (struct wave){ 0 };
		cuda_warp_add_parts(&w, 0, &parts, &wave);
	}
	TEST_EQ(wave_n_parts(&wave), 32);
	TEST_EQ(wave.parts->list[31].exec, 0x80000000);
	CU_ASSERT_PTR_NULL(cuda_parts_missing(&parts));
	wave = (struct wave){ 0 };
	cuda_warp_add_parts(&w, 0, &parts, &wave);
	CU_ASSERT_PTR_NULL(wave.parts);
	TEST_STR(cuda_parts_missing(&parts),
		 "parts of waves: more than 131072, so 1 wave is told as if all of its lanes were at one place");
}

static void number_in_the_block_counts_all_dimensions(void)
{
	const struct cudbgshim_dim3 block_dim = { 8, 8, 4 };
	struct wave wave = { 0 };

	cuda_warp_add_number(32, block_dim, 0, (struct cudbgshim_dim3){ 0, 4, 2 }, &wave);
	TEST_EQ(wave.wave_in_group, 5);
	cuda_warp_add_number(32, block_dim, 9, (struct cudbgshim_dim3){ 1, 1, 3 }, &wave);
	TEST_EQ(wave.wave_in_group, 6);
}

static void this_test_does_not_use_cuda(void)
{
	auto_close int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	TEST_EQ(cuda_maps_use(maps), 0);
	TEST_EQ(cuda_maps_use(-1), -1);
}

TEST_SUITE(worker_target_cuda, TEST(exceptions_are_named_and_sorted_in), TEST(warps_become_waves),
	   TEST(lanes_at_one_place_are_a_part), TEST(parts_are_bounded),
	   TEST(number_in_the_block_counts_all_dimensions), TEST(this_test_does_not_use_cuda));
