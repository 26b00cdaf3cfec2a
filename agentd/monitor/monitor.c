/* SPDX-License-Identifier: MIT */
#include "agentd/monitor/monitor.h"

#include <signal.h>
#include <string.h>

#include "agentd/monitor/notify.h"
#include "agentd/rules/engine/rule_hooks.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"

/* Workers detach within this time of a SIGTERM, or the kernel does it for them. */
#define STOP_WORKERS_MS 5000
#define STOP_FRONT_MS 2000
/* What is killed is gone by then, unless the kernel cannot end it: that one is not waited for. */
#define STOP_KILLED_MS 1000
/* More than a rescue may take. */
#define STOP_RELEASES_MS 21000

/* ------------------------------------------------------------------ front -------------------- */

/* The frontend always reads; when it does not, it is broken, and its clients' targets go free. */
static void check_sent(struct monitor *s, int r)
{
	if (r == 0)
		return;
	front_forget(&s->front);
	if (s->stop_at)
		return;
	log_error("front does not take messages (%s): stopping", strerror(-r));
	monitor_front_failed(s);
}

void monitor_tell_front(struct monitor *s, const void *msg, size_t size, int fd)
{
	check_sent(s, front_send(&s->front, msg, size, fd));
}

void monitor_flush_front(struct monitor *s)
{
	check_sent(s, front_flush(&s->front));
}

uint64_t monitor_front_deadline(struct monitor *s)
{
	if (s->front.give_up_at && !clock_left_ms(s->front.give_up_at))
		monitor_flush_front(s);
	return s->front.give_up_at;
}

void monitor_tell_limits(struct monitor *s, bool serve_on)
{
	const struct ipc_limits m = { .type = IPC_LIMITS,
				      .connections = s->config.connections,
				      .connections_per_user = s->config.connections_per_user,
				      .sessions_per_user = s->config.sessions_per_user,
				      .idle_ms = s->config.idle_exit_ms,
				      .silent_holder_ms = s->config.silent_holder_ms,
				      .admin_gid = s->ids.groups.admin_gid,
				      .serve_on = serve_on };

	monitor_tell_front(s, &m, sizeof(m), -1);
}

void monitor_apply_rules(struct monitor *s)
{
	struct ipc_rule_name m = { .type = IPC_RULE_NAME, .generation = ++s->rules_generation };

	rule_hooks_configure(&s->hooks, &s->watch_rules);
	for (size_t i = 0; i < s->watch_rules.n; i++) {
		str_copy(m.name, sizeof(m.name), s->watch_rules.list[i].name);
		m.last = i + 1 == s->watch_rules.n;
		monitor_tell_front(s, &m, sizeof(m), -1);
	}
	m.last = 1;
	if (!s->watch_rules.n)
		monitor_tell_front(s, &m, sizeof(m), -1);
	watches_configure(&s->watches);
}

void monitor_reload(struct monitor *s)
{
	struct rules rules = { 0 }, old;
	struct settings_ids ids;
	struct config config;

	notify_send("RELOADING=1\nMONOTONIC_USEC=%llu",
		    (unsigned long long)(clock_now_ns() / 1000));
	if (settings_load(s->options, &config, &rules) < 0 ||
	    settings_resolve(s->options, &config, &ids) < 0) {
		log_error("configuration not changed");
		old = rules;
	} else {
		/* The socket is open and the frontend has become its user: both stay as they were. */
		str_copy(config.socket, sizeof(config.socket), s->config.socket);
		s->config = config;
		s->ids.groups = ids.groups;
		old = s->watch_rules;
		s->watch_rules = rules;
		monitor_tell_limits(s, false);
		monitor_apply_rules(s);
		log_info("configuration read again");
	}
	rules_deinit(&old);
	notify_send("READY=1");
}

void monitor_close_front(struct monitor *s)
{
	front_forget(&s->front);
	if (s->front.sock >= 0)
		closers_close(&s->closers, TAKE_FD(s->front.sock));
}

/* ------------------------------------------------------------------ stopping ----------------- */

void monitor_stop(struct monitor *s)
{
	if (s->stop_at)
		return;
	notify_send("STOPPING=1\nSTATUS=Releasing all targets");
	s->stop_at = clock_deadline_ms(STOP_WORKERS_MS);
	workers_signal(&s->workers, SIGTERM);
	hooks_stop(&s->hooks);
}

void monitor_front_failed(struct monitor *s)
{
	s->front_failed = true;
	monitor_stop(s);
}

/* So long after what was begun at `stop_at`? */
static bool is_over(const struct monitor *s, uint32_t ms)
{
	return clock_left_ms(s->stop_at + ms * UINT64_C(1000000)) == 0;
}

static bool wait_for_workers(struct monitor *s)
{
	if (!s->workers.first || s->left_workers)
		return false;
	if (is_over(s, 0))
		workers_signal(&s->workers, SIGKILL);
	if (!is_over(s, STOP_KILLED_MS))
		return true;
	log_error("a worker cannot be killed: it is left to the kernel");
	workers_leave(&s->workers);
	s->left_workers = true;
	return false;
}

static bool wait_for_front(struct monitor *s)
{
	/* It may yet take what it was too busy for. */
	if (s->front.first)
		return true;
	if (s->front.sock >= 0) {
		monitor_close_front(s); /* The frontend leaves at end of file */
		s->stop_at = clock_deadline_ms(STOP_FRONT_MS);
	}
	if (!s->front.pid)
		return false;
	if (is_over(s, 0))
		kill(s->front.pid, SIGKILL);
	if (!is_over(s, STOP_KILLED_MS))
		return true;
	log_error("front cannot be killed: it is left to the kernel");
	return false;
}

bool monitor_stop_step(struct monitor *s)
{
	if (wait_for_workers(s))
		return true;
	/* A manager would kill them with us; they end by themselves. */
	if ((s->workers.rescues.first && !is_over(s, STOP_RELEASES_MS)) ||
	    (hooks_is_busy(&s->hooks) && !is_over(s, 0)))
		return true;
	return wait_for_front(s);
}
