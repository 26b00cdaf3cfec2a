/* SPDX-License-Identifier: MIT */
/*
 * gpu-agentctl watch: one snapshot after the other in one session, on a terminal as a page that
 * redraws itself, elsewhere as a stream.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "ctl/ctl.h"
#include "ctl/document/compare.h"
#include "ctl/group_rows.h"
#include "ctl/signals.h"
#include "ctl/snapshot_show.h"
#include "ctl/watch.h"

#define INTERVAL_MAX_MS	 3600000
#define INTERVAL_MS	 2000
#define SNAPSHOT_MEMORY	 ((size_t)256 << 20)
/* Bytes of keys that were typed and not handled yet. */
#define TYPED_MAX 64

static const char *interval, *count;

static const struct argv_option options[] = {
	{ "interval", 0, ARGV_STRING, &interval, "MS",
	  "milliseconds between snapshots (default 2000)" },
	{ "count", 0, ARGV_STRING, &count, "N", "end after N snapshots" },
	{ 0 },
};

struct watch {
	struct ctl *c;
	struct watch_state state;
	uint32_t count; /* Snapshots to take; 0: no end. */
	uint32_t taken;
	uint64_t next_ns;
	struct rpc_gpu_snapshot_params params;
	struct rpc_gpu_snapshot_result s; /* In c->arena, which holds nothing else. */
	/* The snapshot before that, and what the two say; there is none after the first one. */
	struct rpc_arena before_arena;
	struct rpc_gpu_snapshot_result before;
	struct rpc_comparison cmp;
	bool compared;
	uint64_t *still_us; /* Of each queue of cmp: how long it has stood still; in c->arena. */
	struct watch_head head;
	struct out frame;
	int signal_fd;
	char typed[TYPED_MAX];
	size_t n_typed;
};

/* What the loops return besides errors. */
#define GO_ON 1
#define OVER  0

/* ------------------------------------------------------------------ snapshots ---------------- */

/* Keep the last snapshot, and forget the one before it. */
static void keep_last(struct watch *w)
{
	struct rpc_arena oldest = w->before_arena;

	w->before = w->s;
	w->before_arena = w->c->arena;
	w->c->arena = oldest;
	rpc_arena_reset(&w->c->arena);
}

/* How long a queue had stood still at the last snapshot; 0 if it was not known to. */
static uint64_t still_before(const struct rpc_comparison *was, const uint64_t *still_us,
			     const struct rpc_queue_change *q)
{
	for (size_t i = 0; i < was->n_queues; i++)
		if (was->queues[i].queue_id == q->queue_id && was->queues[i].gpu_id == q->gpu_id)
			return still_us[i];
	return 0;
}

/*
 * Compare with the snapshot before.  A queue that is hung has been so since it was first seen there;
 * snapshots that are too close to each other tell nothing.
 */
static int compare(struct watch *w)
{
	struct ctl *c = w->c;
	const struct rpc_comparison was = w->compared ? w->cmp : (struct rpc_comparison){ 0 };
	const uint64_t *still_us = w->still_us;
	int r;

	w->compared = false;
	if (w->taken < 2 || w->s.time_us < w->before.time_us + COMPARE_INTERVAL_MIN_US)
		return 0;
	r = compare_snapshots(&c->arena, &w->before, &w->s, false, &w->cmp);
	if (r < 0)
		return ctl_fail(c, -r, "comparing");
	w->still_us = rpc_arena_array(&c->arena, w->cmp.n_queues, sizeof(*w->still_us));
	if (!w->still_us)
		return ctl_fail(c, -rpc_arena_error(&c->arena), "comparing");
	for (size_t i = 0; i < w->cmp.n_queues; i++) {
		const struct rpc_queue_change *q = &w->cmp.queues[i];

		if (q->has_verdict && q->verdict == RPC_PROGRESS_HUNG)
			w->still_us[i] = w->cmp.interval_us + still_before(&was, still_us, q);
	}
	w->compared = true;
	return 0;
}

