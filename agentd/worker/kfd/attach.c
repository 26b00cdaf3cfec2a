/* SPDX-License-Identifier: MIT */
/*
 * Attaching to an AMD process and leaving it: open the device, enable debugging, answer what an
 * earlier debugger left unanswered.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentd/handshake.h"
#include "agentd/worker/kfd/kfd.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"

/* Threads by which a session is begun, where one after the other ends. */
#define THREADS_TRIED 4u
/* Time between the two looks of kfd_look(). */
#define LEFT_AGAIN_MS 2

DEFINE_AUTO(struct kfdtrap_process_list *, kfdtrap_process_list_destroy);

/*
 * Is one of the process's descriptors the device?
 * @return 1, 0, -1 (its directory of descriptors, or the device, cannot be read).
 */
static int has_device_open(const char *device, pid_t pid)
{
	struct stat want, st;
	struct dirent *d;
	char path[64];
	int found = 0;
	DIR *dir;

	if (stat(device, &want) < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (!dir)
		return -1;
	while (!found && (d = readdir(dir))) {
		if (d->d_name[0] == '.' || fstatat(dirfd(dir), d->d_name, &st, 0) < 0)
			continue;
		found = S_ISCHR(want.st_mode) ?
			S_ISCHR(st.st_mode) && st.st_rdev == want.st_rdev :
			st.st_dev == want.st_dev && st.st_ino == want.st_ino;
	}
	closedir(dir);
	return found;
}

int kfd_process_uses(const struct worker_options *o, pid_t pid)
{
	auto_call(kfdtrap_process_list_destroyp) struct kfdtrap_process_list *list = NULL;
	int open_fd = has_device_open(o->kfd_device, pid);

	/*
	 * KFD's list knows contexts whose descriptor is closed.  Its pids are those of the initial
	 * pid namespace, so a process that is not in it may have a context all the same.
	 */
	if (open_fd == 1 || kfdtrap_process_list_create(o->kfd_sysfs, &list) < 0)
		return open_fd;
	for (size_t i = 0; i < list->n_processes; i++)
		if (list->processes[i].pid == (uint32_t)pid)
			return 1;
	return open_fd;
}

const char *kfd_hidden_contexts(struct rpc_arena *a, uint32_t n)
{
	if (!n)
		return NULL;
	return rpc_arena_printf(a, "queues: those of %u secondary KFD context%s, which no debugger sees", n,
				n == 1 ? "" : "s");
}

const char *kfd_hidden_queues(struct target *t, struct rpc_arena *a)
{
	/* A program may make them at any time.  Before Linux 7.0 there are none. */
	int n = kfdtrap_process_secondary_contexts(t->options->kfd_sysfs, (uint32_t)t->options->pid);

	if (n < 0)
		return rpc_arena_printf(a, "queues: whether there are secondary KFD contexts: %s", strerror(-n));
	return kfd_hidden_contexts(a, (uint32_t)n);
}

int kfd_check_version(int fd, uint32_t *ret_major, uint32_t *ret_minor)
{
	uint32_t major, minor;
	int r = kfdtrap_get_version(fd, NULL, &major, &minor);

	if (r < 0)
		return r;
	*ret_major = major;
	*ret_minor = minor;
	if (major != KFDTRAP_VERSION_MAJOR || minor < KFDTRAP_VERSION_MINOR_DEBUG)
		return -EOPNOTSUPP;
	return 0;
}

static int open_error(const char *path, int err_no, struct agent_err *err)
{
	switch (err_no) {
	case ENOENT:
	case ENXIO:
	case ENODEV:
		return agent_err_set(err, RPC_ERROR_NOT_DEBUGGABLE, err_no, "open KFD",
				     "load the amdgpu module; in a container, pass the device in",
				     "there is no %s", path);
	case EACCES:
	case EPERM:
		return agent_err_set(
			err, RPC_ERROR_NOT_DEBUGGABLE, err_no, "open KFD",
			"add the agent's user to group render; in a unit, DeviceAllow=/dev/kfd rw",
			"the agent may not open %s", path);
	case EINVAL:
		return agent_err_set(
			err, RPC_ERROR_NOT_DEBUGGABLE, err_no, "open KFD",
			"the kernel log tells whether a GPU was found, or is being reset",
			"%s has no GPU behind it now", path);
	default:
		return agent_err_set(err, RPC_ERROR_FAILED, err_no, "open KFD", NULL,
				     "cannot open %s", path);
	}
}

static int open_device(struct target_kfd *k, const char *path, struct agent_err *err)
{
	uint32_t major = 0, minor = 0;
	int r;

	k->fd = open(path, O_RDWR | O_CLOEXEC);
	if (k->fd < 0)
		return open_error(path, errno, err);
	r = kfd_check_version(k->fd, &major, &minor);
	if (r == -EOPNOTSUPP)
		return agent_err_set(err, RPC_ERROR_NOT_DEBUGGABLE, EOPNOTSUPP, "KFD version",
				     "GPU debugging needs KFD 1.13 or later: kernel 6.5 or newer",
				     "the kernel's KFD interface is %u.%u", major, minor);
	if (r < 0)
		return agent_err_set(err, RPC_ERROR_NOT_DEBUGGABLE, -r, "KFD version",
				     "check the [kfd] section of agentd.conf",
				     "%s is not a KFD device", path);
	snprintf(k->t.version, sizeof(k->t.version), "%u.%u", major, minor);
	return 0;
}

/*
 * To read a node's properties also completes the capability bits that later device snapshots show
 * (node_show() in kfd_topology.c).
 */
static int read_topology(struct target_kfd *k, const char *sysfs, struct agent_err *err)
{
	int r = kfdtrap_topology_create(sysfs, &k->topology);

	if (r < 0)
		return agent_err_set(
			err, RPC_ERROR_NOT_DEBUGGABLE, -r, "read topology",
			"load the amdgpu module; check the [kfd] section of agentd.conf",
			"cannot read the GPU topology in %s", sysfs);
	kfdtrap_topology_add_drm(k->topology);
	return 0;
}

static void kfd_destroy(struct target *t)
{
	struct target_kfd *k = kfd_of(t);

	kfd_code_done(t);
	kfd_core_end(t);
	thread_pool_destroy(k->pool);
	kfdtrap_destroy(k->kt);
	kfdtrap_topology_destroy(k->topology);
	if (k->fd >= 0)
		close(k->fd);
	free(k->held);
	kfd_journal_close(k->journal);
	target_deinit(t);
	free(k);
}

static int create_steps(struct target_kfd *k, struct agent_err *err)
{
	const struct worker_options *o = k->t.options;
	int r = open_device(k, o->kfd_device, err);

	/*
	 * If the target has the device open, the error is the answer.  If it has not, another back
	 * end may know the process.
	 */
	if (r < 0)
		return kfd_process_uses(o, o->pid) == 1 ? r : TARGET_NOT_MINE;
	/* The command ENABLE would make a GPU context for a process that never asked for one. */
	if (kfd_process_uses(o, o->pid) == 0) {
		agent_err_set(err, RPC_ERROR_NOT_DEBUGGABLE, 0, "look for KFD user",
			      "it opens it when it initialises ROCm (hsa_init): try again then, or let a watch rule wait for it (agentd.conf(5)); gpu-agentctl list shows the processes that use a GPU",
			      "process %d (%s) has not opened the GPU", (int)o->pid,
			      k->t.facts.comm);
		return TARGET_NOT_MINE;
	}
	r = read_topology(k, o->kfd_sysfs, err);
	if (r < 0)
		return r;
	r = kfdtrap_create(k->fd, (uint32_t)o->pid, NULL, &k->kt);
	if (r < 0)
		return agent_err_set(err, RPC_ERROR_INTERNAL, -r, "attach", NULL, "out of memory");
	return 0;
}

static bool kfd_is_here(const struct worker_options *o)
{
	return access(o->kfd_device, F_OK) == 0;
}

static int kfd_create(const struct worker_options *o, const struct access_target *facts,
		      struct target **ret, struct agent_err *err)
{
	struct target_kfd *k = calloc(1, sizeof(*k));
	int r;

	if (!k)
		return agent_err_no_memory(err, "attach");
	target_init(&k->t, &target_kfd_ops, o, facts);
	k->fd = -1;
	k->code_file.fd = -1;
	k->program = target_read_program(o->pid);
	r = create_steps(k, err);
	if (r) {
		kfd_destroy(&k->t);
		return r;
	}
	*ret = &k->t;
	return 0;
}

void kfd_set_runtime(struct target_kfd *k, const struct kfdtrap_runtime_info *info)
{
	struct rpc_runtime *rt = &k->t.runtime;

	*rt = (struct rpc_runtime){ .state = (enum rpc_runtime_state)info->state,
				    .has_r_debug = true,
				    .r_debug = info->r_debug,
				    .has_ttmp_setup = true,
				    .ttmp_setup = info->ttmp_setup != 0 };
	/* The runtime's struct r_debug begins with its version, as that of <link.h> does. */
	rt->has_r_version = rt->r_debug && memory_read_exact(&k->t.memory, rt->r_debug,
							     &rt->r_version,
							     sizeof(rt->r_version)) == 0;
	if (rt->state != RPC_RUNTIME_STATE_ENABLED)
		kfd_forget_hardware(k);
}

static int undo_enable(void *ctx, uint64_t arg, struct agent_err *err)
{
	struct target_kfd *k = ctx;
	/* Only an answer frees a target that waits in its handshake: DISABLE and death do not. */
	int first = kfd_answer_handshake(k, err);
	int r = kfdtrap_disable(k->kt);

	(void)arg;
	/* A thread that still waits for that answer now waits for a stop: see kfd_needs_nudge(). */
	if (r == 0)
		k->handshake_open = false;
	r = kfd_undo_error(k, r, "KFD DISABLE", first ? NULL : err);
	return first ? first : r;
}

/*
 * Between the last look at the events and DISABLE the target may have entered RUNTIME_ENABLE.  It
 * then waits for the answer of another session.  The monitor starts a worker that gives that answer, and
 * may also look where this worker may not.
 */
static bool kfd_needs_nudge(struct target *t)
{
	return handshake_waiting(t->facts.pid) != 0;
}

/*
 * A debugger that died may have left threads waiting, and the kernel raises no second event for
 * them.  This looks twice, because a thread that only passes through the call looks the same.
 */
static void kfd_look(struct target *t)
{
	struct target_kfd *k = kfd_of(t);
	int first = handshake_waiting(t->facts.pid), again;

	if (first == -EPERM)
		log_warning("process %d: whether a debugger left it waiting cannot be seen",
			    (int)t->facts.pid);
	if (first <= 0)
		return;
	poll(NULL, 0, LEFT_AGAIN_MS);
	again = handshake_waiting(t->facts.pid);
	k->n_left = (unsigned)(again < 0 ? 0 : again < first ? again : first);
}

/*
 * Each thread that was left waiting gets its answer.  These threads were there before this session;
 * a thread that has come since raises an event of its own.
 */
static int answer_left(struct target_kfd *k, struct agent_err *err)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < k->n_left; i++) {
		r = kfd_send_handshake(k, err);
		if (r == 0)
			log_info("process %d: answered a wait that another debugger left behind",
				 (int)k->t.facts.pid);
	}
	return r;
}

