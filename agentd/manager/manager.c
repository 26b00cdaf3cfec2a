/* SPDX-License-Identifier: MIT */
#include "agentd/manager/manager.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "agentd/ipc/monitor_judge.h"
#include "agentd/manager/notify.h"
#include "agentd/options.h"
#include "agentd/privileges.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"

/* Workers detach within this time, or the monitor kills them. */
#define STOP_WORKERS_MS 5000
#define STOP_FRONT_MS 3000
/* What is killed is gone by then, unless the kernel cannot end it: that one is not waited for. */
#define STOP_KILLED_MS 1000
/* More than a rescue may take, and the monitor waits for one. */
#define STOP_MONITOR_MS 23000
/* Rescues that take longer are finished by the next start. */
#define STOP_HEIR_MS 5000

/* ------------------------------------------------------------------ front -------------------- */

/* The judge always reads; when it does not, it is broken, and clients' targets go free. */
static void check_sent(struct manager *s, int r)
{
	if (r == 0)
		return;
	outbox_forget(&s->front.box);
	if (s->stop_at)
		return;
	log_error("the judge does not take messages (%s): stopping", strerror(-r));
	manager_fail(s);
}

void manager_tell_front(struct manager *s, const void *msg, size_t size, int fd)
{
	if (s->front.box.sock >= 0)
		check_sent(s, outbox_send(&s->front.box, msg, size, fd));
}

void manager_flush_front(struct manager *s)
{
	check_sent(s, outbox_flush(&s->front.box));
}

uint64_t manager_front_deadline(struct manager *s)
{
	if (s->front.box.give_up_at && !clock_left_ms(s->front.box.give_up_at))
		manager_flush_front(s);
	return s->front.box.give_up_at;
}

/* What the frontend may serve.  @param serve_on  It thought that the agent was to stop. */
static void tell_limits(struct manager *s, bool serve_on)
{
	const struct ipc_limits m = { .type = IPC_LIMITS,
				      .connections = s->config.connections,
				      .connections_per_user = s->config.connections_per_user,
				      .sessions_per_user = s->config.sessions_per_user,
				      .idle_ms = s->config.idle_exit_ms,
				      .silent_holder_ms = s->config.silent_holder_ms,
				      .serve_on = serve_on };

	manager_tell_front(s, &m, sizeof(m), -1);
}

static void tell_names(struct manager *s)
{
	struct ipc_rule_name m = { .type = IPC_RULE_NAME, .generation = ++s->rules_generation };

	for (size_t i = 0; i < s->n_rules; i++) {
		str_copy(m.name, sizeof(m.name), s->rule_names[i]);
		m.last = i + 1 == s->n_rules;
		manager_tell_front(s, &m, sizeof(m), -1);
	}
	m.last = 1;
	if (!s->n_rules)
		manager_tell_front(s, &m, sizeof(m), -1);
}

static void tell_settings(struct manager *s)
{
	const struct monitor_config m = { .config = s->config, .front_uid = s->ids.front_uid,
					  .front_gid = s->ids.front_gid, .user_mode = options.user,
					  .permissive = options.permissive, .verbose = options.verbose };

	manager_tell_monitor(s, MONITOR_CONFIG, 0, &m, sizeof(m));
}

void manager_tell_config(struct manager *s)
{
	const struct judge_rules groups = { .type = JUDGE_RULES, .groups = s->ids.groups,
					    .uid = s->ids.front_uid, .gid = s->ids.front_gid };

	tell_settings(s);
	manager_tell_front(s, &groups, sizeof(groups), -1);
	/* The judge accepts nobody before it has these. */
	if (s->monitor.is_ready)
		tell_limits(s, false);
	tell_names(s);
}

static void tell_ready(struct manager *s)
{
	if (!s->front_is_ready || !s->monitor.is_ready || s->stop_at)
		return;
	watchdog_begin(&s->watchdog, notify_watchdog_ms(), clock_now_ns());
	notify_send("READY=1\nSTATUS=Serving %s", s->config.socket);
	log_info("ready on %s", s->config.socket);
}

void manager_front_is_ready(struct manager *s)
{
	s->front_is_ready = true;
	tell_ready(s);
}

void manager_monitor_is_ready(struct manager *s)
{
	s->monitor.is_ready = true;
	tell_limits(s, false);
	tell_ready(s);
}

void manager_were_replaced(struct manager *s)
{
	const struct ipc_note m = { .type = IPC_NOTE, .kind = IPC_NOTE_REPLACED };

	if (s->replaced)
		return;
	s->replaced = true;
	log_warning("the programs of the agent were replaced, as by an upgrade, and nothing new is started: restart gpu-agentd");
	manager_tell_front(s, &m, sizeof(m), -1);
}

