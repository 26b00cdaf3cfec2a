/* SPDX-License-Identifier: MIT */
#include "watch_calls.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALLS_MAX 1024 /* numbers of system calls */
#define TEXTS_MAX 300  /* arguments that are told apart */
#define TEXT_SIZE 200
#define IDLE_MAX_MS 60000

static struct {
	unsigned count[CALLS_MAX];
	char texts[TEXTS_MAX][TEXT_SIZE];
	unsigned n_texts;
} seen;

/* Every call is told of but the one that hands over the descriptor, when nobody listens yet. */
static int install(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sendmsg, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

union control {
	struct cmsghdr align;
	char data[CMSG_SPACE(sizeof(int))];
};

static int send_descriptor(int socket, int fd)
{
	union control control = { .data = { 0 } };
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(socket, &message, 0) == 1 ? 0 : -1;
}

static int receive_descriptor(int socket)
{
	union control control;
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *c;
	int fd = -1;

	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1)
		return -1;
	c = CMSG_FIRSTHDR(&message);
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

/* Text at an address of the caller; empty when it cannot be read. */
static void read_text(uint32_t pid, uint64_t address, char *to, size_t size)
{
	char path[32];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = pread(fd, to, size - 1, (off_t)address);
		close(fd);
	}
	to[n < 0 ? 0 : n] = '\0';
	for (; *to; to++)
		if ((unsigned char)*to < ' ' || *to == '"' || *to == '\\')
			*to = '?';
}

static void remember(const char *text)
{
	for (unsigned i = 0; i < seen.n_texts; i++)
		if (!strcmp(seen.texts[i], text))
			return;
	if (seen.n_texts < TEXTS_MAX)
		snprintf(seen.texts[seen.n_texts++], TEXT_SIZE, "%s", text);
}

/* What of a call's arguments a filter could look at, or a rule about files. */
static void note(const struct seccomp_notif *n)
{
	const __u64 *a = n->data.args;
	char text[TEXT_SIZE], path[128] = "";

	if (n->data.nr < 0 || n->data.nr >= CALLS_MAX)
		return;
	seen.count[n->data.nr]++;
	switch (n->data.nr) {
	case SYS_openat:
		read_text(n->pid, a[1], path, sizeof(path));
		snprintf(text, sizeof(text), "openat %s flags 0x%x", path, (unsigned)a[2]);
		break;
	case SYS_ioctl:
		snprintf(text, sizeof(text), "ioctl 0x%x", (unsigned)a[1]);
		break;
	case SYS_socket:
		snprintf(text, sizeof(text), "socket %u, %u, %u", (unsigned)a[0], (unsigned)a[1], (unsigned)a[2]);
		break;
	case SYS_ptrace:
		snprintf(text, sizeof(text), "ptrace 0x%x", (unsigned)a[0]);
		break;
	case SYS_prctl:
		snprintf(text, sizeof(text), "prctl 0x%x", (unsigned)a[0]);
		break;
	default:
		return;
	}
	remember(text);
}

/* Until nobody is left who could call, or nobody calls for long. */
static void listen_to(int fd)
{
	struct seccomp_notif_resp answer = { .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct seccomp_notif n;

	while (poll(&p, 1, IDLE_MAX_MS) > 0 && p.revents & POLLIN) {
		memset(&n, 0, sizeof(n));
		if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &n) < 0)
			continue; /* who called is gone */
		note(&n);
		answer.id = n.id;
		ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	}
}

static void tell(const char *path)
{
	FILE *f = fopen(path, "we");

	for (int i = 0; f && i < CALLS_MAX; i++) {
		char *name;

		if (!seen.count[i])
			continue;
		name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86_64, i);
		fprintf(f, "{\"calls\": \"%s\", \"times\": %u}\n", name ? name : "unknown", seen.count[i]);
		free(name);
	}
	for (unsigned i = 0; f && i < seen.n_texts; i++)
		fprintf(f, "{\"argument\": \"%s\"}\n", seen.texts[i]);
	if (f) {
		fprintf(f, "{\"end\": true}\n");
		fclose(f);
	}
}

int watch_calls(const char *path)
{
	int sockets[2], fd;
	pid_t watcher;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0)
		return -1;
	watcher = fork();
	if (watcher == 0) {
		close(sockets[0]);
		fd = receive_descriptor(sockets[1]);
		if (fd >= 0) {
			listen_to(fd);
			tell(path);
		}
		_exit(0);
	}
	close(sockets[1]);
	fd = watcher < 0 ? -1 : install();
	if (fd < 0 || send_descriptor(sockets[0], fd) < 0)
		return -1;
	/* It would keep the watcher's end from coming. */
	close(fd);
	close(sockets[0]);
	return 0;
}
