/* SPDX-License-Identifier: MIT */
#include "agentd/worker/kfd/kfd.h"
#include "base/fd.h"
#include "libkfdtrap/src/kfd_abi.h"
#include "testlib.h"

#define GPU 100u

/* A kernel small enough to read: three queues, two devices, and what it was asked. */
static struct kernel {
	bool enabled, tracing;
	uint64_t mask, queue_bits[3], device_bits[2], process_bits;
	bool suspended[3];
	uint32_t runtime_state, mode, flags, override, watch_used[2];
	unsigned handshakes, sends;
	struct {
		uint64_t mask;
		uint32_t gpu, queue;
	} sent[16];
	uint32_t fail_op; /* This one ... */
	int fail_err, fail_after; /* ... fails so, after this many successes. */
	char ops[256];
	size_t n_ops;
} k;

static int say(int err)
{
	errno = err;
	return -1;
}

static int op_override(struct kfdabi_dbg_args *a)
{
	uint32_t request = a->launch_override.support_request_mask;
	uint32_t previous = k.override;

	a->launch_override.support_request_mask = 0x1ff;
	if (request & ~0x1ffu)
		return say(EACCES);
	k.override = (a->launch_override.enable_mask & request) | (previous & ~request);
	a->launch_override.enable_mask = previous;
	return 0;
}

static int op_queues(struct kfdabi_dbg_args *a, bool suspend)
{
	uint32_t *ids = (uint32_t *)(uintptr_t)(suspend ? a->suspend.queue_array_ptr :
							 a->resume.queue_array_ptr);
	uint32_t n = suspend ? a->suspend.num_queues : a->resume.num_queues;
	int done = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t id = ids[i];

		if (id >= 3 || (suspend && k.queue_bits[id] & KFD_NEW_MASK)) {
			ids[i] |= KFDTRAP_QUEUE_GONE;
			continue;
		}
		k.suspended[id] = suspend;
		done++;
	}
	return done;
}

static int op_snapshot(struct kfdabi_dbg_args *a, bool queues)
{
	uint32_t exist = queues ? 3 : 2;
	uint32_t want = queues ? a->queue_snapshot.num_queues : a->device_snapshot.num_devices;
	uint32_t stride = queues ? a->queue_snapshot.entry_size : a->device_snapshot.entry_size;
	char *buf = (char *)(uintptr_t)(queues ? a->queue_snapshot.snapshot_buf_ptr :
						 a->device_snapshot.snapshot_buf_ptr);

	for (uint32_t i = 0; i < want && i < exist; i++) {
		struct kfdabi_queue_entry q = { .exception_status = k.queue_bits[i], .queue_id = i,
						.gpu_id = GPU + i % 2 };
		struct kfdabi_device_entry d = { .exception_status = k.device_bits[i % 2],
						 .gpu_id = GPU + i, .debug_prop = 6 | 29 << 4,
						 .capability = 0x20008280 };

		if (queues)
			memcpy(buf + i * stride, &q, sizeof(q));
		else
			memcpy(buf + i * stride, &d, stride < sizeof(d) ? stride : sizeof(d));
		if (queues)
			k.queue_bits[i] &= ~a->queue_snapshot.exception_mask;
		else
			k.device_bits[i] &= ~a->device_snapshot.exception_mask;
	}
	if (queues)
		a->queue_snapshot.num_queues = exist;
	else
		a->device_snapshot.num_devices = exist;
	return 0;
}

static int op_query(struct kfdabi_dbg_args *a)
{
	uint64_t clear = a->query_event.exception_mask, *found = NULL;

	a->query_event.gpu_id = a->query_event.queue_id = 0;
	for (uint32_t i = 0; i < 3 && !found; i++)
		if (k.queue_bits[i] & k.mask) {
			found = &k.queue_bits[i];
			a->query_event.queue_id = i;
			a->query_event.gpu_id = GPU + i % 2;
		}
	for (uint32_t i = 0; i < 2 && !found; i++)
		if (k.device_bits[i] & k.mask) {
			found = &k.device_bits[i];
			a->query_event.gpu_id = GPU + i;
		}
	if (!found && k.process_bits & k.mask)
		found = &k.process_bits;
	a->query_event.exception_mask = found ? *found : 0;
	if (!found)
		return say(EAGAIN);
	*found &= ~clear;
	return 0;
}

static int op_info(struct kfdabi_dbg_args *a)
{
	uint32_t code = a->query_info.exception_code, id = a->query_info.source_id;
	uint64_t bit = UINT64_C(1) << (code - 1);
	uint64_t *bits = code >= 48 ? &k.process_bits : code >= 32 ? NULL : NULL;

	if (code >= 32 && code < 48) {
		if (id < GPU || id > GPU + 1)
			return say(EINVAL);
		bits = &k.device_bits[id - GPU];
	} else if (code < 32) {
		if (id >= 3)
			return say(EINVAL);
		bits = &k.queue_bits[id];
	}
	if (!(*bits & bit))
		return say(ENODATA);
	a->query_info.info_size = 0;
	if (code == 48) {
		const struct kfdabi_runtime_info info = { .runtime_state = k.runtime_state };

		memcpy((void *)(uintptr_t)a->query_info.info_ptr, &info, sizeof(info));
		a->query_info.info_size = sizeof(info);
	}
	if (a->query_info.clear_exception)
		*bits &= ~bit;
	return 0;
}