/* @return a thread that this worker does not trace, or 0 where the main thread is the only one. */
static uint32_t other_thread(pid_t pid)
{
	char path[64];
	uint64_t tid = 0;
	struct dirent *d;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && !tid && (d = readdir(dir)))
		if (str_to_u64(d->d_name, 1, INT32_MAX, &tid) == 0 && tid == (uint64_t)pid)
			tid = 0;
	if (dir)
		closedir(dir);
	return (uint32_t)tid;
}

/*
 * A traced main thread that is being killed would crash the kernel: see kfdtrap_enable_by().  A thread that ended while
 * it was asked says nothing of the process, but where all have, the main thread is not asked: it is about to end.
 */
static int attach_by_thread(struct target_kfd *k, int event_fd, struct kfdtrap_runtime_info *ret_info)
{
	uint32_t tid = other_thread(k->t.facts.pid);
	int r;

	for (unsigned tries = 1;; tries++) {
		kfdtrap_enable_by(k->kt, tid);
		r = kfdtrap_attach(k->kt, KFD_RUNTIME_MASK, event_fd, ret_info);
		if (r != -ESRCH || !tid || tries == THREADS_TRIED)
			return r;
		tid = other_thread(k->t.facts.pid);
		if (!tid)
			return r;
	}
}

