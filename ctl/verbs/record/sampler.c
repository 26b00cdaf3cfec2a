/* SPDX-License-Identifier: MIT */
#include "ctl/verbs/record/sampler.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "ctl/ctl.h"
#include "ctl/signals.h"
#include "protocol/rpc_queue_place.h"

#define CAPTURE_MEMORY_MAX ((size_t)256 << 20)
#define RATE	     100
#define RATE_MAX     1000
#define OVERHEAD_PPM 10000
/* More than half of the time is no longer a look at what the process does when nobody looks. */
#define OVERHEAD_MAX_PPM 500000
/* How long to wait when nothing may be stopped, and the agent does not say for how long. */
#define REFUSED_MS 1000
/* How long to wait for the reason of a session's end. */
#define WHY_MS 1000
/* How long to wait for the answer to the farewell: who closes the connection has left as well. */
#define DETACH_MS 3000
#define NS_PER_S   UINT64_C(1000000000)

/* ------------------------------------------------------------------ options ------------------ */

/* A number of percent with four digits behind the point at most, as millionths: `1%`, `0.25%`, `2`. */
static bool parse_percent(const char *text, uint32_t *ret_ppm)
{
	uint32_t ppm = 0, digit = 10000, digits = 0;
	bool fraction = false;

	for (; (*text >= '0' && *text <= '9') || (*text == '.' && !fraction); text++) {
		if (*text == '.') {
			fraction = true;
			continue;
		}
		digit = fraction ? digit / 10 : digit;
		if (!digit || ppm > OVERHEAD_MAX_PPM)
			return false;
		ppm = (fraction ? ppm : ppm * 10) + (uint32_t)(*text - '0') * digit;
		digits++;
	}
	text += *text == '%';
	*ret_ppm = ppm;
	return digits && !*text && ppm && ppm <= OVERHEAD_MAX_PPM;
}

static int parse(struct ctl *c, const struct sampler_options *o, uint32_t *ret_ppm, uint32_t *ret_rate)
{
	*ret_ppm = OVERHEAD_PPM;
	*ret_rate = RATE;
	if (o->overhead && !parse_percent(o->overhead, ret_ppm))
		return ctl_usage(c, "--overhead: \"%.40s\" is not a share such as 1%% or 0.25%%, up to %u%%",
				 o->overhead, OVERHEAD_MAX_PPM / 10000);
	return o->rate ? args_u32(c, "--rate", o->rate, 1, RATE_MAX, ret_rate) : 0;
}

/* ------------------------------------------------------------------ the session -------------- */

/* The process as people call it: by its rank where its launcher has told that. */
static const char *name_process(struct ctl *c, uint32_t pid, struct rpc_arena *a)
{
	const struct rpc_host_stacks_params p = { .pid = pid, .has_native = true, .native = false };
	struct rpc_host_stacks_result h;
	struct agent_err err = { 0 };

	if (rpc_client_host_stacks(c->client, &p, a, &h, &err) < 0)
		return rpc_arena_printf(a, "process %u", pid);
	if (h.has_rank)
		return rpc_arena_printf(a, "rank %u, %s %u", h.rank.rank, h.comm, pid);
	return rpc_arena_printf(a, "%s %u", h.comm, pid);
}

static void mark_begin(struct sampler *s)
{
	s->begin_us = clock_wall_us();
	s->begin_ns = clock_now_ns();
	s->begin_stopped_ns = s->budget.stopped_ns;
}

/* Wait for an answer of the agent, but not when a signal is to end the recording: nobody knows how long that takes. */
static int wait_or_signal(void *data, int fd, short events, uint64_t deadline_ns)
{
	struct sampler *s = data;
	struct pollfd fds[] = { { .fd = fd, .events = events }, { .fd = s->signal_fd, .events = POLLIN } };
	int r = poll(fds, 2, clock_left_ms(deadline_ns));

	if (r < 0)
		return errno == EINTR ? 0 : -errno;
	if (fds[1].revents && !s->signo)
		s->signo = signals_read(s->signal_fd);
	if (s->signo)
		return -ECANCELED;
	return r ? 0 : -ETIMEDOUT;
}

