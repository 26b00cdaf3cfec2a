/* SPDX-License-Identifier: MIT */
/* Core files as targets: what they say, what they lack, and how much memory that takes. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "agentd/worker/snapshot/snapshot.h"
#include "agentd/worker/target/core_file.h"
#include "corefile/amdgpu/write.h"
#include "corefile/file.h"
#include "tests/unit/corefile/cudacore_full.h"
#include "tests/unit/corefile/cudacore_population.h"
#include "testlib.h"

DEFINE_AUTO(struct amdcore_image *, amdcore_image_destroy);

static const struct worker_options options;

static struct target *open_bytes(const void *data, size_t size)
{
	const struct core_bytes bytes = { .data = data, .size = size, .name = "core", .time_us = 77 };
	struct agent_err err = { 0 };
	struct target *t = NULL;

	TEST_EQ_FATAL(target_core_create(&options, &bytes, &t, &err), 0);
	return t;
}

/* @return 0, or negative. */
static int look(struct target *t, struct rpc_arena *a, bool registers,
		struct rpc_gpu_snapshot_result *ret)
{
	const struct snapshot_options o = { .waves = true, .each_wave = true,
					    .registers = registers, .look_up_ms = 60000 };
	struct agent_err err = { 0 };
	struct snapshot seen;
	int r;

	memset(ret, 0, sizeof(*ret));
	a->limit = TARGET_ARENA_MAX;
	r = snapshot_look(t, a, &o, 1000, &seen, &err);
	return r < 0 ? r : snapshot_tell(t, a, &o, &seen, ret, &err);
}

/* ------------------------------------------------------------------ CUDA --------------------- */

/* Its position in the table, by multiprocessor and slot; UINT32_MAX for none. */
static uint32_t warp_row(const struct cudacore *c, const struct rpc_wave *w)
{
	for (uint32_t i = 0; i < c->n[CUDACORE_WARPS]; i++) {
		const struct cudacore_warp *row = &c->warps[i];
		const struct cudacore_sm *sm = &c->sms[c->blocks[row->block].sm];

		if (sm->device == w->gpu_id && sm->id == w->ref.unit && row->id == w->ref.index)
			return i;
	}
	return UINT32_MAX;
}

static bool is_pc_of(const struct cudacore *c, const struct cudacore_warp *w, uint64_t pc)
{
	bool is = w->error_pc_valid && pc == w->error_pc;

	for (uint32_t i = w->lanes.first; i < w->lanes.first + w->lanes.n; i++)
		is |= c->lanes[i].virtual_pc == pc;
	return is;
}

/* Callers of one warp, as wave.registers gives them. */
static void callers_of(struct target *t, struct rpc_arena *a, const struct rpc_wave_name *name,
		       struct rpc_wave_registers *ret)
{
	const struct target_registers_wanted what = { .wave = name };
	const struct target_waves_from from = { 0 };
	struct agent_err err = { 0 };
	uint64_t stopped_us;

	TEST_EQ_FATAL(t->ops->registers(t, &from, &what, a, ret, &stopped_us, &err), 0);
	TEST_EQ(ret->has_callers, ret->n_callers != 0);
}

/* Of the active lanes with an exception, else of others with one, else of the active ones, the first. */
static const struct cudacore_lane *speaker_of(const struct cudacore *c, const struct cudacore_warp *w)
{
	const struct cudacore_lane *best = NULL;
	int points = -1;

	for (uint32_t i = w->lanes.first; i < w->lanes.first + w->lanes.n; i++) {
		int active = w->active_lanes >> c->lanes[i].number & 1, raised = cudacore_lane_exception(c, i) != 0;

		if (2 * raised + active > points) {
			points = 2 * raised + active;
			best = &c->lanes[i];
		}
	}
	return best;
}

