/* SPDX-License-Identifier: MIT */
#include "agentd/manager/notify.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

#define LISTEN_FDS_START 3

static int manager_fd = -1;
static uint32_t watchdog_ms;

static int connect_manager(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t n = strlen(path);
	int fd;

	if (n < 2 || n >= sizeof(addr.sun_path) || (path[0] != '/' && path[0] != '@'))
		return -1;
	memcpy(addr.sun_path, path, n);
	if (path[0] == '@')
		addr.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&addr,
			       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) < 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

void notify_init(void)
{
	const char *path = getenv("NOTIFY_SOCKET"), *usec = getenv("WATCHDOG_USEC");
	const char *pid = getenv("WATCHDOG_PID");
	uint64_t v;

	if (path)
		manager_fd = connect_manager(path);
	if (usec && str_to_u64(usec, 1, UINT64_C(86400000000), &v) == 0 &&
	    (!pid || strtoul(pid, NULL, 10) == (unsigned long)getpid()))
		watchdog_ms = (uint32_t)(v / 2000) ? (uint32_t)(v / 2000) : 1;
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}

void notify_send(const char *fmt, ...)
{
	char text[256];
	va_list ap;
	int n;

	if (manager_fd < 0)
		return;
	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n > 0)
		(void)fd_send(manager_fd, text, strlen(text), NULL, 0);
}

uint32_t notify_watchdog_ms(void)
{
	return manager_fd >= 0 ? watchdog_ms : 0;
}

static int socket_option(int fd, int name)
{
	int value = -1;
	socklen_t size = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, name, &value, &size) < 0 ? -1 : value;
}

int notify_listen_fd(int *ret_fd)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	int fd = -1;

	if (fds && (!pid || strtoul(pid, NULL, 10) == (unsigned long)getpid())) {
		fd = LISTEN_FDS_START;
		if (strcmp(fds, "1") || socket_option(fd, SO_DOMAIN) != AF_UNIX ||
		    socket_option(fd, SO_TYPE) != SOCK_STREAM ||
		    socket_option(fd, SO_ACCEPTCONN) != 1)
			return -EINVAL;
		fd_set_cloexec(fd, true);
	}
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	*ret_fd = fd;
	return 0;
}
