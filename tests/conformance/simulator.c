/* SPDX-License-Identifier: MIT */
/* What only the simulator can show: injected failures, delays, and the files around the device. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "env.h"

#define RUNNING "runtime on; queues 2"

static bool attached(const char *kernel, const char *gpus, struct target *t, struct dbg *d,
		     uint64_t mask)
{
	if (!env_next(kernel, gpus, NULL) || !target_start(t, RUNNING) ||
	    !dbg_attach(d, t->pid, mask))
		return false;
	dbg_forget_new(d);
	return true;
}

CONFORMANCE(injected_errno_delay_and_partial)
{
	struct kfdabi_device_entry dev[2];
	struct kfdabi_queue_entry e[2];
	uint32_t ids[] = { 0, 1 };
	uint64_t start;
	struct target t;
	struct dbg d;

	if (!attached("1.17", "gfx90a,gfx942", &t, &d, RUNTIME_MASK))
		return;
	env_control("errno suspend EIO 2");
	TEST_EQ(dbg_suspend(&d, 0, ids, 2), -EIO);
	TEST_EQ(dbg_suspend(&d, 0, ids, 2), -EIO);
	env_control("delay suspend 120");
	start = clock_now_ns();
	TEST_EQ(dbg_suspend(&d, 0, ids, 2), 2);
	CU_ASSERT(clock_now_ns() - start >= UINT64_C(120000000));
	TEST_EQ(dbg_resume(&d, NULL, 0), 2);
	env_control("partial queues 1");
	TEST_EQ(dbg_queues(&d, 0, e, 2, sizeof(e[0])), -EFAULT);
	TEST_EQ(d.a.queue_snapshot.num_queues, 1);
	env_control("partial devices 1");
	TEST_EQ(dbg_devices(&d, 0, dev, 2, sizeof(dev[0])), -EINVAL);
	/* Queue 0 is on the first GPU, queue 1 on the second. */
	env_control("partial suspend 1");
	TEST_EQ(dbg_suspend(&d, 0, ids, 2), 1);
	TEST_EQ(ids[1], 1 | KFDABI_QUEUE_INVALID);
}

static void suspender_run(void *data)
{
	struct dbg d = *(struct dbg *)data;
	uint32_t id = 0;

	d.fd = open(env_kfd_path(), O_RDWR | O_CLOEXEC);
	if (seize(d.pid) || dbg_enable(&d, 0))
		_exit(1);
	dbg_forget_new(&d);
	dbg_suspend(&d, 0, &id, 1);
	_exit(2);
}

/* A debugger stuck in SUSPEND, after or before its effect, is killed. */
static void killed_while_blocked(bool after)
{
	struct target t, other;
	struct dbg d, od;
	pid_t pid;

	if (!env_next("1.17", "gfx942", NULL) || !target_start(&t, RUNNING) ||
	    !target_start(&other, RUNNING))
		return;
	env_control("block suspend%s", after ? " after" : "");
	dbg_init(&d, t.pid);
	pid = env_monitor(suspender_run, &d);
	TEST_EQ(EVENTUALLY(strstr(env_status(), "\"wait\":\"block\"") != NULL), true);
	TEST_EQ(after ? target_queue_stands(&t, 0) : target_queue_runs(&t, 0), true);
	/* Others are not held up. */
	TEST_EQ(dbg_attach(&od, other.pid, 0), true);
	TEST_EQ(dbg_query(&od, 0), -EAGAIN);
	kill(pid, SIGKILL);
	TEST_EQ(waitpid(pid, NULL, 0), pid);
	env_reaped(pid);
	TEST_EQ(target_queue_runs(&t, 0), true);
	TEST_EQ(EVENTUALLY(!strstr(env_status(), "\"wait\":\"block\"")), true);
	TEST_EQ(dbg_attach(&d, t.pid, 0), true);
}

CONFORMANCE(killed_in_a_blocked_call)
{
	killed_while_blocked(false);
	killed_while_blocked(true);
}

