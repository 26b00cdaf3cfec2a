/* SPDX-License-Identifier: MIT */
/*
 * The loop of the verbs that keep a session open.  Each notification becomes one line for people or
 * one JSON document; signals, a deadline, the end of standard input, of the session or of the
 * reader end it.
 */
#include "ctl/stream.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "ctl/ctl.h"
#include "ctl/document/place.h"
#include "ctl/signals.h"
#include "ctl/terminal/text.h"

/* The longest time that --for accepts: a day. */
#define FOR_MAX_MS 86400000

int stream_begin(struct ctl *c, struct stream *s, const char *for_text, bool until_eof)
{
	uint32_t ms;
	int r;

	*s = (struct stream){ .signal_fd = -1, .until_eof = until_eof };
	if (for_text) {
		r = args_duration(c, "--for", for_text, FOR_MAX_MS, &ms);
		if (r < 0)
			return r;
		s->deadline_ns = clock_deadline_ms(ms);
	}
	output_begin_stream(&c->output);
	return 0;
}

/* Append a time of this machine's clock, which every line begins with. */
static void print_time(struct out *o, uint64_t wall_us)
{
	time_t seconds = (time_t)(wall_us / 1000000);
	char text[32];
	struct tm tm;

	if (!localtime_r(&seconds, &tm) || !strftime(text, sizeof(text), "%F %T", &tm))
		text[0] = '\0';
	out_fmt(o, "%s.%06" PRIu64 "  ", text, wall_us % 1000000);
}

static void print_ended(struct rpc_arena *a, struct out *o,
			const struct rpc_session_ended_params *p)
{
	out_fmt(o, "session of process %u ended: ", p->pid);
	text_put(o, "", show_name(a, &rpc_end_reason_enum, p->reason), "");
	if (p->has_signal)
		out_fmt(o, ", by signal %u from outside; a process of user %u may have sent it", p->signal, p->sender_uid);
}

static void print_resumed(const struct ctl *c, struct rpc_arena *a, struct out *o,
			  const struct rpc_gpu_resumed_params *p)
{
	out_fmt(o, "%u %s resumed after %" PRIu64 " us: ", p->queues,
		vendor_word(c->vendor, p->queues == 1 ? "queue" : "queues"), p->stopped_us);
	text_put(o, "", show_name(a, &rpc_resume_reason_enum, p->reason), "");
}

static void print_soon(const struct ctl *c, struct out *o, const struct rpc_gpu_resume_soon_params *p)
{
	out_fmt(o, "%s suspended for %" PRIu64 " s run again in %" PRIu64
		   " s: the agent allows no longer stop",
		vendor_word(c->vendor, "queues"), p->suspended_ms / 1000, p->left_ms / 1000);
}

static void print_lost(struct rpc_arena *a, struct out *o, const struct rpc_control_lost_params *p)
{
	out_fmt(o, "control lost to process %u (%s): ", p->by_pid, show_user(a, p->by_uid));
	text_put(o, "", show_name(a, &rpc_control_reason_enum, p->reason), "");
}

static void print_asked(struct rpc_arena *a, struct out *o, const struct rpc_control_asked_params *p)
{
	out_fmt(o, "process %u (%s), the owner, asks for control, and can take it in %u s", p->by_pid,
		show_user(a, p->by_uid), p->left_ms / 1000);
}

static void print_runtime(struct rpc_arena *a, struct out *o,
			  const struct rpc_runtime_changed_params *p)
{
	text_put(o, "runtime ", show_name(a, &rpc_runtime_state_enum, p->runtime.state), "");
	if (p->runtime.r_debug) {
		out_str(o, ", r_debug ");
		out_hex(o, p->runtime.r_debug);
	}
}

/* Append the address of a memory violation and why it was refused. */
static void print_access(struct out *o, const struct rpc_exception_raised_params *p)
{
	if (!p->has_address)
		return;
	out_str(o, "  address ");
	out_hex(o, p->address);
	if (p->has_not_present && p->not_present)
		out_str(o, ", not mapped");
	if (p->has_read_only && p->read_only)
		out_str(o, ", read-only");
	if (p->has_no_execute && p->no_execute)
		out_str(o, ", not executable");
}

/*
 * Append where the waves are that an exception concerns, as "2 waves at axpy.cl:8 in axpy": the
 * largest group, and how many waves are elsewhere.
 */
static void print_waves(const struct ctl *c, struct rpc_arena *a, struct out *o,
			const struct rpc_exception_raised_params *p)
{
	const struct rpc_group *g = p->groups;

	if (!p->has_waves || !p->n_groups)
		return;
	out_fmt(o, "  %u %s at ", g->waves, vendor_word(c->vendor, g->waves == 1 ? "wave" : "waves"));
	text_put(o, "", place_name(a, g), "");
	if (p->waves > g->waves)
		out_fmt(o, ", %u elsewhere", p->waves - g->waves);
}

