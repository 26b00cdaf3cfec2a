/* SPDX-License-Identifier: MIT */
/*
 * The machine that the simulator runs on.  It sees processes from outside, through procfs, and must
 * never wait for one that waits for the simulator.
 */
#include "sim/kfd/device/os.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "store.h"

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif
#define NS_DEPTH_MAX 33 /* The kernel allows 32 nested ones. */
/* The most pieces that one call takes (UIO_MAXIOV). */
#define PIECES_MAX 1024u

/* See sim_os_linux_own_device(). */
static uint64_t own_device;

void sim_os_linux_own_device(uint64_t device)
{
	own_device = device;
}

/* ---- tasks ---- */

/* What /proc/PID/status says of a task; ns_pid ends with its number in its own namespace. */
struct status {
	int tgid, tracer;
	bool has_mm, fatal_pending;
	int ns_pid[NS_DEPTH_MAX];
	int n_ns;
};

static void ns_pids(struct status *st, const char *numbers)
{
	for (const char *p = numbers; st->n_ns < NS_DEPTH_MAX;) {
		char *end;
		long v = strtol(p, &end, 10);

		if (end == p)
			break;
		st->ns_pid[st->n_ns++] = (int)v;
		p = end;
	}
}

static void status_line(struct status *st, const char *name, const char *value)
{
	if (!strcmp(name, "Tgid"))
		st->tgid = atoi(value);
	else if (!strcmp(name, "TracerPid"))
		st->tracer = atoi(value);
	else if (!strcmp(name, "VmSize"))
		st->has_mm = true;
	else if (!strcmp(name, "SigPnd") || !strcmp(name, "ShdPnd"))
		st->fatal_pending |= strtoull(value, NULL, 16) >> (SIGKILL - 1) & 1;
	else if (!strcmp(name, "NSpid"))
		ns_pids(st, value);
}

/* Read the status of a task.  Every ioctl needs this, so that stdio is too slow. */
static int status_read(int tid, struct status *ret)
{
	char text[8192];
	auto_close int fd = -1;
	ssize_t size;

	memset(ret, 0, sizeof(*ret));
	snprintf(text, sizeof(text), "/proc/%d/status", tid);
	fd = open(text, O_RDONLY | O_CLOEXEC);
	size = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (size < 0)
		return -ESRCH;
	text[size] = '\0';
	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		char *colon;

		*end = '\0';
		colon = strchr(line, ':');
		if (!colon)
			continue;
		*colon = '\0';
		status_line(ret, line, colon + 1);
	}
	return ret->tgid ? 0 : -ESRCH;
}

static int pid_ns_open(int tid)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", tid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

/* Whether two descriptors are of one file. */
static bool same_file(int a, int b)
{
	struct stat sa, sb;

	return !fstat(a, &sa) && !fstat(b, &sb) && is_same(&sa, &sb);
}

/* Whether the namespace that is @p up levels above @p tid's own is the one behind @p ns. */
static bool ns_ancestor_is(int tid, int up, int ns)
{
	int fd = pid_ns_open(tid), parent;
	bool same;

	for (; fd >= 0 && up > 0; up--) {
		parent = ioctl(fd, NS_GET_PARENT);
		close(fd);
		fd = parent;
	}
	if (fd < 0)
		return false;
	same = same_file(fd, ns);
	close(fd);
	return same;
}

/* Whether a task has that number in that namespace. */
static bool task_matches(int tid, uint32_t pid, int depth, int ns)
{
	struct status st;

	return !status_read(tid, &st) && st.n_ns >= depth && st.ns_pid[depth - 1] == (int)pid &&
	       ns_ancestor_is(tid, st.n_ns - depth, ns);
}

/* Look for a task among all of them; procfs has no faster way. */
static int search_tasks(const char *dir, uint32_t pid, int depth, int ns, bool processes)
{
	char path[300];
	struct dirent *e;
	int found = 0;
	DIR *d = opendir(dir);

	while (d && !found && (e = readdir(d))) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		if (task_matches(atoi(e->d_name), pid, depth, ns)) {
			found = atoi(e->d_name);
		} else if (processes) {
			snprintf(path, sizeof(path), "/proc/%s/task", e->d_name);
			found = search_tasks(path, pid, depth, ns, false);
		}
	}
	if (d)
		closedir(d);
	return found;
}

