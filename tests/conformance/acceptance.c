/* SPDX-License-Identifier: MIT */
/* The acceptance list of the simulated device, lines 1 to 12: operations and their arguments. */
#include <sys/mman.h>

#include "env.h"

#define RUNNING "runtime on; queues 4"

static uint32_t gpu_of(const struct target *t, uint32_t i)
{
	return target_queue(t, i)->gpu_id;
}

/* simapp with queues on the given GPU, attached, queues suspendable. */
static bool session(const char *kernel, const char *gpus, struct target *t, struct dbg *d)
{
	if (!env_sim(kernel, gpus, NULL) || !target_start(t, RUNNING) ||
	    !dbg_attach(d, t->pid, RUNTIME_MASK))
		return false;
	TEST_EQ(d->info.runtime_state, KFDABI_RUNTIME_STATE_ENABLED);
	dbg_forget_new(d);
	return true;
}

CONFORMANCE(acc01_ladder_order)
{
	struct target t;
	struct dbg d;

	if (!env_sim("1.17", "gfx942", NULL) || !target_start(&t, "runtime skip"))
		return;
	dbg_init(&d, t.pid);
	/* Not traced beats not enabled beats unknown. */
	TEST_EQ(dbg_op(&d, 99), -EPERM);
	TEST_EQ(seize(t.pid), 0);
	TEST_EQ(dbg_op(&d, 99), -EINVAL);
	TEST_EQ(dbg_query(&d, 0), -EINVAL);
	TEST_EQ(dbg_enable(&d, 0), 0);
	TEST_EQ(dbg_op(&d, 15), -EINVAL);
	TEST_EQ(dbg_op(&d, UINT32_MAX), -EINVAL);
	/* Runtime off beats everything about the arguments of hardware operations. */
	for (uint32_t op = 4; op <= 10; op++) {
		memset(&d.a, 0xff, sizeof(d.a));
		TEST_ROW_EQ(op, dbg_op(&d, op), -EPERM);
	}
	target_send(&t, "runtime on");
	TEST_EQ(EVENTUALLY(dbg_mode(&d, 0) == 0), true);
	TEST_EQ(dbg_watch(&d, 0, 0), -ENODEV);
	TEST_EQ(dbg_watch(&d, 0xffffffff, 0), -ENODEV);
	TEST_EQ(dbg_unwatch(&d, 0xffffffff, 9), -ENODEV);
	TEST_EQ(dbg_send(&d, RUNTIME_MASK, 0, 0), 0);
	TEST_EQ(target_reply(&t, PATIENCE_MS), 0);
}

CONFORMANCE(acc02_outputs_change_on_failure)
{
	struct kfdabi_queue_entry *e;
	struct target t;
	uint32_t ids[4] = { 0, 1, 2, 3 }, gpu;
	struct dbg d;

	if (!session("1.17", "gfx1100", &t, &d))
		return;
	gpu = gpu_of(&t, 0);
	TEST_EQ(dbg_override(&d, 0, 0, UINT32_C(0x40000000)), -EACCES);
	TEST_EQ(d.a.launch_override.support_request_mask, 0x1ff);
	TEST_EQ(dbg_flags(&d, KFDABI_FLAG_SINGLE_MEM_OP), -EACCES);
	TEST_EQ(d.a.set_flags.flags, 0);
	for (int i = 0; i < 4; i++)
		TEST_EQ(dbg_watch(&d, gpu, 0x1000), 0);
	TEST_EQ(dbg_watch(&d, gpu, 0x1000), -ENOMEM);
	TEST_EQ(d.a.set_watch.id, KFDABI_WATCH_ID_NONE);
	/* A snapshot that faults at the third entry: two were delivered. */
	e = test_tail_alloc(2 * sizeof(*e) + 1);
	TEST_EQ(dbg_queues(&d, 0, e, 4, sizeof(*e)), -EFAULT);
	TEST_EQ(d.a.queue_snapshot.num_queues, 2);
	/* The array comes back although only part of it worked. */
	env_control("fail-suspend %d 1", t.pid);
	TEST_EQ(dbg_suspend(&d, 0, ids, 4), 1);
	TEST_EQ(ids[0], 0);
	TEST_EQ(ids[1], 1 | KFDABI_QUEUE_ERROR | KFDABI_QUEUE_INVALID);
	TEST_EQ(ids[2], 2 | KFDABI_QUEUE_INVALID);
	TEST_EQ(ids[3], 3 | KFDABI_QUEUE_INVALID);
	/* Read-only array: the fault is not reported, the queues are suspended. */
	TEST_EQ(dbg_suspend(&d, 0, (uint32_t[]){ 1 }, 1), 1);
	TEST_EQ(dbg_suspend(&d, 0, (uint32_t *)(uintptr_t)8, 1), -EFAULT);
}