static struct snapshot_page page_of(const struct watch *w)
{
	return (struct snapshot_page){ .snapshot = &w->s,
				       .comparison = w->compared ? &w->cmp : NULL,
				       .still_us = w->compared ? w->still_us : NULL };
}

/* Take the next snapshot. */
static int take(struct watch *w)
{
	struct ctl *c = w->c;
	int r;

	keep_last(w);
	r = ctl_called(c,
		       rpc_client_gpu_snapshot(c->client, &w->params, &c->arena, &w->s, &c->err));
	if (r < 0)
		return r;
	w->taken++;
	w->state.interval_ms = watch_interval(w->state.asked_ms, w->s.stopped_us);
	w->next_ns = clock_deadline_ms(w->state.interval_ms);
	ctl_name_gpus_of(c, &w->s);
	return ctl_is_json(c) ? 0 : compare(w);
}

/* Append what stands above the table to output.text, which is empty on a terminal. */
static int print_head(struct watch *w)
{
	const struct snapshot_page page = page_of(w);
	int r = snapshot_show_headline(w->c, &page);

	w->head.headline = w->c->output.text.size;
	if (r == 0)
		snapshot_show_header(w->c, &page);
	return r;
}

/* Append the groups in the order that the user has chosen. */
static int print_groups(struct watch *w)
{
	const struct snapshot_page page = page_of(w);
	struct rpc_arena *a = &w->c->arena;
	struct group_rows rows;
	int r = page.comparison ? group_rows_of_comparison(a, &w->s, page.comparison, page.still_us, &rows)
				: group_rows_of_snapshot(a, &w->s, &rows);

	if (r == 0)
		r = watch_sort_rows(a, &rows, w->state.sort);
	return r < 0 ? ctl_fail(w->c, -r, "sorting") : snapshot_show_groups(w->c, &page, &rows);
}

static bool is_last(const struct watch *w)
{
	return w->count && w->taken >= w->count;
}

/*
 * Read notifications, which would fill up the connection.  Its end, and that of the session, is an
 * error.
 */
static int drain(struct ctl *c)
{
	struct rpc_client_notification n;
	int r;

	while ((r = rpc_client_next_notification(c->client, 0, &n, &c->err)) == 0)
		if (!strcmp(n.method, rpc_notifications[RPC_NOTIFICATION_SESSION_ENDED].name)) {
			c->attached = false;
			return agent_err_set(&c->err, RPC_ERROR_SESSION_ENDED, 0, NULL, NULL,
					     "the session ended: the process is gone, or the agent let go of it");
		}
	return r == -ETIMEDOUT ? 0 : r;
}

/* ------------------------------------------------------------------ as a stream -------------- */

static int print_text(struct watch *w)
{
	struct out *o = &w->c->output.text;
	int r;

	if (w->taken > 1)
		out_char(o, '\n');
	r = print_head(w);
	out_char(o, '\n');
	return r < 0 ? r : print_groups(w);
}

/*
 * Wait until the next snapshot is due.
 * @return 0, exit status (the reader has gone), or negative with ctl.err.
 */
static int pause_stream(struct watch *w)
{
	struct pollfd fds[] = {
		{ .fd = rpc_client_fd(w->c->client), .events = POLLIN },
		{ .fd = w->c->output.path ? -1 : STDOUT_FILENO },
	};
	int r = 0;

	while (r == 0 && clock_left_ms(w->next_ns) > 0) {
		if (poll(fds, 2, clock_left_ms(w->next_ns)) < 0 && errno != EINTR)
			return ctl_fail(w->c, errno, "poll");
		if (fds[1].revents & (POLLERR | POLLHUP))
			return CTL_EXIT_SIGNAL + SIGPIPE;
		if (fds[0].revents)
			r = drain(w->c);
	}
	return r;
}

