/* SPDX-License-Identifier: MIT */
#include "agentd/spawn/recovery.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/spawn/release.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"

/* For workers to see that spawn is gone and to undo what they did. */
#define GRACE_MS 800
#define DEATH_MS 2000
#define POLL_MS	 5
/* Somebody else does the same; see the bounds of a rescue in workers.c. */
#define LOCK_MS 30000
/* Targets that are looked after at a time. */
#define HELPERS_MAX 32

/* ------------------------------------------------------------------ records ------------------ */

/* @return a descriptor or -errno. */
static int open_directory(const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	/* Whoever else may write there could make us rescue, that is change, what he likes. */
	if (st.st_uid != geteuid() || st.st_mode & 077)
		return -EPERM;
	return TAKE_FD(fd);
}

static int create_file(const char *directory, const char *name)
{
	auto_close int dir = -1, fd = -1;

	if (mkdir(directory, 0700) < 0 && errno != EEXIST)
		return -errno;
	dir = open_directory(directory);
	if (dir < 0)
		return dir;
	fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, IPC_UNDO_BYTES) < 0) {
		unlinkat(dir, name, 0);
		return -ENOSPC;
	}
	return TAKE_FD(fd);
}

int recovery_record_create(const char *directory, pid_t target, char ret_name[WORKER_RECORD_NAME_MAX],
		       int *ret_fd)
{
	static unsigned last;
	int fd;

	snprintf(ret_name, WORKER_RECORD_NAME_MAX, "%d.%d.%u", (int)getpid(), (int)target, ++last);
	fd = create_file(directory, ret_name);
	if (fd < 0) {
		log_debug("%s: %s; what a worker changes is lost with this process", directory,
			  strerror(-fd));
		ret_name[0] = '\0';
		fd = memfd_create("gpu-agent-undo", MFD_CLOEXEC);
		if (fd < 0)
			return -errno;
		if (ftruncate(fd, IPC_UNDO_BYTES) < 0) {
			close(fd);
			return -ENOMEM;
		}
	}
	*ret_fd = fd;
	return 0;
}

void recovery_record_remove(const char *directory, const char *name)
{
	auto_close int dir = name[0] ? open_directory(directory) : -1;

	if (dir >= 0)
		unlinkat(dir, name, 0);
}

static bool is_set(int record, off_t at)
{
	uint64_t word = 0;

	return record >= 0 && pread(record, &word, sizeof(word), at) == sizeof(word) && word;
}

bool recovery_record_owes(int record)
{
	return is_set(record, 0) || is_set(record, IPC_UNDO_ANSWER);
}

/* SPAWN.TARGET.NUMBER */
static bool parse_name(const char *name, pid_t *ret_spawn, pid_t *ret_target)
{
	int spawn, target, n = 0;

	if (sscanf(name, "%9d.%9d.%*9u%n", &spawn, &target, &n) != 2 || !n || name[n] ||
	    spawn <= 0 || target <= 0)
		return false;
	*ret_spawn = spawn;
	*ret_target = target;
	return true;
}

static bool owes_answer(int record)
{
	return is_set(record, IPC_UNDO_ANSWER);
}

static bool any_record(const char *directory, pid_t target, bool (*owes)(int record))
{
	int fd = open_directory(directory);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	bool found = false;

	while (dir && !found && (e = readdir(dir))) {
		auto_close int record = -1;
		pid_t spawn, of;

		if (!parse_name(e->d_name, &spawn, &of) || of != target)
			continue;
		record = openat(fd, e->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		found = owes(record);
	}
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
	return found;
}

bool recovery_owes(const char *directory, pid_t target)
{
	return any_record(directory, target, recovery_record_owes);
}

int recovery_owe_answer(const char *directory, pid_t target, int record)
{
	const uint64_t owed = 1;

	/* It is one, however many were there when it was seen. */
	if (record < 0 || any_record(directory, target, owes_answer))
		return 0;
	return pwrite(record, &owed, sizeof(owed), IPC_UNDO_ANSWER) < 0 ? -errno : 0;
}

/* ------------------------------------------------------------------ taking over -------------- */

/* The worker or rescuer that still works with a record; 0: none. */
static pid_t holder(int record)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (fcntl(record, F_GETLK, &lock) < 0 || lock.l_type == F_UNLCK)
		return 0;
	return lock.l_pid;
}

/* @return how it ended: IPC_HOW_STUCK when it had to be killed. */
static enum ipc_how end_worker(int record, pid_t target, uint64_t grace)
{
	uint64_t give_up = 0;
	pid_t pid;

