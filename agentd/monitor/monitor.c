/* SPDX-License-Identifier: MIT */
#include "agentd/monitor/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>

#include "agentd/closers.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

/* Workers detach within this time of a SIGTERM, or the kernel does it for them. */
#define STOP_WORKERS_MS 5000
/* As long as the recovery process gives them when this one has died: with the manager the whole agent has. */
#define STOP_ALONE_MS 800
/* What is killed is gone by then, unless the kernel cannot end it: that one is not waited for. */
#define STOP_KILLED_MS 1000
/* More than a rescue may take. */
#define STOP_RELEASES_MS 21000

/* ------------------------------------------------------------------ the judge ---------------- */

/* The judge always reads; when it does not, it is broken, and clients' targets go free. */
static void check_sent(struct monitor *s, int r)
{
	if (r == 0)
		return;
	outbox_forget(&s->judge);
	if (!s->stop_at)
		log_error("the judge does not take messages (%s): stopping", strerror(-r));
	monitor_stop(s);
}

void monitor_tell_judge(struct monitor *s, const void *msg, size_t size, int fd)
{
	if (s->judge.sock >= 0)
		check_sent(s, outbox_send(&s->judge, msg, size, fd));
}

void monitor_flush_judge(struct monitor *s)
{
	check_sent(s, outbox_flush(&s->judge));
}

uint64_t monitor_judge_deadline(struct monitor *s)
{
	if (s->judge.give_up_at && !clock_left_ms(s->judge.give_up_at))
		monitor_flush_judge(s);
	return s->judge.give_up_at;
}

void monitor_close_judge(struct monitor *s)
{
	struct closers one = { .gate_fd = -1, .uid = s->config.front_uid, .gid = s->config.front_gid };

	outbox_forget(&s->judge);
	if (s->judge.sock >= 0)
		closers_close(&one, TAKE_FD(s->judge.sock));
	closers_deinit(&one);
}

/* ------------------------------------------------------------------ the manager -------------- */

void monitor_manager_gone(struct monitor *s, int error)
{
	ipc_link_deinit(&s->manager);
	if (!s->stop_at)
		log_error("gpu-agentd is gone (%s): stopping", strerror(-error));
	monitor_stop(s);
	s->stop_at = clock_earlier(s->stop_at, clock_deadline_ms(STOP_ALONE_MS));
}

void monitor_tell_manager(struct monitor *s, uint32_t type, uint32_t number, const void *data, size_t size, int fd)
{
	struct ipc_head head = { .type = type, .number = number, .size = size };
	int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0), r;

	if (s->manager.fd < 0)
		return;
	if (fd >= 0 && copy < 0) {
		log_warning("the rules process cannot be told: %s", strerror(errno));
		return;
	}
	if (fd >= 0)
		head.flags = IPC_FLAG_FD;
	r = fd < 0 ? ipc_link_send(&s->manager, &head, data) : ipc_link_send_fd(&s->manager, &head, data, copy);
	if (r < 0)
		monitor_manager_gone(s, r);
}

/* ------------------------------------------------------------------ stopping ----------------- */

void monitor_stop(struct monitor *s)
{
	if (s->stop_at)
		return;
	s->stop_at = clock_deadline_ms(STOP_WORKERS_MS);
	workers_signal(&s->workers, SIGTERM);
}

/* So long after what was begun at `stop_at`? */
static bool is_over(const struct monitor *s, uint32_t ms)
{
	return clock_left_ms(s->stop_at + ms * UINT64_C(1000000)) == 0;
}

static bool wait_for_workers(struct monitor *s)
{
	if (!s->workers.first || s->workers.are_left)
		return false;
	if (is_over(s, 0))
		workers_signal(&s->workers, SIGKILL);
	/* They are no longer at work than a rescue is. */
	if (!is_over(s, workers_count(&s->workers, IPC_KIND_REPAIR) ? STOP_RELEASES_MS : STOP_KILLED_MS))
		return true;
	log_error("a worker cannot be killed: it is left to the kernel");
	workers_leave(&s->workers);
	return false;
}

bool monitor_stop_step(struct monitor *s)
{
	if (wait_for_workers(s))
		return true;
	workers_look_now(&s->workers);
	/* A service manager would kill them with us; they end by themselves. */
	if (s->workers.rescues.first && !is_over(s, STOP_RELEASES_MS))
		return true;
	/* Both may yet take what they were too busy for, but not one message at a time for ever. */
	return (s->judge.first || ipc_link_has_queued(&s->manager)) && !is_over(s, 0);
}
