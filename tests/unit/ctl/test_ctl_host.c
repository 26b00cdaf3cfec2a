/* SPDX-License-Identifier: MIT */
/* In which order people see what threads do beside what GPUs do. */
#include "base/out.h"
#include "ctl/document/host/host.h"
#include "tests/unit/ctl/ctl_snapshot.h"

static uint32_t main_thread[] = { 42 }, other_thread[] = { 43 };
static struct rpc_thread_frame python = { .function = "f", .file = "f.py" };

/* One group of each kind, in an order that no rule gives. */
static struct rpc_thread_group groups[] = {
	{ .representative.name = "watchdog", .has_role = true, .role = RPC_THREAD_ROLE_WATCHDOG,
	  .frames = &python, .n_frames = 1, .tids = other_thread, .n_tids = 1 },
	{ .representative.name = "pool", .tids = other_thread, .n_tids = 1 },
	{ .representative.name = "waiter", .has_role = true, .role = RPC_THREAD_ROLE_GPU_WAIT, .has_waits_for = true,
	  .waits_for.has_queue_id = true, .tids = other_thread, .n_tids = 1 },
	{ .representative.name = "loader", .has_role = true, .role = RPC_THREAD_ROLE_DATA_LOADER, .frames = &python,
	  .n_frames = 1, .tids = other_thread, .n_tids = 1 },
	{ .representative.name = "main", .frames = &python, .n_frames = 1, .tids = main_thread, .n_tids = 1 },
};

static void threads_that_matter_come_first(void)
{
	static const struct {
		const char *snapshot, *want;
	} rows[] = {
		/* The GPU is idle: who should feed it comes first, and who waits for it has nothing to wait for. */
		{ "q0:5/5", "main loader waiter pool watchdog" },
		{ "", "main loader waiter pool watchdog" },
		{ "q0:5/5 g100:64@0/5", "waiter main loader pool watchdog" },
		/* Nobody looked at waves, or there are none yet: packets wait. */
		{ "q0:5/12 unseen", "waiter main loader pool watchdog" },
		{ "q0:5/5 q1:7/8", "waiter main loader pool watchdog" },
		/* Nothing is known of a queue of a copy engine. */
		{ "q0:5/12c", "main loader waiter pool watchdog" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_rpc_arena struct rpc_arena arena;
		auto_out struct out o = { 0 };
		struct snapshot_build b;
		size_t *order;

		rpc_arena_init(&arena, 0);
		snapshot_build(&b, 5, rows[i].snapshot);
		b.s.host = (struct rpc_host_stacks_result){ .pid = 42, .groups = groups,
							  .n_groups = TEST_COUNT(groups) };
		TEST_ROW_EQ(i, host_order(&arena, &b.s, &order), 0);
		for (size_t k = 0; k < TEST_COUNT(groups); k++)
			out_fmt(&o, "%s%s", k ? " " : "", groups[order[k]].representative.name);
		TEST_ROW_STR(i, o.data ? o.data : "", rows[i].want);
	}
}

TEST_SUITE(ctl_host, TEST(threads_that_matter_come_first));
