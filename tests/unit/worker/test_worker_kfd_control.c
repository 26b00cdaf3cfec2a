/* SPDX-License-Identifier: MIT */
#include "tests/unit/worker/kernel.h"
#include "testlib.h"

static void everything_is_undone_in_reverse(void)
{
	uint32_t previous, supported;
	enum rpc_launch_mode before;
	struct rpc_watchpoint *w;
	struct rpc_queue_result *r;
	size_t n;
	WITH(t);

	k.override = 0x2;
	k.flags = 0;
	TEST_EQ(kfd_launch_mode(&t->t, RPC_LAUNCH_MODE_HALT, &before, &err), 0);
	TEST_EQ(before, RPC_LAUNCH_MODE_NORMAL);
	TEST_EQ(kfd_flags(&t->t, 1, &previous, &err), 0);
	TEST_EQ(kfd_launch_override(&t->t, RPC_OVERRIDE_MODE_OR, 1, 3, &previous, &supported, &err), 0);
	TEST_EQ(previous, 2);
	TEST_EQ(k.override, 1);
	TEST_EQ(kfd_launch_override(&t->t, RPC_OVERRIDE_MODE_OR, 8, 8, &previous, &supported, &err), 0);
	TEST_EQ(kfd_watch_set(&t->t, NULL, 0x1000, 0x1000, RPC_WATCH_MODE_ALL, &arena, &w, &n, &err), 0);
	TEST_EQ(n, 2);
	TEST_EQ(k.override, 0x89);
	TEST_EQ(kfd_subscribe(&t->t, 2, false, &err), 0);
	TEST_EQ(kfd_suspend(&t->t, NULL, 0, 0, &arena, &r, &n, &err), 0);
	k.n_ops = 0;
	TEST_EQ(undo_run(&t->t.undo, 0, &err), 0);
	k.ops[k.n_ops] = '\0';
	TEST_STR(k.ops, "RqdMqdCCOFL");
	TEST_EQ(k.override, 2);
	TEST_EQ(k.flags, 0);
	TEST_EQ(k.mode, 0);
	TEST_EQ(k.watch_used[0] | k.watch_used[1], 0);
	TEST_EQ(k.mask, KFD_RUNTIME_MASK);
	released(t);
}

/* A trap that no device knows, before and after others: those are undone all the same. */
static void refused_override_spoils_no_undo(void)
{
	uint32_t previous, supported;
	WITH(t);

	for (int i = 0; i < 2; i++) {
		TEST_EQ(kfd_launch_override(&t->t, RPC_OVERRIDE_MODE_OR, 0x201, 0x201, &previous,
					    &supported, &err) < 0, true);
		TEST_EQ(err.code, RPC_ERROR_UNSUPPORTED);
		TEST_EQ(k.override, i);
		TEST_EQ(t->override_ticket == UNDO_NONE, !i);
		TEST_EQ(kfd_launch_override(&t->t, RPC_OVERRIDE_MODE_OR, 1, 1, &previous,
					    &supported, &err), 0);
	}
	TEST_EQ(undo_run(&t->t.undo, 0, &err), 0);
	TEST_EQ(k.override, 0);
	released(t);
}

/* One step of the undo fails: the others happen, the first failure is reported. */
static void undo_keeps_going(void)
{
	enum rpc_launch_mode before;
	uint32_t previous;
	WITH(t);

	TEST_EQ(kfd_launch_mode(&t->t, RPC_LAUNCH_MODE_HALT, &before, &err), 0);
	TEST_EQ(kfd_flags(&t->t, 1, &previous, &err), 0);
	k.fail_op = KFDABI_DBG_SET_FLAGS;
	k.fail_err = EIO;
	TEST_EQ(undo_run(&t->t.undo, 0, &err) < 0, true);
	TEST_EQ(err.err, EIO);
	TEST_EQ(k.mode, 0);
	released(t);
}

