/* SPDX-License-Identifier: MIT */
#include "agentd/manager/rules_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agentd/child.h"
#include "agentd/privileges.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

/* This it knows by itself; a client that connects meanwhile waits for as long. */
#define IDLE_MS	  10000
/* A process that has lived longer than RESTART_MS_MAX has not failed at its start. */
#define RESTART_MS     300
#define RESTART_MS_MAX 60000
#define RESTART_DOUBLINGS 8
#define BEHIND_BYTES   ((size_t)128 << 10)
/* Those of the command line, and three of ours. */
#define ARGS_MAX 64

void rules_child_init(struct rules_child *p, const char *program, char *const *argv)
{
	*p = (struct rules_child){ .program = program, .argv = argv, .link = IPC_LINK_NULL, .state_fd = -1 };
}

void rules_child_deinit(struct rules_child *p)
{
	ipc_link_deinit(&p->link);
	if (p->state_fd >= 0)
		close(TAKE_FD(p->state_fd));
}

static _Noreturn void become_rules(const struct rules_child *p, int sock)
{
	static const int to[] = { IPC_FD_MONITOR, RULES_FD_STATE };
	const int from[] = { sock, p->state_fd };
	const char *argv[ARGS_MAX] = { p->program };
	size_t n = 1;

	if (p->state_fd >= 0)
		argv[n++] = "--again";
	if (p->own_socket)
		argv[n++] = "--own-socket";
	for (char *const *a = p->argv + 1; p->argv[0] && *a; a++) {
		if (n == ARGS_MAX - 1)
			_exit(127);
		argv[n++] = *a;
	}
	child_place_fds(from, to, ARRAY_SIZE(to));
	child_exec(p->program, argv, 0);
}

int rules_child_start(struct rules_child *p)
{
	int pair[2], r = fd_socketpair(SOCK_NONBLOCK, pair);
	pid_t pid;

	p->restart_at = 0;
	if (r < 0)
		return r;
	pid = fork();
	if (pid == 0)
		become_rules(p, pair[1]);
	r = pid < 0 ? -errno : 0;
	close(pair[1]);
	if (r < 0) {
		close(pair[0]);
		return r;
	}
	ipc_link_init(&p->link, pair[0]);
	p->pid = pid;
	p->run++;
	p->is_fresh = true;
	p->started_at = clock_now_ns();
	p->answer_by = clock_deadline_ms(RULES_ANSWER_MS);
	for (; p->unsent; p->unsent--)
		rules_child_tell(p, RULES_RELOAD, 0, NULL, 0, -1);
	return 0;
}

/* @return 0, -EINTR: this process is to end. */
static int take_signals(struct rules_child *p, int signal_fd)
{
	struct signalfd_siginfo si;

	while (read(signal_fd, &si, sizeof(si)) == sizeof(si))
		if (si.ssi_signo == SIGTERM || si.ssi_signo == SIGINT)
			return -EINTR;
		else if (si.ssi_signo == SIGHUP)
			rules_child_reload(p);
	return 0;
}

int rules_child_await(struct rules_child *p, int signal_fd, int (*take)(void *ctx), void *ctx)
{
	/* A reload meanwhile gives it no more time. */
	const uint64_t until = p->answer_by;
	struct pollfd fds[] = { { .fd = p->link.fd, .events = POLLIN }, { .fd = signal_fd, .events = POLLIN } };
	int r = -EAGAIN, left;

	while (r == -EAGAIN) {
		left = clock_left_ms(until);
		if (!left)
			return -ETIMEDOUT;
		if (poll(fds, ARRAY_SIZE(fds), left) < 0 && errno != EINTR)
			return -errno;
		r = take_signals(p, signal_fd);
		if (r == 0)
			r = take(ctx);
	}
	return r;
}

/* ------------------------------------------------------------------ messages ----------------- */

void rules_child_kill(struct rules_child *p)
{
	ipc_link_deinit(&p->link);
	if (p->pid)
		privileges_kill(p->pid, SIGKILL);
}

