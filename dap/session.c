/* SPDX-License-Identifier: MIT */
/*
 * The session with the agent: attaching, snapshots, stopping and going on, what the agent reports,
 * and leaving.  Queues are suspended under a short lease that is renewed, so that they run again by
 * themselves when this process dies.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "dap/values/values.h"
#include "protocol/stop_reason.h"

/*
 * Milliseconds of the lease: queues run again so long after this process was stopped, or its editor
 * stopped reading.  It is renewed well before; attaching and detaching have times of their own.
 */
#define LEASE_MS	 5000u
#define RENEW_MS	 1500u
#define ATTACH_MS	 20000u
#define DETACH_MS	 3000u
/* Bytes that one decoded snapshot may need. */
#define SNAPSHOT_BYTES	 ((size_t)64 << 20)

/* Tell the user of a failure that no answer tells. */
static void say_failure(struct dap *d, const char *what, const struct agent_err *err)
{
	if (err->hint[0])
		dap_output(d, "important", "%s: %s (%s)", what, err->message, err->hint);
	else
		dap_output(d, "important", "%s: %s", what, err->message);
}

/* ------------------------------------------------------------------ the session -------------- */

/* Connect to the agent, or open the core file. */
static int connect_agent(struct dap *d, struct agent_err *err)
{
	const struct dap_options *o = d->options;
	int r;

	if (dap_is_core(d))
		r = o->core->open(o->core->data, d->core_file, &d->client, err);
	else
		r = (o->connect ? o->connect : rpc_client_open)(o->socket, &d->client, err);
	if (r < 0)
		return r;
	rpc_client_set_timeout(d->client, o->timeout_ms);
	rpc_client_set_wait(d->client, dap_wait, d);
	return 0;
}

static int attach_with(struct dap *d, bool control, bool force, struct agent_err *err)
{
	/* A core has one process, and the program that reads it takes any id. */
	const struct rpc_session_attach_params p = { .pid = dap_is_core(d) ? 1 : d->pid,
						     .has_control = !dap_is_core(d),
						     .control = control, .has_force = force,
						     .force = force, .has_timeout_ms = true,
						     .timeout_ms = ATTACH_MS };
	struct rpc_session_attach_result result;
	int r = rpc_client_session_attach(d->client, &p, &d->arena, &result, err);
	bool is_new;

	if (r < 0)
		return r;
	/* One that did not answer was ended by force, and this is another. */
	is_new = strcmp(d->session, result.session) != 0;
	str_copy(d->session, sizeof(d->session), result.session);
	d->control = control && result.control;
	/* With control taken, the queues that the other client had stopped run again. */
	if (d->control && d->held) {
		d->held = false;
		dap_continued(d);
	}
	if (result.has_taken)
		dap_output(d, "important", "Control was taken from process %u (user %u)%s",
			   result.taken.pid, result.taken.uid,
			   result.taken.queues ? "; the queues that it had stopped run again" : "");
	if (is_new && d->state == DAP_ATTACHED)
		dap_exceptions_begin(d);
	return 0;
}

/* Attach with control, or without it: a client that may not control the process may still look. */
static int attach(struct dap *d, struct agent_err *err)
{
	struct agent_err control = { 0 };
	int r;

	if (dap_is_core(d))
		return attach_with(d, false, false, err);
	r = attach_with(d, true, false, &control);
	if (r < 0 && (control.code == RPC_ERROR_BUSY || control.code == RPC_ERROR_NOT_PERMITTED)) {
		r = attach_with(d, false, false, err);
		str_copy(d->why_no_control, sizeof(d->why_no_control), control.message);
	} else if (r < 0) {
		*err = control;
	}
	return r;
}

bool dap_session_answer(struct dap *d, const struct agent_err *err)
{
	const struct dap_request q = { .seq = d->attach_seq, .command = "attach" };

	if (!d->attach_waits)
		return false;
	d->attach_waits = false;
	if (err && err->err == ECANCELED) {
		dap_respond_cancelled(d, &q);
	} else if (err) {
		dap_respond_error(d, &q, err);
	} else {
		dap_respond(d, &q, NULL);
		dap_event(d, "initialized", NULL);
	}
	return true;
}