/* Append the first exception whose waves have exited, and how many more there are. */
static void print_exited(struct rpc_arena *a, struct out *o,
			 const struct rpc_exception_raised_params *p)
{
	const char *place = p->n_exited ? place_exited(a, &p->exited[0]) : NULL;

	if (!place)
		return;
	text_put(o, "  ", p->exited[0].exception, "");
	text_put(o, " ", place, "");
	if (p->n_exited > 1)
		out_fmt(o, ", and %zu more", p->n_exited - 1);
}

static void print_exception(const struct ctl *c, struct rpc_arena *a, struct out *o,
			    const struct rpc_exception_raised_params *p)
{
	const char *names = show_exceptions(a, p->exceptions, p->n_exceptions);
	const char *bad = color_begin(COLOR_BAD, c->output.color);

	out_fmt(o, "%s%s%s", bad, names ? names : "nothing", color_end(COLOR_BAD, c->output.color));
	if (p->has_queue_id)
		out_fmt(o, "  %s %u", vendor_word(c->vendor, "queue"), p->queue_id);
	if (p->has_gpu_id)
		text_put(o, "  GPU ", gpu_names_text(&c->gpus, a, p->gpu_id), "");
	print_access(o, p);
	print_waves(c, a, o, p);
	print_exited(a, o, p);
	out_str(o, p->forwarded ? "  forwarded" : p->held ? "  held" : "");
	if (p->has_lost)
		out_fmt(o, "  (%" PRIu64 " before it were lost)", p->lost);
}

/* What a notification means for the loop. */
struct event {
	enum { EVENT_OTHER, EVENT_ENDED, EVENT_RESUMED } kind;
	int32_t reason;
};

/*
 * Print a notification that this client knows.  Only exceptions carry a time of their own; the
 * others get that of their arrival.
 * @return false if it is another one, or does not fit the schema.
 */
static bool print_known(struct ctl *c, const struct rpc_client_notification *n, struct rpc_arena *a,
			struct out *o, struct event *ret)
{
	static const struct rpc_struct *const structures[] = {
		[RPC_NOTIFICATION_SESSION_ENDED] = &rpc_session_ended_params_struct,
		[RPC_NOTIFICATION_GPU_RESUMED] = &rpc_gpu_resumed_params_struct,
		[RPC_NOTIFICATION_GPU_RESUME_SOON] = &rpc_gpu_resume_soon_params_struct,
		[RPC_NOTIFICATION_CONTROL_LOST] = &rpc_control_lost_params_struct,
		[RPC_NOTIFICATION_CONTROL_ASKED] = &rpc_control_asked_params_struct,
		[RPC_NOTIFICATION_EXCEPTION_RAISED] = &rpc_exception_raised_params_struct,
		[RPC_NOTIFICATION_RUNTIME_CHANGED] = &rpc_runtime_changed_params_struct,
	};
	const struct rpc_notification_info *known = rpc_notification_find(n->method);
	size_t kind = known ? (size_t)(known - rpc_notifications) : RPC_NOTIFICATION_COUNT;
	union {
		struct rpc_session_ended_params ended;
		struct rpc_gpu_resumed_params resumed;
		struct rpc_exception_raised_params raised;
		struct rpc_runtime_changed_params runtime;
		struct rpc_gpu_resume_soon_params soon;
		struct rpc_control_lost_params lost;
		struct rpc_control_asked_params asked;
	} p;

	if (kind >= ARRAY_SIZE(structures) || rpc_client_decode(n, structures[kind], a, &p) < 0)
		return false;
	print_time(o, kind == RPC_NOTIFICATION_EXCEPTION_RAISED ? p.raised.time_us : clock_wall_us());
	if (kind == RPC_NOTIFICATION_SESSION_ENDED) {
		*ret = (struct event){ EVENT_ENDED, (int32_t)p.ended.reason };
		print_ended(a, o, &p.ended);
	} else if (kind == RPC_NOTIFICATION_GPU_RESUMED) {
		*ret = (struct event){ EVENT_RESUMED, (int32_t)p.resumed.reason };
		print_resumed(c, a, o, &p.resumed);
	} else if (kind == RPC_NOTIFICATION_EXCEPTION_RAISED) {
		print_exception(c, a, o, &p.raised);
	} else if (kind == RPC_NOTIFICATION_RUNTIME_CHANGED) {
		print_runtime(a, o, &p.runtime);
	} else if (kind == RPC_NOTIFICATION_GPU_RESUME_SOON) {
		print_soon(c, o, &p.soon);
	} else if (kind == RPC_NOTIFICATION_CONTROL_ASKED) {
		print_asked(a, o, &p.asked);
	} else {
		print_lost(a, o, &p.lost);
	}
	return true;
}

/* Print one notification as one line.  Those of a newer agent are shown as they are. */
static int handle(struct ctl *c, const struct rpc_client_notification *n, struct event *ret)
{
	auto_rpc_arena struct rpc_arena arena;
	auto_out struct out line = { 0 };

	*ret = (struct event){ EVENT_OTHER, 0 };
	rpc_arena_init(&arena, 0);
	if (!print_known(c, n, &arena, &line, ret)) {
		out_reset(&line);
		print_time(&line, clock_wall_us());
		text_put(&line, "", n->method, " ");
		text_escape(&line, n->params, n->params_size);
	}
	if (ctl_is_json(c)) {
		out_reset(&line);
		rpc_message_notification(&line, n->method, n->params, n->params_size);
		return output_json(&c->output, line.data, line.size);
	}
	out_bytes(&c->output.text, line.data, line.size);
	out_char(&c->output.text, '\n');
	return out_error(&line);
}