static int kfd_enable(struct target *t, struct agent_err *err)
{
	struct target_kfd *k = kfd_of(t);
	struct kfdtrap_runtime_info info;
	auto_free struct kfdtrap_queue *queues = NULL;
	int pair[2], r;
	uint32_t ticket;
	size_t n;

	r = undo_push(&t->undo, "end the session", undo_enable, k, 0, &ticket, err);
	if (r < 0)
		return r;
	/*
	 * The kernel writes into the event channel in the context of the target, too.  A write into
	 * a pipe without reader would kill the target by SIGPIPE; one into a datagram-like socket
	 * pair does not.
	 */
	r = fd_socketpair(SOCK_NONBLOCK, pair);
	if (r < 0) {
		undo_drop(&t->undo, ticket);
		return agent_err_set(err, RPC_ERROR_FAILED, -r, "socketpair", NULL,
				     "cannot make the event channel");
	}
	t->event_fd = pair[0];
	/* forget_gap() wants to know which process wrote; it does without that where it must. */
	setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &(int){ 1 }, sizeof(int));
	r = attach_by_thread(k, pair[1], &info);
	close(pair[1]);
	if (r < 0) {
		undo_drop(&t->undo, ticket);
		return kfd_enable_error(k, r, err);
	}
	kfd_set_runtime(k, &info);
	r = answer_left(k, err);
	if (r < 0)
		return r;
	/* The kernel suspends no queue that is new, and this snapshot makes all of them old. */
	r = kfdtrap_queue_snapshot_alloc(k->kt, KFD_NEW_MASK, &queues, &n);
	return r < 0 ? kfd_error(k, r, "KFD GET_QUEUE_SNAPSHOT", err) : 0;
}