void dap_session_end(struct dap *d)
{
	const struct rpc_session_detach_params p = { .session = d->session };
	struct rpc_session_detach_result result;
	/* An attach that was not answered yet is answered as cancelled. */
	const struct agent_err left = { .err = ECANCELED };
	struct agent_err err;

	(void)dap_session_answer(d, &left);
	if (d->client && dap_is_core(d)) {
		d->options->core->close(d->options->core->data);
		d->client = NULL;
	}
	if (d->client && d->session[0]) {
		/* Leaving is not given up for anything, but takes a bounded time. */
		rpc_client_set_wait(d->client, NULL, NULL);
		rpc_client_set_timeout(d->client, DETACH_MS);
		(void)rpc_client_session_detach(d->client, &p, &d->arena, &result, &err);
	}
	rpc_client_close(d->client);
	d->client = NULL;
	d->session[0] = '\0';
	d->paused = d->held = d->control = d->exception_pending = false;
	dap_snapshot_free(d->snap);
	dap_snapshot_free(d->before);
	d->snap = d->before = NULL;
	dap_texts_deinit(d);
	dap_embedded_forget(d);
	dap_forget(d);
}

void dap_explain(struct dap *d, struct agent_err *err)
{
	if (dap_is_core(d))
		d->options->core->explain(d->options->core->data, err);
}

void dap_terminated(struct dap *d)
{
	if (!d->terminated)
		dap_event(d, "terminated", NULL);
	d->terminated = true;
}

/* The session has ended by itself: clean up, and tell the editor. */
static void session_over(struct dap *d)
{
	dap_progress_end(d, NULL);
	dap_session_end(d);
	d->state = DAP_OVER;
	if (!d->leave && !d->eof)
		dap_terminated(d);
}

void dap_session_begin(struct dap *d)
{
	struct agent_err err = { 0 };
	int r;

	d->may_cancel = true;
	dap_progress_begin(d,
			   dap_is_core(d) ? "Opening the core file" :
					    "Attaching to the GPU process", true);
	r = connect_agent(d, &err);
	if (r == 0)
		r = attach(d, &err);
	if (r == 0) {
		dap_progress_update(d, "Looking at its waves");
		r = dap_session_snapshot(d, &err);
	}
	if (r == 0)
		r = dap_holder_ask(d, &err);
	d->may_cancel = d->cancel = false;
	/* What a device had from before is in the snapshot, but no more once this is asked for. */
	if (r == 0 && !d->leave)
		dap_exceptions_begin(d);
	if (r < 0) {
		dap_explain(d, &err);
		dap_progress_end(d, NULL);
		if (!dap_session_answer(d, &err) && !d->leave && !d->eof)
			say_failure(d, "attach", &err);
		session_over(d);
		return;
	}
	(void)dap_session_answer(d, NULL);
	d->state = DAP_ATTACHED;
	dap_progress_end(d, NULL);
	if (!d->control && !dap_is_core(d))
		dap_output(d, "console", "Looking only: %s", d->why_no_control);
	dap_session_announce(d);
}

/* What concerns the running of queues fails for a core file. */
static int nothing_runs(struct agent_err *err)
{
	return agent_err_set(err, RPC_ERROR_UNSUPPORTED, EOPNOTSUPP, NULL, NULL,
			     "nothing runs in a core file");
}

int dap_session_take_control(struct dap *d, struct agent_err *err)
{
	if (dap_is_core(d))
		return nothing_runs(err);
	return d->control ? 0 : attach_with(d, true, true, err);
}

