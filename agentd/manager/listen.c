/* SPDX-License-Identifier: MIT */
#include "agentd/manager/listen.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"

#define BACKLOG 128

static int unix_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

/* Does somebody accept connections there? */
static int probe(const struct sockaddr_un *addr)
{
	auto_close int fd = unix_socket();
	struct stat st;

	if (fd < 0)
		return fd;
	/* To connect() an ordinary file is a socket that nobody serves. */
	if (lstat(addr->sun_path, &st) == 0 && !S_ISSOCK(st.st_mode))
		return -ENOTSOCK;
	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0 || errno == EAGAIN)
		return -EADDRINUSE;
	return errno == ECONNREFUSED ? 1 : errno == ENOENT ? 0 : -errno;
}

static void make_parent(const char *path)
{
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path)];
	char *slash;

	str_copy(dir, sizeof(dir), path);
	slash = strrchr(dir, '/');
	if (!slash || slash == dir)
		return;
	*slash = '\0';
	/* A failure shows at bind(), with the path. */
	(void)mkdir(dir, 0755);
}

static int bind_privately(int fd, const struct sockaddr_un *addr)
{
	mode_t old = umask(0177);
	int r = bind(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0 ? -errno : 0;

	umask(old);
	return r;
}

/*
 * The owner of a file may give it to the group he acts as, which CAP_SETGID lets him choose: a container
 * then needs no CAP_CHOWN.
 */
static int chown_as_member(const char *path, gid_t gid)
{
	gid_t own = getegid();
	int r;

	if (setegid(gid) < 0)
		return -errno;
	r = chown(path, (uid_t)-1, gid) < 0 ? -errno : 0;
	/* A saved group is never refused, so this fails for nobody; a daemon in a wrong group must not go on. */
	return setegid(own) < 0 ? -errno : r;
}

static int give_to_group(const char *path, gid_t gid)
{
	int r = 0;

	if (gid == (gid_t)-1)
		return 0;
	if (chown(path, (uid_t)-1, gid) < 0)
		r = errno == EPERM ? chown_as_member(path, gid) : -errno;
	if (r == 0 && chmod(path, 0660) < 0)
		r = -errno;
	if (r < 0)
		unlink(path);
	return r;
}

int listen_open(const char *path, gid_t gid, int *ret_fd, char *error, size_t error_size)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	auto_close int fd = -1;
	int r;

	if (path[0] != '/' || strlen(path) >= sizeof(addr.sun_path)) {
		snprintf(error, error_size,
			 "socket path %s: not absolute, or longer than %zu bytes", path,
			 sizeof(addr.sun_path) - 1);
		return -EINVAL;
	}
	str_copy(addr.sun_path, sizeof(addr.sun_path), path);
	make_parent(path);
	r = probe(&addr);
	if (r == 1)
		r = unlink(path) < 0 ? -errno : 0;
	if (r == 0)
		r = fd = unix_socket();
	if (r >= 0)
		r = bind_privately(fd, &addr);
	if (r == 0) {
		r = give_to_group(path, gid);
		if (r == -EPERM) {
			snprintf(error, error_size,
				 "%s: cannot be given to group %u without CAP_SETGID or CAP_CHOWN: start "
				 "gpu-agentd.socket, or choose another socket_group", path, gid);
			return r;
		}
	}
	/* Before anybody can connect: sockets are what the listener was then. */
	if (r == 0)
		r = fd_refuse_rights(fd);
	if (r == 0)
		r = listen(fd, BACKLOG) < 0 ? -errno : 0;
	if (r < 0) {
		snprintf(error, error_size, "%s: %s", path,
			 r == -EADDRINUSE ? "another gpu-agentd serves this socket" : strerror(-r));
		return r;
	}
	*ret_fd = TAKE_FD(fd);
	return 0;
}