static void check_callers(struct target *t, struct rpc_arena *a, const struct cudacore *c, uint32_t row,
			  const struct rpc_wave *w)
{
	const struct rpc_wave_name name = { .queue_id = w->ref.queue_id, .has_unit = true,
					    .unit = w->ref.unit, .has_index = true,
					    .index = w->ref.index };
	const struct cudacore_lane *l = speaker_of(c, &c->warps[row]);
	struct rpc_wave_registers got;

	callers_of(t, a, &name, &got);
	TEST_ROW_EQ(row, got.n_callers, l->frames.n);
	for (uint32_t i = 0; i < got.n_callers && i < l->frames.n; i++)
		TEST_ROW_EQ(row, got.callers[i].address, c->frames[l->frames.first + i].return_address);
}

/* Whatever the core: each warp is a wave, with its own block, lanes and a pc of its own. */
static void random_cuda_cores_become_waves(void)
{
	static const struct population most = { .devices = 3, .sms = 4, .blocks = 3, .warps = 4, .memory = 8 };

	for (unsigned i = 0; i < 40; i++) {
		struct cudacore c = { 0 };
		struct population_file f;
		struct rpc_gpu_snapshot_result s;
		struct rpc_arena arena;
		struct target *t;

		population_fill(&c, &most);
		f = population_write(&c, &(struct cudacore_write_options){ .layout = CUDACORE_LAYOUT_R590 });
		t = open_bytes(f.data, f.size);
		rpc_arena_init(&arena, 0);
		TEST_ROW_EQ(i, look(t, &arena, true, &s), 0);
		TEST_ROW_EQ(i, s.n_waves, c.n[CUDACORE_WARPS]);
		TEST_ROW_EQ(i, s.n_devices, c.n[CUDACORE_DEVICES]);
		TEST_ROW_EQ(i, s.n_queues, c.n[CUDACORE_CONTEXTS]);
		TEST_ROW_STR(i, s.source.format, "cuda");
		for (size_t k = 0; k < s.n_waves; k++) {
			uint32_t row = warp_row(&c, &s.waves[k]);

			CU_ASSERT_TRUE_FATAL(row != UINT32_MAX);
			TEST_ROW_EQ(k, s.waves[k].exec, c.warps[row].active_lanes);
			TEST_ROW_EQ(k, s.waves[k].ref.dispatch, c.blocks[c.warps[row].block].grid_id);
			TEST_ROW_EQ(k, memcmp(s.waves[k].ref.workgroup,
					      c.blocks[c.warps[row].block].index, 12), 0);
			CU_ASSERT_TRUE(is_pc_of(&c, &c.warps[row], s.waves[k].pc));
			check_callers(t, &arena, &c, row, &s.waves[k]);
		}
		rpc_arena_deinit(&arena);
		target_destroy(t);
		cudacore_deinit(&c);
		free(f.data);
	}
}

struct stack_row {
	uint32_t depth, n, level[4], want[4], n_want;
	bool complete;
};

/* One warp of one lane, with frames that need not make sense; @return the file. */
static uint8_t *core_with_stack(const struct stack_row *row, size_t *ret_size)
{
	struct cudacore_image *image;
	struct cudacore c = { 0 };
	struct cudacore_warp *w;
	uint8_t *file;

	cudacore_full_add_device(&c);
	c.devices[0].sm_count = 1;
	cudacore_add(&c, CUDACORE_CONTEXTS, 0);
	cudacore_add(&c, CUDACORE_GRIDS, 0);
	cudacore_add(&c, CUDACORE_SMS, 0);
	cudacore_add(&c, CUDACORE_BLOCKS, 0);
	w = cudacore_add(&c, CUDACORE_WARPS, 0);
	w->valid_lanes = w->active_lanes = 1;
	((struct cudacore_lane *)cudacore_add(&c, CUDACORE_LANES, 0))->call_depth = row->depth;
	for (uint32_t i = 0; i < row->n; i++) {
		struct cudacore_frame *f = cudacore_add(&c, CUDACORE_FRAMES, 0);

		f->level = i < TEST_COUNT(row->level) ? row->level[i] : i;
		f->return_address = 0x1000 + i;
	}
	TEST_EQ_FATAL(cudacore_image_create(&c, CUDACORE_LAYOUT_DEFAULT, NULL, &image, NULL), 0);
	*ret_size = cudacore_image_size(image);
	file = test_tail_alloc(*ret_size);
	TEST_EQ(cudacore_image_read(image, 0, file, *ret_size, NULL), *ret_size);
	cudacore_image_destroy(image);
	cudacore_deinit(&c);
	return file;
}

