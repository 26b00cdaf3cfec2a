/* SPDX-License-Identifier: MIT */
/* One function per operation: result of the ioctl, or -errno; arguments stay in d->a. */
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "env.h"

int seize(pid_t pid)
{
	return ptrace(PTRACE_SEIZE, pid, NULL, NULL) ? -errno : 0;
}

void dbg_init(struct dbg *d, pid_t pid)
{
	int sv[2] = { -1, -1 };

	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, sv), 0);
	*d = (struct dbg){ .pid = pid, .fd = -1, .rd = sv[0], .wr = sv[1] };
}

int dbg_bytes(struct dbg *d)
{
	char c;
	int n = 0;

	while (recv(d->rd, &c, 1, MSG_DONTWAIT) == 1)
		n += c == '.';
	return n;
}

bool dbg_byte_comes(struct dbg *d)
{
	struct pollfd p = { .fd = d->rd, .events = POLLIN };

	return poll(&p, 1, PATIENCE_MS) == 1 && dbg_bytes(d) > 0;
}

bool dbg_closed(struct dbg *d)
{
	uint64_t deadline = clock_deadline_ms(PATIENCE_MS);
	ssize_t n;
	char c;

	if (d->wr >= 0)
		close(d->wr);
	d->wr = -1;
	while (clock_left_ms(deadline)) {
		struct pollfd p = { .fd = d->rd, .events = POLLIN };

		poll(&p, 1, 50);
		n = recv(d->rd, &c, 1, MSG_DONTWAIT);
		if (n == 0)
			return true;
	}
	return false;
}

int dbg_op(struct dbg *d, uint32_t op)
{
	int r;

	d->a.pid = (uint32_t)d->pid;
	d->a.op = op;
	r = ioctl(d->fd >= 0 ? d->fd : env_kfd(), (unsigned long)KFDABI_IOC_DBG_TRAP, &d->a);
	return r < 0 ? -errno : r;
}

static void args_clear(struct dbg *d)
{
	memset(&d->a, 0, sizeof(d->a));
}

int dbg_enable(struct dbg *d, uint64_t mask)
{
	args_clear(d);
	d->a.enable.exception_mask = mask;
	d->a.enable.rinfo_ptr = (uint64_t)(uintptr_t)&d->info;
	d->a.enable.rinfo_size = sizeof(d->info);
	d->a.enable.dbg_fd = (uint32_t)d->wr;
	return dbg_op(d, KFDABI_DBG_ENABLE);
}

int dbg_disable(struct dbg *d)
{
	args_clear(d);
	return dbg_op(d, KFDABI_DBG_DISABLE);
}

int dbg_send(struct dbg *d, uint64_t mask, uint32_t gpu, uint32_t queue)
{
	args_clear(d);
	d->a.send_runtime_event.exception_mask = mask;
	d->a.send_runtime_event.gpu_id = gpu;
	d->a.send_runtime_event.queue_id = queue;
	return dbg_op(d, KFDABI_DBG_SEND_RUNTIME_EVENT);
}

int dbg_exceptions(struct dbg *d, uint64_t mask)
{
	args_clear(d);
	d->a.set_exceptions_enabled.exception_mask = mask;
	return dbg_op(d, KFDABI_DBG_SET_EXCEPTIONS_ENABLED);
}

int dbg_override(struct dbg *d, uint32_t mode, uint32_t enable, uint32_t request)
{
	args_clear(d);
	d->a.launch_override.override_mode = mode;
	d->a.launch_override.enable_mask = enable;
	d->a.launch_override.support_request_mask = request;
	return dbg_op(d, KFDABI_DBG_SET_WAVE_LAUNCH_OVERRIDE);
}

int dbg_mode(struct dbg *d, uint32_t mode)
{
	args_clear(d);
	d->a.launch_mode.launch_mode = mode;
	return dbg_op(d, KFDABI_DBG_SET_WAVE_LAUNCH_MODE);
}

