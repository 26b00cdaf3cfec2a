/* SPDX-License-Identifier: MIT */
#include "watch_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
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

static ssize_t read_memory(uint32_t pid, uint64_t address, void *to, size_t size)
{
	char path[32];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = pread(fd, to, size, (off_t)address);
		close(fd);
	}
	return n;
}

static void make_printable(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || (unsigned char)*text > '~' || *text == '"' || *text == '\\')
			*text = '?';
}

/* Text at an address of the caller; empty when it cannot be read. */
static void read_text(uint32_t pid, uint64_t address, char *to, size_t size)
{
	ssize_t n = read_memory(pid, address, to, size - 1);

	to[n < 0 ? 0 : n] = '\0';
	make_printable(to);
}

/* The address of a socket: @name, a path, or family and port. */
static void read_address(uint32_t pid, const __u64 *a, char *to, size_t size)
{
	union {
		struct sockaddr any;
		struct sockaddr_un local;
		struct sockaddr_in inet;
	} u = { .any.sa_family = AF_UNSPEC };
	size_t wanted = a[2] < sizeof(u) ? a[2] : sizeof(u);
	ssize_t n = read_memory(pid, a[1], &u, wanted);
	int length = n < 2 ? 0 : (int)n - 2;

	if (u.any.sa_family == AF_INET)
		snprintf(to, size, "inet 0x%x:%u", ntohl(u.inet.sin_addr.s_addr), ntohs(u.inet.sin_port));
	else if (u.any.sa_family == AF_UNIX && length && !u.local.sun_path[0])
		snprintf(to, size, "@%.*s, %d bytes", length - 1, u.local.sun_path + 1, length);
	else if (u.any.sa_family == AF_UNIX)
		snprintf(to, size, "%.*s, %d bytes", length, u.local.sun_path, length);
	else
		snprintf(to, size, "family %u", u.any.sa_family);
	make_printable(to);
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
	char text[TEXT_SIZE], path[80] = "", other[80] = "";

	if (n->data.nr < 0 || n->data.nr >= CALLS_MAX)
		return;
	seen.count[n->data.nr]++;
	switch (n->data.nr) {
	case SYS_openat:
		read_text(n->pid, a[1], path, sizeof(path));
		snprintf(text, sizeof(text), "openat %s flags 0x%x", path, (unsigned)a[2]);
		break;
	case SYS_connect:
	case SYS_bind:
		read_address(n->pid, a, path, sizeof(path));
		snprintf(text, sizeof(text), "%s %u to %s", n->data.nr == SYS_bind ? "bind" : "connect", (unsigned)a[0], path);
		break;
	case SCMP_SYS(symlink):
	case SCMP_SYS(rename):
		read_text(n->pid, a[0], path, sizeof(path));
		read_text(n->pid, a[1], other, sizeof(other));
		snprintf(text, sizeof(text), "%s %s, %s", n->data.nr == SCMP_SYS(rename) ? "rename" : "symlink", path, other);
		break;
	case SCMP_SYS(unlink):
	case SCMP_SYS(mkdir):
	case SCMP_SYS(readlink):
		read_text(n->pid, a[0], path, sizeof(path));
		snprintf(text, sizeof(text), "%s %s",
			 n->data.nr == SCMP_SYS(unlink) ? "unlink" : n->data.nr == SCMP_SYS(mkdir) ? "mkdir" : "readlink", path);
		break;
	case SYS_listen:
	case SYS_accept:
		snprintf(text, sizeof(text), "%s %u", n->data.nr == SYS_listen ? "listen" : "accept", (unsigned)a[0]);
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

static bool is_named(const char *words, const char *word)
{
	size_t size = strlen(word);

	for (const char *at = words; at && (at = strstr(at, word)); at += size)
		if ((at == words || at[-1] == ',') && (at[size] == '\0' || at[size] == ','))
			return true;
	return false;
}

/* @return 0, or with what a call fails that is refused. */
static int refusal(const struct seccomp_notif *n, const char *refused)
{
	static const struct {
		int nr;
		const char *word;
	} whole[] = { { SCMP_SYS(symlink), "symlink" }, { SCMP_SYS(unlink), "unlink" },
		      { SYS_listen, "listen" }, { SYS_accept, "accept" } };
	const __u64 *a = n->data.args;
	char address[80] = "";

	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
		if (n->data.nr == whole[i].nr && is_named(refused, whole[i].word))
			return -EPERM;
	if (n->data.nr == SYS_socket && a[0] != AF_UNIX && is_named(refused, "inet"))
		return -EAFNOSUPPORT;
	if (n->data.nr == SYS_socket && a[0] == AF_UNIX && (a[1] & 0xf) == SOCK_DGRAM && is_named(refused, "datagram"))
		return -EPERM;
	if (n->data.nr == SYS_connect || n->data.nr == SYS_bind)
		read_address(n->pid, a, address, sizeof(address));
	if (n->data.nr == SYS_connect && is_named(refused, "path"))
		return address[0] == '/' ? -EPERM : 0;
	/* The label of a session is ours (libcudbgshim/src/label.c). */
	if (n->data.nr == SYS_bind && is_named(refused, "bind"))
		return strstr(address, "@nv_target_process") ? 0 : -EPERM;
	return 0;
}

/* Until nobody is left who could call, or nobody calls for long. */
static void listen_to(int fd, const char *refused)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct seccomp_notif_resp answer;
	struct seccomp_notif n;

	while (poll(&p, 1, IDLE_MAX_MS) > 0 && p.revents & POLLIN) {
		memset(&n, 0, sizeof(n));
		if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &n) < 0)
			continue; /* who called is gone */
		note(&n);
		answer = (struct seccomp_notif_resp){ .id = n.id, .error = refusal(&n, refused) };
		if (!answer.error)
			answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
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

int watch_calls(const char *path, const char *refused)
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
			listen_to(fd, refused);
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