static bool is_missing(const struct rpc_gpu_snapshot_result *s, const char *what)
{
	bool found = false;

	for (size_t i = 0; i < s->n_missing; i++)
		found = found || strcmp(s->missing[i], what) == 0;
	return found;
}

/* Callers are those that the core has, one behind the other; what it promises besides is missing. */
static void call_stacks_that_lie(void)
{
	static const struct stack_row rows[] = {
		{ 2, 2, { 0, 1 }, { 0x1000, 0x1001 }, 2, true },
		{ 2, 2, { 1, 0 }, { 0x1001, 0x1000 }, 2, true },
		{ 0, 2, { 0, 1 }, { 0 }, 0, true },
		{ 1, 3, { 0, 1, 2 }, { 0x1000 }, 1, true },
		{ 5, 2, { 0, 1 }, { 0x1000, 0x1001 }, 2, false },
		{ UINT32_MAX, 1, { 0 }, { 0x1000 }, 1, false },
		{ 3, 2, { 0, 2 }, { 0x1000 }, 1, false },
		{ 2, 2, { 1, 2 }, { 0 }, 0, false },
		{ 1, 2, { 0, 0 }, { 0x1001 }, 1, true },
		{ 2, 3, { UINT32_MAX, 0, 1 }, { 0x1001, 0x1002 }, 2, true },
		{ 3, 0, { 0 }, { 0 }, 0, false },
		/* No more are kept of a live process. */
		{ 100, 100, { 0, 1, 2, 3 }, { 0x1000, 0x1001, 0x1002, 0x1003 }, 64, true },
	};
	static const struct rpc_wave_name name = { .has_unit = true, .has_index = true };

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		size_t size;
		const uint8_t *file = core_with_stack(&rows[i], &size);
		struct target *t = open_bytes(file, size);
		struct rpc_gpu_snapshot_result s;
		struct rpc_wave_registers got;
		struct rpc_arena arena;

		rpc_arena_init(&arena, 0);
		TEST_ROW_EQ(i, look(t, &arena, false, &s), 0);
		TEST_EQ_FATAL(s.n_groups, 1);
		TEST_ROW_EQ(i, s.groups[0].n_callers, rows[i].n_want);
		callers_of(t, &arena, &name, &got);
		TEST_ROW_EQ(i, got.n_callers, rows[i].n_want);
		for (uint32_t k = 0; k < got.n_callers && k < TEST_COUNT(rows[i].want); k++) {
			TEST_ROW_EQ(i, got.callers[k].address, rows[i].want[k]);
			TEST_ROW_EQ(i, s.groups[0].callers[k].address, rows[i].want[k]);
		}
		TEST_ROW_EQ(i, is_missing(&s, "core file: outer callers in 1 call stacks"),
			    !rows[i].complete);
		rpc_arena_deinit(&arena);
		target_destroy(t);
	}
}

