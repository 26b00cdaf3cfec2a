/* SPDX-License-Identifier: MIT */
/* Answers of debug sessions: who may, with which arguments, and what the commands give back. */
#include "answers.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

/* ---- who may do what, in which state ---- */

enum state {
	BARE,
	BARE_TRACED,
	OPENED,
	TRACED,
	SESSION,
	SESSION_RUNTIME,
	SESSION_LEFT, /* The debugger has left ptrace, and not the session. */
	ENDED,
	STATES
};

static const char *const states[STATES] = {
	"bare", "bare_traced", "opened", "traced", "session", "session_runtime", "session_left", "ended",
};

enum caller { TRACER, THREAD, STRANGER, ITSELF, ITS_CHILD, CALLERS };

static const char *const callers[CALLERS] = { "tracer", "thread", "stranger", "itself", "its_child" };

static bool bring_into(struct actor *a, enum state state)
{
	struct dbg d;

	if (!actor_start(a))
		return false;
	if (state > BARE_TRACED)
		TEST_EQ(PLAY(a, play_open, 0), 0);
	if (state == SESSION_RUNTIME)
		TEST_EQ(PLAY(a, play_runtime, 1, 0x1000), 0);
	if (state == BARE_TRACED || state >= TRACED)
		TEST_EQ(seize(a->pid), 0);
	if (state >= SESSION) {
		dbg_init(&d, a->pid);
		TEST_EQ(dbg_enable(&d, RUNTIME_MASK), 0);
		close(d.rd);
		close(d.wr);
	}
	if (state == SESSION_LEFT)
		TEST_EQ(actor_stop(a->pid) && !ptrace(PTRACE_DETACH, a->pid, NULL, NULL), true);
	if (state == ENDED)
		TEST_EQ(harmless_op(env_kfd(), a->pid, KFDABI_DBG_DISABLE), 0);
	return true;
}

struct op_call {
	pid_t pid;
	uint32_t op;
};

static int op_here(void *data)
{
	const struct op_call *c = data;

	return harmless_op(env_kfd(), c->pid, c->op);
}

/* As somebody who has opened the device for himself. */
static int op_alone(void *data)
{
	const struct op_call *c = data;
	int fd = open(env_kfd_path(), O_RDWR | O_CLOEXEC), r;

	r = fd < 0 ? -errno : harmless_op(fd, c->pid, c->op);
	close(fd);
	return r;
}

static int play_op(const uint64_t *with)
{
	return harmless_op(actor_kfd, (pid_t)with[0], (uint32_t)with[1]);
}

static int play_childs_op(const uint64_t *with)
{
	struct op_call c = { (pid_t)with[0], (uint32_t)with[1] };
	int status = 0;
	pid_t pid = fork();

	if (!pid)
		_exit(-op_alone(&c));
	return waitpid(pid, &status, 0) == pid ? -(status >> 8) : -ECHILD;
}

static int op_by(enum caller caller, const struct actor *a, uint32_t op)
{
	struct op_call c = { a->pid, op };

	switch (caller) {
	case THREAD:
		return env_in_thread(op_here, &c);
	case STRANGER:
		return env_in_child(op_alone, &c);
	case ITSELF:
		return PLAY(a, play_op, (uint64_t)a->pid, op);
	case ITS_CHILD:
		return PLAY(a, play_childs_op, (uint64_t)a->pid, op);
	default:
		return op_here(&c);
	}
}

/* Whatever ends or begins a session comes last. */
static void ask_all(enum state state, enum caller caller, const struct actor *a)
{
	static const uint32_t last[] = { KFDABI_DBG_ENABLE, KFDABI_DBG_DISABLE, KFDABI_DBG_DISABLE };

	for (uint32_t op = KFDABI_DBG_SEND_RUNTIME_EVENT; op <= KFDABI_DBG_OP_COUNT; op++)
		answer(op_by(caller, a, op), "%s.%s.%s", states[state], callers[caller], op_name(op));
	answer(op_by(caller, a, UINT32_MAX), "%s.%s.op_max", states[state], callers[caller]);
	for (size_t i = 0; i < TEST_COUNT(last); i++)
		answer(op_by(caller, a, last[i]), "%s.%s.last_%zu_%s", states[state], callers[caller], i,
		       op_name(last[i]));
}

