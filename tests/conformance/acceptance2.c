/* SPDX-License-Identifier: MIT */
/* The acceptance list, lines 13 to 18: handshakes, faults, ends, permissions, versions. */
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "env.h"

CONFORMANCE(acc13_handshake)
{
	struct kfdabi_runtime_info info = { 0 };
	struct target t;
	struct dbg d;

	if (!env_sim("1.17", "gfx942", NULL) || !target_start(&t, "runtime skip"))
		return;
	/* Debugger first. */
	if (!dbg_attach(&d, t.pid, RUNTIME_MASK))
		return;
	TEST_EQ(d.info.runtime_state, 0);
	target_send(&t, "runtime ttmp");
	TEST_EQ(dbg_byte_comes(&d), true);
	TEST_EQ(dbg_query(&d, 0), 0);
	TEST_EQ(d.a.query_event.exception_mask, RUNTIME_MASK);
	TEST_EQ(dbg_info(&d, KFDABI_EC_PROCESS_RUNTIME, 0, &info, sizeof(info), true), 0);
	TEST_EQ(info.runtime_state, 1);
	TEST_EQ(info.ttmp_setup, 1);
	TEST_EQ(info.r_debug, t.status->r_debug);
	TEST_EQ(dbg_query(&d, 0), -EAGAIN);
	TEST_EQ(target_reply(&t, 100), -ETIMEDOUT);
	TEST_EQ(dbg_send(&d, RUNTIME_MASK, UINT32_MAX, UINT32_MAX), 0);
	TEST_EQ(target_reply(&t, PATIENCE_MS), 0);
	/* A surplus send lets the next one pass, with byte and event all the same. */
	TEST_EQ(dbg_send(&d, RUNTIME_MASK, 0, 0), 0);
	TEST_EQ(target_command(&t, "runtime off"), 0);
	TEST_EQ(dbg_byte_comes(&d), true);
	TEST_EQ(dbg_info(&d, KFDABI_EC_PROCESS_RUNTIME, 0, &info, sizeof(info), true), 0);
	TEST_EQ(info.runtime_state, 0);
	TEST_EQ(info.r_debug, 0);
	/* Blocks without subscription too, silently. */
	TEST_EQ(dbg_exceptions(&d, 0), 0);
	target_send(&t, "runtime on");
	TEST_EQ(EVENTUALLY(strstr(env_status(), "\"wait\":\"runtime\"") != NULL), true);
	TEST_EQ(target_reply(&t, 100), -ETIMEDOUT);
	TEST_EQ(dbg_bytes(&d), 0);
	TEST_EQ(dbg_query(&d, 0), -EAGAIN);
	/* A signal interrupts; the repeated call waits again and raises nothing new. */
	TEST_EQ(dbg_exceptions(&d, RUNTIME_MASK), 0);
	TEST_EQ(dbg_bytes(&d), 1);
	TEST_EQ(dbg_query(&d, RUNTIME_MASK), 0);
	TEST_EQ(ptrace(PTRACE_INTERRUPT, t.pid, NULL, NULL), 0);
	TEST_EQ(waitpid(t.pid, NULL, __WALL), t.pid);
	TEST_EQ(ptrace(PTRACE_CONT, t.pid, NULL, NULL), 0);
	TEST_EQ(EVENTUALLY(t.status->eintr_repeats == 1), true);
	TEST_EQ(target_reply(&t, 100), -ETIMEDOUT);
	TEST_EQ(dbg_query(&d, 0), -EAGAIN);
	TEST_EQ(dbg_send(&d, RUNTIME_MASK, 0, 0), 0);
	TEST_EQ(target_reply(&t, PATIENCE_MS), 0);
	/* Runtime first. */
	TEST_EQ(dbg_disable(&d), 0);
	TEST_EQ(dbg_enable(&d, RUNTIME_MASK), 0);
	TEST_EQ(d.info.runtime_state, 1);
	TEST_EQ(d.info.r_debug, t.status->r_debug);
	TEST_EQ(dbg_bytes(&d), 0);
	TEST_EQ(dbg_query(&d, 0), -EAGAIN);
	TEST_EQ(dbg_mode(&d, 0), 0);
}

