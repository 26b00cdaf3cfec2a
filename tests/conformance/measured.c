/* SPDX-License-Identifier: MIT */
/* Measured answers of a kernel without GPUs: device basics, who may debug whom, live sessions. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "env.h"

static int raw(uint32_t word, void *arg)
{
	int r = ioctl(env_kfd(), (unsigned long)word, arg);

	return r < 0 ? -errno : r;
}

CONFORMANCE(basics_of_the_device)
{
	struct kfdabi_get_process_apertures_new_args ap = { 0 };
	struct kfdabi_get_clock_counters_args clock = { 0 };
	struct kfdabi_create_event_args event = { 0 };
	struct kfdabi_create_queue_args queue = { .gpu_id = 4711 };
	struct kfdabi_get_version_args v = { 0 };
	struct kfdabi_set_xnack_mode_args xnack = { -1 };
	struct kfdabi_criu_args criu = { .op = 0 };
	uint8_t buf[64] = { 0 };
	struct pollfd p;
	int fd;

	if (!env_plain(NULL))
		return;
	TEST_EQ(raw(KFDABI_IOC_GET_VERSION, &v), 0);
	TEST_EQ(v.major_version, 1);
	/* Only the number selects; the size says how much is copied. */
	v.minor_version = 0;
	TEST_EQ(raw(UINT32_C(0x80085a01), &v), 0);
	CU_ASSERT(v.minor_version >= KFDABI_VERSION_MINOR_DEBUG);
	memset(buf, 0x5a, sizeof(buf));
	TEST_EQ(raw(UINT32_C(0x80044b01), buf), 0);
	TEST_EQ(buf[0], 1);
	TEST_EQ(buf[4], 0x5a);
	TEST_EQ(raw(UINT32_C(0x80084b7f), buf), -ENOTTY);
	TEST_EQ(raw(KFDABI_IOC_DBG_REGISTER, buf), -EPERM);
	TEST_EQ(raw(KFDABI_IOC_DBG_TRAP, NULL), -EFAULT);
	TEST_EQ(raw(KFDABI_IOC_GET_PROCESS_APERTURES_NEW, &ap), 0);
	TEST_EQ(ap.num_of_nodes, 0);
	TEST_EQ(raw(KFDABI_IOC_GET_CLOCK_COUNTERS, &clock), 0);
	TEST_EQ(clock.system_clock_freq, 1000000000);
	TEST_EQ(raw(KFDABI_IOC_CREATE_EVENT, &event), 0);
	TEST_EQ(raw(KFDABI_IOC_CREATE_QUEUE, &queue), -EINVAL);
	TEST_EQ(raw(KFDABI_IOC_SMI_EVENTS, buf), -EINVAL);
	TEST_EQ(raw(KFDABI_IOC_ACQUIRE_VM, buf), -EINVAL);
	TEST_EQ(raw(KFDABI_IOC_ALLOC_MEMORY_OF_GPU, buf), -EINVAL);
	TEST_EQ(raw(KFDABI_IOC_SET_TRAP_HANDLER, buf), -EINVAL);
	TEST_EQ(raw(KFDABI_IOC_SET_XNACK_MODE, &xnack), -EPERM);
	TEST_EQ(raw(KFDABI_IOC_CRIU_OP, &criu), -ENODEV);
	TEST_EQ(read(env_kfd(), buf, 1), -1);
	TEST_EQ(errno, EINVAL);
	p = (struct pollfd){ .fd = env_kfd(), .events = POLLIN };
	TEST_EQ(poll(&p, 1, 0), 1);
	/* Read-only opens can do everything, too. */
	fd = open(env_kfd_path(), O_RDONLY | O_CLOEXEC);
	TEST_EQ(ioctl(fd, (unsigned long)KFDABI_IOC_GET_VERSION, &v), 0);
	close(fd);
}

/* ---- who may, on whom ---- */

static int open_and_enable(void *data)
{
	struct dbg d = *(struct dbg *)data;

	d.fd = open(env_kfd_path(), O_RDWR | O_CLOEXEC);
	return dbg_enable(&d, 0);
}

static int enable_here(void *data)
{
	return dbg_enable(data, 0);
}

