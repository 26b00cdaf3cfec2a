/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CTL_SNAPSHOT_H
#define TESTS_UNIT_CTL_SNAPSHOT_H

/** @file ctl_snapshot.h  Snapshots from a short text, for tests of what reads them. */

#include <stdio.h>
#include <string.h>

#include "rpc_gen.h"
#include "testlib.h"

#define SNAPSHOT_PARTS 8

struct snapshot_build {
	struct rpc_gpu_snapshot_result s;
	struct rpc_queue queues[SNAPSHOT_PARTS];
	struct rpc_group groups[SNAPSHOT_PARTS];
	enum rpc_stop_reason reasons[SNAPSHOT_PARTS];
	uint32_t workgroup[SNAPSHOT_PARTS][3];
	uint32_t group_queue[SNAPSHOT_PARTS];
	const char *missing[1];
};

static inline void snapshot_add_queue(struct snapshot_build *b, const char *word)
{
	struct rpc_queue *q = &b->queues[b->s.n_queues++];
	unsigned id;
	unsigned long long read, write;
	char kind = word[strlen(word) - 1];
	int n = sscanf(word, "q%u:%llu/%llu", &id, &read, &write);

	*q = (struct rpc_queue){ .gpu_id = 7, .type = RPC_QUEUE_TYPE_COMPUTE_AQL };
	if (n < 3)
		CU_ASSERT_EQUAL_FATAL(sscanf(word, "q%u:?", &id), 1);
	q->queue_id = id;
	q->ring_base = 0x1000u * (id + 1);
	q->has_read_index = q->has_write_index = n >= 3;
	if (n >= 3) {
		q->read_index = read;
		q->write_index = write;
	}
	q->suspended = kind == 's' || kind == 'X';
	if (kind == 'c')
		q->type = RPC_QUEUE_TYPE_SDMA;
	if (kind == 'x' || kind == 'X')
		q->type = RPC_QUEUE_TYPE_CONTEXT;
}

static inline void snapshot_add_group(struct snapshot_build *b, const char *word)
{
	size_t i = b->s.n_groups++;
	struct rpc_group *g = &b->groups[i];
	unsigned pc, waves, queue, dispatch;
	char fault = 0;

	CU_ASSERT_FATAL(sscanf(word, "g%x:%u@%u/%u%c", &pc, &waves, &queue, &dispatch, &fault) >= 4);
	b->reasons[i] = RPC_STOP_REASON_MEMORY_VIOLATION;
	b->group_queue[i] = queue;
	*g = (struct rpc_group){
		.gpu_id = 7,
		.has_queues = true,
		.queues = &b->group_queue[i],
		.n_queues = 1,
		.pc = pc,
		.state = fault ? RPC_WAVE_STATE_STOPPED : RPC_WAVE_STATE_RUNNING,
		.reasons = &b->reasons[i],
		.n_reasons = fault == '!',
		.waves = waves,
		.lanes_min = 1,
		.lanes_median = 32,
		.lanes_max = 64,
		.representative = { .queue_id = queue,
				    .has_dispatch = true,
				    .dispatch = dispatch,
				    .workgroup = b->workgroup[i],
				    .n_workgroup = 3 },
	};
	b->s.wave_count += waves;
}

/* The dispatches that the waves of a queue are of, behind the queue itself. */
static inline void snapshot_add_range(struct snapshot_build *b, const char *word)
{
	unsigned queue;
	unsigned long long first, last;

	CU_ASSERT_FATAL(sscanf(word, "r%u:%llu-%llu", &queue, &first, &last) == 3);
	for (size_t i = 0; i < b->s.n_queues; i++) {
		struct rpc_queue *q = &b->queues[i];

		if (q->queue_id != queue)
			continue;
		q->has_first_dispatch = q->has_last_dispatch = true;
		q->first_dispatch = first;
		q->last_dispatch = last;
	}
}

/* What the agent says of the waves of each queue. */
static inline void snapshot_count_waves(struct snapshot_build *b, bool seen)
{
	for (size_t i = 0; seen && i < b->s.n_queues; i++) {
		struct rpc_queue *q = &b->queues[i];

		q->has_waves = q->has_faulting_waves = q->has_waves_digest = true;
		for (size_t k = 0; k < b->s.n_groups; k++) {
			const struct rpc_group *g = &b->groups[k];

			if (b->group_queue[k] != q->queue_id)
				continue;
			q->waves += g->waves;
			q->faulting_waves += g->n_reasons ? g->waves : 0;
			q->waves_digest += g->pc * g->waves;
		}
	}
}

/**
 * @param text  Words: `q0:5/12` queue 0 with read and write index, `q0:5/12s` suspended, `q0:5/12c` of a
 *              copy engine, `q0:?` unknown indices, `q0:?x` a CUDA context, `q0:?X` suspended;
 *              `g100:64@0/5` 64 waves at pc 0x100 of dispatch 5 of queue 0, `!` behind it: faulting;
 *              `r0:5-7` the waves of queue 0, named before, are of dispatches 5 to 7;
 *              `unseen` nobody looked at waves; `missing=TEXT` up to the end.
 */
static inline void snapshot_build(struct snapshot_build *b, uint64_t time_us, const char *text)
{
	static char words[16][200];
	static size_t next;
	char *word, *save = NULL, *copy = words[next++ % 16];
	bool seen = true;

	memset(b, 0, sizeof(*b));
	b->s = (struct rpc_gpu_snapshot_result){
		.schema = "gpu-agent.snapshot/1",
		.source = { .kind = "live", .host = "h", .agent = "0" },
		.time_us = time_us,
		.process = { .pid = 42, .comm = "app", .vendor = RPC_VENDOR_AMD,
			     .has_start_ticks = true, .start_ticks = 5 },
		.interface_version = "1.13",
		.queues = b->queues,
		.groups = b->groups,
		.missing = b->missing,
		.complete = true,
		.stopped_us = 100,
	};
	snprintf(copy, sizeof(words[0]), "%s", text);
	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		if (!strncmp(word, "missing=", 8)) {
			if (save && *save)
				word[strlen(word)] = ' ';
			b->missing[b->s.n_missing++] = word + 8;
			b->s.complete = false;
			break;
		}
		if (!strcmp(word, "unseen"))
			seen = false;
		else if (word[0] == 'q')
			snapshot_add_queue(b, word);
		else if (word[0] == 'r')
			snapshot_add_range(b, word);
		else
			snapshot_add_group(b, word);
	}
	snapshot_count_waves(b, seen);
}

#endif /* TESTS_UNIT_CTL_SNAPSHOT_H */
