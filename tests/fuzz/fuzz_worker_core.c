/* SPDX-License-Identifier: MIT */
/* A hostile core file as a target, and everything that can be asked of it. */
#include <string.h>

#include "agentd/worker/snapshot.h"
#include "agentd/worker/target_core.h"
#include "fuzzlib.h"

static void ask_wave(struct target *t, const struct target_waves_from *all, const struct wave *w)
{
	const struct rpc_wave_name name = { .queue_id = w->queue_id, .has_unit = true, .unit = w->unit,
					    .has_index = true, .index = w->index };
	const struct target_registers_wanted what = { .wave = &name, .banks = UINT32_MAX,
						      .count = UINT32_MAX, .work_items = true };
	struct target_waves_from from = *all;
	struct rpc_wave_registers registers;
	struct rpc_arena arena;
	uint64_t stopped_us;
	uint8_t buf[256];

	from.n_queues = 0;
	for (size_t i = 0; i < all->n_queues; i++)
		if (all->queues[i].queue_id == w->queue_id) {
			from.queues = &all->queues[i];
			from.n_queues = 1;
		}
	if (!from.n_queues)
		return;
	rpc_arena_init(&arena, SNAPSHOT_ARENA_MAX);
	(void)t->ops->registers(t, &from, &what, &arena, &registers, &stopped_us, NULL);
	for (int space = RPC_MEMORY_SPACE_LDS; space <= RPC_MEMORY_SPACE_SCRATCH; space++) {
		const struct target_wave_memory memory = { .wave = &name,
							   .space = (enum rpc_memory_space)space,
							   .lane = 3, .buf = buf, .size = sizeof(buf) };

		(void)t->ops->wave_memory(t, &from, &memory, &arena, NULL);
	}
	rpc_arena_deinit(&arena);
}

static void ask_all(struct target *t, struct rpc_arena *a)
{
	const struct snapshot_options o = { .waves = true, .each_wave = true, .registers = true,
					    .look_up_ms = 300 };
	struct rpc_gpu_snapshot_result result = { 0 };
	struct snapshot s;
	struct target_waves_from from;
	uint8_t buf[256];

	if (snapshot_look(t, a, &o, 1000, &s, NULL) < 0)
		return;
	(void)snapshot_tell(t, a, &o, &s, &result, NULL);
	from = (struct target_waves_from){ .devices = s.devices, .n_devices = s.n_devices,
					   .queues = s.queues, .n_queues = s.n_queues,
					   .max_stop_ms = 1000 };
	for (size_t i = 0; i < s.waves.n_waves && i < 3; i++)
		ask_wave(t, &from, &s.waves.waves[i]);
	for (size_t i = 0; i < s.waves.n_waves && i < 3; i++)
		(void)memory_read(&t->memory, s.waves.waves[i].pc - 8, buf, sizeof(buf));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct worker_options options;
	const struct core_bytes bytes = { .data = data, .size = size, .name = "core" };
	struct agent_err err = { 0 };
	struct rpc_arena arena;
	struct target *t;

	if (target_core_create(&options, &bytes, &t, &err) < 0)
		return 0;
	rpc_arena_init(&arena, SNAPSHOT_ARENA_MAX);
	ask_all(t, &arena);
	rpc_arena_deinit(&arena);
	target_destroy(t);
	return 0;
}