struct threaded {
	struct dbg *d;
	volatile int result;
};

static void *query_thread(void *data)
{
	struct threaded *job = data;
	struct dbg d = *job->d;

	job->result = dbg_mode(&d, 2);
	return NULL;
}

CONFORMANCE(blocked_call_holds_its_target_until_released)
{
	struct threaded job;
	struct target t;
	pthread_t a, b;
	struct dbg d;

	if (!attached("1.17", "gfx942", &t, &d, 0))
		return;
	job = (struct threaded){ &d, 1 };
	env_control("block launch-mode");
	pthread_create(&a, NULL, query_thread, &job);
	TEST_EQ(EVENTUALLY(strstr(env_status(), "\"wait\":\"block\"") != NULL), true);
	pthread_create(&b, NULL, query_thread, &job);
	TEST_EQ(EVENTUALLY(strstr(env_status(), "\"wait\":\"turn\"") != NULL), true);
	/* The target's own calls need the same lock. */
	target_send(&t, "create");
	TEST_EQ(target_reply(&t, 80), -ETIMEDOUT);
	env_control("release launch-mode");
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	TEST_EQ(job.result, -EINVAL);
	TEST_EQ(target_reply(&t, PATIENCE_MS), 0);
}

CONFORMANCE(activation_failures_show_as_state)
{
	struct target t, u;
	struct dbg d, e;

	/* Device-global debug registers: the second target of one GPU is busy. */
	if (!attached("1.17", "gfx906", &t, &d, 0) || !target_start(&u, RUNNING))
		return;
	TEST_EQ(dbg_attach(&e, u.pid, 0), true);
	TEST_EQ(e.info.runtime_state, KFDABI_RUNTIME_STATE_ENABLED_BUSY);
	TEST_EQ(dbg_mode(&e, 0), -EPERM);
	TEST_EQ(dbg_disable(&e), 0);
	TEST_EQ(dbg_disable(&d), 0);
	TEST_EQ(dbg_enable(&e, 0), 0);
	TEST_EQ(e.info.runtime_state, KFDABI_RUNTIME_STATE_ENABLED);
	env_control("fail-activate #0 error");
	TEST_EQ(dbg_enable(&d, 0), 0);
	TEST_EQ(d.info.runtime_state, KFDABI_RUNTIME_STATE_ENABLED_ERROR);
	/* A GPU that is too old spoils the session. */
	if (!env_next("1.17", "gfx942,gfx803", NULL) || !target_start(&t, RUNNING))
		return;
	dbg_init(&d, t.pid);
	TEST_EQ(seize(t.pid), 0);
	TEST_EQ(dbg_enable(&d, 0), -ENODEV);
}

CONFORMANCE(wave_exceptions_reach_the_runtime_unless_subscribed)
{
	struct target t;
	struct dbg d;

	if (!attached("1.17", "gfx942", &t, &d, 0))
		return;
	env_control("raise %d queue 0 5,2", t.pid);
	TEST_EQ(EVENTUALLY(t.status->queue_faults == 1), true);
	TEST_EQ(target_queue(&t, 0)->error_word, 0x12);
	TEST_EQ(dbg_exceptions(&d, 0x10), 0);
	TEST_EQ(dbg_query(&d, UINT64_MAX), 0); /* latched all the same */
	TEST_EQ(d.a.query_event.exception_mask, 0x12);
	env_control("raise %d queue 1 5", t.pid);
	TEST_EQ(dbg_byte_comes(&d), true);
	usleep(50000);
	TEST_EQ(t.status->queue_faults, 1);
	TEST_EQ(dbg_send(&d, 0x10, UINT32_MAX, 1), 0);
	TEST_EQ(EVENTUALLY(t.status->queue_faults == 2), true);
	TEST_EQ(target_queue(&t, 1)->error_word, 0x10);
	/* Codes that no kernel raises need the switch. */
	TEST_EQ(env_control_try("raise 1 process 49"), -ESRCH);
	env_control("never on");
	env_control("raise %d process 49", t.pid);
	TEST_EQ(dbg_exceptions(&d, UINT64_MAX), 0);
	TEST_EQ(EVENTUALLY(dbg_query(&d, UINT64_MAX) == 0 && d.a.query_event.exception_mask ==
				   KFDABI_EC_MASK(KFDABI_EC_PROCESS_DEVICE_REMOVE)),
		true);
}