int sampler_begin(struct ctl *c, const struct sampler_options *o, const char *pid_text, struct sampler *ret)
{
	uint32_t ppm, rate;
	const char *name;
	int r;

	*ret = (struct sampler){ .c = c, .signal_fd = -1, .keys_fd = -1, .host = o->host };
	rpc_arena_init(&ret->answers, CAPTURE_MEMORY_MAX);
	r = parse(c, o, &ppm, &rate);
	if (r == 0)
		r = ctl_attach(c, pid_text, false);
	if (r < 0)
		return r;
	name = name_process(c, c->session.pid, &ret->answers);
	r = name ? recording_init(&ret->recording, name) : -ENOMEM;
	if (r < 0)
		return ctl_fail(c, -r, "the recording");
	ret->signal_fd = signals_hold();
	if (ret->signal_fd < 0)
		return ctl_fail(c, -ret->signal_fd, "signalfd");
	rpc_client_set_wait(c->client, wait_or_signal, ret);
	ret->random = clock_now_ns() ^ ((uint64_t)getpid() << 32);
	budget_init(&ret->budget, ppm, NS_PER_S / rate, clock_now_ns());
	mark_begin(ret);
	return 0;
}

void sampler_end(struct sampler *s)
{
	if (s->signal_fd >= 0) {
		rpc_client_set_wait(s->c->client, NULL, NULL);
		rpc_client_set_timeout(s->c->client, DETACH_MS);
	}
	ctl_detach(s->c);
	if (s->signal_fd >= 0)
		signals_release(s->signal_fd);
	recording_deinit(&s->recording);
	rpc_arena_deinit(&s->answers);
}

/* ------------------------------------------------------------------ one capture -------------- */

/* Numbers that tell nothing of each other; S. Vigna's SplitMix64. */
static uint32_t next_random(struct sampler *s)
{
	uint64_t x = s->random += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((x ^ (x >> 31)) >> 32);
}

static void note_missing(struct sampler *s, const char *what, const char *why)
{
	if (s->missing[0])
		return;
	str_copy(s->missing, sizeof(s->missing), what);
	str_copy(s->missing + strlen(s->missing), sizeof(s->missing) - strlen(s->missing), why);
	if (!s->on_screen)
		ctl_note(s->c, "missing: %s", s->missing);
}

static void forget_error(struct ctl *c)
{
	c->err = (struct agent_err){ 0 };
	out_reset(&c->err_json);
}

/*
 * Read what the agent tells on its own: the end of the session, and what would fill up the connection.
 * @param deadline_ns  0: do not wait for it.
 */
static enum sampler_end drain(struct sampler *s, uint64_t deadline_ns)
{
	struct rpc_client_notification n;
	struct rpc_session_ended_params p;
	struct agent_err err = { 0 };
	struct ctl *c = s->c;
	int r;

	while ((r = rpc_client_next_notification(c->client, deadline_ns, &n, &err)) == 0) {
		if (strcmp(n.method, rpc_notifications[RPC_NOTIFICATION_SESSION_ENDED].name) ||
		    rpc_client_decode(&n, &rpc_session_ended_params_struct, &s->answers, &p) < 0)
			continue;
		c->attached = false;
		c->exited = p.reason == RPC_END_REASON_EXITED;
		agent_err_set(&c->err, RPC_ERROR_SESSION_ENDED, 0, NULL, NULL, "the session on process %u is over: %s",
			      c->session.pid, ctl_end_reason(p.reason));
		return c->exited ? SAMPLER_EXITED : SAMPLER_LOST;
	}
	if (r == -ETIMEDOUT)
		return SAMPLER_GOES_ON;
	if (r == -ECANCELED)
		return SAMPLER_SIGNAL;
	c->err = err;
	return SAMPLER_LOST;
}

