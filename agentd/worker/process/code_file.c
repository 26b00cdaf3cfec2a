/* SPDX-License-Identifier: MIT */
#include "agentd/worker/process/code_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

/* The kernel's own limit: MAXSYMLINKS in include/linux/namei.h. */
#define LINKS_MAX 40
/* Most directories open at once, the root not counted. */
#define DEPTH_MAX 64

int code_file_root(pid_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
	fd = open(path, O_RDONLY | O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/*
 * The directories from the root to where the walk is.  They stay open, so that `..` leads to where
 * the walk came from, even if the target moves a directory meanwhile.
 */
struct walk {
	int root; /* Borrowed. */
	int dirs[DEPTH_MAX]; /* Owned. */
	size_t depth;
	unsigned links; /* Symbolic links followed so far. */
	char rest[CODE_FILE_PATH_MAX + 1]; /* The part of the path that is still to be walked. */
};

static void walk_to_root(struct walk *w)
{
	while (w->depth)
		close(w->dirs[--w->depth]);
}

static int here(const struct walk *w)
{
	return w->depth ? w->dirs[w->depth - 1] : w->root;
}

/* Cut the next name off the rest.  @return false at the end of the path and on errors. */
static bool next_name(struct walk *w, char name[NAME_MAX + 1], int *ret_error)
{
	const char *p = w->rest + strspn(w->rest, "/");
	size_t n = strcspn(p, "/");

	*ret_error = n > NAME_MAX ? -ENAMETOOLONG : 0;
	if (!n || *ret_error)
		return false;
	memcpy(name, p, n);
	name[n] = '\0';
	memmove(w->rest, p + n, strlen(p + n) + 1);
	return true;
}

/* Put the text of a symbolic link in front of the rest. */
static int follow(struct walk *w, int link_fd)
{
	char text[CODE_FILE_PATH_MAX + 1];
	size_t rest = strlen(w->rest);
	ssize_t n;

	if (++w->links > LINKS_MAX)
		return -ELOOP;
	n = readlinkat(link_fd, "", text, sizeof(text));
	if (n <= 0)
		return n < 0 ? -errno : -ENOENT;
	if ((size_t)n + rest > CODE_FILE_PATH_MAX)
		return -ENAMETOOLONG;
	memmove(w->rest + n, w->rest, rest + 1);
	memcpy(w->rest, text, (size_t)n);
	if (text[0] == '/')
		walk_to_root(w);
	return 0;
}

int code_file_open_found(int path_fd)
{
	char path[64];
	struct stat st;
	int fd;

	if (fstat(path_fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EMEDIUMTYPE;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Walk one step.  @return 0 or -errno; *ret_fd is set if the name is the wanted file. */
static int step(struct walk *w, const char *name, int *ret_fd)
{
	auto_close int fd = -1;
	struct stat st;

	if (!strcmp(name, "."))
		return 0;
	if (!strcmp(name, "..")) {
		if (w->depth)
			close(w->dirs[--w->depth]);
		return 0;
	}
	fd = openat(here(w), name, O_RDONLY | O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode))
		return follow(w, fd);
	if (S_ISDIR(st.st_mode)) {
		if (w->depth == DEPTH_MAX)
			return -ENAMETOOLONG;
		w->dirs[w->depth++] = TAKE_FD(fd);
		return 0;
	}
	if (w->rest[strspn(w->rest, "/")])
		return -ENOTDIR;
	*ret_fd = code_file_open_found(fd);
	return *ret_fd < 0 ? *ret_fd : 0;
}

int code_file_open(int root_fd, const char *path, struct stat *ret_st)
{
	struct walk w = { .root = root_fd };
	char name[NAME_MAX + 1];
	auto_close int fd = -1;
	struct stat st;
	int r = 0;

	if (root_fd < 0)
		return -EACCES;
	if (strlen(path) > CODE_FILE_PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(w.rest, path, strlen(path) + 1);
	while (r == 0 && fd < 0 && next_name(&w, name, &r))
		r = step(&w, name, &fd);
	walk_to_root(&w);
	if (r < 0)
		return r;
	if (fd < 0)
		return -EMEDIUMTYPE;
	if (fstat(fd, &st) < 0)
		return -errno;
	*ret_st = st;
	return TAKE_FD(fd);
}