/* Three watch points fit on the second device only two times: the fourth set takes all back. */
static void watch_points_are_all_or_nothing(void)
{
	struct rpc_watchpoint *w;
	uint32_t cleared;
	size_t n;
	WITH(t);

	k.watch_used[1] = 0xe;
	TEST_EQ(kfd_watch_set(&t->t, NULL, 0x1000, 64, RPC_WATCH_MODE_READ, &arena, &w, &n, &err), 0);
	TEST_EQ(w[0].gpu_id == GPU && w[1].gpu_id == GPU + 1, true);
	TEST_EQ(kfd_watch_set(&t->t, NULL, 0x2000, 64, RPC_WATCH_MODE_READ, &arena, &w, &n, &err) < 0, true);
	TEST_EQ(err.code, RPC_ERROR_LIMIT);
	TEST_EQ(k.watch_used[0], 1);
	TEST_EQ(kfd_watch_list(&t->t, &arena, &w, &n, &err), 0);
	TEST_EQ(n, 2);
	TEST_EQ(kfd_watch_clear(&t->t, &(uint32_t){ GPU }, NULL, &cleared, &err), 0);
	TEST_EQ(cleared, 1);
	TEST_EQ(k.override, 0x80);
	TEST_EQ(kfd_watch_clear(&t->t, NULL, NULL, &cleared, &err), 0);
	TEST_EQ(k.override, 0);
	TEST_EQ(k.watch_used[1], 0xe);
	TEST_EQ(kfd_watch_set(&t->t, &(uint32_t){ 5 }, 0x1000, 64, RPC_WATCH_MODE_ALL, &arena, &w, &n,
			      &err) < 0, true);
	TEST_EQ(err.code, RPC_ERROR_INVALID_PARAMS);
	released(t);
}

static void watch_ranges(void)
{
	static const struct {
		uint32_t prop;
		uint64_t address, size;
		int32_t code;
	} rows[] = {
		{ 6 | 29 << 4, 0x1000, 64, 0 },
		{ 6 | 29 << 4, 0x40, 64, 0 },
		{ 6 | 29 << 4, 0x20, 32, RPC_ERROR_UNSUPPORTED },
		{ 7 | 30 << 4, 0x40, 64, RPC_ERROR_UNSUPPORTED },
		{ 6 | 29 << 4, 0, UINT64_C(1) << 29, 0 },
		{ 6 | 29 << 4, 0, UINT64_C(1) << 30, RPC_ERROR_UNSUPPORTED },
		{ 7 | 30 << 4, 0, UINT64_C(1) << 30, 0 },
		{ 6 | 29 << 4, 0x1001, 64, RPC_ERROR_INVALID_PARAMS },
		{ 6 | 29 << 4, 0x1000, 65, RPC_ERROR_INVALID_PARAMS },
		{ 6 | 29 << 4, 0x1000, 0, RPC_ERROR_INVALID_PARAMS },
		{ 0, 0x1000, 64, RPC_ERROR_UNSUPPORTED },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct agent_err err = { 0 };
		int r = kfd_watch_check(1, rows[i].prop, rows[i].address, rows[i].size, &err);

		TEST_ROW_EQ(i, r < 0, rows[i].code != 0);
		TEST_ROW_EQ(i, err.code, rows[i].code);
	}
}

/* The runtime went off: the kernel has undone all, so nothing is undone twice. */
static void runtime_off_forgets(void)
{
	enum rpc_launch_mode before;
	struct rpc_watchpoint *w;
	struct target_event e;
	struct rpc_queue_result *r;
	size_t n;
	WITH(t);

	TEST_EQ(kfd_launch_mode(&t->t, RPC_LAUNCH_MODE_HALT, &before, &err), 0);
	TEST_EQ(kfd_watch_set(&t->t, NULL, 0x1000, 64, RPC_WATCH_MODE_ALL, &arena, &w, &n, &err), 0);
	TEST_EQ(kfd_suspend(&t->t, NULL, 0, 0, &arena, &r, &n, &err), 0);
	k.runtime_state = 0;
	k.process_bits = KFD_RUNTIME_MASK;
	TEST_EQ(kfd_event_next(&t->t, &e, &err), 1);
	TEST_EQ(e.kind, TARGET_EVENT_RUNTIME);
	TEST_EQ(t->t.undo.n, 0);
	TEST_EQ(t->t.n_suspended, 0);
	TEST_EQ(kfd_event_done(&t->t, &e, &err), 0);
	TEST_EQ(k.handshakes, 1);
	TEST_EQ(kfd_event_done(&t->t, &e, &err), 0);
	TEST_EQ(k.handshakes, 1);
	TEST_EQ(kfd_suspend(&t->t, NULL, 0, 0, &arena, &r, &n, &err) < 0, true);
	TEST_EQ(err.code, RPC_ERROR_NOT_DEBUGGABLE);
	released(t);
}

TEST_SUITE(worker_kfd_control, TEST(everything_is_undone_in_reverse),
	   TEST(refused_override_spoils_no_undo), TEST(undo_keeps_going),
	   TEST(watch_points_are_all_or_nothing), TEST(watch_ranges), TEST(runtime_off_forgets));
