/* SPDX-License-Identifier: MIT */
/*
 * gpu-agentctl top: where the waves of a process are, live: the shares of the captures of the last seconds, on a
 * terminal as a page that redraws itself, elsewhere one table after the other.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "ctl/ctl.h"
#include "ctl/signals.h"
#include "ctl/terminal/screen.h"
#include "ctl/terminal/text.h"
#include "ctl/verbs/record/sampler.h"

#define INTERVAL_MS	2000
#define INTERVAL_MIN_MS 100
#define INTERVAL_MAX_MS 3600000
#define ROWS 20

static const char *interval, *count;
static bool once;
static struct sampler_options asked;

static const struct argv_option options[] = {
	{ "interval", 0, ARGV_STRING, &interval, "MS", "milliseconds that a table is of (default 2000)" },
	{ "count", 'n', ARGV_STRING, &count, "N", "end after N tables" },
	{ "once", 0, ARGV_FLAG, &once, NULL, "end after the first table" },
	SAMPLER_OPTIONS(asked),
	{ 0 },
};

struct top {
	struct ctl *c;
	struct sampler s;
	uint32_t interval_ms;
	uint32_t count; /* 0: no end. */
	bool on_screen;
	bool complete; /* The last table that was shown. */
};

/* ------------------------------------------------------------------ a table ------------------ */

/* Append the head and the table of the captures since the last one. */
static int render(struct top *t, const struct recording_facts *f)
{
	struct out *o = &t->c->output.text;

	text_put(o, "", t->s.recording.process, ": ");
	recording_put_facts(o, &t->s.recording, f);
	out_char(o, '\n');
	if (sampler_missing(&t->s)[0])
		text_put(o, "missing: ", sampler_missing(&t->s), "\n");
	out_char(o, '\n');
	return sampler_show(&t->s, t->c->verbose ? 0 : ROWS);
}

static int print_screen(struct top *t, const struct recording_facts *f)
{
	static const char keys[] = "q quit";
	const struct screen_size size = screen_get_size();
	struct out *text = &t->c->output.text;
	auto_out struct out frame = { 0 };
	const char *at, *end;
	int r;

	t->c->output.width = size.cols;
	out_reset(text);
	r = render(t, f);
	if (r < 0)
		return r;
	screen_begin(&frame);
	at = text->size ? text->data : "";
	end = at + text->size;
	for (unsigned row = 1; row < size.rows; row++) {
		const char *stop = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;

		stop = stop ? stop : end;
		screen_row(&frame, row, size.cols, at, (size_t)(stop - at));
		at = stop < end ? stop + 1 : end;
	}
	screen_row(&frame, size.rows, size.cols, keys, strlen(keys));
	out_reset(text);
	r = out_error(&frame);
	if (r == 0)
		r = fd_write_all(STDOUT_FILENO, frame.data, frame.size);
	return r < 0 ? ctl_fail(t->c, -r, "writing to the terminal") : 0;
}

/* @return 0, the exit status of a reader who has gone, or negative. */
static int print_stream(struct top *t, const struct recording_facts *f, uint32_t n)
{
	struct ctl *c = t->c;
	int r;

	if (ctl_is_json(c)) {
		r = sampler_print_json(&t->s, f, SAMPLER_GOES_ON);
	} else {
		if (n)
			out_char(&c->output.text, '\n');
		r = render(t, f);
	}
	if (r < 0)
		return r;
	r = output_flush(&c->output);
	if (r == -EPIPE)
		return CTL_EXIT_SIGNAL + SIGPIPE;
	return r < 0 ? ctl_fail(c, -r, "writing the output") : 0;
}

/* ------------------------------------------------------------------ the loop ----------------- */

/* @return whether it was a key that ends the view; the end of what is typed does, too. */
static bool typed_quit(void)
{
	char keys[64];
	ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));

	for (ssize_t i = 0; i < n; i++)
		if (keys[i] == 'q' || keys[i] == 'Q' || keys[i] == '\x04')
			return true;
	return n == 0;
}

/* Take captures until the next table is due.  @return why it ends, or SAMPLER_GOES_ON. */
static enum sampler_end collect(struct top *t)
{
	uint64_t until_ns = clock_deadline_ms(t->interval_ms);
	enum sampler_end end;

	do
		end = sampler_run(&t->s, until_ns, 0);
	while (end == SAMPLER_KEY && !typed_quit());
	return end;
}

static int status_of(struct top *t, enum sampler_end end)
{
	struct ctl *c = t->c;

	if (end == SAMPLER_SIGNAL)
		return CTL_EXIT_SIGNAL + t->s.signo;
	if (end == SAMPLER_EXITED)
		ctl_note(c, "process %u has ended", c->session.pid);
	if (end == SAMPLER_LOST || end == SAMPLER_FAILED)
		return -1;
	return ctl_status(t->complete, false);
}

static int loop(struct top *t)
{
	for (uint32_t n = 0;; n++) {
		enum sampler_end end = collect(t);
		const struct recording_facts f = sampler_facts(&t->s);
		int r;

		if (end != SAMPLER_GOES_ON) {
			/* What is said from now on is for the terminal as it was before. */
			screen_close();
			return status_of(t, end);
		}
		t->complete = sampler_is_complete(&t->s);
		r = t->on_screen ? print_screen(t, &f) : print_stream(t, &f, n);
		if (r != 0 || (t->count && n + 1 >= t->count))
			return r ? r : status_of(t, end);
		r = sampler_next(&t->s);
		if (r < 0)
			return r;
	}
}

static int run_loop(struct top *t)
{
	int r;

	t->on_screen = !ctl_is_json(t->c) && !t->c->output.path && t->count != 1 && screen_is_possible();
	if (!t->on_screen) {
		output_begin_stream(&t->c->output);
		return loop(t);
	}
	/* A signal ends the loop, and the terminal is given back behind it; nothing gives it back for a stop. */
	signal(SIGTSTP, SIG_IGN);
	r = screen_open();
	if (r < 0)
		return ctl_fail(t->c, -r, "setting up the terminal");
	t->s.keys_fd = STDIN_FILENO;
	t->s.on_screen = true;
	r = loop(t);
	screen_close();
	return r;
}

static int run(struct ctl *c, int argc, char **argv)
{
	struct top t = { .c = c, .interval_ms = INTERVAL_MS, .count = once, .complete = true };
	int r = 0;

	(void)argc;
	if (once && count)
		return ctl_usage(c, "--once and --count exclude each other");
	if (interval)
		r = args_ms(c, "--interval", interval, INTERVAL_MAX_MS, &t.interval_ms);
	if (r == 0 && t.interval_ms < INTERVAL_MIN_MS)
		r = ctl_usage(c, "--interval: %d ms at least", INTERVAL_MIN_MS);
	if (r == 0 && count)
		r = args_u32(c, "--count", count, 1, UINT32_MAX, &t.count);
	if (r < 0)
		return r;
	r = sampler_begin(c, &asked, argv[0], &t.s);
	if (r == 0)
		r = run_loop(&t);
	sampler_end(&t.s);
	return r;
}

const struct ctl_verb ctl_verb_top = {
	.name = "top",
	.args = "PID",
	.summary = "Show live where the waves of a process are, and how often",
	.options = options,
	.min_args = 1,
	.max_args = 1,
	.run = run,
};