static int enable_myself(void *data)
{
	struct dbg d;
	int r;

	dbg_init(&d, getpid());
	d.fd = open(env_kfd_path(), O_RDWR | O_CLOEXEC);
	r = dbg_enable(&d, 0);
	return r ? r : dbg_disable(&d);
}

CONFORMANCE(enable_needs_a_live_opened_traced_target)
{
	static const uint32_t nobody[] = { 0, UINT32_MAX, INT32_MAX };
	struct target bare, app;
	siginfo_t info;
	pid_t zombie;
	struct dbg d;

	if (!env_plain(NULL) || !target_start_bare(&bare) ||
	    !target_start(&app, "runtime skip"))
		return;
	dbg_init(&d, 0);
	for (size_t i = 0; i < TEST_COUNT(nobody); i++) {
		d.pid = (pid_t)nobody[i];
		TEST_ROW_EQ(i, dbg_enable(&d, 0), -ESRCH);
	}
	d.pid = 2; /* a kernel thread, or nobody in a container */
	CU_ASSERT(dbg_enable(&d, 0) == -ESRCH || dbg_enable(&d, 0) == -EPERM);
	zombie = fork();
	if (!zombie)
		_exit(0);
	TEST_EQ(waitid(P_PID, (id_t)zombie, &info, WEXITED | WNOWAIT), 0);
	d.pid = zombie;
	TEST_EQ(dbg_enable(&d, 0), -ESRCH);
	waitpid(zombie, NULL, 0);
	TEST_EQ(dbg_enable(&d, 0), -ESRCH);
	d.pid = bare.pid;
	TEST_EQ(dbg_enable(&d, 0), -ESRCH);
	d.pid = app.pid;
	TEST_EQ(dbg_enable(&d, 0), -EPERM);
	/* Traced: both work, the context of the bare one is made for it. */
	TEST_EQ(seize(app.pid), 0);
	TEST_EQ(seize(bare.pid), 0);
	TEST_EQ(env_in_thread(enable_here, &d), -EPERM);
	TEST_EQ(env_in_child(open_and_enable, &d), -EPERM);
	TEST_EQ(dbg_enable(&d, UINT64_MAX), 0);
	TEST_EQ(dbg_enable(&d, 0), -EALREADY);
	d.pid = bare.pid;
	TEST_EQ(dbg_enable(&d, 0), 0);
	TEST_EQ(d.info.runtime_state, 0);
	TEST_EQ(env_in_child(enable_myself, NULL), 0);
}

static volatile pid_t worker_tid;

static void *worker_run(void *data)
{
	worker_tid = (pid_t)syscall(SYS_gettid);
	for (;;)
		pause();
	return NULL;
}

/* A child with a second thread, which tells its number through the pipe. */
static void threaded_run(void *data)
{
	pthread_t t;
	pid_t tid;
	int fd = open(env_kfd_path(), O_RDWR | O_CLOEXEC);

	worker_tid = 0;
	pthread_create(&t, NULL, worker_run, NULL);
	while (!worker_tid)
		usleep(1000);
	tid = worker_tid;
	if (fd < 0 || write(*(int *)data, &tid, sizeof(tid)) != sizeof(tid))
		_exit(1);
	for (;;)
		pause();
}

CONFORMANCE(thread_ids_name_the_process)
{
	pid_t pid, tid = 0;
	struct dbg d;
	int p[2];

	if (!env_plain(NULL))
		return;
	TEST_EQ_FATAL(pipe(p), 0);
	pid = env_monitor(threaded_run, &p[1]);
	TEST_EQ(read(p[0], &tid, sizeof(tid)), sizeof(tid));
	/* Only the worker traced: not enough, under either number. */
	TEST_EQ(seize(tid), 0);
	dbg_init(&d, tid);
	TEST_EQ(dbg_enable(&d, 0), -EPERM);
	d.pid = pid;
	TEST_EQ(dbg_enable(&d, 0), -EPERM);
	TEST_EQ(seize(pid), 0);
	d.pid = tid;
	TEST_EQ(dbg_enable(&d, 0), 0);
	TEST_EQ(dbg_query(&d, 0), -EAGAIN);
	d.pid = pid;
	TEST_EQ(dbg_query(&d, 0), -EAGAIN);
	TEST_EQ(dbg_disable(&d), 0);
	/* A traced thread must be reaped before its leader's end is reported. */
	kill(pid, SIGKILL);
	TEST_EQ(waitpid(tid, NULL, __WALL), tid);
	close(p[0]);
	close(p[1]);
}