static int op_send(const struct kfdabi_dbg_args *a)
{
	if (a->send_runtime_event.exception_mask == KFD_RUNTIME_MASK) {
		k.handshakes++;
		return 0;
	}
	k.sent[k.sends].mask = a->send_runtime_event.exception_mask;
	k.sent[k.sends].gpu = a->send_runtime_event.gpu_id;
	k.sent[k.sends++].queue = a->send_runtime_event.queue_id;
	return 0;
}

static int op_watch(struct kfdabi_dbg_args *a, bool set)
{
	uint32_t gpu = set ? a->set_watch.gpu_id : a->clear_watch.gpu_id;
	uint32_t *used;

	if (gpu < GPU || gpu > GPU + 1)
		return say(ENODEV);
	used = &k.watch_used[gpu - GPU];
	if (!set) {
		if (!(*used >> a->clear_watch.id & 1))
			return say(EINVAL);
		*used &= ~(1u << a->clear_watch.id);
		return 0;
	}
	for (uint32_t i = 0; i < 4; i++)
		if (!(*used >> i & 1)) {
			*used |= 1u << i;
			a->set_watch.id = i;
			return 0;
		}
	a->set_watch.id = 0xffffffff;
	return say(ENOMEM);
}

static int fake_ioctl(int fd, unsigned long req, void *arg)
{
	struct kfdabi_dbg_args *a = arg;
	uint32_t old;

	TEST_EQ_FATAL(a->op < KFDABI_DBG_OP_COUNT, true);
	if (k.tracing && k.n_ops < sizeof(k.ops) - 1)
		k.ops[k.n_ops++] = "EDsMOLSRWCFQIqd"[a->op];
	if (k.fail_err && a->op == k.fail_op && k.fail_after-- <= 0)
		return say(k.fail_err);
	if (!k.enabled)
		return say(EINVAL);
	switch (a->op) {
	case KFDABI_DBG_DISABLE:
		k.enabled = false;
		return 0;
	case KFDABI_DBG_SEND_RUNTIME_EVENT:
		return op_send(a);
	case KFDABI_DBG_SET_EXCEPTIONS_ENABLED:
		k.mask = a->set_exceptions_enabled.exception_mask;
		return 0;
	case KFDABI_DBG_SET_WAVE_LAUNCH_OVERRIDE:
		return op_override(a);
	case KFDABI_DBG_SET_WAVE_LAUNCH_MODE:
		k.mode = a->launch_mode.launch_mode;
		return 0;
	case KFDABI_DBG_SUSPEND_QUEUES:
	case KFDABI_DBG_RESUME_QUEUES:
		return op_queues(a, a->op == KFDABI_DBG_SUSPEND_QUEUES);
	case KFDABI_DBG_SET_NODE_ADDRESS_WATCH:
	case KFDABI_DBG_CLEAR_NODE_ADDRESS_WATCH:
		return op_watch(a, a->op == KFDABI_DBG_SET_NODE_ADDRESS_WATCH);
	case KFDABI_DBG_SET_FLAGS:
		old = k.flags;
		k.flags = a->set_flags.flags;
		a->set_flags.flags = old;
		return 0;
	case KFDABI_DBG_QUERY_DEBUG_EVENT:
		return op_query(a);
	case KFDABI_DBG_QUERY_EXCEPTION_INFO:
		return op_info(a);
	default:
		return op_snapshot(a, a->op == KFDABI_DBG_GET_QUEUE_SNAPSHOT);
	}
}

static const struct kfdtrap_sys fake_sys = { .ioctl = fake_ioctl };

static long no_ptrace(int request, pid_t pid, void *addr, void *data)
{
	return 0;
}

static pid_t no_wait(pid_t pid, int *status, int options)
{
	return 0;
}

static const struct leader_sys no_leader = { .ptrace = no_ptrace, .waitpid = no_wait };

static struct target_kfd *attached(void)
{
	static const struct worker_options options = { .pid = 4242 };
	static const struct access_target facts = { .pid = 4242 };
	struct target_kfd *t = calloc(1, sizeof(*t));

	k = (struct kernel){ .enabled = true, .runtime_state = 1, .mask = KFD_RUNTIME_MASK };
	target_init(&t->t, &target_kfd_ops, &options, &facts);
	t->t.leader_sys = &no_leader;
	t->t.leader.state = LEADER_SEIZED;
	t->t.runtime.state = RPC_RUNTIME_STATE_ENABLED;
	t->fd = -1;
	t->topology = calloc(1, sizeof(*t->topology));
	TEST_EQ_FATAL(kfdtrap_create(7, 4242, &fake_sys, &t->kt), 0);
	k.tracing = true;
	return t;
}

static void released(struct target_kfd *t)
{
	target_kfd_ops.destroy(&t->t);
}