/* Whether numbers mean the same to the caller; if that cannot be told, they do. */
static bool shares_our_ns(int tid)
{
	static struct stat own;
	struct stat theirs;
	char path[40];

	if (!own.st_ino && stat("/proc/self/ns/pid", &own))
		return true;
	snprintf(path, sizeof(path), "/proc/%d/ns/pid", tid);
	return stat(path, &theirs) || is_same(&own, &theirs);
}

/* The caller's number as a number of the simulator's own namespace; 0 if there is no such task. */
static int translate(int caller_tid, uint32_t pid)
{
	auto_close int ns = -1;
	struct status st;

	if (shares_our_ns(caller_tid))
		return (int)pid;
	ns = pid_ns_open(caller_tid);
	if (ns < 0 || status_read(caller_tid, &st) || !st.n_ns)
		return 0;
	return search_tasks("/proc", pid, st.n_ns, ns, true);
}

static int task_find(int caller_tid, uint32_t pid, struct sim_task *ret)
{
	struct status st, leader;
	int tid;

	if (!pid || pid > INT_MAX)
		return -ESRCH;
	tid = translate(caller_tid, pid);
	if (!tid || status_read(tid, &st))
		return -ESRCH;
	leader = st;
	if (st.tgid != tid && status_read(st.tgid, &leader))
		return -ESRCH;
	*ret = (struct sim_task){
		.tid = tid,
		.tgid = st.tgid,
		.tracer = st.tracer,
		.leader_tracer = leader.tracer,
		.has_mm = st.has_mm,
	};
	return 0;
}

/* Most callers are main threads, which are the only ones that pidfd_open() accepts. */
static int tgid_of(int tid, int *ret_tgid)
{
	auto_close int pidfd = (int)syscall(SYS_pidfd_open, tid, 0);
	struct status st;

	if (pidfd < 0 && status_read(tid, &st))
		return -ESRCH;
	*ret_tgid = pidfd < 0 ? st.tgid : tid;
	return 0;
}

static bool is_dying(int tid)
{
	struct status st;

	return status_read(tid, &st) || st.fatal_pending;
}

/* ---- address spaces ---- */

static void hold_release(struct sim_hold *h)
{
	if (h->pidfd >= 0)
		close(h->pidfd);
	if (h->mem_fd >= 0)
		close(h->mem_fd);
	*h = SIM_HOLD_NULL;
}

static int hold_take(int tgid, struct sim_hold *ret)
{
	struct sim_hold h = SIM_HOLD_NULL;
	char path[40];
	int r;

	h.pidfd = (int)syscall(SYS_pidfd_open, tgid, 0);
	snprintf(path, sizeof(path), "/proc/%d/mem", tgid);
	if (h.pidfd >= 0)
		h.mem_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (h.mem_fd < 0) {
		r = -errno;
		hold_release(&h);
		return r;
	}
	*ret = h;
	return 0;
}

/*
 * Whether the address space is in use.  A read through /proc/PID/mem gives end of file once no task
 * uses it any more, and an error for an address where nothing is mapped: the first page never is.
 */
static bool hold_holds(const struct sim_hold *h)
{
	char byte;

	return pread(h->mem_fd, &byte, 1, 0) != 0;
}

static int mem_read(int tgid, uint64_t addr, void *buf, size_t size)
{
	struct iovec local = { buf, size };
	struct iovec remote = { (void *)(uintptr_t)addr, size };

	return process_vm_readv(tgid, &local, 1, &remote, 1, 0) == (ssize_t)size ? 0 : -EFAULT;
}

/* Once a piece cannot be read, the kernel reads none behind it: that one is left, and the next begin anew. */
static void mem_read_pieces(int tgid, struct sim_piece *pieces, size_t n, size_t size)
{
	struct iovec local[PIECES_MAX], remote[PIECES_MAX];
	size_t take, whole;
	ssize_t got;

	for (size_t done = 0; done < n; done += whole + (whole < take)) {
		take = n - done < PIECES_MAX ? n - done : PIECES_MAX;
		for (size_t i = 0; i < take; i++) {
			const struct sim_piece *x = &pieces[done + i];

			local[i] = (struct iovec){ x->buf, size };
			remote[i] = (struct iovec){ (void *)(uintptr_t)x->addr, size };
		}
		got = process_vm_readv(tgid, local, take, remote, take, 0);
		whole = got < 0 ? 0 : (size_t)got / size;
		for (size_t i = 0; i < take; i++)
			pieces[done + i].is_read = i < whole;
	}
}