	while ((pid = holder(record)) > 0) {
		if (!give_up && !clock_left_ms(grace)) {
			log_warning(
				"worker %d for process %d does not end without its parent: killed",
				(int)pid, (int)target);
			kill(pid, SIGKILL);
			give_up = clock_deadline_ms(DEATH_MS);
		}
		if (give_up && !clock_left_ms(give_up))
			break;
		poll(NULL, 0, POLL_MS);
	}
	return give_up ? IPC_HOW_STUCK : IPC_HOW_DIED;
}

static void look_after(const struct workers *w, int record, pid_t target, enum ipc_how how)
{
	auto_close int pidfd = (int)syscall(SYS_pidfd_open, target, 0);
	const struct worker dead = { .kind = IPC_KIND_SESSION, .target = target, .owner = getuid(),
				     .target_pidfd = pidfd, .undo_fd = record, .how = how };
	pid_t child;

	if (pidfd < 0)
		return;
	child = fork();
	if (child == 0)
		workers_look_after(w, &dead);
	if (child > 0)
		waitpid(child, NULL, 0);
}

/* Children that look after one target each: one that cannot be helped keeps no other waiting. */
struct helpers {
	pid_t pids[HELPERS_MAX];
	size_t first, n;
};

static void await_one(struct helpers *h)
{
	waitpid(h->pids[h->first], NULL, 0);
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
		h->pids[(h->first + h->n++) % HELPERS_MAX] = pid;
	return pid;
}

static _Noreturn void take_over_one(const struct workers *w, int dir_fd, const char *name, int record,
				    pid_t target, uint64_t grace)
{
	look_after(w, record, target, end_worker(record, target, grace));
	unlinkat(dir_fd, name, 0);
	_exit(0);
}

/* @param of  Leave the records of other agents alone; 0: all. */
static void take_over(const struct workers *w, int dir_fd, pid_t of)
{
	uint64_t grace = clock_deadline_ms(GRACE_MS);
	DIR *dir = fdopendir(fcntl(dir_fd, F_DUPFD_CLOEXEC, 0));
	struct helpers helpers = { .n = 0 };
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		auto_close int record = -1;
		pid_t spawn, target;

		if (!parse_name(e->d_name, &spawn, &target) || (of && spawn != of))
			continue;
		record = openat(dir_fd, e->d_name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
		if (record >= 0 && fork_helper(&helpers) == 0)
			take_over_one(w, dir_fd, e->d_name, record, target, grace);
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

static void lock_and_take_over(const struct workers *w, pid_t of)
{
	auto_close int dir = open_directory(w->records);

	if (dir >= 0 && lock(dir))
		take_over(w, dir, of);
}

void recovery_take_over(const struct workers *w)
{
	lock_and_take_over(w, 0);
}

static _Noreturn void look_after_orphan(const struct workers *w, pid_t target)
{
	char name[WORKER_RECORD_NAME_MAX];
	int record;

	if (recovery_record_create(w->records, target, name, &record) < 0)
		_exit(1);
	look_after(w, record, target, IPC_HOW_DIED);
	recovery_record_remove(w->records, name);
	_exit(0);
}

void recovery_release_leftovers(const struct workers *w)
{
	char path[PATH_MAX + 8];
	struct helpers helpers = { .n = 0 };
	struct dirent *d;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/proc", w->config->kfd_sysfs);
	dir = opendir(path);
	while (dir && (d = readdir(dir))) {
		uint64_t pid;

		if (str_to_u64(d->d_name, 1, INT32_MAX, &pid) == 0 && release_waiting((pid_t)pid) > 0 &&
		    fork_helper(&helpers) == 0)
			look_after_orphan(w, (pid_t)pid);
	}
	if (dir)
		closedir(dir);
}

void recovery_start(const struct workers *w)
{
	pid_t parent = getpid(), child;
	int alive[2];
	char byte;

	if (pipe2(alive, O_CLOEXEC) < 0)
		return;
	child = fork();
	if (child == 0) {
		close_range(STDERR_FILENO + 1, (unsigned)alive[0] - 1, 0);
		close_range((unsigned)alive[0] + 1, ~0u, 0);
		setsid();
		prctl(PR_SET_NAME, "gpu-agent-heir");
		/* Nobody writes: this is the end of our parent. */
		while (read(alive[0], &byte, 1) < 0 && errno == EINTR)
			;
		lock_and_take_over(w, parent);
		_exit(0);
	}
	close(alive[0]);
	/* The other end stays open as long as we live. */
	if (child < 0)
		close(alive[1]);
}