static void faults(bool fixed)
{
	const uint32_t code = KFDABI_EC_DEVICE_MEMORY_VIOLATION;
	struct kfdabi_memory_exception_data m;
	struct kfdabi_device_entry e;
	struct target t;
	uint32_t gpu;
	struct dbg d;

	if (!env_next("1.17", "gfx942", fixed ? "--memory-info=fixed" : "--memory-info=real") ||
	    !target_start(&t, "runtime on; queues 2") || !dbg_attach(&d, t.pid, FAULT_MASK))
		return;
	gpu = target_queue(&t, 0)->gpu_id;
	TEST_EQ(dbg_info(&d, code, gpu, &m, sizeof(m), false), -ENODATA);
	env_control("fault %d #0 0x7f0012345678 not-present", t.pid);
	env_control("fault %d #0 0x1000 read-only", t.pid);
	TEST_EQ(dbg_bytes(&d), 2);
	TEST_EQ(dbg_query(&d, 0), 0);
	TEST_EQ(d.a.query_event.exception_mask, FAULT_MASK);
	TEST_EQ(d.a.query_event.gpu_id, gpu);
	TEST_EQ(dbg_devices(&d, 0, &e, 1, sizeof(e)), 0);
	TEST_EQ(e.exception_status, FAULT_MASK);
	memset(&m, 0x5a, sizeof(m));
	TEST_EQ(dbg_info(&d, code, gpu, NULL, 32, false), -EINVAL);
	TEST_EQ(dbg_info(&d, code, gpu + 1, &m, 32, false), -EINVAL);
	TEST_EQ(dbg_info(&d, code, gpu, &m, sizeof(m), true), 0);
	TEST_EQ(d.a.query_info.info_size, fixed ? 32 : 0);
	/* The first of two faults is the one on record. */
	if (fixed) {
		TEST_EQ(m.va, 0x7f0012345000);
		TEST_EQ(m.not_present, 1);
		TEST_EQ(m.read_only, 0);
		TEST_EQ(m.gpu_id, gpu);
	} else {
		TEST_EQ(m.va, 0x5a5a5a5a5a5a5a5a);
	}
	TEST_EQ(dbg_query(&d, 0), -EAGAIN);
	/* Withheld while subscribed: queues run on, the application learns nothing ... */
	TEST_EQ(t.status->memory_faults, 0);
	TEST_EQ(target_queue_runs(&t, 0), true);
	/* ... until the debugger forwards it. */
	TEST_EQ(dbg_send(&d, FAULT_MASK, gpu + 1, 0), -ENODEV);
	TEST_EQ(dbg_send(&d, FAULT_MASK, gpu, UINT32_MAX), 0);
	TEST_EQ(EVENTUALLY(t.status->memory_faults == 1), true);
	TEST_EQ(target_queue_stands(&t, 0), true);
}

CONFORMANCE(acc14_memory_violation)
{
	faults(false);
	faults(true);
}

struct debugger {
	struct target *t;
	int ready;
};

/* A debugger process: attaches, suspends, says so, stays. */
static void debugger_run(void *data)
{
	struct debugger *job = data;
	uint32_t ids[] = { 0, 1 };
	struct dbg d;
	char c = 1;

	dbg_init(&d, job->t->pid);
	d.fd = open(env_kfd_path(), O_RDWR | O_CLOEXEC);
	if (seize(job->t->pid) || dbg_enable(&d, RUNTIME_MASK))
		c = 0;
	dbg_forget_new(&d);
	if (dbg_suspend(&d, 0, ids, 2) != 2)
		c = 0;
	if (write(job->ready, &c, 1) == 1)
		for (;;)
			pause();
}