static int stream(struct watch *w)
{
	struct ctl *c = w->c;
	int r = 0;

	output_begin_stream(&c->output);
	while (r == 0) {
		r = take(w);
		if (r == 0)
			r = ctl_is_json(c) ? ctl_print_result(c) : print_text(w);
		if (r < 0)
			return r;
		r = output_flush(&c->output);
		if (r == -EPIPE)
			return CTL_EXIT_SIGNAL + SIGPIPE;
		if (r < 0)
			return ctl_fail(c, -r, "writing the output");
		if (is_last(w))
			return 0;
		r = pause_stream(w);
	}
	return r;
}

/* ------------------------------------------------------------------ on a terminal ------------ */

/* Write the head, and the table into output.text, as wide as the terminal is now. */
static int render(struct watch *w)
{
	struct ctl *c = w->c;
	struct out *text = &c->output.text;
	int r;

	c->output.width = screen_get_size().cols;
	out_reset(text);
	out_reset(&w->head.text);
	r = print_head(w);
	if (r < 0)
		return r;
	out_bytes(&w->head.text, text->data, text->size);
	out_reset(text);
	if (!w->state.devices)
		return print_groups(w);
	r = show_devices(c, w->s.devices, w->s.n_devices);
	out_char(text, '\n');
	return r < 0 ? r : show_queues(c, w->s.queues, w->s.n_queues);
}

static int draw(struct watch *w)
{
	int r;

	out_reset(&w->frame);
	watch_frame(&w->frame, screen_get_size(), &w->state, &w->head, &w->c->output.text);
	r = out_error(&w->frame);
	if (r == 0)
		r = fd_write_all(STDOUT_FILENO, w->frame.data, w->frame.size);
	return r < 0 ? ctl_fail(w->c, -r, "writing to the terminal") : 0;
}

static int open_screen(struct watch *w)
{
	int r = screen_open();

	return r < 0 ? ctl_fail(w->c, -r, "setting up the terminal") : 0;
}

/*
 * Stop as if SIGTSTP had not been caught, with the terminal given back meanwhile.  The blocked
 * signal is delivered when it is unblocked; the program goes on there after SIGCONT.
 */
static int stop(struct watch *w)
{
	sigset_t set;

	screen_close();
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return open_screen(w);
}

/* A changed size of the window, too, is answered with a new frame. */
static int handle_signals(struct watch *w)
{
	int signo, r = 0;

	while (r == 0 && (signo = signals_read(w->signal_fd)) > 0) {
		if (signo == SIGTSTP)
			r = stop(w);
		else if (signo == SIGCONT)
			r = open_screen(w);
	}
	if (r == 0)
		r = render(w);
	return r < 0 ? r : draw(w);
}

/* @return GO_ON, OVER, negative. */
static int handle_keys(struct watch *w)
{
	const struct out *table = &w->c->output.text;
	size_t window = watch_window(screen_get_size(), &w->head), n = 0;
	ssize_t got = read(STDIN_FILENO, w->typed + w->n_typed, TYPED_MAX - w->n_typed);
	bool redraw = false;
	int r = 0;

	if (got <= 0)
		return got < 0 && errno == EINTR ? GO_ON : OVER;
	w->n_typed += (size_t)got;
	while (r == 0 && w->n_typed) {
		switch (watch_key(&w->state, w->typed, w->n_typed,
				  watch_rows(table->size ? table->data : "", table->size), window,
				  &n)) {
		case WATCH_QUIT:
			return OVER;
		case WATCH_RENDER:
			r = render(w);
			redraw = true;
			break;
		case WATCH_REDRAW:
			redraw = true;
			break;
		case WATCH_NOTHING:
			break;
		}
		if (!n)
			break;
		w->n_typed -= n;
		memmove(w->typed, w->typed + n, w->n_typed);
	}
	if (r == 0 && redraw)
		r = draw(w);
	return r < 0 ? r : GO_ON;
}