/* Two lanes of one warp; @return the file, whose second lane has less than the first. */
static uint8_t *core_with_short_lane(size_t *ret_size)
{
	static const uint32_t words[4] = { 11, 12, 13, 14 };
	struct cudacore_image *image;
	struct cudacore c = { 0 };
	struct cudacore_warp *w;
	uint8_t *file;

	cudacore_full_add_device(&c);
	c.devices[0].sm_count = 1;
	c.devices[0].predicates_per_lane = 3;
	cudacore_add(&c, CUDACORE_CONTEXTS, 0);
	cudacore_add(&c, CUDACORE_GRIDS, 0);
	cudacore_add(&c, CUDACORE_SMS, 0);
	cudacore_add(&c, CUDACORE_BLOCKS, 0);
	w = cudacore_add(&c, CUDACORE_WARPS, 0);
	w->valid_lanes = w->active_lanes = 3;
	w->n_registers = 4;
	for (uint32_t i = 0; i < 2; i++) {
		struct cudacore_lane *l = cudacore_add(&c, CUDACORE_LANES, 0);

		l->number = i;
		l->registers = (struct corefile_blob){ .data = words, .size = i ? 4 : 16 };
		l->predicates = (struct corefile_blob){ .data = words, .size = i ? 8 : 12 };
	}
	TEST_EQ_FATAL(cudacore_image_create(&c, CUDACORE_LAYOUT_DEFAULT, NULL, &image, NULL), 0);
	*ret_size = cudacore_image_size(image);
	file = test_tail_alloc(*ret_size);
	TEST_EQ(cudacore_image_read(image, 0, file, *ret_size, NULL), *ret_size);
	cudacore_image_destroy(image);
	cudacore_deinit(&c);
	return file;
}

/* A lane whose registers are not in the core is not one whose registers are 0. */
static void registers_that_a_lane_lacks_are_missing(void)
{
	static const struct rpc_wave_name name = { .has_unit = true, .has_index = true };
	const struct target_registers_wanted what = {
		.wave = &name, .banks = 1u << RPC_REGISTER_BANK_VECTOR, .count = UINT32_MAX
	};
	const struct target_waves_from from = { 0 };
	struct rpc_wave_registers got;
	struct agent_err err = { 0 };
	struct rpc_arena arena;
	uint64_t stopped_us;
	size_t size;
	const uint8_t *file = core_with_short_lane(&size);
	struct target *t = open_bytes(file, size);

	rpc_arena_init(&arena, 0);
	TEST_EQ_FATAL(t->ops->registers(t, &from, &what, &arena, &got, &stopped_us, &err), 0);
	TEST_EQ_FATAL(got.n_vector, 4 + 3);
	TEST_EQ(got.vector[3].lanes[0], 14);
	TEST_EQ_FATAL(got.n_missing, 2);
	TEST_EQ(got.has_missing, true);
	TEST_STR(got.missing[0], "registers from R1 on, of lanes 0x2: the driver does not give them");
	TEST_STR(got.missing[1], "registers from P2 on, of lanes 0x2: the driver does not give them");
	rpc_arena_deinit(&arena);
	target_destroy(t);
}

/* Every memory that a warp sees, as other writers have it: with windows for generic addresses. */
static uint8_t *core_with_memories(bool windows, size_t *ret_size)
{
	static const uint8_t shared[] = "shared memory", local[] = "local memory of a lane",
			     global[] = "global memory with a bank in it", params[] = "parameters";
	struct cudacore_image *image;
	struct cudacore_context *x;
	struct cudacore_memory *m;
	struct cudacore c = { 0 };
	struct cudacore_bank *b;
	struct cudacore_grid *g;
	struct cudacore_lane *l;
	struct cudacore_warp *w;
	uint8_t *file;

	cudacore_full_add_device(&c);
	c.devices[0].sm_count = 1;
	x = cudacore_add(&c, CUDACORE_CONTEXTS, 0);
	x->id = 5;
	if (windows) {
		x->shared_window = 0x7e0000000000;
		x->local_window = 0x7d0000000000;
	}
	g = cudacore_add(&c, CUDACORE_GRIDS, 0);
	g->id = 9;
	g->context_id = 5;
	g->params_offset = 0x210;
	g->params = (struct corefile_blob){ .data = params, .size = sizeof(params) };
	b = cudacore_add(&c, CUDACORE_BANKS, 0);
	b->id = 3;
	b->address = 0x10000 + 14;
	b->size = 13;
	cudacore_add(&c, CUDACORE_SMS, 0);
	cudacore_add(&c, CUDACORE_BLOCKS, 0);
	c.blocks[0].grid_id = 9;
	c.blocks[0].shared = (struct corefile_blob){ .data = shared, .size = sizeof(shared) };
	w = cudacore_add(&c, CUDACORE_WARPS, 0);
	w->valid_lanes = w->active_lanes = 1;
	l = cudacore_add(&c, CUDACORE_LANES, 0);
	l->local = (struct corefile_blob){ .data = local, .size = sizeof(local) };
	l->local_address = 0x100;
	m = cudacore_add_memory(&c);
	m->address = 0x10000;
	m->blob = (struct corefile_blob){ .data = global, .size = sizeof(global) };
	TEST_EQ_FATAL(cudacore_image_create(&c, CUDACORE_LAYOUT_DEFAULT, NULL, &image, NULL), 0);
	*ret_size = cudacore_image_size(image);
	file = test_tail_alloc(*ret_size);
	TEST_EQ(cudacore_image_read(image, 0, file, *ret_size, NULL), *ret_size);
	cudacore_image_destroy(image);
	cudacore_deinit(&c);
	return file;
}

