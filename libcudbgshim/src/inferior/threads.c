/* SPDX-License-Identifier: MIT */
/* Chooses the thread of the debuggee that is borrowed for a call. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "libcudbgshim/src/inferior/inferior.h"

#define THREADS_MAX 16384
/* Words of a waiting thread's stack that are looked at for return addresses. */
#define SCAN_WORDS 256

enum {
	RANK_WAIT = 0,	   /* It waits without a time limit, or with one that survives a restart. */
	RANK_TIMED = 1,	   /* It waits with a limit that starts again if we die. */
	RANK_RUNNING = 2,  /* It runs; its place will be seen when it stops. */
	RANK_AGAIN = 3,	   /* It was interrupted before: only the kernel knows what it waits for. */
	RANK_AVOID = 8,	   /* It was called by a library that we should stay out of. */
};

static const char *line_value(const char *status, const char *key)
{
	size_t length = strlen(key);

	for (const char *line = status; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, key, length) && line[length] == ':')
			return line + length + 1 + strspn(line + length + 1, " \t");
	}
	return NULL;
}

static bool line_has(const char *value, const char *word)
{
	const char *hit = value ? strstr(value, word) : NULL;
	const char *end = value ? strchr(value, '\n') : NULL;

	return hit && (!end || hit < end);
}

int inferior_thread_parse(const char *status, const char *syscall, struct inferior_thread *ret)
{
	const char *state = line_value(status, "State"), *tracer = line_value(status, "TracerPid");
	struct inferior_thread t = { .nr = -1 };
	unsigned long long a[8];
	int n;

	if (!state || !tracer)
		return -EBADMSG;
	t.state = *state;
	t.tracer = (pid_t)strtol(tracer, NULL, 10);
	t.has_shadow_stack = line_has(line_value(status, "x86_Thread_features"), "shstk");
	if (!strncmp(syscall, "running", 7)) {
		t.is_running = true;
		*ret = t;
		return 0;
	}
	n = sscanf(syscall, "%ld %llx %llx %llx %llx %llx %llx %llx %llx", &t.nr, &a[0], &a[1],
		   &a[2], &a[3], &a[4], &a[5], &a[6], &a[7]);
	if (n == 9) {
		for (size_t i = 0; i < ARRAY_SIZE(t.args); i++)
			t.args[i] = a[i];
		t.sp = a[6];
		t.pc = a[7];
	} else if (n == 3 && t.nr == -1) {
		t.sp = a[0];
		t.pc = a[1];
	} else {
		return -EBADMSG;
	}
	*ret = t;
	return 0;
}

/* Is the thread's time limit relative, so that the kernel does not write back what is left? */
static bool is_timed(const struct inferior_thread *t)
{
	switch (inferior_newer_call(t->nr)) {
	case SYS_nanosleep:
		return true;
	case SYS_clock_nanosleep:
		return !(t->args[1] & 1); /* TIMER_ABSTIME */
	case SYS_epoll_pwait:
		return (int32_t)t->args[3] > 0;
	case SYS_futex:
		return t->args[3] && (t->args[1] & FUTEX_CMD_MASK) == FUTEX_WAIT;
	case SYS_rt_sigtimedwait:
		return t->args[2];
	case SYS_epoll_pwait2:
	case SYS_semtimedop:
		return t->args[3];
	case SYS_io_getevents:
	case SYS_io_pgetevents:
		return t->args[4];
	default:
		return inferior_has_own_limit(t);
	}
}

bool inferior_is_interrupted_by_a_look(long nr)
{
	/*
	 * The calls of signal(7), "Interruption of system calls and library functions by stop
	 * signals"; with EINTR none of these has done anything yet.
	 */
	static const long calls[] = { SYS_epoll_pwait, SYS_epoll_pwait2, SYS_semop, SYS_semtimedop, SYS_rt_sigtimedwait,
				      SYS_io_getevents, SYS_io_pgetevents, SYS_io_uring_enter, SYS_recvfrom,
				      SYS_recvmsg, SYS_accept, SYS_accept4, SYS_read };

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (inferior_newer_call(nr) == calls[i])
			return true;
	return false;
}