#define WITH(t)                                                                                    \
	auto_rpc_arena struct rpc_arena arena;                                                     \
	struct agent_err err = { 0 };                                                              \
	struct target_kfd *t = attached();                                                         \
	rpc_arena_init(&arena, 0)

/* ------------------------------------------------------------------ queues ------------------- */

static void suspend_and_resume(void)
{
	static const uint32_t asked[] = { 1, 77, 2 };
	struct rpc_queue_result *r;
	size_t n;
	WITH(t);

	k.queue_bits[2] = KFD_NEW_MASK;
	/* The snapshot that precedes makes the new queue old. */
	TEST_EQ(kfd_suspend(&t->t, asked, 3, 0, &arena, &r, &n, &err), 0);
	TEST_EQ(n, 3);
	TEST_EQ(r[0].verdict, RPC_QUEUE_VERDICT_SUSPENDED);
	TEST_EQ(r[1].verdict, RPC_QUEUE_VERDICT_SKIPPED);
	TEST_EQ(r[1].queue_id, 77);
	TEST_EQ(r[2].verdict, RPC_QUEUE_VERDICT_SUSPENDED);
	TEST_EQ(t->t.n_suspended, 2);
	/* A queue of somebody else, or running, is none of our business. */
	TEST_EQ(kfd_resume(&t->t, (uint32_t[]){ 0, 2 }, 2, &arena, &r, &n, &err), 0);
	TEST_EQ(r[0].verdict, RPC_QUEUE_VERDICT_SKIPPED);
	TEST_EQ(r[1].verdict, RPC_QUEUE_VERDICT_RESUMED);
	TEST_EQ(k.suspended[1] && !k.suspended[2], true);
	TEST_EQ(undo_run(&t->t.undo, 0, &err), 0);
	TEST_EQ(k.suspended[1], false);
	TEST_EQ(t->t.undo.n, 0);
	released(t);
}

/* All resumed by hand: nothing is left to undo, and no resume is sent for nothing. */
static void resume_of_all_drops_the_undo(void)
{
	struct rpc_queue_result *r;
	size_t n;
	WITH(t);

	TEST_EQ(kfd_suspend(&t->t, NULL, 0, 0, &arena, &r, &n, &err), 0);
	TEST_EQ(n, 3);
	TEST_EQ(kfd_resume(&t->t, NULL, 0, &arena, &r, &n, &err), 0);
	TEST_EQ(n, 3);
	TEST_EQ(t->t.undo.n, 0);
	k.n_ops = 0;
	TEST_EQ(kfd_resume(&t->t, NULL, 0, &arena, &r, &n, &err), 0);
	TEST_EQ(n, 0);
	TEST_EQ(k.n_ops, 0);
	TEST_EQ(kfd_suspend(&t->t, (uint32_t[]){ 0x40000001 }, 1, 0, &arena, &r, &n, &err) < 0, true);
	TEST_EQ(err.code, RPC_ERROR_INVALID_PARAMS);
	released(t);
}

/* ------------------------------------------------------------------ waves -------------------- */

#define AREA_SIZE 4096u

/* Save areas of this very process, with empty control stacks, and what leads to them. */
static struct {
	_Alignas(8) uint8_t area[3][AREA_SIZE];
	uint64_t counters[2];
	struct rpc_queue queues[3];
	struct target_device devices[2];
	struct target_waves_from from;
} node;

static const struct target_waves_from *with_areas(struct target_kfd *t)
{
	memset(&node, 0, sizeof(node));
	for (uint32_t i = 0; i < 2; i++)
		node.devices[i].rpc = (struct rpc_device){ .gpu_id = GPU + i, .arch = "gfx1100",
							   .gfx_target_version = 110000,
							   .units = 1 };
	for (uint32_t i = 0; i < 3; i++) {
		const uint32_t header[4] = { 1024, 0, 1024, 0 };

		memcpy(node.area[i], header, sizeof(header));
		node.queues[i] = (struct rpc_queue){
			.queue_id = i,
			.gpu_id = GPU + i % 2,
			.type = RPC_QUEUE_TYPE_COMPUTE_AQL,
			.read_pointer = (uintptr_t)&node.counters[0],
			.write_pointer = (uintptr_t)&node.counters[1],
			.save_area = (uintptr_t)node.area[i],
			.save_area_bytes = AREA_SIZE,
		};
	}
	node.from = (struct target_waves_from){ node.devices, 2, node.queues, 3, 10000 };
	TEST_EQ_FATAL(memory_open(&t->t.memory, getpid()), 0);
	return &node.from;
}

static bool any_suspended(void)
{
	return k.suspended[0] || k.suspended[1] || k.suspended[2];
}

