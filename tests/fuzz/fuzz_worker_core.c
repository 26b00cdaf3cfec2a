/* SPDX-License-Identifier: MIT */
/* A hostile core file as a target, and everything that can be asked of it. */
#include <elf.h>

#include "agentd/worker/host/core.h"
#include "agentd/worker/snapshot/code.h"
#include "agentd/worker/snapshot/snapshot.h"
#include "agentd/worker/target/core_file.h"
#include "corefile/processor.h"
#include "fuzzlib.h"

/* A look has room for all waves that there can be; the sanitizer would keep what it had a while. */
__attribute__((used, visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "quarantine_size_mb=1";
}

/* What is asked: one thing of each input, and seldom what takes long under a sanitizer. */
enum question { SNAPSHOT, SNAPSHOT_REGISTERS, REGISTERS, LDS, SCRATCH, THREADS, CODE };
#define CHOICES 24u

static enum question question_of(const uint8_t *data, size_t size)
{
	uint32_t h = (uint32_t)size;

	for (size_t i = 0; i < size; i++)
		h = (h ^ data[i]) * 16777619u;
	h = (h >> 8) % CHOICES;
	return h < CODE ? (enum question)h : CODE;
}

static void ask_snapshot(struct target *t, struct rpc_arena *a, bool registers)
{
	const struct snapshot_options o = { .waves = true, .each_wave = true, .registers = registers,
					    .look_up_ms = 300 };
	struct rpc_gpu_snapshot_result result = { 0 };
	struct snapshot s;

	if (snapshot_look(t, a, &o, 1000, &s, NULL) == 0)
		(void)snapshot_tell(t, a, &o, &s, &result, NULL);
}

static void ask_wave(struct target *t, struct rpc_arena *a, const struct target_waves_from *from,
		     enum question q)
{
	const struct rpc_wave_name name = { .queue_id = from->queues[0].queue_id, .has_unit = true,
					    .has_index = true };
	const struct target_registers_wanted what = { .wave = &name, .banks = UINT32_MAX,
						      .count = UINT32_MAX, .work_items = true };
	struct rpc_wave_registers registers;
	uint64_t stopped_us;
	uint8_t buf[256];
	const struct target_wave_memory memory = {
		.wave = &name, .lane = 3, .buf = buf, .size = sizeof(buf),
		.space = q == LDS ? RPC_MEMORY_SPACE_LDS : RPC_MEMORY_SPACE_SCRATCH,
	};

	if (q == REGISTERS)
		(void)t->ops->registers(t, from, &what, a, &registers, &stopped_us, NULL);
	else
		(void)t->ops->wave_memory(t, from, &memory, a, NULL);
}

/* Of its first queue the first wave. */
static void ask_first(struct target *t, struct rpc_arena *a, enum question q)
{
	struct target_device *devices;
	struct rpc_queue *queues;
	struct target_waves_from from = { .max_stop_ms = 1000 };

	if (t->ops->devices(t, a, &devices, &from.n_devices, NULL) < 0 ||
	    t->ops->queues(t, a, &queues, &from.n_queues, NULL) < 0 || !from.n_queues)
		return;
	from.devices = devices;
	from.queues = queues;
	from.n_queues = 1;
	ask_wave(t, a, &from, q);
}

static void ask_code(struct target *t, struct rpc_arena *a)
{
	const char *missing[CODE_MISSING_MAX];
	struct code_set set;
	uint8_t buf[256];

	if (code_set_init(&set, t, a, 300) == 0)
		for (size_t i = 0; i < set.n_objects && i < 8; i++) {
			(void)code_open(&set, &set.objects[i]);
			(void)t->ops->code_read(t, &set.objects[i], 16, buf, sizeof(buf));
			(void)memory_read(&t->memory, set.objects[i].start - 8, buf, sizeof(buf));
		}
	(void)code_missing(&set, true, missing);
	code_set_deinit(&set);
}

static void ask(struct target *t, struct rpc_arena *a, enum question q)
{
	switch (q) {
	case SNAPSHOT:
	case SNAPSHOT_REGISTERS:
		ask_snapshot(t, a, q == SNAPSHOT_REGISTERS);
		break;
	case CODE:
		ask_code(t, a);
		break;
	default:
		ask_first(t, a, q);
	}
}

/* Any core of a process has threads, also without a GPU. */
static void ask_threads(const uint8_t *data, size_t size)
{
	static const char params[] = "{\"pid\":1}";
	const struct core_source source = { .data = data, .size = size, .name = "core" };
	struct agent_err err = { 0 };
	struct rpc_arena arena;
	auto_out struct out reply;

	rpc_arena_init(&arena, TARGET_ARENA_MAX);
	out_init(&reply, 0);
	(void)core_stacks(&source, &arena, params, sizeof(params) - 1, &reply, &err);
	rpc_arena_deinit(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct worker_options options;
	const struct core_bytes bytes = { .data = data, .size = size, .name = "core" };
	struct agent_err err = { 0 };
	struct rpc_arena arena;
	struct target *t;

	if (question_of(data, size) == THREADS || (size > 20 && corefile_processor_find(data[18])))
		ask_threads(data, size);
	if (target_core_create(&options, &bytes, &t, &err) < 0)
		return 0;
	rpc_arena_init(&arena, TARGET_ARENA_MAX);
	ask(t, &arena, question_of(data, size));
	rpc_arena_deinit(&arena);
	target_destroy(t);
	return 0;
}