/* Does this call fail with EINTR if we die between stopping it and mending that? */
static bool is_fragile(long nr)
{
	return nr != SYS_read && inferior_is_interrupted_by_a_look(nr);
}

static const char *unfit_state(const struct inferior_thread *t)
{
	switch (t->state) {
	case 'R':
	case 'S':
		break;
	case 'D':
		return "waits in the kernel and cannot be interrupted";
	case 'T':
	case 't':
		return "is stopped";
	default:
		return "has ended";
	}
	switch (t->nr) {
	case SYS_exit:
	case SYS_exit_group:
	case SYS_execve:
	case SYS_execveat:
		return "is ending or executing another program";
	default:
		return NULL;
	}
}

static bool is_avoided(const struct cudbgshim_inferior_options *o, uint64_t addr)
{
	return addr >= o->avoid_start && addr < o->avoid_end;
}

/*
 * Does the stack have a return address into the range to avoid?  A lock of that library may be held
 * then.
 */
static bool is_called_from_avoided(const struct cudbgshim_inferior_options *o, uint64_t sp)
{
	uint64_t words[SCAN_WORDS];

	if (o->memory.read(o->memory.ctx, sp, words, sizeof(words)) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (is_avoided(o, words[i]))
			return true;
	return false;
}

static bool has_name(const struct cudbgshim_map *map, const char *name)
{
	return map->name_size == strlen(name) && !memcmp(map->name, name, map->name_size);
}

/* @return the lowest address that this stack may use, or 0. */
static uint64_t stack_low(uint64_t sp, const char *maps, size_t size)
{
	struct cudbgshim_maps at = { maps, size, 0 };
	struct cudbgshim_map map;
	uint64_t below = 0;

	while (cudbgshim_maps_next(&at, &map)) {
		if (sp >= map.start && sp < map.end) {
			if (!(map.flags & CUDBGSHIM_MAP_WRITE))
				return 0;
			/*
			 * The first thread's stack grows when it is touched, up to its neighbour.
			 */
			if (has_name(&map, "[stack]") && map.start > (UINT64_C(2) << 20) + below)
				return map.start - (UINT64_C(1) << 20);
			return map.start;
		}
		below = map.end;
	}
	return 0;
}

static bool has_room(uint64_t sp, uint64_t low)
{
	return low && sp > low && sp - low >= INFERIOR_FRAME_MAX + INFERIOR_STACK_ROOM;
}

int inferior_thread_rank(const struct inferior_thread *t, const char *maps, size_t size,
			 const struct cudbgshim_inferior_options *o, const char **ret_why)
{
	const char *why = unfit_state(t);
	int rank;

	if (!why && !t->is_running && !has_room(t->sp, stack_low(t->sp, maps, size)))
		why = "has too little room on its stack";
	if (why) {
		*ret_why = why;
		return -1;
	}
	if (t->is_running)
		return RANK_RUNNING;
	rank = t->nr < 0			? RANK_RUNNING :
	       t->nr == SYS_restart_syscall	? RANK_AGAIN :
	       is_timed(t) || is_fragile(t->nr) ? RANK_TIMED :
						  RANK_WAIT;
	if (is_avoided(o, t->pc) || is_called_from_avoided(o, t->sp))
		rank += RANK_AVOID;
	return rank;
}

static int read_thread(const struct cudbgshim_inferior_options *o, int task_fd, const char *name,
		       struct inferior_thread *ret)
{
	auto_free char *status = NULL, *syscall = NULL;
	struct inferior_thread t;
	char path[64];
	size_t size;
	uint64_t tid;
	int rc;

	if (str_to_u64(name, 1, INT32_MAX, &tid) < 0)
		return -ENOENT;
	snprintf(path, sizeof(path), "%.32s/status", name);
	rc = fd_read_file_at(task_fd, path, 65536, &status, &size);
	snprintf(path, sizeof(path), "task/%.32s/syscall", name);
	if (rc == 0)
		rc = o->tracer->read_file(o->tracer->ctx, o->proc_fd, path, 4096, &syscall, &size);
	if (rc == 0)
		rc = inferior_thread_parse(status, syscall, &t);
	if (rc < 0)
		return rc;
	t.tid = (pid_t)tid;
	*ret = t;
	return 0;
}

bool inferior_thread_has_ended(int proc_fd, pid_t tid)
{
	auto_free char *status = NULL;
	const char *state;
	char path[64];
	size_t size;
	int rc;

	snprintf(path, sizeof(path), "task/%d/status", (int)tid);
	rc = fd_read_file_at(proc_fd, path, 65536, &status, &size);
	if (rc < 0)
		return rc == -ENOENT || rc == -ESRCH;
	state = line_value(status, "State");
	return state && (*state == 'Z' || *state == 'X');
}

static bool is_listed(pid_t tid, const pid_t *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == tid)
			return true;
	return false;
}