/* One queue stands still under a lease: the other two stop and run again, it stays as it is. */
static void waves_let_go_what_they_stopped(void)
{
	struct rpc_queue_result *r;
	struct target_waves waves;
	size_t n;
	WITH(t);

	with_areas(t);
	node.queues[1].suspended = true;
	TEST_EQ(kfd_suspend(&t->t, (uint32_t[]){ 1 }, 1, 0, &arena, &r, &n, &err), 0);
	k.n_ops = 0;
	TEST_EQ(kfd_waves(&t->t, &node.from, &arena, &waves, &err), 0);
	k.ops[k.n_ops] = '\0';
	TEST_STR(k.ops, "SR");
	TEST_EQ(waves.n_missing, 0);
	TEST_EQ(waves.n_waves, 0);
	TEST_EQ(waves.budget_exceeded, false);
	TEST_EQ(!k.suspended[0] && k.suspended[1] && !k.suspended[2], true);
	TEST_EQ(t->t.n_suspended, 1);
	TEST_EQ(t->t.undo.n, 1);
	/* All of them: there is nothing to stop. */
	TEST_EQ(kfd_suspend(&t->t, NULL, 0, 0, &arena, &r, &n, &err), 0);
	node.queues[0].suspended = node.queues[2].suspended = true;
	k.n_ops = 0;
	TEST_EQ(kfd_waves(&t->t, &node.from, &arena, &waves, &err), 0);
	TEST_EQ(k.n_ops, 0);
	TEST_EQ(waves.n_missing, 0);
	TEST_EQ(waves.stopped_us, 0);
	released(t);
}

/* All stop at once, each device runs again as soon as its own waves are copied. */
static void devices_are_let_go_one_by_one(void)
{
	struct target_waves waves;
	WITH(t);

	with_areas(t);
	k.n_ops = 0;
	TEST_EQ(kfd_waves(&t->t, &node.from, &arena, &waves, &err), 0);
	k.ops[k.n_ops] = '\0';
	TEST_STR(k.ops, "SRR");
	for (size_t i = 0; i < 3; i++)
		TEST_EQ(waves.stops[i].has_stopped_us, true);
	TEST_EQ(waves.stops[0].stopped_us, waves.stops[2].stopped_us);
	TEST_EQ(waves.stops[0].stopped_us <= waves.stops[1].stopped_us, true);
	TEST_EQ(waves.stopped_us, waves.stops[1].stopped_us);
	TEST_EQ(any_suspended(), false);
	TEST_EQ(t->t.undo.n, 0);
	released(t);
}

/* Each way of not seeing a queue's waves is one line, and none costs the other queues. */
static void waves_that_cannot_be_seen_are_missing(void)
{
	static enum rpc_exception is_new[] = { RPC_EXCEPTION_QUEUE_NEW };
	struct target_waves waves;
	WITH(t);

	with_areas(t);
	k.queue_bits[0] = KFD_NEW_MASK;
	node.queues[1].save_area = 16;
	node.area[2][0] = 1;
	TEST_EQ(kfd_waves(&t->t, &node.from, &arena, &waves, &err), 0);
	TEST_EQ_FATAL(waves.n_missing, 3);
	TEST_STR(waves.missing[0], "queue 0: it is being destroyed; its waves are unknown");
	TEST_EQ(waves.stops[0].has_stopped_us, false);
	TEST_EQ(waves.stops[0].has_not_stopped, true);
	TEST_EQ(waves.stops[0].not_stopped, RPC_NOT_STOPPED_ENDING);
	TEST_EQ(waves.stops[1].has_stopped_us, true);
	TEST_EQ(waves.stops[1].has_not_stopped, false);
	TEST_STR(waves.missing[1], "queue 1: its save area is not readable");
	TEST_STR(waves.missing[2], "queue 2: its save area is corrupt: control stack and wave data do not meet");
	TEST_EQ(any_suspended(), false);
	/* A subscriber waits for the news, so the queue stays new. */
	t->subscribed = KFD_NEW_MASK;
	node.queues[0].exceptions = is_new;
	node.queues[0].n_exceptions = 1;
	TEST_EQ(kfd_waves(&t->t, &node.from, &arena, &waves, &err), 0);
	TEST_EQ(waves.stops[0].not_stopped, RPC_NOT_STOPPED_NEW);
	TEST_STR(waves.missing[0], "queue 0: it was just created; its waves are unknown");
	t->subscribed = 0;

	node.queues[0].type = RPC_QUEUE_TYPE_SDMA;
	node.queues[1].save_area = 0;
	node.devices[0].rpc.gfx_target_version = 99;
	k.n_ops = 0;
	TEST_EQ(kfd_waves(&t->t, &node.from, &arena, &waves, &err), 0);
	TEST_EQ_FATAL(waves.n_missing, 2);
	TEST_STR(waves.missing[0], "queue 1: it has no area to save waves in");
	TEST_STR(waves.missing[1], "queue 2: the layout of saved waves of gfx1100 is unknown");
	TEST_EQ(waves.stops[0].has_not_stopped, false);
	TEST_EQ(waves.stops[1].not_stopped, RPC_NOT_STOPPED_NO_SAVE_AREA);
	TEST_EQ(waves.stops[2].not_stopped, RPC_NOT_STOPPED_UNKNOWN_LAYOUT);
	TEST_EQ(k.n_ops, 0);
	released(t);
}