/* The client that held the process at first may have left since: ask again. */
int dap_need_control(struct dap *d, struct agent_err *err)
{
	struct agent_err why = { 0 };

	if (dap_is_core(d))
		return nothing_runs(err);
	if (d->control || attach_with(d, true, false, &why) == 0)
		return 0;
	return agent_err_set(err, RPC_ERROR_NOT_PERMITTED, EPERM, NULL, NULL,
			     "this session may only look: %.180s", why.message);
}

/* ------------------------------------------------------------------ looking ------------------ */

static int ask(struct dap *d, const struct rpc_wave_select *select, struct dap_snapshot **ret,
	       struct agent_err *err)
{
	struct rpc_gpu_snapshot_params p = { .session = d->session,
					     .has_waves = select, .waves = select,
					     .has_select = select,
					     .has_max_stop_ms = d->max_stop_ms,
					     .max_stop_ms = d->max_stop_ms };
	struct dap_snapshot *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return agent_err_no_memory(err, NULL);
	if (select)
		p.select = *select;
	rpc_arena_init(&s->arena, SNAPSHOT_BYTES);
	r = rpc_client_gpu_snapshot(d->client, &p, &s->arena, &s->doc, err);
	if (r == 0 && !dap_snapshot_index(d, s))
		r = agent_err_no_memory(err, NULL);
	if (r == 0)
		*ret = s;
	else
		dap_snapshot_free(s);
	return r;
}

/* Waves may be at several places of a kernel: which those are is asked for, if that matters. */
int dap_session_ask(struct dap *d, const struct rpc_wave_select *select, struct dap_snapshot **ret,
		    struct agent_err *err)
{
	struct rpc_wave_select which;
	struct dap_snapshot *listed = NULL;
	struct agent_err ignored;
	int r = ask(d, select, ret, err);

	if (r < 0 || !d->by_kernel || !dap_snapshot_apart(*ret, &which))
		return r;
	(void)ask(d, &which, &listed, &ignored);
	dap_snapshot_count(*ret, &which, listed ? &listed->doc : NULL);
	dap_snapshot_free(listed);
	return 0;
}

/*
 * Take a snapshot and make it the present one.
 * @param keep  Whether the present one becomes d->before, so that references into it stay true.
 */
static int replace_snapshot(struct dap *d, const struct rpc_wave_select *select, bool keep,
			    struct agent_err *err)
{
	struct dap_snapshot *s;
	int r = dap_session_ask(d, select, &s, err);

	if (r < 0)
		return r;
	/* The queues run again by now, unless they are stopped for longer. */
	dap_host_look(d, s);
	dap_snapshot_free(keep ? d->before : d->snap);
	if (keep)
		d->before = d->snap;
	d->snap = s;
	d->focus = 0;
	dap_forget(d);
	for (size_t i = 0; i < s->doc.n_missing && i < 8; i++)
		dap_output(d, "console", "missing: %s", s->doc.missing[i]);
	for (size_t i = 0; i < s->doc.n_exited && i < 8; i++)
		dap_output(d, "important", "%s", dap_exited_text(&d->arena, &s->doc.exited[i]));
	return 0;
}

int dap_session_snapshot(struct dap *d, struct agent_err *err)
{
	int r = replace_snapshot(d, NULL, false, err);

	if (r < 0)
		return r;
	dap_snapshot_free(d->before);
	d->before = NULL;
	dap_refs_renew(d);
	return 0;
}

int dap_session_look(struct dap *d, const struct rpc_wave_select *select, struct agent_err *err)
{
	bool moves = !dap_is_still(d);
	uint32_t focus = d->focus;
	int r = replace_snapshot(d, select, moves, err);

	if (r < 0)
		return r;
	if (focus < d->snap->n_threads)
		d->focus = focus;
	if (!moves)
		return 0; /* What was handed out stays true. */
	dap_refs_renew(d);
	dap_invalidated(d);
	return 0;
}

/* Whether a watch point has stopped waves of a group. */
static bool is_watch_hit(const struct rpc_group *g)
{
	for (size_t i = 0; i < g->n_reasons; i++)
		if (g->reasons[i] == RPC_STOP_REASON_WATCHPOINT)
			return true;
	return false;
}