CONFORMANCE(acc03_enable_and_disable_twice)
{
	struct target t;
	struct dbg d;

	if (!session("1.17", "gfx90a", &t, &d))
		return;
	TEST_EQ(dbg_enable(&d, 0), -EALREADY);
	TEST_EQ(dbg_disable(&d), 0);
	TEST_EQ(dbg_disable(&d), -EINVAL);
	TEST_EQ(dbg_enable(&d, 0), 0);
}

CONFORMANCE(acc04_old_events_and_the_notification_byte)
{
	struct target t;
	struct dbg d;

	if (!env_sim("1.17", "gfx90a", NULL) || !target_start(&t, RUNNING))
		return;
	/* Four queues carry QUEUE_NEW; ENABLE does not mention it. */
	if (!dbg_attach(&d, t.pid, NEW_MASK))
		return;
	TEST_EQ(dbg_bytes(&d), 0);
	TEST_EQ(dbg_exceptions(&d, NEW_MASK), 0);
	TEST_EQ(dbg_bytes(&d), 1);
	TEST_EQ(dbg_exceptions(&d, NEW_MASK), 0);
	TEST_EQ(dbg_bytes(&d), 1);
	TEST_EQ(dbg_exceptions(&d, TRAP_MASK), 0);
	TEST_EQ(dbg_bytes(&d), 0);
	/* A raise outside the mask is latched silently. */
	env_control("raise %d queue 0 1", t.pid);
	TEST_EQ(dbg_bytes(&d), 0);
	env_control("raise %d queue 0 2", t.pid);
	TEST_EQ(dbg_bytes(&d), 1);
}

CONFORMANCE(acc05_query_order_and_companions)
{
	struct target t;
	uint32_t gpu;
	struct dbg d;

	if (!env_sim("1.17", "gfx90a", NULL) || !target_start(&t, RUNNING) ||
	    !dbg_attach(&d, t.pid, TRAP_MASK | FAULT_MASK | RUNTIME_MASK))
		return;
	gpu = gpu_of(&t, 0);
	env_control("raise %d process 48", t.pid);
	env_control("fault %d #0 0x5123", t.pid);
	env_control("raise %d queue 2 2", t.pid);
	/* Queue first, with the unsubscribed QUEUE_NEW as companion; stays until cleared. */
	for (int i = 0; i < 2; i++) {
		TEST_ROW_EQ(i, dbg_query(&d, 0), 0);
		TEST_ROW_EQ(i, d.a.query_event.exception_mask, TRAP_MASK | NEW_MASK);
		TEST_ROW_EQ(i, d.a.query_event.queue_id, 2);
		TEST_ROW_EQ(i, d.a.query_event.gpu_id, gpu);
	}
	/* Masked off it hides, enabled again it is back. */
	TEST_EQ(dbg_exceptions(&d, FAULT_MASK | RUNTIME_MASK), 0);
	TEST_EQ(dbg_query(&d, 0), 0);
	TEST_EQ(d.a.query_event.exception_mask, FAULT_MASK);
	TEST_EQ(dbg_exceptions(&d, TRAP_MASK | FAULT_MASK | RUNTIME_MASK), 0);
	TEST_EQ(dbg_query(&d, TRAP_MASK), 0);
	TEST_EQ(d.a.query_event.exception_mask, TRAP_MASK | NEW_MASK);
	TEST_EQ(dbg_query(&d, FAULT_MASK), 0);
	TEST_EQ(d.a.query_event.exception_mask, FAULT_MASK);
	TEST_EQ(d.a.query_event.gpu_id, gpu);
	TEST_EQ(d.a.query_event.queue_id, 0);
	TEST_EQ(dbg_query(&d, RUNTIME_MASK), 0);
	TEST_EQ(d.a.query_event.exception_mask, RUNTIME_MASK);
	TEST_EQ(d.a.query_event.gpu_id, 0);
	TEST_EQ(d.a.query_event.queue_id, 0);
	TEST_EQ(dbg_query(&d, UINT64_MAX), -EAGAIN);
	TEST_EQ(d.a.query_event.exception_mask, 0);
	TEST_EQ(d.a.query_event.gpu_id, 0);
	TEST_EQ(d.a.query_event.queue_id, 0);
}