const struct target_ops target_kfd_ops = {
	.vendor = RPC_VENDOR_AMD,
	.is_here = kfd_is_here,
	.create = kfd_create,
	.look = kfd_look,
	.enable = kfd_enable,
	.destroy = kfd_destroy,
	.needs_nudge = kfd_needs_nudge,
	.event_drain = kfd_event_drain,
	.event_next = kfd_event_next,
	.event_done = kfd_event_done,
	.devices = kfd_devices,
	.queues = kfd_queues,
	.hidden_queues = kfd_hidden_queues,
	.suspend = kfd_suspend,
	.suspended = kfd_suspended,
	.resume = kfd_resume,
	.waves = kfd_waves,
	.registers = kfd_registers,
	.wave_memory = kfd_wave_memory,
	.wave_spaces = TARGET_SPACES_COMMON,
	.code_list = kfd_code_list,
	.code_stat = kfd_code_stat,
	.code_check = kfd_code_check,
	.code_read = kfd_code_read,
	.code_done = kfd_code_done,
	.core_begin = kfd_core_begin,
	.core_read = kfd_core_read,
	.core_end = kfd_core_end,
	.watch_set = kfd_watch_set,
	.watch_clear = kfd_watch_clear,
	.watch_list = kfd_watch_list,
	.launch_override = kfd_launch_override,
	.launch_mode = kfd_launch_mode,
	.flags = kfd_flags,
	.subscribe = kfd_subscribe,
	.query = kfd_query,
	.info = kfd_info,
	.forward = kfd_forward,
	.rescue = kfd_rescue,
	.users = kfd_users,
	.checks = kfd_checks,
};