/* Sizes that no hardware has are refused before they cost memory. */
static void huge_control_stacks_are_refused(void)
{
	const uint32_t header[4] = { 64, 2 << 20, 64 + (2 << 20), 0 };
	struct target_waves waves;
	WITH(t);

	with_areas(t);
	node.queues[0].save_area_bytes = UINT32_MAX;
	memcpy(node.area[0], header, sizeof(header));
	TEST_EQ(kfd_waves(&t->t, &node.from, &arena, &waves, &err), 0);
	TEST_EQ_FATAL(waves.n_missing, 1);
	TEST_STR(waves.missing[0], "queue 0: its control stack is larger than any hardware's");
	released(t);
}

static void waves_without_time_or_runtime(void)
{
	struct target_waves waves;
	WITH(t);

	with_areas(t);
	node.from.max_stop_ms = 0;
	TEST_EQ(kfd_waves(&t->t, &node.from, &arena, &waves, &err), 0);
	TEST_EQ(waves.budget_exceeded, true);
	TEST_EQ_FATAL(waves.n_missing, 1);
	TEST_STR(waves.missing[0], "waves: the stop budget of 0 ms was used up with 3 save areas unread");
	TEST_EQ(any_suspended(), false);
	t->t.runtime.state = RPC_RUNTIME_STATE_DISABLED;
	k.n_ops = 0;
	TEST_EQ(kfd_waves(&t->t, &node.from, &arena, &waves, &err), 0);
	TEST_EQ_FATAL(waves.n_missing, 1);
	TEST_STR(waves.missing[0], "waves: the program has not enabled its GPU runtime, although it has queues: its ROCm is "
				   "too old to be debugged (5.2 is, 6.1 is not), or shuts down, or it uses the GPU without ROCm");
	t->t.runtime.state = RPC_RUNTIME_STATE_ERROR;
	TEST_EQ(kfd_waves(&t->t, &node.from, &arena, &waves, &err), 0);
	TEST_EQ_FATAL(waves.n_missing, 1);
	TEST_STR(waves.missing[0], "waves: the driver could not set up debugging on the devices");
	TEST_EQ(k.n_ops, 0);
	released(t);
}

/* A failed SUSPEND may have stopped some queues: all are resumed, and the rest can be shown. */
static void a_failed_stop_is_taken_back(void)
{
	struct target_waves waves;
	WITH(t);

	with_areas(t);
	k.suspended[0] = true;
	k.fail_op = KFDABI_DBG_SUSPEND_QUEUES;
	k.fail_err = EIO;
	TEST_EQ(kfd_waves(&t->t, &node.from, &arena, &waves, &err), 0);
	k.ops[k.n_ops] = '\0';
	TEST_STR(k.ops, "SR");
	TEST_EQ(waves.n_missing, 1);
	TEST_EQ(any_suspended(), false);
	TEST_EQ(t->t.ended, false);
	TEST_EQ(t->t.undo.n, 0);
	/* The process is gone. */
	k.fail_err = ESRCH;
	TEST_EQ(kfd_waves(&t->t, &node.from, &arena, &waves, &err), -ESRCH);
	TEST_EQ(t->t.ended, true);
	released(t);
}

/* Nobody but the kernel can help then, and it does when the session ends. */
static void a_failed_resume_ends_the_session(void)
{
	struct target_waves waves;
	WITH(t);

	with_areas(t);
	k.fail_op = KFDABI_DBG_RESUME_QUEUES;
	k.fail_err = EIO;
	TEST_EQ(kfd_waves(&t->t, &node.from, &arena, &waves, &err) < 0, true);
	TEST_STR(err.op, "KFD RESUME_QUEUES");
	TEST_EQ(t->t.ended, true);
	TEST_EQ(t->t.end_reason, RPC_END_REASON_LOST);
	/* The end of the session tries once more. */
	TEST_EQ(t->t.undo.n, 1);
	TEST_EQ(any_suspended(), true);
	k.fail_err = 0;
	TEST_EQ(undo_run(&t->t.undo, 0, &err), 0);
	TEST_EQ(any_suspended(), false);
	released(t);
}

/* ------------------------------------------------------------------ control ------------------ */

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

/* ------------------------------------------------------------------ events ------------------- */

/* Announced, cleared and sent on, each source once; companions that nobody asked for stay. */
static void events_are_consumed_and_forwarded(void)
{
	struct target_event e;
	int n = 0;
	WITH(t);

	TEST_EQ(kfd_subscribe(&t->t, 0x12 | KFD_VIOLATION_MASK, false, &err), 0);
	k.queue_bits[1] = 0x2 | KFD_NEW_MASK;
	k.queue_bits[2] = 0x10;
	k.device_bits[0] = KFD_VIOLATION_MASK;
	k.process_bits = KFD_RUNTIME_MASK;
	while (n < 10 && kfd_event_next(&t->t, &e, &err) == 1) {
		TEST_EQ(kfd_event_done(&t->t, &e, &err), 0);
		n++;
	}
	TEST_EQ(n, 4);
	TEST_EQ(k.handshakes, 1);
	TEST_EQ(k.sends, 3);
	TEST_EQ(k.sent[0].mask, 2);
	TEST_EQ(k.sent[0].queue, 1);
	TEST_EQ(k.sent[0].gpu, KFDTRAP_ID_NONE);
	TEST_EQ(k.sent[2].mask, KFD_VIOLATION_MASK);
	TEST_EQ(k.sent[2].gpu, GPU);
	TEST_EQ(k.queue_bits[1], KFD_NEW_MASK);
	TEST_EQ(k.device_bits[0], 0);
	released(t);
}