/* ------------------------------------------------------------------ the monitor -------------- */

void manager_kill_monitor(struct manager *s)
{
	ipc_link_deinit(&s->monitor.link);
	/* What it has sent may be read after it was reaped. */
	if (s->monitor.pid)
		privileges_kill(s->monitor.pid, SIGKILL);
}

void manager_tell_monitor(struct manager *s, uint32_t type, uint32_t number, const void *data, size_t size)
{
	int r = monitor_child_tell(&s->monitor, type, number, data, size);

	/* One that has gone is reaped, and what that means is said then. */
	if (r == 0 || r == -EPIPE || r == -ECONNRESET)
		return;
	log_error("the monitor does not take messages (%s): killed", strerror(-r));
	manager_kill_monitor(s);
}

void manager_tell_agent(struct manager *s)
{
	const struct monitor_agent m = { .run = s->rules.run,
					 .others = { s->front.pid, s->front.judge_pid, s->rules.pid, s->heir_pid } };

	manager_tell_monitor(s, MONITOR_AGENT, 0, &m, sizeof(m));
}

/* ------------------------------------------------------------------ the frontend's end -------- */

void manager_front_gone(struct manager *s, int error)
{
	if (error == -EPROTO && s->front.pid) {
		log_error("front breaks the protocol: killed");
		privileges_kill(s->front.pid, SIGKILL);
	}
	if (!s->stop_at) {
		log_error("front is gone (%s): stopping", strerror(-error));
		manager_fail(s);
	}
}

void manager_close_front(struct manager *s)
{
	outbox_forget(&s->front.box);
	if (s->front.box.sock >= 0)
		closers_close(&s->closers, TAKE_FD(s->front.box.sock));
}

/* ------------------------------------------------------------------ configuration ------------ */

/* The rules process is ours; this check keeps a mistake there from becoming an overrun here. */
static void end_strings(struct rules_config *m)
{
	struct config *c = &m->config;

#define END_STRING(name, size) c->name[(size) - 1] = '\0';
	CONFIG_TEXTS(END_STRING)
#undef END_STRING
	for (size_t i = 0; i < RULES_NAMES_MAX; i++)
		m->names[i][sizeof(m->names[i]) - 1] = '\0';
}

static void apply_config(struct manager *s, struct rules_config *c)
{
	const bool is_first = s->config.socket[0] == '\0';

	end_strings(c);
	if (!is_first) {
		/* The socket is open and the frontend has become its user: both stay as they were. */
		str_copy(c->config.socket, sizeof(c->config.socket), s->config.socket);
		c->ids.front_uid = s->ids.front_uid;
		c->ids.front_gid = s->ids.front_gid;
	}
	s->config = c->config;
	s->ids = c->ids;
	s->n_rules = c->n_rules;
	memcpy(s->rule_names, c->names, sizeof(s->rule_names));
	if (is_first)
		return;
	manager_tell_config(s);
}

static void reload_ended(struct manager *s, bool changed)
{
	if (changed)
		log_info("configuration read again");
	else
		log_error("configuration not changed");
	notify_send("READY=1");
}

void manager_reload(struct manager *s)
{
	if (s->stop_at)
		return;
	notify_send("RELOADING=1\nMONOTONIC_USEC=%llu",
		    (unsigned long long)(clock_now_ns() / 1000));
	if (s->rules.stays_ended)
		reload_ended(s, false);
	else
		rules_child_reload(&s->rules);
}

int manager_take_config(struct manager *s, struct rules_config *c, int take_state)
{
	auto_close int state = take_state;
	const bool is_reload = !s->rules.is_fresh;
	const bool is_good = c->status == 0;

	/* A process that could not begin ends, rather than saying so. */
	if (is_reload ? !s->rules.reloads : !is_good)
		return -EPROTO;
	if (is_good != (state >= 0) || c->n_rules > RULES_NAMES_MAX)
		return -EPROTO;
	if (is_good)
		apply_config(s, c);
	rules_child_answered(&s->rules, TAKE_FD(state));
	if (is_reload)
		reload_ended(s, is_good);
	return 0;
}

/* ------------------------------------------------------------------ the rules process -------- */

void manager_rules_ended(struct manager *s, int wait_status)
{
	const bool asked_idle = s->is_asked_idle;
	struct ipc_hooked refusal = { .type = IPC_HOOKED, .status = -ECONNRESET };

	rules_child_ended(&s->rules, wait_status, s->stop_at != 0);
	while (s->rules.n_requests) {
		refusal.request = s->rules.requests[--s->rules.n_requests];
		manager_tell_front(s, &refusal, sizeof(refusal), -1);
	}
	for (; s->rules.reloads > s->rules.unsent; s->rules.reloads--)
		reload_ended(s, false);
	s->is_asked_idle = false;
	if (asked_idle && !s->stop_at)
		tell_limits(s, true);
}