CONFORMANCE(acc06_new_queue_is_not_suspendable)
{
	struct kfdabi_queue_entry e[4];
	struct target t;
	uint32_t id = 0;
	struct dbg d;

	if (!env_sim("1.17", "gfx90a", NULL) || !target_start(&t, RUNNING) ||
	    !dbg_attach(&d, t.pid, RUNTIME_MASK))
		return;
	TEST_EQ(dbg_suspend(&d, 0, &id, 1), 0);
	TEST_EQ(id, KFDABI_QUEUE_INVALID);
	TEST_EQ(dbg_queues(&d, 0, e, 4, sizeof(e[0])), 0);
	TEST_EQ(e[0].exception_status, NEW_MASK);
	id = 0;
	TEST_EQ(dbg_suspend(&d, 0, &id, 1), 0);
	TEST_EQ(id, KFDABI_QUEUE_INVALID);
	TEST_EQ(dbg_queues(&d, NEW_MASK, e, 4, sizeof(e[0])), 0);
	TEST_EQ(e[0].exception_status, NEW_MASK); /* the value before the clear */
	/* INVALID on entry does not matter. */
	TEST_EQ(dbg_suspend(&d, 0, &id, 1), 1);
	TEST_EQ(id, 0);
	TEST_EQ(target_queue_stands(&t, 0), true);
	TEST_EQ(target_queue_runs(&t, 1), true);
	TEST_EQ(dbg_resume(&d, &id, 1), 1);
	TEST_EQ(target_queue_runs(&t, 0), true);
}

CONFORMANCE(acc07_suspend_and_resume_counts)
{
	uint32_t ids[] = { 0, 1, 0, 77 };
	struct target t;
	struct dbg d;

	if (!session("1.17", "gfx90a", &t, &d))
		return;
	TEST_EQ(dbg_suspend(&d, 0, ids, 4), 2);
	TEST_EQ(ids[0], 0);
	TEST_EQ(ids[1], 1);
	TEST_EQ(ids[2], KFDABI_QUEUE_INVALID);
	TEST_EQ(ids[3], 77 | KFDABI_QUEUE_INVALID);
	TEST_EQ(dbg_suspend(&d, 0, (uint32_t[]){ 0, 1 }, 2), 2);
	/* ERROR on entry is not masked off when ids are compared. */
	ids[0] = 1 | KFDABI_QUEUE_ERROR;
	TEST_EQ(dbg_suspend(&d, 0, ids, 1), 0);
	TEST_EQ(ids[0], 1 | KFDABI_QUEUE_ERROR | KFDABI_QUEUE_INVALID);
	TEST_EQ(dbg_resume(&d, (uint32_t[]){ 0, 3 }, 2), 2);
	TEST_EQ(target_queue_runs(&t, 0), true);
	TEST_EQ(target_queue_stands(&t, 1), true);
	TEST_EQ(dbg_resume(&d, NULL, 5), 4);
	TEST_EQ(target_queue_runs(&t, 1), true);
	TEST_EQ(dbg_suspend(&d, 0, NULL, 0), 0);
	TEST_EQ(dbg_suspend(&d, 0, NULL, 1), -EINVAL);
	TEST_EQ(dbg_suspend(&d, 0, ids, 1025), -EINVAL);
	TEST_EQ(dbg_resume(&d, ids, 0), 0);
}