/*
 * Handle all notifications that have arrived.  A positive result means that the stream is over;
 * what came behind that notification is printed all the same.
 */
static int drain(struct ctl *c, struct stream *s, enum stream_end *ret_end)
{
	struct rpc_client_notification n;
	bool over = false;
	struct event e;
	int r;

	for (;;) {
		r = rpc_client_next_notification(c->client, 0, &n, &c->err);
		if (r == -ETIMEDOUT)
			break;
		if (r < 0)
			return r;
		r = handle(c, &n, &e);
		if (r < 0)
			return ctl_fail(c, -r, "writing a notification");
		if (e.kind == EVENT_ENDED)
			*ret_end = STREAM_END_SESSION;
		else if (e.kind == EVENT_RESUMED && s->until_resumed)
			*ret_end = STREAM_END_RESUMED;
		else
			continue;
		s->reason = e.reason;
		over = true;
		c->attached = c->attached && e.kind != EVENT_ENDED;
	}
	if (rpc_client_dropped(c->client) > s->dropped) {
		s->dropped = rpc_client_dropped(c->client);
		ctl_note(c,
			 "%" PRIu64
			 " notifications were lost: they came faster than they could be printed",
			 s->dropped);
	}
	return over;
}

/* Whether standard input is at its end.  Input itself is read and dropped. */
static bool input_ended(void)
{
	char buffer[4096];

	return read(STDIN_FILENO, buffer, sizeof(buffer)) == 0;
}

/*
 * Wait until one of the descriptors is ready, and look at all once.  A positive result means that
 * the stream is over.  Standard output is only asked whether its reader is gone.
 */
static int wait_once(struct ctl *c, struct stream *s, enum stream_end *ret_end)
{
	struct pollfd fds[] = {
		{ .fd = rpc_client_fd(c->client), .events = POLLIN },
		{ .fd = s->signal_fd, .events = POLLIN },
		{ .fd = s->until_eof ? STDIN_FILENO : -1, .events = POLLIN },
		{ .fd = c->output.path ? -1 : STDOUT_FILENO },
	};
	int n = poll(fds, 4, s->deadline_ns ? clock_left_ms(s->deadline_ns) : -1);

	if (n < 0)
		return errno == EINTR ? 0 : ctl_fail(c, errno, "poll");
	*ret_end = STREAM_END_SIGNAL;
	if (fds[1].revents && (s->signo = signals_read(s->signal_fd)) > 0)
		return 1;
	*ret_end = STREAM_END_INPUT;
	if (fds[2].revents && input_ended())
		return 1;
	*ret_end = STREAM_END_READER;
	if (fds[3].revents & (POLLERR | POLLHUP))
		return 1;
	*ret_end = STREAM_END_TIME;
	return n == 0 && s->deadline_ns && clock_now_ns() >= s->deadline_ns;
}

static int loop(struct ctl *c, struct stream *s, enum stream_end *ret_end)
{
	int over, r;

	for (;;) {
		/* What was printed is delivered also when the stream is over or has failed. */
		over = drain(c, s, ret_end);
		r = output_flush(&c->output);
		if (over < 0)
			return over;
		if (r == -EPIPE) {
			*ret_end = STREAM_END_READER;
			return 0;
		}
		if (r < 0)
			return ctl_fail(c, -r, "writing the output");
		if (s->notice[0])
			ctl_note(c, "%s", s->notice);
		s->notice[0] = '\0';
		if (!over)
			over = wait_once(c, s, ret_end);
		if (over)
			return over < 0 ? over : 0;
	}
}

int stream_run(struct ctl *c, struct stream *s, enum stream_end *ret_end)
{
	int r;

	s->signal_fd = signals_hold();
	if (s->signal_fd < 0)
		return ctl_fail(c, -s->signal_fd, "signalfd");
	r = loop(c, s, ret_end);
	signals_release(s->signal_fd);
	return r;
}

int stream_status(struct ctl *c, const struct stream *s, enum stream_end end)
{
	switch (end) {
	case STREAM_END_SIGNAL:
		return CTL_EXIT_SIGNAL + s->signo;
	case STREAM_END_READER:
		return CTL_EXIT_SIGNAL + SIGPIPE;
	/* A process that ends, or a session that was left, is no failure. */
	case STREAM_END_SESSION:
		if (s->reason == RPC_END_REASON_EXITED || s->reason == RPC_END_REASON_DETACHED)
			return 0;
		return agent_err_set(&c->err, RPC_ERROR_SESSION_ENDED, 0, NULL, NULL,
				     "session ended: %s", ctl_end_reason(s->reason));
	case STREAM_END_INPUT:
	case STREAM_END_TIME:
	case STREAM_END_RESUMED:
		break;
	}
	return 0;
}