CONFORMANCE(enable_arguments)
{
	struct { struct kfdabi_runtime_info info; uint8_t after[8]; } buf;
	struct target t;
	struct dbg d;

	if (!env_plain(NULL) || !target_start(&t, "runtime on") || seize(t.pid))
		return;
	dbg_init(&d, t.pid);
	memset(&d.a, 0, sizeof(d.a));
	d.a.enable.dbg_fd = UINT32_MAX;
	TEST_EQ(dbg_op(&d, KFDABI_DBG_ENABLE), -EBADF);
	TEST_EQ(dbg_disable(&d), -EINVAL);
	/* Null pointer with a size: failed, and on all but the newest kernels also enabled. */
	memset(&d.a, 0, sizeof(d.a));
	d.a.enable.dbg_fd = (uint32_t)d.wr;
	d.a.enable.rinfo_size = 16;
	TEST_EQ(dbg_op(&d, KFDABI_DBG_ENABLE), -EFAULT);
	TEST_EQ(d.a.enable.rinfo_size, 16);
	TEST_EQ(dbg_disable(&d), env_efault_leaves_session() ? 0 : -EINVAL);
	memset(&d.a, 0, sizeof(d.a));
	d.a.enable.dbg_fd = (uint32_t)d.wr;
	TEST_EQ(dbg_op(&d, KFDABI_DBG_ENABLE), 0);
	TEST_EQ(d.a.enable.rinfo_size, 16);
	TEST_EQ(dbg_disable(&d), 0);
	for (uint32_t size = 4; size <= 4096; size *= 1024) {
		memset(&buf, 0x5a, sizeof(buf));
		memset(&d.a, 0, sizeof(d.a));
		d.a.enable.dbg_fd = (uint32_t)d.wr;
		d.a.enable.rinfo_ptr = (uint64_t)(uintptr_t)&buf;
		d.a.enable.rinfo_size = size;
		TEST_ROW_EQ(size, dbg_op(&d, KFDABI_DBG_ENABLE), 0);
		TEST_ROW_EQ(size, d.a.enable.rinfo_size, 16);
		TEST_ROW_EQ(size, (uint32_t)buf.info.r_debug, (uint32_t)t.status->r_debug);
		TEST_ROW_EQ(size, buf.info.runtime_state, size == 4 ? 0x5a5a5a5a : 1);
		TEST_ROW_EQ(size, buf.after[0], 0x5a);
		TEST_ROW_EQ(size, dbg_disable(&d), 0);
	}
}

CONFORMANCE(efault_on_new_kernels_leaves_nothing)
{
	struct target t;
	struct dbg d;

	if (!env_sim("1.23", "gfx942", NULL) || !target_start(&t, "runtime on") || seize(t.pid))
		return;
	dbg_init(&d, t.pid);
	memset(&d.a, 0, sizeof(d.a));
	d.a.enable.dbg_fd = (uint32_t)d.wr;
	d.a.enable.rinfo_size = 16;
	TEST_EQ(dbg_op(&d, KFDABI_DBG_ENABLE), -EFAULT);
	TEST_EQ(dbg_disable(&d), -EINVAL);
	TEST_EQ(dbg_closed(&d), true);
	dbg_init(&d, t.pid);
	TEST_EQ(dbg_enable(&d, 0), 0);
}

static int take_over(void *data)
{
	struct dbg d = *(struct dbg *)data;

	d.fd = open(env_kfd_path(), O_RDWR | O_CLOEXEC);
	if (seize(d.pid))
		return -ECHILD;
	return dbg_enable(&d, 0);
}

/*
 * An ENABLE that is refused since there is a session takes that session from who has it.  Taken back
 * the same way in the end: nobody may be recorded who is gone, the driver would write through that.
 */