ANSWERS(rights)
{
	struct actor a;

	for (enum state state = 0; state < STATES; state++)
		for (enum caller caller = 0; caller < CALLERS; caller++) {
			/* A process without the device has nothing to ask with. */
			if (caller == ITSELF && state <= BARE_TRACED)
				continue;
			if (!bring_into(&a, state))
				return;
			ask_all(state, caller, &a);
			close(a.fd);
			kill(a.pid, SIGKILL);
			while (waitpid(a.pid, NULL, __WALL) == a.pid)
				;
			env_reaped(a.pid);
		}
}

/* ---- a session of its own for each group ---- */

/* An actor with the device open, the runtime on if wanted, and a session. */
static bool session_start(struct actor *a, struct dbg *d, bool runtime, uint64_t mask)
{
	if (!actor_start(a))
		return false;
	TEST_EQ(PLAY(a, play_open, 0), 0);
	if (runtime)
		TEST_EQ(PLAY(a, play_runtime, 1, 0x1000), 0);
	return dbg_attach(d, a->pid, mask);
}

static int enable_with(struct dbg *d, uint64_t pointer, uint32_t size, uint32_t fd, uint64_t mask)
{
	memset(&d->a, 0, sizeof(d->a));
	d->a.enable.exception_mask = mask;
	d->a.enable.rinfo_ptr = pointer;
	d->a.enable.rinfo_size = size;
	d->a.enable.dbg_fd = fd;
	return dbg_op(d, KFDABI_DBG_ENABLE);
}

ANSWERS(enable)
{
	static const uint32_t sizes[] = { 0, 1, 4, 8, 15, 16, 17, 32, 4096, UINT32_MAX };
	static const uint64_t masks[] = { 0, 1, RUNTIME_MASK, INT64_MAX, UINT64_MAX };
	static const uint32_t nobody[] = { 0, 2, INT32_MAX, UINT32_C(1) << 31, UINT32_MAX };
	uint8_t buf[4096 + 16];
	struct actor a, bare;
	struct dbg d;

	dbg_init(&d, 0);
	for (size_t i = 0; i < TEST_COUNT(nobody); i++)
		if (nobody[i] != 2) {
			d.pid = (pid_t)nobody[i];
			answer(dbg_enable(&d, 0), "pid_%x", nobody[i]);
		}
	if (!actor_start(&a) || !actor_start(&bare))
		return;
	PLAY(&a, play_open, 0);
	PLAY(&a, play_runtime, 1, 0x123456789000);
	d.pid = a.pid;
	seize(a.pid);
	for (size_t i = 0; i < TEST_COUNT(sizes); i++) {
		memset(buf, 0x5a, sizeof(buf));
		answer(enable_with(&d, (uint64_t)(uintptr_t)buf, sizes[i], (uint32_t)d.wr, 0),
		       "size_%u", sizes[i]);
		answer_with("%02x %02x %02x %02x", buf[1], buf[8], buf[12], buf[16]);
		answer((int)d.a.enable.rinfo_size, "size_%u.bytes", sizes[i]);
		answer(dbg_disable(&d), "size_%u.disable", sizes[i]);
		memset(buf, 0x5a, sizeof(buf));
		answer(enable_with(&d, 8, sizes[i], (uint32_t)d.wr, 0), "wild_%u", sizes[i]);
		answer((int)d.a.enable.rinfo_size, "wild_%u.size", sizes[i]);
		answer(dbg_query(&d, 0), "wild_%u.query", sizes[i]);
		answer(dbg_disable(&d), "wild_%u.disable", sizes[i]);
	}
	for (size_t i = 0; i < TEST_COUNT(masks); i++) {
		answer(dbg_enable(&d, masks[i]), "mask_%llx", (unsigned long long)masks[i]);
		answer(dbg_query(&d, 0), "mask_%llx.query", (unsigned long long)masks[i]);
		answer((int)(d.a.query_event.exception_mask != 0), "mask_%llx.any",
		       (unsigned long long)masks[i]);
		answer(dbg_disable(&d), "mask_%llx.disable", (unsigned long long)masks[i]);
	}
	/* The context of a process that never opened the device is made for its tracer. */
	d.pid = bare.pid;
	answer(dbg_enable(&d, 0), "bare");
	seize(bare.pid);
	answer(dbg_query(&d, 0), "bare.traced.query");
	answer(dbg_enable(&d, 0), "bare.traced");
	answer((int)d.info.runtime_state, "bare.traced.state");
	answer(PLAY(&bare, play_open, 0), "bare.traced.open");
	answer(dbg_query(&d, 0), "bare.traced.opened.query");
	answer(PLAY(&bare, play_close, 0), "bare.traced.close");
	answer(dbg_query(&d, 0), "bare.traced.closed.query");
	answer(dbg_disable(&d), "bare.traced.disable");
	answer(dbg_disable(&d), "bare.traced.disable_again");
	answer(dbg_enable(&d, 0), "bare.traced.again");
	answer(dbg_enable(&d, 0), "bare.traced.twice");
	kill(bare.pid, SIGKILL);
	answer(EVENTUALLY(dbg_query(&d, 0) == -ESRCH), "bare.killed.gone");
	answer(dbg_enable(&d, 0), "bare.killed.enable");
	answer(dbg_disable(&d), "bare.killed.disable");
	waitpid(bare.pid, NULL, __WALL);
	env_reaped(bare.pid);
	answer(dbg_enable(&d, 0), "bare.reaped.enable");
	answer(dbg_disable(&d), "bare.reaped.disable");
}