/* What becomes of the recording when the agent has answered with an error, or not at all. */
static enum sampler_end judge_error(struct sampler *s)
{
	struct ctl *c = s->c;

	if (s->signo) {
		/* The agent may not answer the farewell either; it sees that the connection ends. */
		c->attached = false;
		return SAMPLER_SIGNAL;
	}
	switch (c->err.code) {
	case RPC_ERROR_SESSION_ENDED:
	case RPC_ERROR_NO_SUCH_SESSION:
	case RPC_ERROR_NO_SUCH_PROCESS:
		c->attached = false;
		/* Why is what the agent says on its own, perhaps a moment after its answer. */
		if (!c->exited)
			drain(s, clock_deadline_ms(WHY_MS));
		return c->exited ? SAMPLER_EXITED : SAMPLER_LOST;
	case RPC_ERROR_TIMEOUT:
	case RPC_ERROR_BUSY:
	case RPC_ERROR_LIMIT:
		s->failed++;
		note_missing(s, "a capture: ", c->err.message);
		if (c->err.retry_ms)
			budget_delay(&s->budget, clock_deadline_ms(c->err.retry_ms));
		forget_error(c);
		return SAMPLER_GOES_ON;
	default:
		return SAMPLER_LOST;
	}
}

static enum sampler_end fail(struct sampler *s, int r)
{
	ctl_fail(s->c, -r, "the recording");
	return SAMPLER_FAILED;
}

/* Nothing is stopped for threads; a recording without them is still worth having. */
static enum sampler_end capture_threads(struct sampler *s, const struct rpc_gpu_snapshot_result *seen)
{
	struct rpc_host_stacks_params p = { .pid = s->c->session.pid };
	struct rpc_host_stacks_result h;
	struct ctl *c = s->c;
	int r = rpc_queue_places(&s->answers, seen->queues, seen->n_queues, &p);

	if (r < 0)
		return fail(s, r);
	if (ctl_called(c, rpc_client_host_stacks(c->client, &p, &s->answers, &h, &c->err)) < 0) {
		if (s->signo || c->err.code == AGENT_ERR_UNREACHABLE)
			return judge_error(s);
		note_missing(s, "threads: ", c->err.message);
		forget_error(c);
		return SAMPLER_GOES_ON;
	}
	r = recording_add_threads(&s->recording, &h);
	return r < 0 ? fail(s, r) : SAMPLER_GOES_ON;
}

static enum sampler_end count(struct sampler *s, const struct rpc_gpu_snapshot_result *seen)
{
	int r;

	if (seen->budget_exceeded) {
		s->cut++;
		note_missing(s, "a capture: ", "the stop budget was used up before all waves were seen");
		return SAMPLER_GOES_ON;
	}
	if (!seen->complete) {
		s->incomplete++;
		note_missing(s, "", seen->n_missing ? seen->missing[0] : "a part of a capture");
	}
	r = recording_add_waves(&s->recording, seen);
	if (r < 0)
		return fail(s, r);
	return s->host ? capture_threads(s, seen) : SAMPLER_GOES_ON;
}

static void note_stop(struct sampler *s, uint64_t us)
{
	if (us && (!s->shortest_us || us < s->shortest_us))
		s->shortest_us = us;
	if (us > s->longest_us)
		s->longest_us = us;
}

static enum sampler_end capture(struct sampler *s)
{
	struct ctl *c = s->c;
	const struct rpc_gpu_snapshot_params p = { .session = c->session.session,
						   .has_max_stop_ms = c->max_look_ms,
						   .max_stop_ms = c->max_look_ms };
	struct rpc_gpu_snapshot_result seen;
	uint64_t begun = clock_now_ns(), now;
	enum sampler_end end;