/*
 * Which thread to show for a stop.
 * @param reason  Set if the waves know a better one.
 */
static size_t find_stopped(const struct dap *d, const char **reason)
{
	const struct dap_snapshot *s = d->snap;
	size_t thread;

	if (d->has_exception) {
		thread = dap_exception_thread(d);
		*reason = d->watching && thread < s->n_threads &&
					  is_watch_hit(s->threads[thread].group) ?
				  "data breakpoint" :
				  "exception";
		return thread;
	}
	if (s->n_threads && stop_reason_is_faulting(s->threads[0].group)) {
		*reason = "exception";
		return 0;
	}
	if (s->doc.n_exited)
		*reason = "exception";
	for (size_t i = 0; d->watching && i < s->n_threads; i++)
		if (is_watch_hit(s->threads[i].group)) {
			*reason = "data breakpoint";
			return i;
		}
	return 0;
}

/*
 * Send the event `stopped`.
 * @param all  Whether the queues stand still, or only the waves that a fault has stopped.
 */
static void send_stopped(struct dap *d, const char *reason, bool all)
{
	const struct dap_snapshot *s = d->snap;
	size_t thread = find_stopped(d, &reason);
	auto_out struct out body = { 0 };
	const char *why;

	out_json_fmt(&body, "{'reason':%s,'threadId':%zu", reason, thread + 1);
	if (s->n_threads)
		d->focus = (uint32_t)thread;
	why = dap_stop_text(&d->arena, d, thread);
	if (why && why[0])
		out_json_fmt(&body, ",'text':%s", why);
	if (d->held)
		out_json_fmt(&body, ",'description':%s", d->held_by);
	out_json_fmt(&body, ",'allThreadsStopped':%i}", all);
	dap_event(d, "stopped", &body);
}

bool dap_session_reveal(struct dap *d, uint32_t thread)
{
	bool still = dap_is_still(d) || d->held, faults;
	auto_out struct out body = { 0 };
	const char *why;

	if (thread >= d->snap->n_threads)
		return false;
	faults = stop_reason_is_faulting(d->snap->threads[thread].group);
	if (!still && !faults)
		return false;
	d->focus = thread;
	why = dap_stop_text(&d->arena, d, thread);
	out_json_fmt(&body, "{'reason':%s,'threadId':%u", faults ? "exception" : "pause", thread + 1);
	if (why && why[0])
		out_json_fmt(&body, ",'text':%s", why);
	out_json_fmt(&body, ",'allThreadsStopped':%i}", still);
	dap_event(d, "stopped", &body);
	return true;
}

void dap_session_announce(struct dap *d)
{
	auto_out struct out body = { 0 };
	bool broken;

	if (!d->configured || d->announced || d->state != DAP_ATTACHED || !d->snap)
		return;
	d->announced = true;
	/* One that came before the editor had said what is to stop the GPU. */
	if (d->exception_pending && !dap_exception_is_wanted(d, &d->exception))
		d->exception_pending = d->has_exception = false;
	/* An exception that was raised since the session began is newer than a latched one. */
	broken = !d->has_exception && dap_exception_latched(d);
	/* Some editors know of no thread, and offer no pause, before they hear of one. */
	out_json_fmt(&body, "{'reason':'started','threadId':1}");
	dap_event(d, "thread", &body);
	dap_output(d, "console",
		   "Attached to process %u: %u waves in %zu groups. %s \"help\" tells what can be "
		   "asked.",
		   d->snap->doc.process.pid, d->snap->doc.wave_count, d->snap->doc.n_groups,
		   dap_is_core(d) ? "Nothing runs in a core file." :
		   d->held	  ? rpc_arena_printf(&d->arena, "It is stopped: %s.", d->held_by) :
				    "The GPU runs; pause stops its queues.");
	if (dap_is_core(d) || d->held) {
		send_stopped(d, "pause", true);
		return;
	}
	/* The queues are not stopped here, since a request may wait for the agent just now. */
	d->stop_pending = d->stop_on_attach;
	if (d->stop_pending)
		return;
	/*
	 * Waves that a fault has halted stand still while the queues run; so does a broken queue.
	 */
	if ((d->snap->n_threads && stop_reason_is_faulting(d->snap->threads[0].group)) ||
	    broken || d->snap->doc.n_exited)
		send_stopped(d, "exception", false);
}