/* ---- descriptors for events ---- */

static int fd_of_kind(const char *kind, int *ret_reader)
{
	int fds[2] = { -1, -1 };

	*ret_reader = -1;
	if (!strcmp(kind, "seqpacket") || !strcmp(kind, "dgram") || !strcmp(kind, "stream")) {
		TEST_EQ(socketpair(AF_UNIX,
				   (*kind == 'd' ? SOCK_DGRAM : kind[1] == 'e' ? SOCK_SEQPACKET : SOCK_STREAM) |
					   SOCK_NONBLOCK | SOCK_CLOEXEC,
				   0, fds),
			0);
	} else if (!strcmp(kind, "pipe") || !strcmp(kind, "full_pipe")) {
		TEST_EQ(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
		while (*kind == 'f' && write(fds[1], "x", 1) == 1)
			;
	} else if (!strcmp(kind, "eventfd")) {
		return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	} else if (!strcmp(kind, "device")) {
		return open(env_kfd_path(), O_RDWR | O_CLOEXEC);
	} else if (!strcmp(kind, "memfd")) {
		return memfd_create("events", MFD_CLOEXEC);
	} else if (!strcmp(kind, "null")) {
		return open("/dev/null", O_WRONLY | O_CLOEXEC);
	} else if (!strcmp(kind, "full")) {
		return open("/dev/full", O_WRONLY | O_CLOEXEC);
	} else if (!strcmp(kind, "o_path")) {
		return open("/dev/null", O_PATH | O_CLOEXEC);
	} else if (!strcmp(kind, "closed")) {
		/* High, or the next descriptor, which is the actor's socket, takes its number. */
		int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 900);

		close(fd);
		return fd;
	} else {
		return (int)strtol(kind, NULL, 10);
	}
	*ret_reader = fds[0];
	return fds[1];
}

/* The runtime event fires into each kind; what comes of it, and whether the target can go on. */
static void fire_into(const char *kind)
{
	struct actor a;
	struct dbg d;
	int reader, fd = fd_of_kind(kind, &reader), r;
	uint8_t bytes[8];

	if (!actor_start(&a))
		return;
	PLAY(&a, play_open, 0);
	dbg_init(&d, a.pid);
	close(d.wr);
	d.wr = fd;
	seize(a.pid);
	r = dbg_enable(&d, RUNTIME_MASK);
	answer(r, "%s", kind);
	answer(dbg_query(&d, 0), "%s.query", kind);
	if (!r) {
		actor_send(&a, &(struct part){ play_runtime, { 1, 0x1000 } });
		answer(EVENTUALLY(dbg_query(&d, 0) == 0), "%s.event", kind);
		if (reader >= 0 && *kind != 'f') {
			answer((int)EVENTUALLY(read(reader, bytes, sizeof(bytes)) == 1), "%s.byte", kind);
			answer(bytes[0], "%s.byte.value", kind);
		}
		answer(actor_waits(&a), "%s.waits", kind);
		answer(dbg_send(&d, RUNTIME_MASK, 0, 0), "%s.send", kind);
		answer(actor_reply(&a, PATIENCE_MS), "%s.released", kind);
	}
	answer(dbg_disable(&d), "%s.disable", kind);
	target_kill(&(struct target){ .pid = a.pid });
	close(a.fd);
	close(reader);
	if (fd > 2)
		close(fd);
}