/* Held: announced once, still latched for the client, sent when the subscription ends. */
static void held_events_are_sent_at_the_end(void)
{
	const struct target_source what = { .exceptions = 2, .has_queue = true, .queue_id = 0 };
	struct target_source found;
	struct target_event e;
	WITH(t);

	TEST_EQ(kfd_subscribe(&t->t, 0x12 | KFD_VIOLATION_MASK, true, &err), 0);
	k.queue_bits[0] = 2;
	k.queue_bits[1] = 0x10;
	k.device_bits[1] = KFD_VIOLATION_MASK;
	for (int i = 0; i < 3; i++) {
		TEST_EQ(kfd_event_next(&t->t, &e, &err), 1);
		TEST_EQ(e.forwarded, false);
		TEST_EQ(kfd_event_done(&t->t, &e, &err), 0);
	}
	TEST_EQ(kfd_event_next(&t->t, &e, &err), 0);
	TEST_EQ(k.sends, 0);
	TEST_EQ(kfd_query(&t->t, 0, &found, &err), 1);
	TEST_EQ(found.exceptions, 2);
	/* One is sent by hand and cleared; raised again, it is news again. */
	TEST_EQ(kfd_forward(&t->t, &what, &err), 0);
	TEST_EQ(k.sends, 1);
	TEST_EQ(kfd_query(&t->t, 2, &found, &err), 1);
	TEST_EQ(kfd_event_next(&t->t, &e, &err), 0);
	/* Raised behind our back, and never announced. */
	k.queue_bits[2] = 2;
	TEST_EQ(undo_run(&t->t.undo, 0, &err), 0);
	TEST_EQ(k.sends, 4);
	TEST_EQ(k.queue_bits[1] | k.queue_bits[2] | k.device_bits[1], 0);
	for (unsigned i = 1; i < 4; i++)
		TEST_ROW_EQ(i, k.sent[i].queue == 0, false);
	released(t);
}

/* One list of codes in the schema, one in the library: the same ones, of the same kind. */
static void codes_have_the_kernels_names(void)
{
	for (uint32_t code = 1; code < KFDTRAP_EC_COUNT; code++) {
		const char *theirs = kfdtrap_exception_name(code);
		const char *ours = rpc_exception_name((enum rpc_exception)code);

		TEST_ROW_EQ(code, theirs != NULL, ours != NULL);
		if (!theirs || !ours || code == RPC_EXCEPTION_WAVE_ADDRESS_ERROR)
			continue;
		theirs += strncmp(ours, "queue_", 6) && !strncmp(theirs, "QUEUE_", 6) ? 6 : 0;
		TEST_ROW_EQ(code, strcasecmp(theirs, ours), 0);
	}
	TEST_STR(kfdtrap_exception_name(RPC_EXCEPTION_WAVE_ADDRESS_ERROR), "QUEUE_WAVE_APERTURE_VIOLATION");
}

/* What nobody was subscribed to went its way: it is neither told nor sent when somebody is. */
static void what_was_before_is_forgotten(void)
{
	struct target_event e;
	WITH(t);

	k.queue_bits[0] = 0x12 | KFD_NEW_MASK;
	k.device_bits[1] = KFD_VIOLATION_MASK;
	TEST_EQ(kfd_subscribe(&t->t, 0x2 | KFD_VIOLATION_MASK, false, &err), 0);
	TEST_EQ(kfd_event_next(&t->t, &e, &err), 0);
	TEST_EQ(k.queue_bits[0], 0x10 | KFD_NEW_MASK);
	TEST_EQ(k.device_bits[1], 0);
	/* What is subscribed already may not have been told yet. */
	k.queue_bits[0] |= 0x2;
	TEST_EQ(kfd_subscribe(&t->t, 0x12 | KFD_VIOLATION_MASK, false, &err), 0);
	TEST_EQ(kfd_event_next(&t->t, &e, &err), 1);
	TEST_EQ(e.withheld, 0x2);
	TEST_EQ(kfd_event_done(&t->t, &e, &err), 0);
	TEST_EQ(k.sends, 1);
	released(t);
}