static void debugger_death(void)
{
	struct debugger job;
	struct target t;
	struct dbg d;
	int p[2];
	pid_t pid;
	char c = 0;

	if (!env_next("1.17", "gfx90a", NULL) || !target_start(&t, "runtime on; queues 2"))
		return;
	TEST_EQ_FATAL(pipe(p), 0);
	job = (struct debugger){ &t, p[1] };
	pid = env_monitor(debugger_run, &job);
	TEST_EQ(read(p[0], &c, 1), 1);
	TEST_EQ(c, 1);
	TEST_EQ(target_queue_stands(&t, 0), true);
	kill(pid, SIGKILL);
	/* Everything that DISABLE does. */
	TEST_EQ(target_queue_runs(&t, 0), true);
	TEST_EQ(target_queue_runs(&t, 1), true);
	TEST_EQ(waitpid(pid, NULL, 0), pid);
	env_reaped(pid);
	TEST_EQ(dbg_attach(&d, t.pid, RUNTIME_MASK), true);
	TEST_EQ(d.info.runtime_state, 1);
	close(p[0]);
	close(p[1]);
}

static void target_death(void)
{
	struct target t;
	struct dbg d;

	if (!env_next("1.17", "gfx90a", NULL) || !target_start(&t, "runtime on; queues 2") ||
	    !dbg_attach(&d, t.pid, RUNTIME_MASK))
		return;
	kill(t.pid, SIGKILL);
	TEST_EQ(dbg_closed(&d), true);
	/* Still a zombie: nobody reaped it. */
	TEST_EQ(kill(t.pid, 0), 0);
	TEST_EQ(dbg_query(&d, 0), -ESRCH);
	TEST_EQ(dbg_disable(&d), -ESRCH);
	target_kill(&t);
	TEST_EQ(dbg_disable(&d), -ESRCH);
}

static void target_exec(void)
{
	struct target t;
	struct dbg d;

	if (!env_next("1.17", "gfx90a", NULL) || !target_start(&t, "runtime on; queues 2") ||
	    !dbg_attach(&d, t.pid, RUNTIME_MASK))
		return;
	target_send(&t, "exec sleep 1000");
	TEST_EQ(dbg_closed(&d), true);
	TEST_EQ(dbg_query(&d, 0), -ESRCH);
	TEST_EQ(dbg_disable(&d), -ESRCH);
	/* Still traced: a new ENABLE makes a fresh context. */
	dbg_init(&d, t.pid);
	TEST_EQ(dbg_enable(&d, RUNTIME_MASK), 0);
	TEST_EQ(d.info.runtime_state, 0);
	TEST_EQ(dbg_queues(&d, 0, NULL, 0, 64), 0);
	TEST_EQ(d.a.queue_snapshot.num_queues, 0);
}

static int use_inherited(void *data)
{
	struct kfdabi_get_version_args v;

	return ioctl(env_kfd(), (unsigned long)KFDABI_IOC_GET_VERSION, &v) < 0 ? -errno : 0;
}

static void forks_and_closes(void)
{
	struct target t;
	struct dbg d;

	if (!env_next("1.17", "gfx90a", NULL) ||
	    !target_start(&t, "runtime on; queues 2; fork") ||
	    !dbg_attach(&d, t.pid, RUNTIME_MASK))
		return;
	TEST_EQ(env_in_child(use_inherited, NULL), -EBADF);
	/* The session belongs to the address space, not to the descriptor. */
	d.fd = open(env_kfd_path(), O_RDWR | O_CLOEXEC);
	TEST_EQ(dbg_query(&d, 0), -EAGAIN);
	close(d.fd);
	d.fd = -1;
	TEST_EQ(dbg_query(&d, 0), -EAGAIN);
	TEST_EQ(target_queue_runs(&t, 0), true);
}

CONFORMANCE(acc15_ends_of_processes)
{
	debugger_death();
	target_death();
	target_exec();
	forks_and_closes();
}

static void destroy_waits(bool by_disable)
{
	uint32_t ids[] = { 0 };
	struct target t;
	struct dbg d;

	if (!env_next("1.17", "gfx942", NULL) || !target_start(&t, "runtime on; queues 2") ||
	    !dbg_attach(&d, t.pid, RUNTIME_MASK))
		return;
	dbg_forget_new(&d);
	TEST_EQ(dbg_suspend(&d, 0, ids, 1), 1);
	target_send(&t, "destroy 0");
	TEST_EQ(target_reply(&t, 150), -ETIMEDOUT);
	/* Still there, still suspended. */
	TEST_EQ(dbg_queues(&d, 0, NULL, 0, 64), 0);
	TEST_EQ(d.a.queue_snapshot.num_queues, 2);
	TEST_EQ(dbg_suspend(&d, 0, ids, 1), 1);
	TEST_EQ(by_disable ? dbg_disable(&d) : dbg_resume(&d, ids, 1), by_disable ? 0 : 1);
	TEST_EQ(target_reply(&t, PATIENCE_MS), 0);
	TEST_EQ(t.status->queues[0].alive, 0);
}