static void memories_of_a_cuda_core(void)
{
	static const struct rpc_wave_name name = { .has_unit = true, .has_index = true };
	static const char nothing[] = "the core has nothing at 0x%llx of that memory";
	static const struct {
		bool windows;
		enum rpc_memory_space space;
		uint32_t bank;
		uint64_t address;
		const char *want; /* NULL: nothing, and that text. */
		const char *why;
	} rows[] = {
		{ false, RPC_MEMORY_SPACE_LDS, 0, 7, "memory", NULL },
		{ false, RPC_MEMORY_SPACE_LDS, 0, 14, NULL, "" },
		{ false, RPC_MEMORY_SPACE_SCRATCH, 0, 0x106, "memory of a lane", NULL },
		{ false, RPC_MEMORY_SPACE_SCRATCH, 0, 0xff, NULL, "" },
		{ false, RPC_MEMORY_SPACE_PARAM, 0, 0x210, "parameters", NULL },
		{ false, RPC_MEMORY_SPACE_PARAM, 0, 0x20f, NULL, "" },
		{ false, RPC_MEMORY_SPACE_CONSTANT, 3, 0, "with a bank i", NULL },
		{ false, RPC_MEMORY_SPACE_CONSTANT, 3, 13, NULL,
		  ": of that bank of the kernel, the core has less" },
		{ false, RPC_MEMORY_SPACE_CONSTANT, 2, 0, NULL,
		  ": of that bank of the kernel, the core has less" },
		{ false, RPC_MEMORY_SPACE_GENERIC, 0, 0x10007, "memory with a bank in it", NULL },
		{ false, RPC_MEMORY_SPACE_GENERIC, 0, 0x7e0000000000, NULL,
		  ": nor does it say at which generic addresses shared and local memory are" },
		{ true, RPC_MEMORY_SPACE_GENERIC, 0, 0x10007, "memory with a bank in it", NULL },
		{ true, RPC_MEMORY_SPACE_GENERIC, 0, 0x7e0000000007, "memory", NULL },
		{ true, RPC_MEMORY_SPACE_GENERIC, 0, 0x7d0000000106, "memory of a lane", NULL },
		{ true, RPC_MEMORY_SPACE_GENERIC, 0, 0x7d0000000000, NULL, "" },
		{ true, RPC_MEMORY_SPACE_GENERIC, 0, 0x7e0001000000, NULL, "" },
		{ true, RPC_MEMORY_SPACE_CODE, 0, 0x1000, NULL, "" },
	};
	const struct target_waves_from from = { 0 };

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		char buf[64] = "";
		const struct target_wave_memory what = { .wave = &name, .space = rows[i].space,
							 .bank = rows[i].bank,
							 .address = rows[i].address, .buf = buf,
							 .size = sizeof(buf) - 1 };
		struct agent_err err = { 0 };
		struct rpc_arena arena;
		size_t size;
		const uint8_t *file = core_with_memories(rows[i].windows, &size);
		struct target *t = open_bytes(file, size);
		int n;

		rpc_arena_init(&arena, 0);
		TEST_ROW_EQ(i, !!(t->ops->wave_spaces & TARGET_SPACE_BIT(rows[i].space)), true);
		n = t->ops->wave_memory(t, &from, &what, &arena, &err);
		if (rows[i].want) {
			TEST_ROW_STR(i, buf, rows[i].want);
		} else {
			char text[256];

			snprintf(text, sizeof(text), nothing, (unsigned long long)rows[i].address);
			strncat(text, rows[i].why, sizeof(text) - strlen(text) - 1);
			TEST_ROW_EQ(i, n, -EFAULT);
			TEST_ROW_STR(i, err.message, text);
		}
		rpc_arena_deinit(&arena);
		target_destroy(t);
	}
}