int dbg_suspend(struct dbg *d, uint64_t clear, uint32_t *ids, uint32_t n)
{
	args_clear(d);
	d->a.suspend.exception_mask = clear;
	d->a.suspend.queue_array_ptr = (uint64_t)(uintptr_t)ids;
	d->a.suspend.num_queues = n;
	return dbg_op(d, KFDABI_DBG_SUSPEND_QUEUES);
}

int dbg_resume(struct dbg *d, uint32_t *ids, uint32_t n)
{
	args_clear(d);
	d->a.resume.queue_array_ptr = (uint64_t)(uintptr_t)ids;
	d->a.resume.num_queues = n;
	return dbg_op(d, KFDABI_DBG_RESUME_QUEUES);
}

int dbg_watch(struct dbg *d, uint32_t gpu, uint64_t address)
{
	args_clear(d);
	d->a.set_watch.address = address;
	d->a.set_watch.mode = KFDABI_WATCH_MODE_ALL;
	d->a.set_watch.mask = UINT32_C(0xffffff80);
	d->a.set_watch.gpu_id = gpu;
	d->a.set_watch.id = 77;
	return dbg_op(d, KFDABI_DBG_SET_NODE_ADDRESS_WATCH);
}

int dbg_unwatch(struct dbg *d, uint32_t gpu, uint32_t id)
{
	args_clear(d);
	d->a.clear_watch.gpu_id = gpu;
	d->a.clear_watch.id = id;
	return dbg_op(d, KFDABI_DBG_CLEAR_NODE_ADDRESS_WATCH);
}

int dbg_flags(struct dbg *d, uint32_t flags)
{
	args_clear(d);
	d->a.set_flags.flags = flags;
	return dbg_op(d, KFDABI_DBG_SET_FLAGS);
}

int dbg_query(struct dbg *d, uint64_t clear)
{
	args_clear(d);
	d->a.query_event.exception_mask = clear;
	d->a.query_event.gpu_id = d->a.query_event.queue_id = 0xabcd;
	return dbg_op(d, KFDABI_DBG_QUERY_DEBUG_EVENT);
}

int dbg_info(struct dbg *d, uint32_t code, uint32_t source, void *buf, uint32_t size, bool clear)
{
	args_clear(d);
	d->a.query_info.info_ptr = (uint64_t)(uintptr_t)buf;
	d->a.query_info.info_size = size;
	d->a.query_info.source_id = source;
	d->a.query_info.exception_code = code;
	d->a.query_info.clear_exception = clear;
	return dbg_op(d, KFDABI_DBG_QUERY_EXCEPTION_INFO);
}

int dbg_queues(struct dbg *d, uint64_t clear, void *buf, uint32_t n, uint32_t stride)
{
	args_clear(d);
	d->a.queue_snapshot.exception_mask = clear;
	d->a.queue_snapshot.snapshot_buf_ptr = (uint64_t)(uintptr_t)buf;
	d->a.queue_snapshot.num_queues = n;
	d->a.queue_snapshot.entry_size = stride;
	return dbg_op(d, KFDABI_DBG_GET_QUEUE_SNAPSHOT);
}

int dbg_devices(struct dbg *d, uint64_t clear, void *buf, uint32_t n, uint32_t stride)
{
	args_clear(d);
	d->a.device_snapshot.exception_mask = clear;
	d->a.device_snapshot.snapshot_buf_ptr = (uint64_t)(uintptr_t)buf;
	d->a.device_snapshot.num_devices = n;
	d->a.device_snapshot.entry_size = stride;
	return dbg_op(d, KFDABI_DBG_GET_DEVICE_SNAPSHOT);
}

void dbg_forget_new(struct dbg *d)
{
	struct kfdabi_queue_entry e[64];

	TEST_EQ(dbg_queues(d, NEW_MASK, e, 64, sizeof(e[0])), 0);
}

bool dbg_attach(struct dbg *d, pid_t pid, uint64_t mask)
{
	int r;

	dbg_init(d, pid);
	TEST_EQ(seize(pid), 0);
	r = dbg_enable(d, mask);
	TEST_EQ(r, 0);
	return !r;
}