/* @return GO_ON, OVER, negative. */
static int wait_once(struct watch *w)
{
	struct pollfd fds[] = {
		{ .fd = rpc_client_fd(w->c->client), .events = POLLIN },
		{ .fd = w->signal_fd, .events = POLLIN },
		{ .fd = STDIN_FILENO, .events = POLLIN },
	};
	int r = 0;

	if (poll(fds, 3, w->state.paused ? -1 : clock_left_ms(w->next_ns)) < 0)
		return errno == EINTR ? GO_ON : ctl_fail(w->c, errno, "poll");
	if (fds[0].revents)
		r = drain(w->c);
	if (r == 0 && fds[1].revents)
		r = handle_signals(w);
	/* Keys come last: they may end the loop. */
	if (r == 0 && fds[2].revents)
		return handle_keys(w);
	return r < 0 ? r : GO_ON;
}

static int run_screen(struct watch *w)
{
	int r = GO_ON;

	while (r == GO_ON) {
		if (!w->state.paused && clock_left_ms(w->next_ns) == 0) {
			r = take(w);
			if (r == 0)
				r = render(w);
			if (r == 0)
				r = draw(w);
			if (r < 0 || is_last(w))
				return r;
		}
		r = wait_once(w);
	}
	return r;
}

static int hold_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGWINCH);
	sigaddset(set, SIGTSTP);
	sigaddset(set, SIGCONT);
	if (sigprocmask(SIG_BLOCK, set, NULL) < 0)
		return -errno;
	return signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int screen(struct watch *w)
{
	sigset_t set;
	int r = take(w);

	/* A failure of the first snapshot is better told without a flash of an empty screen. */
	if (r < 0)
		return r;
	w->signal_fd = hold_signals(&set);
	if (w->signal_fd < 0)
		return ctl_fail(w->c, errno, "signalfd");
	signals_at_exit(screen_close);
	r = open_screen(w);
	if (r == 0)
		r = render(w);
	if (r == 0)
		r = draw(w);
	if (r == 0 && !is_last(w))
		r = run_screen(w);
	screen_close();
	signals_at_exit(NULL);
	close(w->signal_fd);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	/* The table was drawn already; output_finish() must not print it again. */
	out_reset(&w->c->output.text);
	return r;
}

/* ------------------------------------------------------------------ verb --------------------- */

static int parse(struct ctl *c, struct watch *w)
{
	int r = 0;

	w->state.asked_ms = INTERVAL_MS;
	if (interval)
		r = args_ms(c, "--interval", interval, INTERVAL_MAX_MS, &w->state.asked_ms);
	if (r == 0 && count)
		r = args_u32(c, "--count", count, 1, UINT32_MAX, &w->count);
	w->state.interval_ms = w->state.asked_ms;
	w->params.has_max_stop_ms = c->max_look_ms;
	w->params.max_stop_ms = c->max_look_ms;
	return r;
}

/*
 * Run in two arenas of its own, which snapshots empty by turns; the session's texts stay in the first
 * one.
 */
static int run_watch(struct ctl *c, struct watch *w)
{
	struct rpc_arena kept = c->arena;
	bool on_screen = !ctl_is_json(c) && !c->output.path && screen_is_possible();
	int r;

	rpc_arena_init(&c->arena, SNAPSHOT_MEMORY);
	rpc_arena_init(&w->before_arena, SNAPSHOT_MEMORY);
	w->params.session = c->session.session;
	r = on_screen ? screen(w) : stream(w);
	rpc_arena_deinit(&c->arena);
	rpc_arena_deinit(&w->before_arena);
	c->arena = kept;
	return r ? r : ctl_status(w->s.complete, false);
}

static int run(struct ctl *c, int argc, char **argv)
{
	struct watch w = { .c = c, .signal_fd = -1 };
	int r = parse(c, &w);

	if (r < 0)
		return r;
	out_init(&w.head.text, 0);
	out_init(&w.frame, 0);
	r = ctl_attach(c, argv[0], false);
	if (r == 0)
		r = run_watch(c, &w);
	ctl_detach(c);
	out_deinit(&w.head.text);
	out_deinit(&w.frame);
	return r;
}

const struct ctl_verb ctl_verb_watch = {
	.name = "watch",
	.args = "PID",
	.summary = "Show again and again what the waves of a process do",
	.options = options,
	.min_args = 1,
	.max_args = 1,
	.run = run,
};