	rpc_arena_reset(&s->answers);
	if (ctl_called(c, rpc_client_gpu_snapshot(c->client, &p, &s->answers, &seen, &c->err)) < 0) {
		/* Nobody has said for how long the queues stood still: no longer than this took. */
		now = clock_now_ns();
		budget_pay(&s->budget, now - begun, now);
		s->unmeasured_ns += now - begun;
		end = judge_error(s);
		/* What has ended stands still for another reason. */
		if (end == SAMPLER_EXITED)
			s->unmeasured_ns -= now - begun;
		return end;
	}
	now = clock_now_ns();
	budget_pay(&s->budget, seen.stopped_us * 1000, now);
	note_stop(s, seen.stopped_us);
	if (seen.has_no_stop && seen.no_stop) {
		s->refused++;
		budget_delay(&s->budget, clock_deadline_ms(seen.has_retry_ms ? seen.retry_ms : REFUSED_MS));
		return SAMPLER_GOES_ON;
	}
	return count(s, &seen);
}

/* ------------------------------------------------------------------ waiting ------------------ */

/* Wait until a time, but no longer than nothing happens that ends the recording. */
static enum sampler_end pause_until(struct sampler *s, uint64_t until_ns)
{
	enum sampler_end end = SAMPLER_GOES_ON;
	struct pollfd fds[] = {
		{ .fd = rpc_client_fd(s->c->client), .events = POLLIN },
		{ .fd = s->signal_fd, .events = POLLIN },
		{ .fd = s->keys_fd, .events = POLLIN },
	};

	do {
		if (poll(fds, 3, clock_left_ms(until_ns)) < 0 && errno != EINTR)
			return fail(s, -errno);
		if (!s->signo)
			s->signo = signals_read(s->signal_fd);
		if (s->signo)
			return SAMPLER_SIGNAL;
		if (fds[0].revents)
			end = drain(s, 0);
		if (end == SAMPLER_GOES_ON && fds[2].revents)
			end = SAMPLER_KEY;
	} while (end == SAMPLER_GOES_ON && clock_left_ms(until_ns) > 0);
	return end;
}

enum sampler_end sampler_run(struct sampler *s, uint64_t until_ns, uint64_t end_ns)
{
	enum sampler_end end = SAMPLER_GOES_ON;

	while (end == SAMPLER_GOES_ON && clock_now_ns() < until_ns) {
		uint64_t due = budget_due(&s->budget, next_random(s));
		bool takes = due < until_ns && (!end_ns || budget_has_room(&s->budget, end_ns));

		end = pause_until(s, takes ? due : until_ns);
		if (end == SAMPLER_GOES_ON && takes)
			end = capture(s);
	}
	return end;
}

/* ------------------------------------------------------------------ what was seen ------------ */

int sampler_next(struct sampler *s)
{
	int r = recording_reset(&s->recording);

	if (r < 0)
		return ctl_fail(s->c, -r, "the recording");
	s->shortest_us = s->longest_us = s->unmeasured_ns = 0;
	s->incomplete = s->cut = s->refused = s->failed = 0;
	s->missing[0] = '\0';
	mark_begin(s);
	return 0;
}

struct recording_facts sampler_facts(const struct sampler *s)
{
	const uint64_t stopped_ns = s->budget.stopped_ns - s->begin_stopped_ns - s->unmeasured_ns, now = clock_now_ns();

	return (struct recording_facts){ .begin_us = s->begin_us,
					 .duration_us = (now - s->begin_ns) / 1000,
					 .stopped_us = stopped_ns / 1000,
					 .unmeasured_us = s->unmeasured_ns / 1000,
					 .budget_ppm = s->budget.share_ppm,
					 .measured_ppm = budget_share_ppm(stopped_ns, now - s->begin_ns) };
}

const char *sampler_missing(const struct sampler *s)
{
	if (s->missing[0] || s->recording.captures)
		return s->missing;
	return s->refused ? "all captures: the agent allowed no stop" : "all captures: the time was too short for one";
}

bool sampler_is_complete(const struct sampler *s)
{
	return !sampler_missing(s)[0] && !s->recording.full;
}