CONFORMANCE(queue_deletion_is_a_device_event)
{
	const uint64_t deleted = KFDABI_EC_MASK(KFDABI_EC_DEVICE_QUEUE_DELETE);
	struct target t;
	struct dbg d;

	if (!attached("1.17", "gfx942", &t, &d, deleted | NEW_MASK))
		return;
	TEST_EQ(target_command(&t, "destroy 0"), 0);
	TEST_EQ(dbg_bytes(&d), 1);
	TEST_EQ(dbg_query(&d, UINT64_MAX), 0);
	TEST_EQ(d.a.query_event.exception_mask, deleted);
	/* The lowest free id comes back. */
	TEST_EQ(target_command(&t, "sdma"), 0);
	TEST_EQ(dbg_bytes(&d), 1);
	TEST_EQ(dbg_query(&d, UINT64_MAX), 0);
	TEST_EQ(d.a.query_event.exception_mask, NEW_MASK);
	TEST_EQ(d.a.query_event.queue_id, 0);
	TEST_EQ(target_command(&t, "destroy 9"), -EINVAL);
}

CONFORMANCE(suspend_writes_the_kernels_part_of_the_headers)
{
	struct kfdabi_save_area_header before, after;
	struct iovec local = { &before, sizeof(before) }, remote = { NULL, sizeof(before) };
	uint32_t id = 1;
	struct target t;
	struct dbg d;

	if (!attached("1.17", "gfx942", &t, &d, 0))
		return;
	/* Queue 0 keeps running, its last XCC's header is written as well. */
	remote.iov_base = (void *)(uintptr_t)(target_queue(&t, 0)->area +
					      7 * target_queue(&t, 0)->area_size);
	TEST_EQ(process_vm_readv(t.pid, &local, 1, &remote, 1, 0), sizeof(before));
	TEST_EQ(before.wave_state_offset, 0);
	TEST_EQ(before.debug_offset, target_queue(&t, 0)->area_size);
	TEST_EQ(dbg_suspend(&d, 0, &id, 1), 1);
	local.iov_base = &after;
	TEST_EQ(process_vm_readv(t.pid, &local, 1, &remote, 1, 0), sizeof(after));
	CU_ASSERT(after.wave_state_offset != 0);
	TEST_EQ(after.control_stack_offset + after.control_stack_size,
		after.wave_state_offset - after.wave_state_size);
	TEST_EQ(memcmp(&before.debug_offset, &after.debug_offset, 24), 0);
}

CONFORMANCE(gpu_lost_or_resetting)
{
	uint32_t id = 0;
	struct target t;
	struct dbg d;

	if (!attached("1.17", "gfx942", &t, &d, 0))
		return;
	env_control("reset #0 on");
	TEST_EQ(dbg_mode(&d, 1), -EIO);
	TEST_EQ(dbg_override(&d, 0, 0x80, 0x80), -EIO);
	TEST_EQ(dbg_flags(&d, 1), -EIO);
	TEST_EQ(dbg_suspend(&d, 0, &id, 1), 0);
	TEST_EQ(id, KFDABI_QUEUE_ERROR);
	TEST_EQ(open(env_kfd_path(), O_RDWR | O_CLOEXEC), -1);
	TEST_EQ(errno, EINVAL);
	env_control("reset #0 off");
	TEST_EQ(dbg_resume(&d, NULL, 0), 2);
	TEST_EQ(target_queue_runs(&t, 0), true);
}