ANSWERS(event_fds)
{
	static const char *const kinds[] = {
		"seqpacket", "dgram", "stream", "pipe", "full_pipe", "eventfd", "device", "memfd", "null",
		"full", "o_path", "closed", "-1", "9999", "2147483647",
	};

	for (size_t i = 0; i < TEST_COUNT(kinds); i++)
		fire_into(kinds[i]);
}

/* ---- snapshots ---- */

ANSWERS(snapshots)
{
	static const uint32_t counts[] = { 0, 1, 4, UINT32_MAX };
	static const uint32_t strides[] = { 0, 1, 8, 63, 64, 65, 120, 128, 4096 };
	struct actor a;
	struct dbg d;
	/* As long as the largest that is asked for; nothing is ever written. */
	static uint8_t buf[4 * 4096];

	for (int runtime = 0; runtime < 2; runtime++) {
		if (!session_start(&a, &d, runtime, RUNTIME_MASK))
			return;
		for (size_t i = 0; i < TEST_COUNT(counts) * TEST_COUNT(strides); i++) {
			uint32_t n = counts[i / TEST_COUNT(strides)], stride = strides[i % TEST_COUNT(strides)];
			int r = dbg_queues(&d, 0, n ? buf : NULL, n, stride);

			answer_with("%u %u", d.a.queue_snapshot.num_queues, d.a.queue_snapshot.entry_size);
			answer(r, "runtime_%d.queues.%u.%u", runtime, n, stride);
			/* Of devices, that many would be asked of the allocator before anything is looked at. */
			if (n > 4)
				continue;
			r = dbg_devices(&d, 0, buf, n, stride);
			answer_with("%u %u", d.a.device_snapshot.num_devices,
				    d.a.device_snapshot.entry_size);
			answer(r, "runtime_%d.devices.%u.%u", runtime, n, stride);
		}
		answer(dbg_devices(&d, 0, NULL, 0, 120), "runtime_%d.devices.nowhere", runtime);
		answer(dbg_devices(&d, 0, NULL, 4, 120), "runtime_%d.devices.nowhere.4", runtime);
		answer(dbg_queues(&d, 0, NULL, 4, 64), "runtime_%d.queues.nowhere.4", runtime);
		answer(dbg_queues(&d, UINT64_MAX, (void *)8, 4, 64), "runtime_%d.queues.wild.4", runtime);
		answer(dbg_disable(&d), "runtime_%d.disable", runtime);
	}
}

/* ---- exceptions ---- */

ANSWERS(exceptions)
{
	struct kfdabi_runtime_info info;
	struct actor a;
	struct dbg d;

	if (!session_start(&a, &d, true, 0))
		return;
	for (uint32_t code = 0; code <= 65; code++)
		answer(dbg_info(&d, code, 0, &info, sizeof(info), false), "info.%02u", code);
	for (uint32_t bit = 0; bit < 64; bit++)
		if (UINT64_C(1) << bit != RUNTIME_MASK)
			answer(dbg_send(&d, UINT64_C(1) << bit, 0, 0), "send.%02u", bit);
	answer(dbg_send(&d, FAULT_MASK | TRAP_MASK, 4711, 77), "send.two");
	answer(dbg_send(&d, 0, UINT32_MAX, UINT32_MAX), "send.nobody");
	for (uint32_t bit = 0; bit < 64; bit += 7)
		answer(dbg_exceptions(&d, UINT64_C(1) << bit), "enabled.%02u", bit);
	answer(dbg_exceptions(&d, UINT64_MAX), "enabled.all");
	for (uint32_t bit = 0; bit < 64; bit += 9)
		answer(dbg_query(&d, UINT64_C(1) << bit), "query.%02u", bit);
	answer(dbg_query(&d, UINT64_MAX), "query.all");
	answer_with("%x %x", d.a.query_event.gpu_id, d.a.query_event.queue_id);
	answer(d.a.query_event.exception_mask != 0, "query.all.given");
	answer(dbg_info(&d, KFDABI_EC_PROCESS_RUNTIME, 9, &info, sizeof(info), true), "info.other_source");
	answer(dbg_info(&d, KFDABI_EC_PROCESS_RUNTIME, 0, NULL, sizeof(info), false), "info.nowhere");
	answer(dbg_info(&d, KFDABI_EC_PROCESS_RUNTIME, 0, NULL, 0, false), "info.nowhere.0");
	answer(dbg_info(&d, KFDABI_EC_DEVICE_MEMORY_VIOLATION, 4711, &info, sizeof(info), false),
	       "info.unknown_device");
}