CONFORMANCE(refused_enable_takes_the_record)
{
	struct target t;
	struct dbg d;

	if (!env_plain(NULL) || !target_start(&t, "runtime skip") || !dbg_attach(&d, t.pid, 0))
		return;
	TEST_EQ(ptrace(PTRACE_INTERRUPT, t.pid, NULL, NULL), 0);
	TEST_EQ(waitpid(t.pid, NULL, __WALL), t.pid);
	TEST_EQ(ptrace(PTRACE_DETACH, t.pid, NULL, NULL), 0);
	TEST_EQ(env_in_child(take_over, &d), -EALREADY);
	TEST_EQ(dbg_query(&d, 0), -EPERM);
	TEST_EQ(seize(t.pid), 0);
	TEST_EQ(dbg_query(&d, 0), -EAGAIN);
	TEST_EQ(dbg_enable(&d, 0), -EALREADY);
	TEST_EQ(dbg_disable(&d), 0);
}

/* ---- permission of later operations ---- */

static int query_here(void *data)
{
	return dbg_query(data, 0);
}

static int disable_here(void *data)
{
	return dbg_disable(data);
}

static int disable_as_stranger(void *data)
{
	struct dbg d = *(struct dbg *)data;

	d.fd = open(env_kfd_path(), O_RDWR | O_CLOEXEC);
	return dbg_disable(&d);
}

static void later_operations(const char *rule)
{
	bool process = !strcmp(rule, "process");
	struct target t, plain;
	struct dbg d, p;

	env_begin();
	if (!env_plain(rule) || !target_start(&t, "runtime skip") ||
	    !target_start(&plain, "runtime skip"))
		return;
	dbg_init(&p, plain.pid);
	TEST_EQ(dbg_disable(&p), process ? -EPERM : -EINVAL);
	TEST_EQ(dbg_query(&p, 0), -EPERM);
	TEST_EQ(seize(plain.pid), 0);
	TEST_EQ(dbg_disable(&p), -EINVAL);
	TEST_EQ(dbg_query(&p, 0), -EINVAL);
	if (!dbg_attach(&d, t.pid, 0))
		return;
	TEST_EQ(env_in_thread(query_here, &d), process ? -EAGAIN : -EPERM);
	TEST_EQ(env_in_thread(enable_here, &d), process ? -EALREADY : -EPERM);
	TEST_EQ(env_in_thread(disable_here, &d), 0);
	TEST_EQ(dbg_enable(&d, 0), 0);
	TEST_EQ(env_in_child(disable_as_stranger, &d), process ? -EPERM : 0);
	if (!process)
		TEST_EQ(dbg_enable(&d, 0), 0);
	TEST_EQ(ptrace(PTRACE_INTERRUPT, t.pid, NULL, NULL), 0);
	TEST_EQ(waitpid(t.pid, NULL, __WALL), t.pid);
	TEST_EQ(ptrace(PTRACE_DETACH, t.pid, NULL, NULL), 0);
	TEST_EQ(dbg_query(&d, 0), process ? -EAGAIN : -EPERM);
	TEST_EQ(dbg_disable(&d), 0);
	TEST_EQ(dbg_disable(&d), process ? -EPERM : -EINVAL);
}

CONFORMANCE(later_operations_thread_rule)
{
	later_operations("thread");
}

CONFORMANCE(later_operations_process_rule)
{
	later_operations("process");
}

/* ---- a live session without GPUs ---- */