/* What the agent notes in a core comes back; nonsense in its place is not believed. */
static void notes_of_the_agent(void)
{
	static const char head[] =
		"{\"schema\":\"gpu-agent.snapshot/1\",\"source\":{\"kind\":\"live\",\"host\":\"far\",\"agent\":\"9.9\"},"
		"\"time_us\":5,\"process\":{\"pid\":7,\"uid\":8,\"comm\":\"train\",\"vendor\":\"nvidia\",\"gpu_ids\":[],"
		"\"queues\":0,\"debuggable\":true},\"interface_version\":\"137\",\"runtime\":{\"state\":\"enabled\"},"
		"\"devices\":[],\"queues\":[],\"wave_count\":0,\"groups\":[],\"stopped_us\":0,\"budget_exceeded\":false,"
		"\"complete\":false,\"missing\":[\"memory: none\"]}";
	static const struct population most = { .devices = 1, .sms = 1, .blocks = 1, .warps = 1 };

	for (int whole = 0; whole < 2; whole++) {
		struct cudacore c = { 0 };
		struct rpc_gpu_snapshot_result s;
		struct population_file f;
		struct rpc_arena arena;
		struct target *t;

		population_fill(&c, &most);
		c.agent = (struct corefile_blob){ .data = head, .size = sizeof(head) - 1 - (whole ? 0 : 9) };
		f = population_write(&c, &(struct cudacore_write_options){ 0 });
		t = open_bytes(f.data, f.size);
		rpc_arena_init(&arena, 0);
		TEST_EQ(look(t, &arena, false, &s), 0);
		TEST_EQ(s.process.pid, whole ? 7 : 0);
		TEST_STR(s.process.comm, whole ? "train" : "unknown");
		TEST_STR(s.source.host, whole ? "far" : "unknown");
		if (whole) {
			TEST_EQ(s.time_us, 5);
			TEST_STR(s.interface_version, "137");
			TEST_STR(s.source.writer, "gpu-agent 9.9");
			TEST_STR(s.missing[0], "memory: none");
		}
		rpc_arena_deinit(&arena);
		target_destroy(t);
		cudacore_deinit(&c);
		free(f.data);
	}
}

static int write_full(int fd)
{
	struct cudacore_written written;

	return cudacore_full_write(fd, &written) < 0;
}

static int analyse_full(int fd)
{
	struct rpc_gpu_snapshot_result s;
	struct corefile_map map;
	struct rpc_arena arena;
	struct target *t;
	int bad = 0;

	if (corefile_map_open(fd, -1, 0, &map) < 0)
		return 1;
	t = open_bytes(map.data, map.size);
	rpc_arena_init(&arena, 0);
	if (look(t, &arena, true, &s) < 0)
		return 2;
	bad |= s.n_waves != FULL_SMS * FULL_WARPS || !s.n_registers;
	for (size_t i = 0; i < s.n_waves; i++)
		bad |= s.waves[i].lanes != FULL_LANES ||
		       s.waves[i].pc != cudacore_full_pc((uint32_t)(i * FULL_LANES));
	for (size_t i = 0; i < s.n_registers; i++) {
		const struct rpc_wave_registers *r = &s.registers[i];
		uint32_t first = (r->wave.ref.unit * FULL_WARPS + r->wave.ref.index) * FULL_LANES;

		bad |= r->n_vector != FULL_REGISTERS;
		for (uint32_t k = 0; k < FULL_REGISTERS && !bad; k++)
			bad |= r->vector[k].lanes[5] != cudacore_full_register(first + 5, k);
	}
	rpc_arena_deinit(&arena);
	target_destroy(t);
	corefile_map_close(&map);
	return bad ? 3 : 0;
}