void manager_rules_stay_ended(struct manager *s)
{
	log_error("the rules process is not started again: no process is watched anew, no hook runs, no configuration is read before gpu-agentd is restarted");
	for (unsigned n = s->rules.reloads; n; n--)
		reload_ended(s, false);
	rules_child_stay_ended(&s->rules);
}

static void exit_idle(struct manager *s)
{
	log_info("idle: exiting");
	manager_stop(s);
}

void manager_idle(struct manager *s)
{
	if (s->stop_at)
		return;
	if (s->n_rules || !s->config.idle_exit_ms) {
		tell_limits(s, true);
		return;
	}
	if (s->rules.stays_ended)
		exit_idle(s);
	/* Not before the last hook has said how it went. */
	else if (rules_child_ask_idle(&s->rules) < 0)
		tell_limits(s, true);
	else
		s->is_asked_idle = true;
}

int manager_take_busy(struct manager *s, bool busy)
{
	if (s->stop_at) {
		s->rules.has_stopped = !busy;
		return 0;
	}
	if (!s->is_asked_idle)
		return -EPROTO;
	s->is_asked_idle = false;
	s->rules.idle_by = 0;
	/* A reload meanwhile may be against it. */
	if (busy || s->n_rules || !s->config.idle_exit_ms) {
		tell_limits(s, true);
		return 0;
	}
	exit_idle(s);
	return 0;
}

/* ------------------------------------------------------------------ stopping ----------------- */

void manager_stop(struct manager *s)
{
	const struct judge_stop stop = { .type = JUDGE_STOP };

	if (s->stop_at)
		return;
	notify_send("STOPPING=1\nSTATUS=Releasing all targets");
	s->stop_at = clock_deadline_ms(STOP_WORKERS_MS);
	manager_tell_front(s, &stop, sizeof(stop), -1);
	manager_tell_monitor(s, MONITOR_STOP, 0, NULL, 0);
	rules_child_tell(&s->rules, RULES_STOP, 0, NULL, 0, -1);
}

void manager_fail(struct manager *s)
{
	s->failed = true;
	manager_stop(s);
}

/* So long after what was begun at `stop_at`? */
static bool is_over(const struct manager *s, uint32_t ms)
{
	return clock_left_ms(s->stop_at + ms * UINT64_C(1000000)) == 0;
}

static bool wait_for_monitor(struct manager *s)
{
	if (!s->monitor.pid)
		return false;
	if (is_over(s, STOP_MONITOR_MS))
		privileges_kill(s->monitor.pid, SIGKILL);
	return !is_over(s, STOP_MONITOR_MS + STOP_KILLED_MS);
}

/* Hooks have their time; afterwards the process ends with the socket to it. */
static bool wait_for_rules(struct manager *s)
{
	if (!s->rules.pid)
		return false;
	if (s->rules.link.fd >= 0 && !s->rules.has_stopped && !is_over(s, 0))
		return true;
	rules_child_deinit(&s->rules);
	if (is_over(s, 0))
		privileges_kill(s->rules.pid, SIGKILL);
	return !is_over(s, STOP_KILLED_MS);
}

static bool wait_for_front(struct manager *s)
{
	const pid_t pids[] = { s->front.pid, s->front.judge_pid };

	/* They may yet take what they were too busy for, but not one message at a time for ever. */
	if (s->front.box.first && !is_over(s, 0))
		return true;
	if (s->front.box.sock >= 0) {
		manager_close_front(s); /* Both leave at end of file */
		s->stop_at = clock_deadline_ms(STOP_FRONT_MS);
	}
	if (!s->front.pid && !s->front.judge_pid)
		return false;
	for (size_t i = 0; is_over(s, 0) && i < ARRAY_SIZE(pids); i++)
		if (pids[i])
			privileges_kill(pids[i], SIGKILL);
	if (!is_over(s, STOP_KILLED_MS))
		return true;
	log_error("front cannot be killed: it is left to the kernel");
	return false;
}

/* It ends behind the monitor, at once when there is nothing to look after; a service manager would kill it with us. */
static bool wait_for_heir(const struct manager *s)
{
	return s->heir_pid && !s->monitor.pid && !is_over(s, STOP_HEIR_MS);
}

bool manager_stop_step(struct manager *s)
{
	return wait_for_monitor(s) || wait_for_rules(s) || wait_for_front(s) || wait_for_heir(s);
}