static int make_context(void *data)
{
	int fd = open(env_kfd_path(), O_RDWR | O_CLOEXEC), r;
	struct dbg d;

	if (ioctl(fd, (unsigned long)KFDABI_IOC_CREATE_PROCESS, 0) < 0)
		return -errno;
	dbg_init(&d, getpid());
	d.fd = fd;
	r = dbg_enable(&d, 0);
	close(fd);
	return r;
}

CONFORMANCE(secondary_contexts_cannot_debug)
{
	if (!env_sim("1.23", "gfx942", NULL))
		return;
	TEST_EQ(env_in_child(make_context, NULL), -EOPNOTSUPP);
	if (!env_next("1.17", "gfx942", NULL))
		return;
	TEST_EQ(env_in_child(make_context, NULL), -ENOTTY);
}

CONFORMANCE(destroy_restarts_after_a_signal)
{
	uint32_t id = 0;
	struct target t;
	struct dbg d;

	if (!attached("1.23", "gfx942", &t, &d, 0))
		return;
	TEST_EQ(dbg_suspend(&d, 0, &id, 1), 1);
	target_send(&t, "destroy 0");
	TEST_EQ(EVENTUALLY(strstr(env_status(), "\"wait\":\"destroy\"") != NULL), true);
	/* A stop interrupts the wait; the kernel restarts the call by itself. */
	TEST_EQ(ptrace(PTRACE_INTERRUPT, t.pid, NULL, NULL), 0);
	TEST_EQ(waitpid(t.pid, NULL, __WALL), t.pid);
	CU_ASSERT_PTR_NULL(strstr(env_status(), "\"wait\":\"destroy\""));
	TEST_EQ(ptrace(PTRACE_CONT, t.pid, NULL, NULL), 0);
	TEST_EQ(EVENTUALLY(strstr(env_status(), "\"wait\":\"destroy\"") != NULL), true);
	TEST_EQ(target_reply(&t, 50), -ETIMEDOUT);
	TEST_EQ(dbg_resume(&d, &id, 1), 1);
	TEST_EQ(target_reply(&t, PATIENCE_MS), 0);
}

static void file_is(const char *path, const char *want)
{
	char *data = NULL, full[256];
	size_t size;

	snprintf(full, sizeof(full), "%s/%s", env_dir(), path);
	TEST_EQ(fd_read_file(full, 65536, &data, &size), 0);
	TEST_STR(data, want);
	free(data);
}