/* One HWS preemption for the whole GPU: all marked, none counted. */
static void hws_failure(void)
{
	uint32_t ids[] = { 0, 1, 2 }, again[] = { 0, 1 };
	struct target t;
	struct dbg d;

	if (!env_next("1.17", "gfx90a", NULL) || !target_start(&t, RUNNING) ||
	    !dbg_attach(&d, t.pid, TRAP_MASK | NEW_MASK))
		return;
	/* Un-new queues 0 and 1 only; 2 stays new. */
	TEST_EQ(dbg_query(&d, NEW_MASK), 0);
	TEST_EQ(dbg_query(&d, NEW_MASK), 0);
	env_control("raise %d queue 0 2", t.pid);
	env_control("fail-suspend gpu #0");
	TEST_EQ(dbg_suspend(&d, TRAP_MASK, ids, 3), 0);
	TEST_EQ(ids[0], 0 | KFDABI_QUEUE_ERROR);
	TEST_EQ(ids[1], 1 | KFDABI_QUEUE_ERROR);
	TEST_EQ(ids[2], 2 | KFDABI_QUEUE_ERROR | KFDABI_QUEUE_INVALID);
	/* Nothing cleared on failure; marked as suspended all the same. */
	TEST_EQ(dbg_query(&d, 0), 0);
	TEST_EQ(d.a.query_event.exception_mask, TRAP_MASK);
	TEST_EQ(dbg_suspend(&d, 0, again, 2), 2);
	/* Clearing reaches skipped queues too: this un-news queue 2 ... */
	ids[0] = 0, ids[1] = 2;
	TEST_EQ(dbg_suspend(&d, NEW_MASK, ids, 2), 1);
	TEST_EQ(ids[1], 2 | KFDABI_QUEUE_INVALID);
	TEST_EQ(dbg_suspend(&d, 0, ids, 2), 2);
	env_control("fail-resume gpu #0");
	ids[0] = 0;
	TEST_EQ(dbg_resume(&d, ids, 1), 0);
	TEST_EQ(ids[0], KFDABI_QUEUE_ERROR);
}

/* One MES removal per queue: the walk stops, a second attempt claims success. */
static void mes_failure(void)
{
	uint32_t ids[] = { 0, 1, 2 };
	struct target t;
	struct dbg d;

	if (!env_next("1.17", "gfx1201", NULL) || !target_start(&t, RUNNING) ||
	    !dbg_attach(&d, t.pid, TRAP_MASK | NEW_MASK))
		return;
	TEST_EQ(dbg_query(&d, NEW_MASK), 0);
	TEST_EQ(dbg_query(&d, NEW_MASK), 0);
	env_control("raise %d queue 0 2", t.pid);
	env_control("fail-suspend %d 1", t.pid);
	TEST_EQ(dbg_suspend(&d, TRAP_MASK, ids, 3), 1);
	TEST_EQ(ids[0], 0);
	TEST_EQ(ids[1], 1 | KFDABI_QUEUE_ERROR | KFDABI_QUEUE_INVALID);
	TEST_EQ(ids[2], 2 | KFDABI_QUEUE_INVALID);
	TEST_EQ(dbg_exceptions(&d, TRAP_MASK), 0);
	TEST_EQ(dbg_query(&d, 0), -EAGAIN); /* cleared for the one that worked */
	TEST_EQ(dbg_suspend(&d, 0, (uint32_t[]){ 1 }, 1), 1);
	/* A skipped new queue keeps its bits here. */
	ids[0] = 2;
	TEST_EQ(dbg_suspend(&d, NEW_MASK, ids, 1), 0);
	TEST_EQ(dbg_suspend(&d, NEW_MASK, ids, 1), 0);
	env_control("fail-resume %d 1", t.pid);
	ids[0] = 1;
	TEST_EQ(dbg_resume(&d, ids, 1), 0);
	TEST_EQ(ids[0], 1 | KFDABI_QUEUE_ERROR | KFDABI_QUEUE_INVALID);
}

CONFORMANCE(acc08_hws_and_mes_failures)
{
	hws_failure();
	mes_failure();
}

