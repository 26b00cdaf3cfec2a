/* SPDX-License-Identifier: MIT */
#include "agentd/heir/recovery.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agentd/child.h"
#include "agentd/heir/release.h"
#include "agentd/ipc/undo_record.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"

/* For workers to see that the monitor is gone and to undo what they did. */
#define GRACE_MS 800
#define DEATH_MS 2000
#define POLL_MS	 5
/* Somebody else does the same; see the bounds of a rescue in rescue.c. */
#define LOCK_MS 30000
/* After each of these what is waited for has ended, or the kernel cannot end it, and nobody waits for that. */
#define RESCUE_END_MS (RESCUE_LIFE_S * 1000 + 1000)
#define HELPER_END_MS (GRACE_MS + DEATH_MS + RESCUE_END_MS + 1000)
/* Targets that are looked after at a time. */
#define HELPERS_MAX 32

/* The worker or rescuer that still works with a record; 0: none. */
static pid_t holder(int record)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (fcntl(record, F_GETLK, &lock) < 0 || lock.l_type == F_UNLCK)
		return 0;
	return lock.l_pid;
}

/* No child of ours: its number may be another process by now, unless it holds the record still. */
static void kill_holder(int record, pid_t pid)
{
	auto_close int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (pidfd >= 0 && holder(record) == pid)
		syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
}

/* @return whether it had to be killed. */
static bool end_worker(int record, pid_t target, uint64_t grace)
{
	uint64_t give_up = 0;
	pid_t pid;

	while ((pid = holder(record)) > 0) {
		if (!give_up && !clock_left_ms(grace)) {
			log_warning(
				"worker %d for process %d does not end without its parent: killed",
				(int)pid, (int)target);
			kill_holder(record, pid);
			give_up = clock_deadline_ms(DEATH_MS);
		}
		if (give_up && !clock_left_ms(give_up))
			break;
		poll(NULL, 0, POLL_MS);
	}
	return give_up != 0;
}

/*
 * @return whether that is over, and the record of no more use.  What is left suspended the next monitor resumes,
 *         which can start a session.
 */
static bool look_after(const struct rescue_host *h, int record, pid_t target, bool stuck)
{
	auto_close int pidfd = (int)syscall(SYS_pidfd_open, target, 0);
	const struct orphan o = { .target = target, .pidfd = pidfd, .undo_fd = record,
				  .owner = getuid(), .stuck = stuck };
	pid_t child;
	int status;

	if (pidfd < 0)
		return true;
	child = fork();
	if (child == 0)
		rescue_run(h, &o);
	if (child < 0 || child_wait(child, clock_deadline_ms(RESCUE_END_MS), &status) != -ETIMEDOUT)
		return !undo_record_is_suspended(record);
	log_error("process %d: its rescue does not end: left to the kernel, and to the next start of the agent",
		  (int)target);
	return false;
}

/* Children that look after one target each: one that cannot be helped keeps no other waiting. */
struct helpers {
	struct helper {
		pid_t pid;
		uint64_t until;
	} list[HELPERS_MAX];
	size_t first, n;
};

static void await_one(struct helpers *h)
{
	const struct helper *oldest = &h->list[h->first];
	int status;

	child_wait(oldest->pid, oldest->until, &status);
	h->first = (h->first + 1) % HELPERS_MAX;
	h->n--;
}

/* As fork(), but waits for the oldest one where there are too many. */
static pid_t fork_helper(struct helpers *h)
{
	pid_t pid;

	if (h->n == HELPERS_MAX)
		await_one(h);
	pid = fork();
	if (pid > 0)
		h->list[(h->first + h->n++) % HELPERS_MAX] =
			(struct helper){ .pid = pid, .until = clock_deadline_ms(HELPER_END_MS) };
	return pid;
}

static _Noreturn void take_over_one(const struct rescue_host *h, int dir_fd, const char *name, int record,
				    pid_t target, uint64_t grace)
{
	if (look_after(h, record, target, end_worker(record, target, grace)))
		unlinkat(dir_fd, name, 0);
	_exit(0);
}

/* @param of  Leave the records of other agents alone; 0: all. */
static void take_over(const struct rescue_host *h, int dir_fd, pid_t of)
{
	uint64_t grace = clock_deadline_ms(GRACE_MS);
	DIR *dir = fdopendir(fcntl(dir_fd, F_DUPFD_CLOEXEC, 0));
	struct helpers helpers = { .n = 0 };
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		auto_close int record = -1;
		pid_t monitor, target;

		if (!undo_record_parse_name(e->d_name, &monitor, &target) || (of && monitor != of))
			continue;
		record = openat(dir_fd, e->d_name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
		if (record >= 0 && fork_helper(&helpers) == 0)
			take_over_one(h, dir_fd, e->d_name, record, target, grace);
	}
	while (helpers.n)
		await_one(&helpers);
	if (dir)
		closedir(dir);
}

/* One at a time: the recovery of another agent may still be at work when the next agent starts. */
static bool lock(int dir_fd)
{
	uint64_t deadline = clock_deadline_ms(LOCK_MS);

	while (flock(dir_fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK || !clock_left_ms(deadline))
			return false;
		poll(NULL, 0, POLL_MS);
	}
	return true;
}

void recovery_take_over(const struct rescue_host *h, pid_t monitor)
{
	auto_close int dir = undo_record_directory(h->records);

	if (dir >= 0 && lock(dir))
		take_over(h, dir, monitor);
}

static _Noreturn void look_after_orphan(const struct rescue_host *h, pid_t target)
{
	char name[UNDO_RECORD_NAME_MAX];
	int record;

	if (undo_record_create(h->records, target, name, &record) < 0)
		_exit(1);
	if (look_after(h, record, target, false))
		undo_record_remove(h->records, name);
	_exit(0);
}

void recovery_release_leftovers(const struct rescue_host *h)
{
	char path[PATH_MAX + 8];
	struct helpers helpers = { .n = 0 };
	struct dirent *d;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/proc", h->kfd_sysfs);
	dir = opendir(path);
	while (dir && (d = readdir(dir))) {
		uint64_t pid;

		if (str_to_u64(d->d_name, 1, INT32_MAX, &pid) == 0 && release_waiting((pid_t)pid) > 0 &&
		    fork_helper(&helpers) == 0)
			look_after_orphan(h, (pid_t)pid);
	}
	if (dir)
		closedir(dir);
}
