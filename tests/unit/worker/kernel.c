/* SPDX-License-Identifier: MIT */
#include "tests/unit/worker/kernel.h"

#include <unistd.h>

#include "testlib.h"

struct kernel k;

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
		if (k.wakes > 0)
			TEST_EQ(write(k.wakes, ".", 1), 1);
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

struct target_kfd *attached(void)
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

void released(struct target_kfd *t)
{
	target_kfd_ops.destroy(&t->t);
}