void dap_forget(struct dap *d)
{
	dap_registers_forget(d);
	dap_values_forget(d);
}

/* ------------------------------------------------------------------ stopping ----------------- */

/* Milliseconds of the next lease: less than LEASE_MS near the end of the stop budget. */
static uint32_t lease_left(const struct dap *d)
{
	uint32_t left = LEASE_MS;

	if (d->stop_end_ns) {
		int ms = clock_left_ms(d->stop_end_ns);

		left = (uint32_t)ms < left ? (uint32_t)ms : left;
	}
	return left;
}

/* Suspend all queues, or renew their suspension. */
static int suspend(struct dap *d, uint32_t lease_ms, struct agent_err *err)
{
	const struct rpc_gpu_suspend_params p = { .session = d->session, .has_lease_ms = true,
						  .lease_ms = lease_ms };
	struct rpc_gpu_suspend_result result;
	int r = rpc_client_gpu_suspend(d->client, &p, &d->arena, &result, err);

	d->renew_ns = clock_deadline_ms(RENEW_MS);
	return r;
}

static int resume(struct dap *d, struct agent_err *err)
{
	const struct rpc_gpu_resume_params p = { .session = d->session };
	struct rpc_gpu_resume_result result;
	int r = rpc_client_gpu_resume(d->client, &p, &d->arena, &result, err);

	/* Whether it was resumed or not: what was fetched may be of before. */
	dap_forget(d);
	if (r == 0)
		d->paused = d->has_exception = false;
	else
		d->renew_ns = UINT64_MAX; /* Its lease runs out, and the agent says so. */
	return r;
}

int dap_session_pause(struct dap *d, const char *reason, struct agent_err *err)
{
	struct agent_err ignored;
	bool was_paused = d->paused;
	uint32_t lease_ms;
	int r;

	dap_progress_begin(d, "Stopping the GPU queues", false);
	if (!was_paused) {
		/* A second pause in one stop does not lengthen the budget. */
		d->alive.stop_ns = clock_now_ns();
		d->stop_end_ns = d->max_stop_ms ? clock_deadline_ms(d->max_stop_ms) : 0;
	}
	lease_ms = lease_left(d);
	r = suspend(d, lease_ms ? lease_ms : 1, err);
	if (r == 0) {
		d->paused = true;
		r = dap_session_snapshot(d, err);
		/*
		 * Without a snapshot there is nothing to show: the queues run again, and an editor
		 * that showed a stop is told.
		 */
		if (r < 0 && !d->leave && resume(d, &ignored) == 0 && was_paused)
			dap_continued(d);
	}
	dap_progress_end(d, NULL);
	if (r < 0)
		return r;
	send_stopped(d, reason, true);
	return 0;
}

int dap_session_continue(struct dap *d, struct agent_err *err)
{
	int r;

	if (dap_is_core(d))
		return dap_need_control(d, err);
	if (d->paused)
		return resume(d, err);
	r = dap_holder_ask(d, err);
	if (r < 0)
		return r;
	if (d->held)
		return agent_err_set(err, RPC_ERROR_NOT_PERMITTED, EPERM, NULL,
				     "take control of the process to let them run", "%s",
				     d->held_by);
	d->has_exception = false;
	return 0;
}

void dap_continued(struct dap *d)
{
	auto_out struct out body = { 0 };

	dap_forget(d);
	out_json_fmt(&body, "{'threadId':1,'allThreadsContinued':true}");
	dap_event(d, "continued", &body);
}