static int mem_write(int tgid, uint64_t addr, const void *buf, size_t size)
{
	struct iovec local = { (void *)(uintptr_t)buf, size };
	struct iovec remote = { (void *)(uintptr_t)addr, size };

	return process_vm_writev(tgid, &local, 1, &remote, 1, 0) == (ssize_t)size ? 0 : -EFAULT;
}

static bool shares_memory(int tgid, int other)
{
	return syscall(SYS_kcmp, tgid, other, KCMP_VM, 0, 0) == 0;
}

static int leader_tracer(int tgid)
{
	struct status st;

	return status_read(tgid, &st) ? 0 : st.tracer;
}

/* ---- descriptors ---- */

/* Of a thread where the kernel can tell (since Linux 6.9), else of its process. */
static int descriptors_of(int tid)
{
	int fd = (int)syscall(SYS_pidfd_open, tid, PIDFD_THREAD), tgid;

	if (fd < 0 && errno == EINVAL && !tgid_of(tid, &tgid))
		fd = (int)syscall(SYS_pidfd_open, tgid, 0);
	return fd;
}

static int fd_take(int tid, int fd, int *ret_fd)
{
	auto_close int pidfd = descriptors_of(tid);
	int got, flags;

	if (pidfd < 0)
		return -EBADF;
	got = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	if (got < 0)
		return -EBADF;
	/* The driver's fget() does not find what was opened as a place only. */
	flags = fcntl(got, F_GETFL);
	if (flags < 0 || flags & O_PATH) {
		close(got);
		return -EBADF;
	}
	*ret_fd = got;
	return 0;
}

static void fd_close(int fd)
{
	close(fd);
}

/*
 * Whether a descriptor is of a file of the simulator's own mount.  Any request to such a file would
 * wait for the simulator itself.
 */
static bool is_own_file(int fd)
{
	struct statx sx;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &sx))
		return true;
	return own_device && makedev(sx.stx_dev_major, sx.stx_dev_minor) == own_device;
}

static bool is_stream(int sock)
{
	socklen_t size = sizeof(int);
	int type = 0;

	return !getsockopt(sock, SOL_SOCKET, SO_TYPE, &type, &size) && type == SOCK_STREAM;
}

/* Send one byte.  A socket tells who wrote to it; only root can do that in another's name. */
static ssize_t send_byte(int sock, int writer)
{
	union {
		char buf[CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr head;
	} control = { .head = { .cmsg_len = CMSG_LEN(sizeof(struct ucred)),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_CREDENTIALS } };
	char dot = '.';
	struct iovec byte = { .iov_base = &dot, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &byte,
			      .msg_iovlen = 1,
			      .msg_control = control.buf,
			      .msg_controllen = sizeof(control.buf) };
	const struct ucred who = { .pid = writer, .uid = geteuid(), .gid = getegid() };

	memcpy(CMSG_DATA(&control.head), &who, sizeof(who));
	if (writer && sendmsg(sock, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) == 1)
		return 1;
	return send(sock, ".", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void notify(int fd, int writer)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };
	bool broken;

	if (is_own_file(fd))
		return;
	if (send_byte(fd, writer) == 1)
		return;
	/* Of sockets, only a stream raises SIGPIPE (net/unix/af_unix.c:unix_stream_sendmsg). */
	broken = errno == EPIPE && is_stream(fd);
	if (errno == ENOTSOCK) {
		/* A full blocking pipe would hang the driver; here the byte is lost instead. */
		if (poll(&pfd, 1, 0) != 1)
			return;
		if (pwrite(fd, ".", 1, 0) < 0 && errno == ESPIPE)
			broken = write(fd, ".", 1) < 0 && errno == EPIPE;
	}
	if (broken && writer)
		kill(writer, SIGPIPE);
}

const struct sim_os sim_os_linux = {
	.now_ns = clock_now_ns,
	.task_find = task_find,
	.tgid_of = tgid_of,
	.hold = hold_take,
	.release = hold_release,
	.holds = hold_holds,
	.mem_read = mem_read,
	.mem_read_pieces = mem_read_pieces,
	.mem_write = mem_write,
	.shares_memory = shares_memory,
	.leader_tracer = leader_tracer,
	.fd_take = fd_take,
	.fd_close = fd_close,
	.notify = notify,
	.is_dying = is_dying,
	.store_read = store_read,
	.store_write = store_write,
	.store_free = store_free,
	.store_used = store_used,
};