static void queue_strides(struct dbg *d)
{
	uint8_t *wide = test_tail_alloc(4 * 100), *narrow = test_tail_alloc(4 * 8);
	struct kfdabi_queue_entry *e = test_tail_alloc(4 * sizeof(*e));

	TEST_EQ(dbg_queues(d, 0, NULL, 0, 64), 0);
	TEST_EQ(d->a.queue_snapshot.num_queues, 4);
	TEST_EQ(d->a.queue_snapshot.entry_size, 64);
	TEST_EQ(dbg_queues(d, 0, NULL, 0, 0), -EINVAL);
	TEST_EQ(d->a.queue_snapshot.num_queues, 0);
	TEST_EQ(dbg_queues(d, 0, e, 4, sizeof(*e)), 0);
	TEST_EQ(e[3].queue_id, 3);
	TEST_EQ(e[3].queue_type, KFDABI_QUEUE_TYPE_COMPUTE_AQL);
	memset(wide, 0x5a, 400);
	TEST_EQ(dbg_queues(d, 0, wide, 4, 100), 0);
	TEST_EQ(d->a.queue_snapshot.entry_size, 64);
	TEST_EQ(memcmp(wide + 300, &e[3], 64), 0);
	TEST_EQ(wide[64], 0x5a);
	TEST_EQ(wide[364], 0x5a);
	TEST_EQ(dbg_queues(d, 0, narrow, 4, 8), 0);
	TEST_EQ(d->a.queue_snapshot.entry_size, 8);
	TEST_EQ(dbg_queues(d, 0, e, 2, sizeof(*e)), 0);
	TEST_EQ(d->a.queue_snapshot.num_queues, 4);
}

CONFORMANCE(acc09_snapshot_strides)
{
	struct kfdabi_device_entry e[2];
	uint8_t *wide, *narrow;
	struct target t;
	struct dbg d;

	if (!session("1.17", "gfx90a,gfx942", &t, &d))
		return;
	queue_strides(&d);
	TEST_EQ(dbg_devices(&d, 0, NULL, 0, 120), -EINVAL);
	TEST_EQ(dbg_devices(&d, 0, NULL, 2, 120), -EINVAL);
	memset(e, 0x5a, sizeof(e));
	TEST_EQ(dbg_devices(&d, ~UINT64_C(0), e, 0, 120), 0);
	TEST_EQ(d.a.device_snapshot.num_devices, 2);
	TEST_EQ(e[0].gpu_id, 0x5a5a5a5a);
	TEST_EQ(dbg_devices(&d, 0, e, 2, sizeof(e[0])), 0);
	TEST_EQ(d.a.device_snapshot.num_devices, 2);
	TEST_EQ(d.a.device_snapshot.entry_size, 120);
	TEST_EQ(e[0].gfx_target_version, 90010);
	TEST_EQ(e[1].gfx_target_version, 90402);
	TEST_EQ(e[1].num_xcc, 8);
	TEST_EQ(e[1].array_count, 4);
	wide = test_tail_alloc(2 * 200);
	memset(wide, 0x5a, 400);
	TEST_EQ(dbg_devices(&d, 0, wide, 2, 200), 0);
	TEST_EQ(memcmp(wide + 200, &e[1], 120), 0);
	TEST_EQ(wide[320], 0x5a);
	narrow = test_tail_alloc(16);
	TEST_EQ(dbg_devices(&d, 0, narrow, 2, 8), 0);
	TEST_EQ(d.a.device_snapshot.entry_size, 8);
	TEST_EQ(dbg_devices(&d, 0, e, 1, sizeof(e[0])), 0);
	TEST_EQ(d.a.device_snapshot.num_devices, 2);
	TEST_EQ(dbg_devices(&d, 0, (void *)(uintptr_t)8, 2, 120), -EFAULT);
}

CONFORMANCE(acc10_launch_override)
{
	static const struct { const char *gpu; uint32_t supported; int wrong_mode; } rows[] = {
		{ "gfx906", 0x80, -EINVAL },		    { "gfx1030", 0x80, -EINVAL },
		{ "gfx90a", 0x1ff, -EPERM },		    { "gfx942", 0xc00001ff, -EPERM },
		{ "gfx950", 0xc00001ff, -EPERM },	    { "gfx1100", 0x1ff, -EPERM },
		{ "gfx1201", 0xc00001ff, -EPERM },	    { "gfx942,gfx90a", 0x1ff, -EPERM },
		{ "gfx1250", 0xc00001ff, -EPERM },
	};
	struct target t;
	struct dbg d;

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		bool old = rows[i].wrong_mode == -EINVAL;

		if (!env_next("1.17", rows[i].gpu, NULL) || !target_start(&t, RUNNING) ||
		    !dbg_attach(&d, t.pid, 0))
			return;
		TEST_ROW_EQ(i, dbg_override(&d, 0, 0, 0), 0);
		TEST_ROW_EQ(i, d.a.launch_override.support_request_mask, rows[i].supported);
		TEST_ROW_EQ(i, d.a.launch_override.enable_mask, 0);
		TEST_ROW_EQ(i, dbg_override(&d, old ? 1 : 2, 0, 0), rows[i].wrong_mode);
		TEST_ROW_EQ(i, dbg_override(&d, 1, 0, 0), old ? -EINVAL : 0);
		TEST_ROW_EQ(i, dbg_override(&d, 0, 0x80, 0x80), 0);
		TEST_ROW_EQ(i, d.a.launch_override.enable_mask, 0);
		TEST_ROW_EQ(i, dbg_override(&d, 0, 0, 0x80), 0);
		TEST_ROW_EQ(i, d.a.launch_override.enable_mask, 0x80);
		TEST_ROW_EQ(i, dbg_override(&d, 0, 0, 0x200), -EACCES);
		TEST_ROW_EQ(i, d.a.launch_override.support_request_mask, rows[i].supported);
	}
}