/* One that is kept back hides neither what is behind it nor the next of its own. */
static void a_violation_kept_back_hides_nothing(void)
{
	struct target_event first, second;
	WITH(t);

	TEST_EQ(kfd_subscribe(&t->t, 0x2 | KFD_VIOLATION_MASK, false, &err), 0);
	k.device_bits[0] = k.device_bits[1] = KFD_VIOLATION_MASK;
	TEST_EQ(kfd_event_next(&t->t, &first, &err), 1);
	TEST_EQ(first.source.gpu_id, GPU);
	TEST_EQ(kfd_event_next(&t->t, &second, &err), 1);
	TEST_EQ(second.source.gpu_id, GPU + 1);
	TEST_EQ(kfd_event_done(&t->t, &second, &err), 0);
	k.process_bits = KFD_RUNTIME_MASK;
	TEST_EQ(kfd_event_next(&t->t, &second, &err), 1);
	TEST_EQ(second.kind, TARGET_EVENT_RUNTIME);
	TEST_EQ(kfd_event_done(&t->t, &second, &err), 0);
	k.device_bits[0] = KFD_VIOLATION_MASK;
	TEST_EQ(kfd_event_next(&t->t, &second, &err), 1);
	TEST_EQ(second.source.gpu_id, GPU);
	/* A subscription that goes without them sends what it knows of, once. */
	TEST_EQ(kfd_subscribe(&t->t, 0x2, false, &err), 0);
	TEST_EQ(k.sends, 1);
	TEST_EQ(kfd_event_done(&t->t, &first, &err), 0);
	TEST_EQ(kfd_event_done(&t->t, &second, &err), 0);
	TEST_EQ(k.sends, 3);
	TEST_EQ(kfd_event_next(&t->t, &second, &err), 0);
	released(t);
}

/* The handshake answered on the way out, exactly once, also when it was not read yet. */
static void handshake_is_answered_once(void)
{
	struct target_event e;
	WITH(t);

	TEST_EQ(kfd_answer_handshake(t, &err), 0);
	TEST_EQ(k.handshakes, 0);
	k.process_bits = KFD_RUNTIME_MASK;
	TEST_EQ(kfd_event_next(&t->t, &e, &err), 1);
	TEST_EQ(kfd_answer_handshake(t, &err), 0);
	TEST_EQ(k.handshakes, 1);
	TEST_EQ(kfd_answer_handshake(t, &err), 0);
	TEST_EQ(k.handshakes, 1);
	k.process_bits = KFD_RUNTIME_MASK;
	TEST_EQ(kfd_answer_handshake(t, &err), 0);
	TEST_EQ(k.handshakes, 2);
	released(t);
}

static void forward_refuses_nonsense(void)
{
	static const struct target_source rows[] = {
		{ 0 },
		{ .exceptions = KFD_RUNTIME_MASK },
		{ .exceptions = 2 },
		{ .exceptions = 2, .has_gpu = true },
		{ .exceptions = KFD_VIOLATION_MASK, .has_queue = true },
		{ .exceptions = KFD_VIOLATION_MASK | 2, .has_queue = true, .has_gpu = true },
	};
	WITH(t);

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		err = (struct agent_err){ 0 };
		TEST_ROW_EQ(i, kfd_forward(&t->t, &rows[i], &err) < 0, true);
		TEST_ROW_EQ(i, err.code, RPC_ERROR_INVALID_PARAMS);
	}
	TEST_EQ(k.sends, 0);
	released(t);
}

static void info_tells_latched_from_unknown(void)
{
	struct target_exception_info info;
	WITH(t);

	k.device_bits[0] = KFD_VIOLATION_MASK;
	TEST_EQ(kfd_info(&t->t, RPC_EXCEPTION_DEVICE_MEMORY_VIOLATION, GPU, false, &info, &err), 0);
	TEST_EQ(info.latched && !info.details, true);
	TEST_EQ(kfd_info(&t->t, RPC_EXCEPTION_DEVICE_MEMORY_VIOLATION, GPU, true, &info, &err), 0);
	TEST_EQ(kfd_info(&t->t, RPC_EXCEPTION_DEVICE_MEMORY_VIOLATION, GPU, false, &info, &err), 0);
	TEST_EQ(info.latched, false);
	TEST_EQ(kfd_info(&t->t, RPC_EXCEPTION_WAVE_TRAP, 99, false, &info, &err) < 0, true);
	TEST_EQ(err.code, RPC_ERROR_INVALID_PARAMS);
	/* A client cannot take the handshake away. */
	k.process_bits = KFD_RUNTIME_MASK;
	TEST_EQ(kfd_info(&t->t, RPC_EXCEPTION_PROCESS_RUNTIME, 0, true, &info, &err), 0);
	TEST_EQ(info.latched, true);
	TEST_EQ(k.process_bits, KFD_RUNTIME_MASK);
	released(t);
}

/* ------------------------------------------------------------------ errors ------------------- */