static void close_dir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

int inferior_thread_choose(const struct cudbgshim_inferior_options *o, const char *maps,
			   size_t size, const pid_t *skip, size_t n_skip,
			   struct inferior_thread *ret, const char **ret_why)
{
	auto_close int fd = openat(o->proc_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_call(close_dir) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct inferior_thread best = { 0 }, t;
	int best_rank = INT32_MAX, n = 0;
	struct dirent *d;

	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	(void)TAKE_FD(fd);
	while ((d = readdir(dir)) && n++ < THREADS_MAX) {
		int rank, rc = read_thread(o, dirfd(dir), d->d_name, &t);

		if (rc == -EACCES || rc == -EPERM)
			return -EPERM;
		if (rc < 0)
			continue; /* It ended meanwhile. */
		if (t.has_shadow_stack) {
			*ret_why = "the process uses shadow stacks, on which no call can be prepared";
			return -EOPNOTSUPP;
		}
		if (t.tracer) {
			*ret_why = "another process traces it";
			return -EBUSY;
		}
		if (is_listed(t.tid, skip, n_skip))
			continue;
		rank = inferior_thread_rank(&t, maps, size, o, ret_why);
		if (rank >= 0 && rank < best_rank) {
			best = t;
			best_rank = rank;
		}
	}
	*ret = best;
	return 0;
}

/* Is this code that takes locks which the function will need: allocator, loader, thread library? */
static bool is_lock_land(const struct cudbgshim_map *map)
{
	static const char *const stems[] = { "/libc.so", "/libc-", "/ld-", "/libpthread",
					     "/libdl",	 "malloc" };

	for (size_t i = 0; i < ARRAY_SIZE(stems); i++)
		if (memmem(map->name, map->name_size, stems[i], strlen(stems[i])))
			return true;
	return false;
}

const char *inferior_check_place(const struct inferior_registers *regs, const struct inferior_thread *seen,
				 const char *maps, size_t size, const struct cudbgshim_inferior_options *o,
				 uint64_t *ret_low)
{
	const uint64_t pc = inferior_pc(regs), sp = inferior_sp(regs);
	struct cudbgshim_map stack, code;
	uint64_t low;

	if (regs->is_32bit)
		return "runs 32-bit code";
	if (!cudbgshim_maps_find(maps, size, pc, &code))
		return "runs code that was mapped a moment ago";
	/*
	 * In a system call, whose result is still to be seen, the thread waits and holds no lock of
	 * libc.
	 */
	if (!inferior_is_in_call(regs, seen) && (is_lock_land(&code) || is_avoided(o, pc)))
		return "runs inside the C library, the loader or the driver";
	low = stack_low(sp, maps, size);
	if (!has_room(sp, low) || !cudbgshim_maps_find(maps, size, sp, &stack))
		return "has too little room on its stack";
	/*
	 * The thread library keeps its block at the top of each stack that it made.  Anything else
	 * may be a coroutine's, with other data right below.
	 */
	if (!has_name(&stack, "[stack]") &&
	    (regs->thread_pointer < sp || regs->thread_pointer >= stack.end))
		return "runs on a stack that is not its own";
	*ret_low = low;
	return NULL;
}