static void common_answers(struct dbg *d)
{
	uint8_t buf[16];

	TEST_EQ(dbg_exceptions(d, RUNTIME_MASK), 0);
	TEST_EQ(dbg_query(d, 0), -EAGAIN);
	TEST_EQ(d->a.query_event.gpu_id, 0);
	TEST_EQ(d->a.query_event.queue_id, 0);
	TEST_EQ(dbg_queues(d, 0, NULL, 0, 0), -EINVAL);
	for (uint32_t size = 8; size <= 512; size *= 8) {
		TEST_ROW_EQ(size, dbg_queues(d, 0, NULL, 0, size), 0);
		TEST_ROW_EQ(size, d->a.queue_snapshot.entry_size, size < 64 ? size : 64);
		TEST_ROW_EQ(size, dbg_queues(d, 0, NULL, 4, size), 0);
		TEST_ROW_EQ(size, d->a.queue_snapshot.num_queues, 0);
		TEST_ROW_EQ(size, d->a.queue_snapshot.entry_size, size < 64 ? size : 64);
	}
	TEST_EQ(dbg_devices(d, 0, NULL, 0, 120), -EINVAL);
	TEST_EQ(dbg_devices(d, 0, buf, 0, 120), 0);
	TEST_EQ(d->a.device_snapshot.num_devices, 0);
	TEST_EQ(dbg_devices(d, 0, buf, 4, 8), 0);
	TEST_EQ(d->a.device_snapshot.entry_size, 8);
	TEST_EQ(dbg_devices(d, 0, buf, 4, 512), 0);
	TEST_EQ(d->a.device_snapshot.num_devices, 0);
	CU_ASSERT(d->a.device_snapshot.entry_size == 120 || d->a.device_snapshot.entry_size == 128);
	TEST_EQ(dbg_info(d, KFDABI_EC_PROCESS_RUNTIME, 0, buf, 16, false), -ENODATA);
	TEST_EQ(dbg_info(d, KFDABI_EC_PROCESS_RUNTIME, 0, NULL, 16, false), -EINVAL);
	TEST_EQ(dbg_info(d, KFDABI_EC_QUEUE_NEW, 0, buf, 16, false), -EINVAL);
	TEST_EQ(dbg_info(d, KFDABI_EC_DEVICE_MEMORY_VIOLATION, 9, buf, 16, false), -EINVAL);
	TEST_EQ(dbg_info(d, 0, 0, buf, 16, false), -EINVAL);
	TEST_EQ(dbg_info(d, 10, 0, buf, 16, false), -EINVAL);
	TEST_EQ(dbg_info(d, 99, 0, buf, 16, false), -EINVAL);
	TEST_EQ(dbg_send(d, 0, 0, 0), 0);
	TEST_EQ(dbg_send(d, TRAP_MASK, 0, 0), 0);
	TEST_EQ(dbg_send(d, FAULT_MASK, 4711, 0), -ENODEV);
	TEST_EQ(dbg_op(d, 15), -EINVAL);
	TEST_EQ(dbg_op(d, UINT32_MAX), -EINVAL);
}

CONFORMANCE(session_before_the_runtime)
{
	uint32_t ids[] = { 5, 6 };
	struct target t;
	struct dbg d;

	if (!env_plain(NULL) || !target_start(&t, "runtime skip") ||
	    !dbg_attach(&d, t.pid, RUNTIME_MASK))
		return;
	common_answers(&d);
	TEST_EQ(dbg_suspend(&d, 0, NULL, 0), -EPERM);
	TEST_EQ(dbg_suspend(&d, 0, ids, 2), -EPERM);
	TEST_EQ(ids[0], 5);
	TEST_EQ(dbg_resume(&d, ids, 2), -EPERM);
	TEST_EQ(dbg_override(&d, 0, 0, 0), -EPERM);
	TEST_EQ(dbg_mode(&d, 0), -EPERM);
	TEST_EQ(dbg_flags(&d, 0), -EPERM);
	TEST_EQ(dbg_watch(&d, 1, 0), -EPERM);
	TEST_EQ(dbg_unwatch(&d, 1, 0), -EPERM);
}