static void errors_are_translated(void)
{
	static const struct {
		int err;
		int32_t code;
	} rows[] = {
		{ EBUSY, RPC_ERROR_BUSY },	      { ENODEV, RPC_ERROR_NOT_DEBUGGABLE },
		{ EOPNOTSUPP, RPC_ERROR_NOT_DEBUGGABLE }, { ENOTTY, RPC_ERROR_NOT_DEBUGGABLE },
		{ ETIME, RPC_ERROR_TIMEOUT },	      { EIO, RPC_ERROR_FAILED },
		{ EINVAL, RPC_ERROR_FAILED },	      { EPERM, RPC_ERROR_NOT_DEBUGGABLE },
		{ EACCES, RPC_ERROR_FAILED },
	};
	WITH(t);

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		err = (struct agent_err){ 0 };
		TEST_ROW_EQ(i, kfd_hw_error(t, -rows[i].err, "op", &err), -rows[i].err);
		TEST_ROW_EQ(i, err.code, rows[i].code);
		TEST_ROW_EQ(i, err.hint[0] != '\0', rows[i].err != EFAULT);
		TEST_ROW_EQ(i, kfd_error(t, -rows[i].err, "op", &err), -rows[i].err);
		TEST_ROW_EQ(i, err.code,
			    rows[i].err == ETIME ? RPC_ERROR_TIMEOUT : RPC_ERROR_FAILED);
		TEST_ROW_EQ(i, err.message[0] != '\0', true);
		TEST_ROW_EQ(i, t->t.ended, false);
	}
	released(t);
}

static void enable_errors_name_the_cause(void)
{
	static const struct {
		int err;
		int32_t code;
	} rows[] = {
		{ EALREADY, RPC_ERROR_BUSY },	      { ENODEV, RPC_ERROR_NOT_DEBUGGABLE },
		{ EBUSY, RPC_ERROR_BUSY },	      { EINVAL, RPC_ERROR_NOT_DEBUGGABLE },
		{ EPERM, RPC_ERROR_NOT_PERMITTED },   { ENOMEM, RPC_ERROR_FAILED },
	};
	WITH(t);

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		err = (struct agent_err){ 0 };
		kfd_enable_error(t, -rows[i].err, &err);
		TEST_ROW_EQ(i, err.code, rows[i].code);
		TEST_ROW_EQ(i, err.hint[0] != '\0', true);
	}
	released(t);
}

/* EINVAL because somebody disabled the session: the session is over, with that reason. */
static void a_lost_session_is_noticed(void)
{
	struct rpc_queue *queues;
	size_t n;
	WITH(t);

	k.enabled = false;
	TEST_EQ(kfd_queues(&t->t, &arena, &queues, &n, &err), -ESRCH);
	TEST_EQ(err.code, RPC_ERROR_SESSION_ENDED);
	TEST_EQ(t->t.ended, true);
	TEST_EQ(t->t.end_reason, RPC_END_REASON_LOST);
	released(t);
}

/* libdrm's table: comments, a version, tabs, the same device in several revisions, a last line without its end. */
static void names_are_those_of_libdrm(void)
{
	static const char table[] = "# List of AMDGPU IDs\n\n1.0.0\n740F,\t02,\tAMD Instinct MI210\r\n"
				    "73BF,\tC0,\tAMD Radeon RX 6900 XT\n73BF,\tC1,\tAMD Radeon RX 6800 XT\n"
				    "no,\tnumber,\there\n74A1,\n,,\n74A1,\t00,\tAMD Instinct MI300X";
	static const struct {
		uint32_t device, revision;
		const char *name;
	} rows[] = { { 0x740f, 2, "AMD Instinct MI210" },
		     { 0x73bf, 0xc0, "AMD Radeon RX 6900 XT" },
		     { 0x73bf, 0xc1, "AMD Radeon RX 6800 XT" },
		     { 0x74a1, 0, "AMD Instinct MI300X" } };
	auto_rpc_arena struct rpc_arena arena;

	rpc_arena_init(&arena, 0);
	for (size_t i = 0; i < TEST_COUNT(rows); i++)
		TEST_STR(kfd_name_in_table(&arena, table, rows[i].device, rows[i].revision), rows[i].name);
	CU_ASSERT_PTR_NULL(kfd_name_in_table(&arena, table, 0x740f, 3));
	CU_ASSERT_PTR_NULL(kfd_name_in_table(&arena, table, 0x1234, 2));
	CU_ASSERT_PTR_NULL(kfd_name_in_table(&arena, "", 0x740f, 2));
}

TEST_SUITE(worker_target_kfd, TEST(suspend_and_resume), TEST(resume_of_all_drops_the_undo),
	   TEST(waves_let_go_what_they_stopped), TEST(devices_are_let_go_one_by_one),
	   TEST(waves_that_cannot_be_seen_are_missing),
	   TEST(huge_control_stacks_are_refused), TEST(waves_without_time_or_runtime),
	   TEST(a_failed_stop_is_taken_back), TEST(a_failed_resume_ends_the_session),
	   TEST(everything_is_undone_in_reverse), TEST(refused_override_spoils_no_undo), TEST(undo_keeps_going),
	   TEST(watch_points_are_all_or_nothing), TEST(watch_ranges), TEST(runtime_off_forgets),
	   TEST(events_are_consumed_and_forwarded), TEST(held_events_are_sent_at_the_end),
	   TEST(codes_have_the_kernels_names), TEST(what_was_before_is_forgotten),
	   TEST(a_violation_kept_back_hides_nothing),
	   TEST(handshake_is_answered_once), TEST(forward_refuses_nonsense),
	   TEST(info_tells_latched_from_unknown), TEST(errors_are_translated),
	   TEST(enable_errors_name_the_cause), TEST(a_lost_session_is_noticed),
	   TEST(names_are_those_of_libdrm));