CONFORMANCE(acc11_flags_and_launch_mode)
{
	struct target t;
	struct dbg d;

	if (!session("1.17", "gfx942", &t, &d))
		return;
	TEST_EQ(dbg_flags(&d, KFDABI_FLAG_SINGLE_MEM_OP), 0);
	TEST_EQ(d.a.set_flags.flags, 0);
	TEST_EQ(dbg_flags(&d, KFDABI_FLAG_SINGLE_ALU_OP), -EACCES);
	TEST_EQ(d.a.set_flags.flags, KFDABI_FLAG_SINGLE_MEM_OP);
	/* Unknown bits are stored; on this kernel also the one for LDS. */
	TEST_EQ(dbg_flags(&d, 0x80000004), 0);
	TEST_EQ(dbg_flags(&d, 0), 0);
	TEST_EQ(d.a.set_flags.flags, 0x80000004);
	TEST_EQ(dbg_mode(&d, 2), -EINVAL);
	TEST_EQ(dbg_mode(&d, 4), -EINVAL);
	TEST_EQ(dbg_mode(&d, 77), -EINVAL);
	TEST_EQ(dbg_mode(&d, 3), 0);
	TEST_EQ(dbg_mode(&d, 0x101), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(env_status(), "\"launch_mode\":1"));
	if (!env_next("1.23", "gfx1201", NULL) || !target_start(&t, RUNNING) ||
	    !dbg_attach(&d, t.pid, 0))
		return;
	TEST_EQ(dbg_flags(&d, KFDABI_FLAG_LDS_OUT_OF_ADDR_RANGE), -EACCES);
	TEST_EQ(dbg_flags(&d, KFDABI_FLAG_SINGLE_ALU_OP), 0);
	TEST_EQ(dbg_flags(&d, KFDABI_FLAG_SINGLE_MEM_OP), -EACCES);
}

CONFORMANCE(acc12_watch_points)
{
	struct target a, b;
	struct dbg da, db;
	uint32_t gpu;

	if (!session("1.17", "gfx90a", &a, &da) || !target_start(&b, RUNNING) ||
	    !dbg_attach(&db, b.pid, 0))
		return;
	gpu = gpu_of(&a, 0);
	for (uint32_t i = 0; i < 3; i++) {
		TEST_ROW_EQ(i, dbg_watch(&da, gpu, 0x1000), 0);
		TEST_ROW_EQ(i, da.a.set_watch.id, i);
	}
	/* The four slots are shared between targets. */
	TEST_EQ(dbg_watch(&db, gpu, 0x2000), 0);
	TEST_EQ(db.a.set_watch.id, 3);
	TEST_EQ(dbg_watch(&da, gpu, 0x1000), -ENOMEM);
	TEST_EQ(dbg_unwatch(&da, gpu, 3), -EINVAL);
	TEST_EQ(dbg_unwatch(&da, gpu, 4), -EINVAL);
	TEST_EQ(dbg_unwatch(&da, gpu, 1), 0);
	TEST_EQ(dbg_unwatch(&da, gpu, 1), -EINVAL);
	TEST_EQ(dbg_watch(&db, gpu, 0x2000), 0);
	TEST_EQ(db.a.set_watch.id, 1);
	/* DISABLE gives the slots back. */
	TEST_EQ(dbg_disable(&da), 0);
	TEST_EQ(dbg_watch(&db, gpu, 0x2000), 0);
	TEST_EQ(db.a.set_watch.id, 0);
}
