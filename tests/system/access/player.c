/* SPDX-License-Identifier: MIT */
/*
 * For test_pairs.py: a process that becomes what it is told to, as peer or as target.
 *
 *   access_player SOCKET [STEP STEPS]
 *
 * SOCKET is a descriptor, inherited; each packet is a command, answered by the number of an error, 0 if
 * there is none:
 *
 *   ids R E S R E S     user and group ids, without other groups; -1 leaves one as it is
 *   caps P E            permitted and effective capabilities, no others
 *   dumpable N          prctl(2)
 *   exec FILE           go on in that program, a copy of this one
 *   unshare FLAGS, join FLAGS     with the namespace's descriptor
 *   write FILE TEXT
 *   connect NAME        to the abstract socket; the connection stays open
 *   fork NAME           the child connects there and takes its commands from there
 *   seize PID           with a pidfd of the same process; answers two errors: of PTRACE_SEIZE, and of
 *                       pidfd_getfd(2) of a descriptor that does not exist.  PID 0: it has no number here
 *   race STEP;STEP...   do these again and again until the next command
 *
 * It ends with its socket.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMMAND_MAX 1024
#define NO_SUCH_DESCRIPTOR (1 << 20)

static int control;

static int error_of(long r)
{
	return r < 0 ? errno : 0;
}

static int set_ids(const char *words)
{
	int u[3], g[3];

	if (sscanf(words, "%d %d %d %d %d %d", &u[0], &u[1], &u[2], &g[0], &g[1], &g[2]) != 6)
		return EINVAL;
	prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
	/* In a user namespace it may be denied. */
	(void)!setgroups(0, NULL);
	if (setresgid((gid_t)g[0], (gid_t)g[1], (gid_t)g[2]) < 0)
		return errno;
	return error_of(setresuid((uid_t)u[0], (uid_t)u[1], (uid_t)u[2]));
}

static int set_capabilities(const char *words)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };
	unsigned long long permitted, effective;

	if (sscanf(words, "%llx %llx", &permitted, &effective) != 2)
		return EINVAL;
	for (int i = 0; i < 2; i++) {
		data[i].permitted = (uint32_t)(permitted >> (32 * i));
		data[i].effective = (uint32_t)(effective >> (32 * i));
	}
	return error_of(syscall(SYS_capset, &header, data));
}

static int write_file(const char *words)
{
	char path[64];
	int n = 0, fd, e = 0;

	if (sscanf(words, "%63s %n", path, &n) != 1 || !n)
		return EINVAL;
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	if (write(fd, words + n, strlen(words + n)) < 0)
		e = errno;
	close(fd);
	return e;
}

static int connect_to(const char *name, int type, int *ret)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type, 0), e;

	strncpy(addr.sun_path + 1, name, sizeof(addr.sun_path) - 2);
	e = error_of(connect(fd, (struct sockaddr *)&addr,
			     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))));
	*ret = fd;
	return e;
}

static int fork_to(const char *name)
{
	pid_t pid = fork();
	int fd;

	if (pid != 0)
		return error_of(pid);
	if (connect_to(name, SOCK_SEQPACKET, &fd) != 0)
		_exit(1);
	close(control);
	control = fd;
	return 0;
}

static int seize(pid_t pid)
{
	int status;

	if (ptrace(PTRACE_SEIZE, pid, 0, 0) < 0)
		return errno;
	/* It is let go in order, so that the next one can have it. */
	if (ptrace(PTRACE_INTERRUPT, pid, 0, 0) < 0 || waitpid(pid, &status, __WALL) != pid ||
	    ptrace(PTRACE_DETACH, pid, 0, 0) < 0)
		abort();
	return 0;
}

static void do_exec(const char *file, int step, const char *steps)
{
	char number[12], at[12];

	snprintf(number, sizeof(number), "%d", control);
	snprintf(at, sizeof(at), "%d", step);
	execl(file, "access_player", number, steps ? at : NULL, steps, NULL);
}

/* @param fd  That came along; -1: none.  @return the number of an error. */
static int run(const char *line, int fd, int step, const char *steps)
{
	const char *blank = strchr(line, ' '), *words = blank ? blank + 1 : "";
	size_t n = blank ? (size_t)(blank - line) : strlen(line);
	int unused;

#define IS(name) (n == strlen(name) && memcmp(line, name, n) == 0)
	if (IS("ids"))
		return set_ids(words);
	if (IS("caps"))
		return set_capabilities(words);
	if (IS("dumpable"))
		return error_of(prctl(PR_SET_DUMPABLE, atoi(words), 0, 0, 0));
	if (IS("unshare"))
		return error_of(unshare((int)strtol(words, NULL, 0)));
	if (IS("join"))
		return error_of(setns(fd, (int)strtol(words, NULL, 0)));
	if (IS("write"))
		return write_file(words);
	if (IS("connect"))
		return connect_to(words, SOCK_STREAM, &unused);
	if (IS("fork"))
		return fork_to(words);
	if (IS("exec")) {
		do_exec(words, step, steps);
		return errno;
	}
	return EINVAL;
#undef IS
}

static bool is_told(void)
{
	struct pollfd p = { .fd = control, .events = POLLIN };

	return poll(&p, 1, 0) != 0;
}

/* From step number @p at on, until there is another command. */
static void race(int at, const char *steps)
{
	while (!is_told()) {
		char text[COMMAND_MAX], *rest = text, *step = NULL;

		strncpy(text, steps, sizeof(text) - 1);
		text[sizeof(text) - 1] = '\0';
		for (int i = 0; i <= at && rest; i++)
			step = strsep(&rest, ";");
		at = rest ? at + 1 : 0;
		run(step, -1, at, steps);
	}
}

static void answer(const char *text)
{
	if (send(control, text, strlen(text), MSG_NOSIGNAL) < 0)
		_exit(0);
}

static void answer_number(int e)
{
	char text[12];

	snprintf(text, sizeof(text), "%d", e);
	answer(text);
}

static void answer_seize(pid_t pid, int pidfd)
{
	char text[32];
	int by_number = pid ? seize(pid) : ESRCH;
	int by_pidfd = error_of(syscall(SYS_pidfd_getfd, pidfd, NO_SUCH_DESCRIPTOR, 0));

	snprintf(text, sizeof(text), "%d %d", by_number, by_pidfd);
	answer(text);
}

/* @return false at the end. */
static bool receive(char line[COMMAND_MAX], int *ret_fd)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} c;
	struct iovec iov = { line, COMMAND_MAX - 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c) };
	ssize_t n = recvmsg(control, &m, MSG_CMSG_CLOEXEC);

	if (n <= 0)
		return false;
	line[n] = '\0';
	*ret_fd = -1;
	if (m.msg_controllen >= CMSG_LEN(sizeof(int)))
		memcpy(ret_fd, CMSG_DATA(&c.head), sizeof(int));
	return true;
}

int main(int argc, char **argv)
{
	char line[COMMAND_MAX];
	int fd;

	control = atoi(argv[1]);
	if (argc > 3)
		race(atoi(argv[2]), argv[3]);
	else
		answer_number(0);
	while (receive(line, &fd)) {
		if (strncmp(line, "seize ", 6) == 0) {
			answer_seize(atoi(line + 6), fd);
		} else if (strncmp(line, "race ", 5) == 0) {
			answer_number(0);
			race(0, line + 5);
		} else {
			answer_number(run(line, fd, 0, NULL));
		}
		if (fd >= 0)
			close(fd);
	}
	return 0;
}