/* ---- hardware settings ---- */

static void ask_settings(struct dbg *d, const char *when)
{
	static const uint32_t modes[] = { 0, 1, 2, 3, 4, 5, 77, 255, 256, 260, UINT32_MAX };
	uint32_t ids[4];

	for (size_t i = 0; i < TEST_COUNT(modes); i++) {
		answer(dbg_mode(d, modes[i]), "%s.launch_mode.%x", when, modes[i]);
		answer(dbg_override(d, modes[i], 0, 0), "%s.override.%x", when, modes[i]);
		answer_with("%x", d->a.launch_override.support_request_mask);
		answer((int)d->a.launch_override.enable_mask, "%s.override.%x.given", when, modes[i]);
	}
	answer(dbg_override(d, 0, UINT32_MAX, UINT32_MAX), "%s.override.all", when);
	for (uint32_t bit = 0; bit < 32; bit += 3) {
		answer(dbg_flags(d, UINT32_C(1) << bit), "%s.flags.%u", when, bit);
		answer((int)(d->a.set_flags.flags & INT32_MAX), "%s.flags.%u.given", when, bit);
	}
	answer(dbg_flags(d, 0), "%s.flags.none", when);
	for (uint32_t n = 0; n <= 4; n++) {
		for (size_t i = 0; i < 4; i++)
			ids[i] = (uint32_t)i + 5;
		answer(dbg_suspend(d, 0, ids, n), "%s.suspend.%u", when, n);
		answer((int)(ids[0] >> 31) + (int)(ids[3] >> 31), "%s.suspend.%u.marked", when, n);
		answer(dbg_resume(d, ids, n), "%s.resume.%u", when, n);
		answer((int)(ids[0] >> 31) + (int)(ids[3] >> 31), "%s.resume.%u.marked", when, n);
	}
	answer(dbg_suspend(d, 0, NULL, 2), "%s.suspend.nowhere", when);
	answer(dbg_suspend(d, 0, (uint32_t *)8, 2), "%s.suspend.wild", when);
	answer(dbg_suspend(d, 0, ids, UINT32_MAX), "%s.suspend.too_many", when);
	answer(dbg_suspend(d, UINT64_MAX, NULL, 0), "%s.suspend.clear_all", when);
	answer(dbg_resume(d, NULL, 2), "%s.resume.nowhere", when);
	answer(dbg_resume(d, (uint32_t *)8, 2), "%s.resume.wild", when);
	answer(dbg_watch(d, 0, 0), "%s.watch.gpu_0", when);
	answer(dbg_watch(d, 4711, 0), "%s.watch.unknown", when);
	answer((int)d->a.set_watch.id, "%s.watch.unknown.id", when);
	answer(dbg_unwatch(d, 0, 0), "%s.unwatch.gpu_0", when);
	answer(dbg_unwatch(d, 4711, 99), "%s.unwatch.unknown", when);
}

ANSWERS(settings)
{
	struct actor a;
	struct dbg d;

	if (!session_start(&a, &d, false, RUNTIME_MASK))
		return;
	ask_settings(&d, "off");
	dbg_disable(&d);
	if (!session_start(&a, &d, true, RUNTIME_MASK))
		return;
	ask_settings(&d, "on");
}