/* 270,336 lanes, their waves, and registers of some. */
static void a_full_gpu_within_400_mib(void)
{
	auto_close int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0) {
		test_skip("no unnamed file in /tmp");
		return;
	}
	cudacore_full_run("write", write_full, fd);
	cudacore_full_run("analyse", analyse_full, fd);
}

/* ------------------------------------------------------------------ AMD ---------------------- */

struct amd {
	uint8_t runtime[AMDCORE_RUNTIME_SIZE], device[AMDCORE_DEVICE_SIZE];
	uint8_t queues[2 * AMDCORE_QUEUE_SIZE], memory[4096];
	struct amdcore_segment segment;
	struct amdcore core;
	uint8_t *file;
	size_t size;
};

/* One device, a compute queue whose save area lies outside, and one that carries no waves. */
static void make_amd(struct amd *m)
{
	auto_call(amdcore_image_destroyp) struct amdcore_image *image = NULL;

	amdcore_pack_runtime(m->runtime, &(struct amdcore_runtime){ .state = 1, .ttmp_setup = 1 });
	amdcore_pack_device(m->device, &(struct amdcore_device){
		.gpu_id = 5, .gfx_target_version = 90010, .num_xcc = 1, .simd_count = 4,
		.max_waves_per_simd = 8, .array_count = 2, .simd_arrays_per_engine = 1 });
	amdcore_pack_queue(m->queues, &(struct amdcore_queue){
		.queue_id = 1, .gpu_id = 5, .type = RPC_QUEUE_TYPE_COMPUTE_AQL, .ring_base = 0x10000,
		.ring_size = 4096, .read_pointer = 0x20000, .write_pointer = 0x20008,
		.save_area = 0x900000, .save_area_size = 1 << 20 });
	amdcore_pack_queue(m->queues + AMDCORE_QUEUE_SIZE, &(struct amdcore_queue){
		.queue_id = 2, .gpu_id = 5, .type = RPC_QUEUE_TYPE_SDMA, .read_pointer = 0x20010,
		.write_pointer = 0x20018 });
	m->memory[0] = 3;
	m->memory[8] = 9;
	m->segment = (struct amdcore_segment){ .address = 0x20000, .size = sizeof(m->memory),
					       .bytes = { .data = m->memory, .size = sizeof(m->memory) } };
	m->core = (struct amdcore){ .kfd_major = 1, .kfd_minor = 17,
				    .runtime = { m->runtime, 1, AMDCORE_RUNTIME_SIZE },
				    .devices = { m->device, 1, AMDCORE_DEVICE_SIZE },
				    .queues = { m->queues, 2, AMDCORE_QUEUE_SIZE },
				    .segments = &m->segment, .n_segments = 1 };
	TEST_EQ_FATAL(amdcore_image_create(&m->core, &image), 0);
	m->size = (size_t)amdcore_image_size(image);
	m->file = malloc(m->size);
	TEST_EQ_FATAL(amdcore_image_read(image, NULL, 0, m->file, m->size, NULL), m->size);
}

