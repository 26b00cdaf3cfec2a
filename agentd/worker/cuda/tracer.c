/* SPDX-License-Identifier: MIT */
#include "agentd/worker/cuda/tracer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentd/ipc/worker_tracer.h"
#include "agentd/tracer/start.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/out.h"

/* It waits for nothing itself, so an answer takes no longer than a busy machine does. */
#define ANSWER_MS 2000

/* ------------------------------------------------------------------ asking ------------------- */

/* What goes along with a call, and where what comes back with the answer goes. */
struct exchange {
	struct ipc_tracer_call call;
	const void *out;
	void *in;
	size_t in_size;
	int fd; /* Owned by the caller. */
	struct ipc_tracer_answer answer;
};

static bool send_call(const struct cuda_tracer *t, struct exchange *x)
{
	struct iovec v[] = { { &x->call, sizeof(x->call) }, { (void *)(uintptr_t)x->out, x->out ? x->call.size : 0 } };
	const struct msghdr m = { .msg_iov = v, .msg_iovlen = 2 };

	return sendmsg(t->sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

static bool receive_answer(const struct cuda_tracer *t, struct exchange *x)
{
	struct iovec v[] = { { &x->answer, sizeof(x->answer) }, { x->in, x->in_size } };
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
	struct msghdr m = { .msg_iov = v, .msg_iovlen = 2, .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct pollfd p = { .fd = t->sock, .events = POLLIN };
	uint64_t deadline = clock_deadline_ms(ANSWER_MS);
	const struct cmsghdr *c;
	int ready;
	ssize_t n;

	do
		ready = poll(&p, 1, clock_left_ms(deadline));
	while (ready < 0 && errno == EINTR);
	if (ready != 1)
		return false;
	n = recvmsg(t->sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&x->fd, CMSG_DATA(c), sizeof(x->fd));
	return n >= (ssize_t)sizeof(x->answer) && !(m.msg_flags & MSG_TRUNC) &&
	       x->answer.size == (size_t)n - sizeof(x->answer);
}

/* @return the result of the call; -EIO when there is no tracer any more; -ESRCH after an exec. */
static int ask(struct cuda_tracer *t, struct exchange *x)
{
	x->fd = -1;
	if (t->is_over || t->is_lost)
		return t->is_lost ? -EIO : -ESRCH;
	if (!send_call(t, x) || !receive_answer(t, x)) {
		/* One that is only late ends at this, and lets go what it holds. */
		t->is_lost = true;
		close(TAKE_FD(t->sock));
		return -EIO;
	}
	t->is_over = x->answer.stop == CUDBGSHIM_STOP_EXEC || x->answer.result == -ESTALE;
	return x->answer.result;
}

static int ask_plain(void *ctx, uint32_t verb, int tid, uint32_t what, int number)
{
	struct exchange x = { .call = { .verb = verb, .tid = tid, .what = what, .number = number } };

	return ask(ctx, &x);
}

static int seize(void *ctx, int tid)
{
	return ask_plain(ctx, IPC_TRACER_SEIZE, tid, 0, 0);
}

static int interrupt(void *ctx, int tid)
{
	return ask_plain(ctx, IPC_TRACER_INTERRUPT, tid, 0, 0);
}

static struct cudbgshim_stop look(void *ctx, int tid)
{
	struct exchange x = { .call = { .verb = IPC_TRACER_LOOK, .tid = tid } };
	struct cuda_tracer *t = ctx;
	struct cudbgshim_stop stop = { CUDBGSHIM_STOP_GONE, 0 };

	(void)ask(t, &x);
	if (t->is_lost)
		stop.kind = CUDBGSHIM_STOP_LOST;
	else if (!t->is_over && x.answer.stop < CUDBGSHIM_STOP_EXEC)
		stop = (struct cudbgshim_stop){ x.answer.stop, x.answer.sig };
	return stop;
}

static int go(void *ctx, int tid, enum cudbgshim_go how, int sig)
{
	return ask_plain(ctx, IPC_TRACER_GO, tid, how, sig);
}

static int get(void *ctx, int tid, enum cudbgshim_part part, void *buf, size_t *size)
{
	struct exchange x = { .call = { .verb = IPC_TRACER_GET, .tid = tid, .what = part, .size = (uint32_t)*size },
			      .in = buf,
			      .in_size = *size };
	int r = *size > IPC_TRACER_BLOCK_MAX ? -EINVAL : ask(ctx, &x);

	if (r == 0)
		*size = x.answer.size;
	return r;
}

static int set(void *ctx, int tid, enum cudbgshim_part part, const void *buf, size_t size)
{
	struct exchange x = { .call = { .verb = IPC_TRACER_SET, .tid = tid, .what = part, .size = (uint32_t)size },
			      .out = buf };

	return size > IPC_TRACER_BLOCK_MAX ? -EINVAL : ask(ctx, &x);
}

/* ------------------------------------------------------------------ reading ------------------ */

int cuda_read_again(int fd, size_t max, char **ret, size_t *ret_size)
{
	auto_out struct out text = { 0 };
	char buf[16384];
	ssize_t n;

	out_init(&text, max);
	while ((n = pread(fd, buf, sizeof(buf), (off_t)text.size)) > 0 || (n < 0 && errno == EINTR))
		if (n > 0)
			out_bytes(&text, buf, (size_t)n);
	if (n < 0)
		return -errno;
	return out_steal(&text, ret, ret_size);
}

static int read_place(struct cuda_tracer *t, int tid, char **ret, size_t *ret_size)
{
	auto_free char *text = malloc(IPC_TRACER_PLACE_MAX + 1);
	struct exchange x = { .call = { .verb = IPC_TRACER_PLACE, .tid = tid },
			      .in = text,
			      .in_size = IPC_TRACER_PLACE_MAX };
	int r = text ? ask(t, &x) : -ENOMEM;

	if (r < 0)
		return r;
	text[x.answer.size] = '\0';
	*ret_size = x.answer.size;
	*ret = TAKE_PTR(text);
	return 0;
}

static int read_file(void *ctx, int proc_fd, const char *name, size_t max, char **ret, size_t *ret_size)
{
	struct cuda_tracer *t = ctx;
	int tid, end = 0;

	if (strcmp(name, "maps") == 0)
		return cuda_read_again(t->maps_fd, max, ret, ret_size);
	if (strcmp(name, "auxv") == 0)
		return cuda_read_again(t->auxv_fd, max, ret, ret_size);
	if (sscanf(name, "task/%d/syscall%n", &tid, &end) == 1 && end && !name[end])
		return read_place(t, tid, ret, ret_size);
	return fd_read_file_at(proc_fd, name, max, ret, ret_size);
}

static int descriptor(void *ctx, int proc_fd, int pidfd, int number)
{
	struct exchange x = { .call = { .verb = IPC_TRACER_DESCRIPTOR, .number = number } };
	int r = ask(ctx, &x);

	(void)proc_fd;
	(void)pidfd;
	return r < 0 ? r : x.fd < 0 ? -EBADF : x.fd;
}

static int network(void *ctx, int proc_fd)
{
	const struct cuda_tracer *t = ctx;
	int fd = t->net_fd < 0 ? -1 : fcntl(t->net_fd, F_DUPFD_CLOEXEC, 0);

	(void)proc_fd;
	return fd < 0 ? -EACCES : fd;
}

/* ------------------------------------------------------------------ starting ----------------- */

int cuda_open_memory(int proc_fd)
{
	uid_t uid;
	gid_t gid;
	struct stat st;
	int fd, error;

	if (fstatat(proc_fd, "mem", &st, 0) < 0)
		return -errno;
	gid = (gid_t)setfsgid(st.st_gid);
	uid = (uid_t)setfsuid(st.st_uid);
	fd = openat(proc_fd, "mem", O_RDWR | O_CLOEXEC);
	error = errno;
	setfsuid(uid);
	setfsgid(gid);
	return fd < 0 ? -error : fd;
}

int cuda_tracer_start(const struct access_target *facts, uint64_t start_ticks, int proc_fd, int pidfd,
		      struct cuda_tracer *t)
{
	int r;

	*t = (struct cuda_tracer){ .sock = -1,
				   .maps_fd = openat(proc_fd, "maps", O_RDONLY | O_CLOEXEC),
				   .auxv_fd = openat(proc_fd, "auxv", O_RDONLY | O_CLOEXEC),
				   .net_fd = openat(proc_fd, "ns/net", O_RDONLY | O_CLOEXEC),
				   .ops = { seize, interrupt, look, go, get, set, read_file, descriptor,
					    network, t } };
	r = t->maps_fd < 0 ? -EACCES : tracer_start(facts, start_ticks, proc_fd, pidfd, &t->pid, &t->sock);
	if (r < 0)
		cuda_tracer_end(t);
	return r;
}

void cuda_tracer_end(struct cuda_tracer *t)
{
	const int fds[] = { t->sock, t->maps_fd, t->auxv_fd, t->net_fd };

	if (!t->ops.look)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	tracer_reap(t->pid);
	*t = (struct cuda_tracer){ .sock = -1, .maps_fd = -1, .auxv_fd = -1, .net_fd = -1 };
}

const struct cudbgshim_tracer *cuda_tracer_ops(const struct cuda_tracer *t)
{
	return t->pid > 0 ? &t->ops : NULL;
}