CONFORMANCE(session_with_the_runtime)
{
	uint32_t ids[] = { 5, 6 };
	struct target t;
	struct dbg d;

	if (!env_plain(NULL) || !target_start(&t, "runtime on") ||
	    !dbg_attach(&d, t.pid, RUNTIME_MASK))
		return;
	TEST_EQ(d.info.runtime_state, 1);
	TEST_EQ(d.info.ttmp_setup, 0);
	common_answers(&d);
	TEST_EQ(dbg_suspend(&d, 0, NULL, 0), 0);
	TEST_EQ(dbg_suspend(&d, 0, ids, 2), 0);
	TEST_EQ(ids[0], 5 | KFDABI_QUEUE_INVALID);
	TEST_EQ(ids[1], 6 | KFDABI_QUEUE_INVALID);
	TEST_EQ(dbg_suspend(&d, 0, NULL, 2), -EINVAL);
	TEST_EQ(dbg_suspend(&d, 0, ids, UINT32_MAX), -EINVAL);
	ids[0] = 5;
	TEST_EQ(dbg_resume(&d, ids, 2), 0);
	TEST_EQ(ids[0], 5 | KFDABI_QUEUE_INVALID);
	TEST_EQ(dbg_resume(&d, NULL, 2), 0);
	TEST_EQ(dbg_override(&d, 0, 0, 0), 0);
	TEST_EQ(d.a.launch_override.enable_mask, 0);
	TEST_EQ(d.a.launch_override.support_request_mask, UINT32_MAX);
	TEST_EQ(dbg_mode(&d, 0), 0);
	TEST_EQ(dbg_mode(&d, 77), -EINVAL);
	TEST_EQ(dbg_flags(&d, UINT32_MAX), 0);
	TEST_EQ(dbg_flags(&d, 0), 0);
	TEST_EQ(d.a.set_flags.flags, UINT32_MAX);
	TEST_EQ(dbg_watch(&d, 1, 0), -ENODEV);
	TEST_EQ(dbg_unwatch(&d, 1, 0), -ENODEV);
}

/* ---- end of life ---- */

CONFORMANCE(runtime_info_survives_sessions)
{
	struct target t;
	struct dbg d;

	if (!env_plain(NULL) || !target_start(&t, "runtime on") ||
	    !dbg_attach(&d, t.pid, RUNTIME_MASK))
		return;
	TEST_EQ(dbg_disable(&d), 0);
	TEST_EQ(dbg_closed(&d), true);
	dbg_init(&d, t.pid);
	TEST_EQ(dbg_enable(&d, 0), 0);
	TEST_EQ(d.info.runtime_state, 1);
	TEST_EQ(d.info.r_debug, t.status->r_debug);
}

CONFORMANCE(two_targets_are_independent)
{
	struct target a, b;
	struct dbg da, db;

	if (!env_plain(NULL) || !target_start(&a, "runtime skip") ||
	    !target_start(&b, "runtime skip") || !dbg_attach(&da, a.pid, RUNTIME_MASK) ||
	    !dbg_attach(&db, b.pid, RUNTIME_MASK))
		return;
	target_send(&b, "runtime on");
	TEST_EQ(dbg_byte_comes(&db), true);
	TEST_EQ(dbg_bytes(&da), 0);
	TEST_EQ(dbg_query(&da, 0), -EAGAIN);
	TEST_EQ(dbg_send(&da, RUNTIME_MASK, 0, 0), 0);
	TEST_EQ(target_reply(&b, 100), -ETIMEDOUT);
	TEST_EQ(dbg_send(&db, RUNTIME_MASK, 0, 0), 0);
	TEST_EQ(target_reply(&b, PATIENCE_MS), 0);
	target_kill(&b);
	TEST_EQ(dbg_query(&db, 0), -ESRCH);
	TEST_EQ(dbg_query(&da, 0), -EAGAIN);
}


/* First process of a new pid namespace: starts a grandchild and debugs it by its inner number. */
static int ns_init_run(void *data)
{
	pid_t inner = fork();
	struct dbg d;
	int r;

	if (inner == 0)
		for (;;)
			pause();
	dbg_init(&d, inner);
	d.fd = open(env_kfd_path(), O_RDWR | O_CLOEXEC);
	if (d.fd < 0)
		return -EPERM;
	if (seize(inner))
		return -EPERM;
	r = dbg_enable(&d, 0);
	if (!r)
		r = dbg_query(&d, 0);
	kill(inner, SIGKILL);
	return r;
}

static int in_new_pid_ns(void *data)
{
	return unshare(CLONE_NEWPID) ? -errno : env_in_child(ns_init_run, NULL);
}

CONFORMANCE(pids_are_the_callers)
{
	if (!env_plain(NULL))
		return;
	if (geteuid()) {
		test_skip("needs root for a pid namespace");
		return;
	}
	TEST_EQ(env_in_child(in_new_pid_ns, NULL), -EAGAIN);
}