static void tables_of_an_amdgpu_core(void)
{
	struct rpc_gpu_snapshot_result s;
	struct rpc_arena arena;
	struct amd m = { 0 };
	struct target *t;
	uint8_t buf[16];

	make_amd(&m);
	t = open_bytes(m.file, m.size);
	rpc_arena_init(&arena, 0);
	TEST_EQ(look(t, &arena, false, &s), 0);
	TEST_EQ(s.n_queues, 2);
	TEST_EQ(s.queues[0].read_index, 3);
	TEST_EQ(s.queues[0].write_index, 9);
	CU_ASSERT_FALSE(s.queues[0].suspended);
	TEST_STR(s.devices[0].arch, "gfx90a");
	TEST_STR(s.interface_version, "1.17");
	TEST_EQ(s.time_us, 77);
	CU_ASSERT_FALSE(s.complete);
	TEST_EQ(s.n_missing, 1);
	TEST_STR(s.missing[0], "queue 1: its save area is not readable");
	TEST_EQ(memory_read(&t->memory, 0x20ff8, buf, 16), 8);
	TEST_EQ(memory_read(&t->memory, 0x1000, buf, 16), -EFAULT);
	/* Nothing can be changed. */
	CU_ASSERT_TRUE(!t->ops->suspend && !t->ops->watch_set && !t->ops->core_begin);
	rpc_arena_deinit(&arena);
	target_destroy(t);
	free(m.file);
}

/* The host's part tells whose it is. */
static void host_half_of_a_unified_core(void)
{
	static const uint32_t uid = 1000, pid = 4242;
	uint8_t prpsinfo[136] = { 0 };
	struct amdcore_note notes[] = {
		{ .name = "CORE", .type = NT_PRPSINFO, .desc = prpsinfo, .size = sizeof(prpsinfo) },
		{ .name = "CORE", .type = NT_PRSTATUS, .desc = prpsinfo, .size = 40 },
	};
	auto_call(amdcore_image_destroyp) struct amdcore_image *image = NULL;
	struct rpc_gpu_snapshot_result s;
	struct rpc_arena arena;
	struct amd m = { 0 };
	struct target *t;

	memcpy(prpsinfo + 16, &uid, sizeof(uid));
	memcpy(prpsinfo + 24, &pid, sizeof(pid));
	memcpy(prpsinfo + 40, "python3", 7);
	make_amd(&m);
	free(m.file);
	m.core.unified = true;
	m.core.machine = EM_X86_64;
	m.core.notes = notes;
	m.core.n_notes = TEST_COUNT(notes);
	TEST_EQ_FATAL(amdcore_image_create(&m.core, &image), 0);
	m.size = (size_t)amdcore_image_size(image);
	m.file = malloc(m.size);
	TEST_EQ_FATAL(amdcore_image_read(image, NULL, 0, m.file, m.size, NULL), m.size);
	t = open_bytes(m.file, m.size);
	rpc_arena_init(&arena, 0);
	TEST_EQ(look(t, &arena, false, &s), 0);
	TEST_STR(s.source.format, "amdgpu unified");
	TEST_EQ(s.process.pid, 4242);
	TEST_EQ(s.process.uid, 1000);
	TEST_STR(s.process.comm, "python3");
	TEST_EQ(s.n_queues, 2);
	rpc_arena_deinit(&arena);
	target_destroy(t);
	free(m.file);
}

static void what_is_no_core_says_where(void)
{
	static const struct {
		const char *data, *message;
	} rows[] = {
		{ "", "core: offset 0x0: not an ELF file" },
		{ "\x1f\x8b\x08", "core: offset 0x0: compressed with gzip: expand it with gunzip first" },
		{ "\x7f" "ELF\2\1\1\3", "core: offset 0x8: the file ends inside the ELF header" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		const struct core_bytes bytes = { .data = rows[i].data, .size = strlen(rows[i].data),
						  .name = "core" };
		struct agent_err err = { 0 };
		struct target *t = NULL;

		CU_ASSERT_TRUE(target_core_create(&options, &bytes, &t, &err) < 0);
		TEST_ROW_STR(i, err.message, rows[i].message);
		TEST_ROW_EQ(i, agent_err_exit(&err), 1);
	}
}

TEST_SUITE(worker_core, TEST(random_cuda_cores_become_waves), TEST(call_stacks_that_lie), TEST(notes_of_the_agent),
	   TEST(registers_that_a_lane_lacks_are_missing), TEST(memories_of_a_cuda_core),
	   TEST(a_full_gpu_within_400_mib), TEST(tables_of_an_amdgpu_core),
	   TEST(host_half_of_a_unified_core), TEST(what_is_no_core_says_where));