int rules_child_tell(struct rules_child *p, enum rules_type type, uint32_t number, const void *data, size_t size,
	       int fd)
{
	struct ipc_head head = { .type = type, .number = number, .size = size };
	int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0), r;

	if (fd >= 0 && copy < 0)
		return -errno;
	if (fd >= 0)
		head.flags = IPC_FLAG_FD;
	r = fd < 0 ? ipc_link_send(&p->link, &head, data) : ipc_link_send_fd(&p->link, &head, data, copy);
	if (r < 0 && p->link.fd >= 0) {
		log_error("the rules process cannot be told: %s", strerror(-r));
		rules_child_kill(p);
	}
	return r;
}

void rules_child_reload(struct rules_child *p)
{
	p->reloads++;
	p->answer_by = clock_deadline_ms(RULES_ANSWER_MS);
	if (p->link.fd >= 0) {
		rules_child_tell(p, RULES_RELOAD, 0, NULL, 0, -1);
		return;
	}
	p->unsent++;
	if (!p->pid && !p->stays_ended)
		p->restart_at = clock_now_ns();
}

int rules_child_ask_idle(struct rules_child *p)
{
	int r = rules_child_tell(p, RULES_IDLE, 0, NULL, 0, -1);

	if (r == 0)
		p->idle_by = clock_deadline_ms(IDLE_MS);
	return r;
}

void rules_child_answered(struct rules_child *p, int take_state)
{
	if (take_state >= 0) {
		if (p->state_fd >= 0)
			close(p->state_fd);
		p->state_fd = take_state;
	}
	if (p->is_fresh)
		p->is_fresh = false;
	else
		p->reloads--;
	if (!p->reloads)
		p->answer_by = 0;
}

bool rules_child_is_behind(const struct rules_child *p)
{
	return p->link.queued_bytes > BEHIND_BYTES;
}

bool rules_child_add_request(struct rules_child *p, uint32_t request)
{
	if (p->n_requests == ARRAY_SIZE(p->requests))
		return false;
	p->requests[p->n_requests++] = request;
	return true;
}

bool rules_child_take_request(struct rules_child *p, uint32_t request)
{
	for (size_t i = 0; i < p->n_requests; i++)
		if (p->requests[i] == request) {
			p->requests[i] = p->requests[--p->n_requests];
			return true;
		}
	return false;
}

short rules_child_events(const struct rules_child *p)
{
	return ipc_link_has_queued(&p->link) ? POLLIN | POLLOUT : POLLIN;
}

/* ------------------------------------------------------------------ dying -------------------- */

/* Later each time that it has died at once. */
static void begin_again_later(struct rules_child *p)
{
	uint64_t lived_ms = (clock_now_ns() - p->started_at) / 1000000;
	unsigned ms;

	if (lived_ms > RESTART_MS_MAX)
		p->failures = 0;
	if (p->failures < RESTART_DOUBLINGS)
		p->failures++;
	ms = RESTART_MS << (p->failures - 1);
	p->restart_at = clock_deadline_ms(ms < RESTART_MS_MAX ? ms : RESTART_MS_MAX);
}

void rules_child_ended(struct rules_child *p, int wait_status, bool stopping)
{
	p->pid = 0;
	p->is_fresh = false;
	p->answer_by = p->idle_by = 0;
	ipc_link_deinit(&p->link);
	if (stopping)
		return;
	begin_again_later(p);
	/* Somebody waits for what the next one reads. */
	if (p->unsent)
		p->restart_at = clock_now_ns();
	log_error("the rules process died (status 0x%x): it is started again; sessions go on", (unsigned)wait_status);
}

bool rules_child_is_due(const struct rules_child *p)
{
	return p->restart_at && p->restart_at <= clock_now_ns();
}

void rules_child_stay_ended(struct rules_child *p)
{
	p->stays_ended = true;
	p->restart_at = 0;
	p->reloads = p->unsent = 0;
}

uint64_t rules_child_deadlines(struct rules_child *p, bool *ret_started)
{
	uint64_t now = clock_now_ns();
	int r;

	*ret_started = false;
	if ((p->answer_by && p->answer_by <= now) || (p->idle_by && p->idle_by <= now)) {
		log_error("the rules process does not answer: killed");
		p->answer_by = p->idle_by = 0;
		rules_child_kill(p);
	}
	if (rules_child_is_due(p)) {
		r = rules_child_start(p);
		if (r < 0) {
			log_error("the rules process cannot be started: %s", strerror(-r));
			begin_again_later(p);
		}
		*ret_started = r == 0;
	}
	return clock_earlier(clock_earlier(p->answer_by, p->idle_by), p->restart_at);
}