CONFORMANCE(topology_and_process_files)
{
	struct kfdabi_device_entry e;
	char path[256], *data = NULL, want[32];
	struct target t;
	struct dbg d;
	size_t size;

	if (!env_sim("1.17", "gfx1100", NULL) || !target_start(&t, "runtime skip") ||
	    !dbg_attach(&d, t.pid, 0))
		return;
	file_is("topology/generation_id", "1\n");
	file_is("topology/nodes/0/gpu_id", "0\n");
	snprintf(path, sizeof(path), "%s/topology/nodes/1/properties", env_dir());
	/* simapp read the properties, which made the watch bits visible; 4 watch points. */
	TEST_EQ(dbg_devices(&d, 0, &e, 1, sizeof(e)), 0);
	TEST_EQ(e.capability & 0xf80, 0x280);
	TEST_EQ(fd_read_file(path, 65536, &data, &size), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(data, "\ngfx_target_version 110000\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(data, "\narray_count 12\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(data, "\ndrm_render_minor 128\n"));
	free(data);
	TEST_EQ(target_command(&t, "create"), 0);
	snprintf(path, sizeof(path), "proc/%d/queues/0/size", t.pid);
	file_is(path, "65536");
	snprintf(path, sizeof(path), "proc/%d/queues/0/gpuid", t.pid);
	snprintf(want, sizeof(want), "%u", target_queue(&t, 0)->gpu_id);
	file_is(path, want);
	/* The debugger is there as well. */
	snprintf(path, sizeof(path), "%s/proc/%d/pasid", env_dir(), getpid());
	TEST_EQ(access(path, R_OK), 0);
	target_kill(&t);
	snprintf(path, sizeof(path), "%s/proc/%d", env_dir(), t.pid);
	TEST_EQ(EVENTUALLY(access(path, F_OK)), true);
}

CONFORMANCE(watch_bits_need_a_sysfs_read)
{
	struct kfdabi_device_entry e;
	char path[256], *data = NULL;
	struct target t;
	struct dbg d;
	size_t size;

	if (!env_sim("1.17", "gfx942", NULL) || !target_start_bare(&t) ||
	    !dbg_attach(&d, t.pid, 0))
		return;
	TEST_EQ(dbg_devices(&d, 0, &e, 1, sizeof(e)), 0);
	TEST_EQ(e.capability & 0xf80, 0);
	snprintf(path, sizeof(path), "%s/topology/nodes/1/properties", env_dir());
	TEST_EQ(fd_read_file(path, 65536, &data, &size), 0);
	free(data);
	TEST_EQ(dbg_devices(&d, 0, &e, 1, sizeof(e)), 0);
	TEST_EQ(e.capability & 0xf80, 0x280);
}

CONFORMANCE(control_refuses_nonsense)
{
	static const char *const bad[] = {
		"frobnicate",	  "raise",	       "raise x process 48", "delay suspend",
		"delay nothing 5", "errno suspend EFOO", "fail-suspend gpu",   "block suspend maybe",
		"progress soon",  "never perhaps",     "reset #0 maybe",     "fault",
		"raise 1 2 3 4 5 6 7 8 9 10 11 12",
	};

	if (!env_sim("1.17", "gfx942", NULL))
		return;
	for (size_t i = 0; i < TEST_COUNT(bad); i++)
		TEST_ROW_EQ(i, env_control_try(bad[i]), -EINVAL);
	TEST_EQ(env_control_try("reset #7 on"), -ENODEV);
	TEST_EQ(env_control_try("# a comment\n\nprogress off\nprogress on\n"), 0);
}

/* The simulator is killed: nobody hangs, everything can be cleaned up. */
CONFORMANCE(killed_simulator_hangs_nobody)
{
	struct target t;
	struct dbg d;
	pid_t sim;
	int reply;

	if (!env_sim("1.17", "gfx942", NULL) || !target_start(&t, "runtime skip") ||
	    !dbg_attach(&d, t.pid, RUNTIME_MASK))
		return;
	target_send(&t, "runtime on");
	TEST_EQ(dbg_byte_comes(&d), true);
	sim = env_sim_lost();
	kill(sim, SIGKILL);
	TEST_EQ(waitpid(sim, NULL, 0), sim);
	reply = target_reply(&t, PATIENCE_MS);
	CU_ASSERT(reply < 0 && reply != -ETIMEDOUT);
	CU_ASSERT(dbg_query(&d, 0) < 0);
	TEST_EQ(umount2(env_dir(), MNT_DETACH), 0);
	TEST_EQ(rmdir(env_dir()), 0);
}

/* Heartbeats go on through a whole session; only queues stop. */
CONFORMANCE(cpu_threads_never_stop)
{
	uint64_t deadline = clock_deadline_ms(PATIENCE_MS), beats;
	uint32_t ids[] = { 0, 1 }, n_quiet = 0;
	struct simapp_thread *thread;
	struct target t;
	struct dbg d;

	if (!attached("1.17", "gfx942", &t, &d, RUNTIME_MASK))
		return;
	thread = &t.status->threads[0];
	/* A stop would show each time, a machine that is busy now and then. */
	while (n_quiet < 20 && clock_left_ms(deadline)) {
		thread->max_gap_ns = 0;
		beats = thread->beats;
		TEST_EQ(dbg_suspend(&d, 0, ids, 2), 2);
		TEST_EQ(EVENTUALLY(thread->beats > beats + 2), true);
		TEST_EQ(dbg_resume(&d, ids, 2), 2);
		n_quiet += thread->max_gap_ns < UINT64_C(100000000);
	}
	TEST_EQ(n_quiet, 20);
	TEST_EQ(target_queue_runs(&t, 1), true);
}
