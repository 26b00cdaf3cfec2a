/* SPDX-License-Identifier: MIT */
/*
 * The least a server can do: epoll, receive, send the same bytes back.
 * What the daemon needs beyond this is its own.  Ends with its standard input.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/str.h"

static int watch(int epoll_fd, int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e);
}

static void echo(int fd)
{
	static char buf[65536];
	ssize_t n = recv(fd, buf, sizeof(buf), 0);

	if (n == 0 || (n < 0 && errno != EAGAIN) ||
	    (n > 0 && send(fd, buf, (size_t)n, MSG_NOSIGNAL) != n))
		close(fd);
}

int main(int argc, char **argv)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event e;

	if (argc != 2) {
		fputs("usage: echo SOCKET\n", stderr);
		return 2;
	}
	str_copy(addr.sun_path, sizeof(addr.sun_path), argv[1]);
	if (bind(listen_fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
	    listen(listen_fd, 128) < 0 || watch(epoll_fd, listen_fd) < 0 ||
	    watch(epoll_fd, STDIN_FILENO) < 0) {
		fprintf(stderr, "echo: %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	puts("ready");
	fflush(stdout);
	while (epoll_wait(epoll_fd, &e, 1, -1) >= 0 || errno == EINTR) {
		if (e.data.fd == STDIN_FILENO)
			return 0;
		if (e.data.fd == listen_fd)
			watch(epoll_fd,
			      accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
		else
			echo(e.data.fd);
	}
	return 1;
}