void dap_session_show_held(struct dap *d)
{
	struct agent_err err = { 0 };

	dap_output(d, "console", "The GPU is stopped: %s", d->held_by);
	if (dap_session_snapshot(d, &err) == 0)
		send_stopped(d, "pause", true);
	else if (d->client && !d->leave)
		say_failure(d, "snapshot", &err);
}

/*
 * End a stop that nobody looks at: a user who is not there cannot let the queues run, so they do,
 * and another client may have control.
 */
static void let_go(struct dap *d)
{
	const struct rpc_session_control_params p = { .session = d->session };
	struct rpc_session_control_result result;
	struct agent_err err = { 0 };
	bool watched = d->watching;
	int r;

	d->paused = d->has_exception = d->control = d->watching = false;
	d->alive.left = true;
	r = rpc_client_session_control(d->client, &p, &d->arena, &result, &err);
	if (d->leave || d->eof)
		return;
	/* Without a renewal the lease ends by itself, whatever became of the call. */
	if (r < 0)
		say_failure(d, "give control back", &err);
	dap_output(d, "important",
		   "Nothing was asked for in %u s: the queues run again, and this session has no control "
		   "until it pauses them%s (stopIdleMs)",
		   d->stop_idle_ms / 1000, watched ? "; data breakpoints are off" : "");
	dap_continued(d);
}

void dap_session_renew(struct dap *d)
{
	struct agent_err err = { 0 };
	uint32_t lease_ms = lease_left(d);

	if (clock_now_ns() >= dap_alive_end_ns(&d->alive, d->stop_idle_ms)) {
		let_go(d);
		return;
	}
	/* At the end of the budget the lease ends by itself, and the agent says so. */
	if (clock_left_ms(d->renew_ns))
		return;
	/* The budget is nearly over: the last lease is not renewed. */
	if (lease_ms < RENEW_MS)
		d->renew_ns = clock_deadline_ms(LEASE_MS);
	else if (suspend(d, lease_ms, &err) < 0 && !d->leave && !d->eof) {
		d->paused = false;
		say_failure(d, "The queues run again", &err);
		dap_continued(d);
	}
}

/* ------------------------------------------------------------------ what the agent reports --- */

static void on_resumed(struct dap *d, const struct rpc_client_notification *n)
{
	struct rpc_gpu_resumed_params p;

	if ((!d->paused && !d->held) ||
	    rpc_client_decode(n, &rpc_gpu_resumed_params_struct, &d->arena, &p) < 0)
		return;
	d->paused = d->held = d->has_exception = false;
	dap_output(d, "important", "The queues run again after %" PRIu64 " ms: %s",
		   p.stopped_us / 1000, rpc_enum_name(&rpc_resume_reason_enum, p.reason));
	dap_continued(d);
}

static void on_control_lost(struct dap *d, const struct rpc_client_notification *n)
{
	struct rpc_control_lost_params p;

	if (rpc_client_decode(n, &rpc_control_lost_params_struct, &d->arena, &p) < 0 ||
	    strcmp(p.session, d->session) != 0)
		return;
	d->control = d->watching = false;
	dap_output(d, "important",
		   "Process %u (user %u) has taken control: this session may only look", p.by_pid,
		   p.by_uid);
	if (d->paused)
		dap_continued(d);
	d->paused = d->has_exception = false;
}

static void on_control_asked(struct dap *d, const struct rpc_client_notification *n)
{
	struct rpc_control_asked_params p;

	if (rpc_client_decode(n, &rpc_control_asked_params_struct, &d->arena, &p) == 0)
		dap_output(d, "important",
			   "Process %u (user %u), which owns the program, asks for control, and can take it in %u s",
			   p.by_pid, p.by_uid, p.left_ms / 1000);
}

static void on_resume_soon(struct dap *d, const struct rpc_client_notification *n)
{
	struct rpc_gpu_resume_soon_params p;

	if (d->paused && rpc_client_decode(n, &rpc_gpu_resume_soon_params_struct, &d->arena, &p) == 0)
		dap_output(d, "important",
			   "The queues run again in %" PRIu64 " s: the agent allows no longer stop",
			   p.left_ms / 1000);
}

