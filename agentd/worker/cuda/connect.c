/* SPDX-License-Identifier: MIT */
#include "agentd/worker/cuda/connect.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "agentd/ipc/child.h"
#include "agentd/ipc/connect.h"
#include "agentd/ipc/link.h"
#include "agentd/ipc/monitor_worker.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"

/* A service manager may have to start the broker first. */
#define ANSWER_MS 5000

/* ------------------------------------------------------------------ beginning ----------------- */

static int wait_for(int fd, uint64_t deadline)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, clock_left_ms(deadline)) == 1 ? 0 : -ETIMEDOUT;
}

static uint64_t answer_until(const struct cuda_connect *c)
{
	uint64_t own = clock_deadline_ms(ANSWER_MS);

	return own < c->deadline_ns ? own : c->deadline_ns;
}

static int receive_connection(int from, uint64_t deadline, int *ret)
{
	int fds[FD_MESSAGE_MAX];
	size_t n_fds = 0;
	char byte;
	ssize_t n;

	if (wait_for(from, deadline) < 0)
		return -ETIMEDOUT;
	n = fd_recv(from, &byte, sizeof(byte), fds, &n_fds);
	if (n != 1 || n_fds != 1)
		return n < 0 && n != -ECONNRESET ? (int)n : -ENOTCONN;
	*ret = fds[0];
	return 0;
}

static int ask_monitor(const struct cuda_connect *c, int *ret)
{
	const struct ipc_broker m = { .type = IPC_BROKER };
	auto_close int ours = -1;
	int r = ipc_send_pair(IPC_FD_MONITOR, &m, sizeof(m), &ours);

	return r < 0 ? r : receive_connection(ours, answer_until(c), ret);
}

static int claim(void *user, uint32_t label);
static int why(void *user);

void cuda_connect_open(struct cuda_connect *c, uint64_t deadline_ns)
{
	*c = (struct cuda_connect){ .channel = -1, .deadline_ns = deadline_ns,
				    .connector = { .claim = claim, .why = why, .user = c } };
	c->memory_fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	c->status = c->memory_fd < 0 ? -errno : ask_monitor(c, &c->channel);
}

void cuda_connect_close(struct cuda_connect *c)
{
	if (c->channel >= 0)
		close(TAKE_FD(c->channel));
	if (c->memory_fd >= 0)
		close(TAKE_FD(c->memory_fd));
}

/* ------------------------------------------------------------------ messages ------------------ */

/* @return 1, 0: nothing has come yet; -ENOTCONN: the broker is gone, -errno. */
static int receive(struct cuda_connect *c, union ipc_connect_message *ret)
{
	int fds[FD_MESSAGE_MAX];
	size_t n_fds = 0;
	ssize_t n = fd_recv(c->channel, ret, sizeof(*ret), fds, &n_fds);

	for (size_t i = 0; n > 0 && i < n_fds; i++)
		close(fds[i]);
	if (n == -EAGAIN)
		return 0;
	if (n == 0 || n == -ECONNRESET || n == -EPIPE)
		return -ENOTCONN;
	if (n < 0)
		return (int)n;
	if (ret->type == IPC_CONNECT_FAILED && (size_t)n == sizeof(ret->claim))
		c->failure = ret->claim.status;
	return (size_t)n >= sizeof(ret->type) ? 1 : -EPROTO;
}

static int await(struct cuda_connect *c, enum ipc_connect_type type, union ipc_connect_message *ret)
{
	uint64_t deadline = answer_until(c);
	int r;

	while ((r = receive(c, ret)) >= 0) {
		if (r == 1 && ret->type == type)
			return 0;
		if (r == 0 && wait_for(c->channel, deadline) < 0)
			return -ETIMEDOUT;
	}
	return r;
}

static int introduce(struct cuda_connect *c, int notify)
{
	const struct ipc_connect_plain m = { .type = IPC_CONNECT_WORKER };
	union ipc_connect_message answer = { 0 };
	ssize_t n = fd_send(c->channel, &m, sizeof(m), (const int[]){ notify, c->memory_fd }, 2);
	int r = n == -EPIPE ? -ENOTCONN : n < 0 ? (int)n : await(c, IPC_CONNECT_READY, &answer);

	if (r == 0) {
		c->connector.net_dev = answer.ready.net_dev;
		c->connector.net_ino = answer.ready.net_ino;
	}
	return r;
}

void cuda_connect_hand_over(struct cuda_connect *c, int take_notify)
{
	if (c->status == 0)
		c->status = introduce(c, take_notify);
	close(take_notify);
	if (c->memory_fd >= 0)
		close(TAKE_FD(c->memory_fd));
}

/* ------------------------------------------------------------------ for the session ----------- */

static int claim(void *user, uint32_t label)
{
	struct cuda_connect *c = user;
	const struct ipc_connect_claim m = { .type = IPC_CONNECT_CLAIM, .label = label };
	union ipc_connect_message answer = { 0 };
	ssize_t n = fd_send(c->channel, &m, sizeof(m), NULL, 0);
	int r = n == -EPIPE ? -ENOTCONN : n < 0 ? (int)n : await(c, IPC_CONNECT_CLAIMED, &answer);

	return r < 0 ? r : answer.claim.status;
}

static int why(void *user)
{
	struct cuda_connect *c = user;
	union ipc_connect_message m = { 0 };
	int r;

	while ((r = receive(c, &m)) == 1)
		;
	return c->failure ? c->failure : r;
}
