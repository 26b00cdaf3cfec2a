/* SPDX-License-Identifier: MIT */
#include "agentd/hook/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentd/hook.h"
#include "base/cleanup.h"
#include "base/str.h"

/* A walk down a path. */
struct walk {
	uid_t uid;
	char done[HOOK_PATH_MAX]; /* The part of the path that the walk has reached. */
	char *why;
	size_t why_size;
};

__attribute__((format(printf, 2, 3))) static int refuse(struct walk *w, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(w->why, w->why_size, fmt, ap);
	va_end(ap);
	return -EPERM;
}

/* Judge owner and mode.  @param st  The facts about w->done. */
static int judge(struct walk *w, const struct stat *st)
{
	if (st->st_uid != 0 && st->st_uid != w->uid)
		return refuse(
			w,
			"%s belongs to uid %u, neither root nor the user it would run as (uid %u)",
			w->done, st->st_uid, w->uid);
	if (st->st_mode & (S_IWGRP | S_IWOTH))
		return refuse(w, "%s can be written by %s (mode %04o)", w->done,
			      st->st_mode & S_IWOTH ? "everybody" : "a group",
			      (unsigned)st->st_mode & 07777);
	return 0;
}

static int judge_file(struct walk *w, int fd, const struct stat *st)
{
	if (S_ISLNK(st->st_mode))
		return refuse(w, "%s is a symbolic link: name the file itself", w->done);
	if (!S_ISREG(st->st_mode))
		return refuse(w, "%s is not a regular file", w->done);
	if (faccessat(fd, "", X_OK, AT_EMPTY_PATH | AT_EACCESS) < 0)
		return refuse(w, "%s may not be executed by uid %u: %s", w->done, w->uid,
			      strerror(errno));
	return 0;
}

/* Walk one step down.  @param last  The step leads to the file.  @return 0 or -errno. */
static int step(struct walk *w, int *fd, const char *name, size_t size, bool last)
{
	const size_t done = strlen(w->done);
	auto_close int next = -1;
	struct stat st;
	int r;

	snprintf(w->done + done, sizeof(w->done) - done, "%s%.*s", done > 1 ? "/" : "", (int)size, name);
	next = openat(*fd, w->done + done + (done > 1), O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (next < 0 || fstat(next, &st) < 0) {
		r = -errno;
		snprintf(w->why, w->why_size, "%s: %s", w->done, strerror(-r));
		return r;
	}
	/* The kind is judged before the mode, since the mode of a symbolic link says nothing. */
	r = last ? judge_file(w, next, &st) : 0;
	if (!last && !S_ISDIR(st.st_mode))
		r = refuse(w, "%s is %s: name the directories themselves", w->done,
			   S_ISLNK(st.st_mode) ? "a symbolic link" : "not a directory");
	if (r == 0)
		r = judge(w, &st);
	if (r < 0)
		return r;
	close(*fd);
	*fd = TAKE_FD(next);
	return 0;
}

static bool is_plain(const char *path)
{
	size_t size = strlen(path);

	return path[0] == '/' && size > 1 && size < HOOK_PATH_MAX && path[size - 1] != '/' &&
	       !strstr(path, "//") && !strstr(path, "/./") && !strstr(path, "/../") &&
	       (size < 2 || strcmp(path + size - 2, "/.") != 0) &&
	       (size < 3 || strcmp(path + size - 3, "/..") != 0);
}

int hook_file_open(const char *path, uid_t uid, char *why, size_t why_size, int *ret_fd)
{
	struct walk w = { .uid = uid, .done = "/", .why = why, .why_size = why_size };
	auto_close int fd = -1;
	struct stat st;
	int r;

	if (!is_plain(path))
		return refuse(&w, "%s is not an absolute path without . and ..", path);
	fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0) {
		r = -errno;
		snprintf(why, why_size, "/: %s", strerror(-r));
		return r;
	}
	r = judge(&w, &st);
	for (const char *name = path + 1; r == 0 && *name;) {
		size_t size = strcspn(name, "/");

		r = step(&w, &fd, name, size, !name[size]);
		name += size + (name[size] == '/');
	}
	if (r == 0)
		*ret_fd = TAKE_FD(fd);
	return r;
}