static void on_ended(struct dap *d, const struct rpc_client_notification *n)
{
	struct rpc_session_ended_params p;
	const char *why = NULL;

	if (rpc_client_decode(n, &rpc_session_ended_params_struct, &d->arena, &p) == 0) {
		/*
		 * The notification may be of the session before this one, which did not answer when
		 * control was taken.
		 */
		if (strcmp(p.session, d->session) != 0)
			return;
		why = rpc_enum_name(&rpc_end_reason_enum, p.reason);
	}
	dap_output(d, "important", "The session is over: %s", why ? why : "the agent ended it");
	session_over(d);
}

/*
 * Tell of an exception, and keep one that is to stop the GPU: dap_session_notifications() does so
 * when all has been read.  Others leave alone what is kept, which explains a stop or will.
 */
static void on_raised(struct dap *d, const struct rpc_client_notification *n)
{
	struct rpc_exception_raised_params e;

	if (rpc_client_decode(n, &rpc_exception_raised_params_struct, &d->arena, &e) < 0)
		return;
	dap_output(d, "console", "Exception: %s", dap_exception_text(&d->arena, d, &e));
	if (!dap_exception_is_wanted(d, &e) && (d->announced || d->exception_pending))
		return;
	rpc_arena_reset(&d->exception_arena);
	d->has_exception = rpc_client_decode(n, &rpc_exception_raised_params_struct,
					     &d->exception_arena, &d->exception) == 0;
	d->exception_pending = d->has_exception;
}

static void on_notification(struct dap *d, const struct rpc_client_notification *n)
{
	static const struct {
		const char *method;
		void (*run)(struct dap *d, const struct rpc_client_notification *n);
	} table[] = {
		{ "gpu.resumed", on_resumed },
		{ "gpu.resume_soon", on_resume_soon },
		{ "control.lost", on_control_lost },
		{ "control.asked", on_control_asked },
		{ "session.ended", on_ended },
		{ "exception.raised", on_raised },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (!strcmp(table[i].method, n->method))
			table[i].run(d, n);
}

/* Do what stopOnAttach asks for. */
static void stop_at_once(struct dap *d)
{
	struct agent_err err = { 0 };
	int r = dap_need_control(d, &err);

	if (r == 0)
		r = dap_session_pause(d, "pause", &err);
	if (r < 0 && d->client && !d->leave)
		say_failure(d, "stopOnAttach", &err);
}

/*
 * Stop the queues for an exception.  Where nobody uses the editor, and where another client has
 * control, the editor is only told.
 */
static void stop_for_exception(struct dap *d)
{
	struct agent_err err = { 0 };
	bool may_stop = !d->alive.left && dap_need_control(d, &err) == 0;
	int r = may_stop ? dap_session_pause(d, "exception", &err) :
			   dap_session_snapshot(d, &err);

	if (!d->client || d->leave)
		return;
	if (r < 0)
		say_failure(d, may_stop ? "pause" : "snapshot", &err);
	else if (!may_stop)
		send_stopped(d, "exception", d->held);
}

void dap_session_notifications(struct dap *d)
{
	struct rpc_client_notification n;
	struct agent_err err = { 0 };
	int r = 0;

	while (d->client && (r = rpc_client_next_notification(d->client, 0, &n, &err)) == 0)
		on_notification(d, &n);
	/* A notification may have ended the session. */
	if (!d->client || d->leave || d->eof || d->failed)
		return;
	if (r != -ETIMEDOUT && r != -ECANCELED && r < 0) {
		dap_explain(d, &err);
		say_failure(d, dap_is_core(d) ? "The core file" : "The agent", &err);
		session_over(d);
	} else if (d->exception_pending && d->announced) {
		d->exception_pending = false;
		stop_for_exception(d);
	} else if (d->stop_pending) {
		d->stop_pending = false;
		stop_at_once(d);
	}
}
