/* SPDX-License-Identifier: MIT */
#include "agentd/ipc/undo_record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentd/ipc/child.h"
#include "base/cleanup.h"
#include "base/log.h"

void undo_record_place(const char *socket, char *ret, size_t size)
{
	snprintf(ret, size, "%s.undo", socket);
}

int undo_record_directory(const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	/* Whoever else may write there could make us rescue, that is change, what they like. */
	if (st.st_uid != geteuid() || st.st_mode & 077)
		return -EPERM;
	return TAKE_FD(fd);
}

static int create_file(const char *directory, const char *name)
{
	auto_close int dir = -1, fd = -1;

	if (mkdir(directory, 0700) < 0 && errno != EEXIST)
		return -errno;
	dir = undo_record_directory(directory);
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

static void make_name(pid_t target, char ret_name[UNDO_RECORD_NAME_MAX])
{
	static unsigned last;

	snprintf(ret_name, UNDO_RECORD_NAME_MAX, "%d.%d.%u", (int)getpid(), (int)target, ++last);
}

int undo_record_create(const char *directory, pid_t target,
		       char ret_name[UNDO_RECORD_NAME_MAX], int *ret_fd)
{
	int fd;

	make_name(target, ret_name);
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

void undo_record_remove(const char *directory, const char *name)
{
	auto_close int dir = name[0] ? undo_record_directory(directory) : -1;

	if (dir >= 0)
		unlinkat(dir, name, 0);
}

void undo_record_drop(const char *directory, const char *name, int record)
{
	if (!undo_record_is_suspended(record))
		undo_record_remove(directory, name);
}

static bool is_set(int record, off_t at)
{
	uint64_t word = 0;

	return record >= 0 && pread(record, &word, sizeof(word), at) == sizeof(word) && word;
}

bool undo_record_owes(int record)
{
	return is_set(record, 0) || is_set(record, IPC_UNDO_ANSWER);
}

bool undo_record_is_suspended(int record)
{
	return is_set(record, IPC_UNDO_SUSPENDED);
}

bool undo_record_parse_name(const char *name, pid_t *ret_monitor, pid_t *ret_target)
{
	int monitor, target, n = 0;

	if (sscanf(name, "%9d.%9d.%*9u%n", &monitor, &target, &n) != 2 || !n || name[n] ||
	    monitor <= 0 || target <= 0)
		return false;
	*ret_monitor = monitor;
	*ret_target = target;
	return true;
}

static bool owes_answer(int record)
{
	return is_set(record, IPC_UNDO_ANSWER);
}

/* @return whether the walk is over. */
typedef bool record_fn(void *ctx, int dir, const char *name, int record, pid_t target);

/* @param target  Only records of that process, whose names say so: those of others are not opened.  0: all. */
static bool for_records(const char *directory, pid_t target, record_fn *look, void *ctx)
{
	int fd = undo_record_directory(directory);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	bool over = false;

	while (dir && !over && (e = readdir(dir))) {
		auto_close int record = -1;
		pid_t monitor, of;

		if (!undo_record_parse_name(e->d_name, &monitor, &of) || (target && of != target))
			continue;
		record = openat(fd, e->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		over = look(ctx, fd, e->d_name, record, of);
	}
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
	return over;
}

struct owing {
	bool (*owes)(int record);
};

static bool look_for_owing(void *ctx, int dir, const char *name, int record, pid_t target)
{
	const struct owing *o = ctx;

	(void)dir;
	(void)name;
	(void)target;
	return o->owes(record);
}

static bool any_record(const char *directory, pid_t target, bool (*owes)(int record))
{
	return for_records(directory, target, look_for_owing, &(struct owing){ owes });
}

struct reuse {
	char *name;
	int *fd;
	int status;
};

static bool look_for_reuse(void *ctx, int dir, const char *name, int record, pid_t target)
{
	struct reuse *u = ctx;

	/* Where something else is to be undone, a rescue is at work. */
	if (!undo_record_is_suspended(record) || undo_record_owes(record))
		return false;
	*u->fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	make_name(target, u->name);
	u->status = *u->fd < 0 || renameat(dir, name, dir, u->name) < 0 ? -errno : 0;
	return true;
}

int undo_record_reuse(const char *directory, pid_t target, char ret_name[UNDO_RECORD_NAME_MAX], int *ret_fd)
{
	struct reuse u = { .name = ret_name, .fd = ret_fd, .status = -ENOENT };

	*ret_fd = -1;
	for_records(directory, target, look_for_reuse, &u);
	if (u.status < 0) {
		ret_name[0] = '\0';
		if (*ret_fd >= 0)
			close(TAKE_FD(*ret_fd));
	}
	return u.status;
}

struct next_suspended {
	pid_t after, but_of, found;
};

static bool look_for_next(void *ctx, int dir, const char *name, int record, pid_t target)
{
	struct next_suspended *n = ctx;
	pid_t monitor, of;

	(void)dir;
	if (n->but_of && undo_record_parse_name(name, &monitor, &of) && monitor == n->but_of)
		return false;
	if (target > n->after && (!n->found || target < n->found) && undo_record_is_suspended(record))
		n->found = target;
	return false;
}

pid_t undo_record_next_suspended(const char *directory, pid_t after, pid_t but_of)
{
	struct next_suspended n = { .after = after, .but_of = but_of };

	for_records(directory, 0, look_for_next, &n);
	return n.found;
}

bool undo_record_any_owes(const char *directory, pid_t target)
{
	return any_record(directory, target, undo_record_owes);
}

int undo_record_owe_answer(const char *directory, pid_t target, int record)
{
	const uint64_t owed = 1;

	/* It is one, however many were there when it was seen. */
	if (record < 0 || any_record(directory, target, owes_answer))
		return 0;
	return pwrite(record, &owed, sizeof(owed), IPC_UNDO_ANSWER) < 0 ? -errno : 0;
}