CONFORMANCE(acc16_destroy_waits_for_resume)
{
	destroy_waits(false);
	destroy_waits(true);
}

static int op_from_here(void *data)
{
	return dbg_query(data, 0);
}

static int disable_from_here(void *data)
{
	return dbg_disable(data);
}

static int disable_from_stranger(void *data)
{
	struct dbg d = *(struct dbg *)data;

	d.fd = open(env_kfd_path(), O_RDWR | O_CLOEXEC);
	return dbg_disable(&d);
}

static int query_from_stranger(void *data)
{
	struct dbg d = *(struct dbg *)data;

	d.fd = open(env_kfd_path(), O_RDWR | O_CLOEXEC);
	return dbg_query(&d, 0);
}

static void permission(const char *kernel, bool process)
{
	struct target t;
	struct dbg d;

	if (!env_next(kernel, "gfx942", process ? "--permissions=process" : "--permissions=thread") ||
	    !target_start(&t, "runtime on; queues 1") || !dbg_attach(&d, t.pid, 0))
		return;
	TEST_EQ(dbg_query(&d, 0), -EAGAIN);
	TEST_EQ(env_in_thread(op_from_here, &d), process ? -EAGAIN : -EPERM);
	TEST_EQ(env_in_child(query_from_stranger, &d), -EPERM);
	TEST_EQ(env_in_child(disable_from_stranger, &d), process ? -EPERM : 0);
	if (!process)
		TEST_EQ(dbg_enable(&d, 0), 0);
	TEST_EQ(env_in_thread(disable_from_here, &d), 0);
	TEST_EQ(dbg_query(&d, 0), -EINVAL);
}

CONFORMANCE(acc17_permission_generations)
{
	permission("1.13", false);
	permission("1.17", true);
	permission("1.17", false);
	permission("1.23", true);
}

CONFORMANCE(acc18_version_profiles)
{
	static const struct { const char *kernel; uint32_t minor, size; }
	rows[] = {
		{ "1.13", 13, 120 }, { "1.17", 17, 120 }, { "1.22", 22, 120 },
		{ "1.22+", 22, 128 }, { "1.23", 23, 128 },
	};
	struct kfdabi_get_version_args v;
	struct kfdabi_device_entry e;
	struct target t;
	struct dbg d;

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		if (!env_next(rows[i].kernel, "gfx942", NULL) ||
		    !target_start(&t, "runtime on; queues 1") || !dbg_attach(&d, t.pid, 0))
			return;
		TEST_ROW_EQ(i, ioctl(env_kfd(), (unsigned long)KFDABI_IOC_GET_VERSION, &v), 0);
		TEST_ROW_EQ(i, v.major_version, 1);
		TEST_ROW_EQ(i, v.minor_version, rows[i].minor);
		memset(&e, 0x5a, sizeof(e));
		TEST_ROW_EQ(i, dbg_devices(&d, 0, &e, 1, sizeof(e)), 0);
		TEST_ROW_EQ(i, d.a.device_snapshot.entry_size, rows[i].size);
		TEST_ROW_EQ(i, e.capability2, rows[i].size == 128 ? 0 : 0x5a5a5a5a);
		TEST_ROW_EQ(i, dbg_queues(&d, 0, NULL, 0, 512), 0);
		TEST_ROW_EQ(i, d.a.queue_snapshot.entry_size, 64);
	}
	/* Before 1.13 there is no such command at all. */
	if (!env_next("1.11", "gfx90a", NULL))
		return;
	dbg_init(&d, getpid());
	TEST_EQ(dbg_enable(&d, 0), -ENOTTY);
}
