/* SPDX-License-Identifier: MIT */
/*
 * gpu-agentctl record: many small captures for some time, under a budget of stopped time, as shares of places and as
 * files for other tools.
 */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "corefile/file.h"
#include "ctl/ctl.h"
#include "ctl/terminal/text.h"
#include "ctl/verbs/record/sampler.h"

#define DURATION_MS	10000
#define DURATION_MAX_MS 86400000
/* Rows of a table without -v. */
#define ROWS 20

static const char *duration;
static struct sampler_options asked;
static const char *collapsed_path, *svg_path, *speedscope_path, *pprof_path;

static const struct argv_option options[] = {
	{ "duration", 'd', ARGV_STRING, &duration, "TIME", "record for so long (default 10s)" },
	SAMPLER_OPTIONS(asked),
	{ "collapsed", 0, ARGV_STRING, &collapsed_path, "FILE", "also write collapsed stacks, for flame graph tools" },
	{ "svg", 0, ARGV_STRING, &svg_path, "FILE", "also write a flame graph" },
	{ "speedscope", 0, ARGV_STRING, &speedscope_path, "FILE", "also write a file for speedscope" },
	{ "pprof", 0, ARGV_STRING, &pprof_path, "FILE", "also write a file for pprof" },
	{ 0 },
};

/* ------------------------------------------------------------------ files -------------------- */

typedef int write_fn(struct out *o, const struct recording *r, const struct recording_facts *f);

static int write_collapsed(struct out *o, const struct recording *r, const struct recording_facts *f)
{
	(void)f;
	return recording_write_collapsed(o, r);
}

static const struct form {
	const char *const *path;
	write_fn *write;
} forms[] = {
	{ &collapsed_path, write_collapsed },
	{ &svg_path, recording_write_flame },
	{ &speedscope_path, recording_write_speedscope },
	{ &pprof_path, recording_write_pprof },
};

static int write_file(struct sampler *s, const struct form *form, const struct recording_facts *f)
{
	struct corefile_file file = COREFILE_FILE_NULL;
	auto_out struct out text = { 0 };
	int r = form->write(&text, &s->recording, f);

	if (r == 0) {
		r = ctl_make_file(s->c, *form->path, 0644, true, &file);
		if (r < 0)
			return r;
		r = fd_write_all(file.fd, text.size ? text.data : "", text.size);
	}
	if (r == 0)
		r = corefile_file_commit(&file, true);
	ctl_close_file(&file);
	return r < 0 ? ctl_fail(s->c, -r, *form->path) : 0;
}

/* A file that cannot be written is found out before minutes of captures, and not after them. */
static int check_files(struct ctl *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		for (size_t k = 0; *forms[i].path && k < i; k++)
			if (*forms[k].path && !strcmp(*forms[i].path, *forms[k].path))
				return ctl_usage(c, "two forms cannot have one file: %.80s", *forms[i].path);
	}
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		struct corefile_file file = COREFILE_FILE_NULL;
		int r = *forms[i].path ? ctl_make_file(c, *forms[i].path, 0644, true, &file) : 0;

		ctl_close_file(&file);
		if (r < 0)
			return r;
	}
	return 0;
}

/* All files are tried: one that fails takes none of the others with it.  @return 0, or that of the first one. */
static int write_files(struct sampler *s, const struct recording_facts *f)
{
	struct agent_err first = { 0 };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		int k = *forms[i].path ? write_file(s, &forms[i], f) : 0;

		if (k < 0 && r == 0) {
			r = k;
			first = s->c->err;
		}
	}
	if (r < 0)
		s->c->err = first;
	return r;
}

/* ------------------------------------------------------------------ what was recorded -------- */

static void put_counts(struct sampler *s, struct out *o)
{
	if (s->longest_us)
		out_fmt(o, "one capture stopped them for %.2f to %.2f ms\n", (double)s->shortest_us / 1000,
			(double)s->longest_us / 1000);
	if (s->refused)
		out_fmt(o, "%" PRIu32 " times the agent allowed no stop: what it allows was used up\n", s->refused);
	if (s->cut)
		out_fmt(o, "%" PRIu32 " captures do not count: their stop budget was used up (--max-stop)\n", s->cut);
	if (s->incomplete)
		out_fmt(o, "%" PRIu32 " captures lack something\n", s->incomplete);
	if (s->failed)
		out_fmt(o, "%" PRIu32 " captures failed\n", s->failed);
	if (s->recording.full)
		out_str(o, "there were more places than a recording has room for: the rest is \"(other places)\"\n");
	if (sampler_missing(s)[0])
		text_put(o, "missing: ", sampler_missing(s), "\n");
}

static int print_text(struct sampler *s, const struct recording_facts *f)
{
	struct out *o = &s->c->output.text;

	text_put(o, "", s->recording.process, ": ");
	recording_put_facts(o, &s->recording, f);
	out_char(o, '\n');
	put_counts(s, o);
	out_char(o, '\n');
	return sampler_show(s, s->c->verbose ? 0 : ROWS);
}

/* ------------------------------------------------------------------ the verb ----------------- */

/* Say why the recording is shorter than asked for.  @return the exit status. */
static int status_of(struct sampler *s, enum sampler_end end, const struct agent_err *why)
{
	if (end == SAMPLER_SIGNAL)
		return CTL_EXIT_SIGNAL + s->signo;
	if (end == SAMPLER_EXITED)
		ctl_note(s->c, "process %u has ended: the recording ends with it", s->c->session.pid);
	if (end == SAMPLER_LOST) {
		ctl_note(s->c, "the recording ends early: %s", why->message);
		return agent_err_exit(why);
	}
	return ctl_status(sampler_is_complete(s), false);
}

static int finish(struct sampler *s, enum sampler_end end)
{
	const struct recording_facts f = sampler_facts(s);
	struct ctl *c = s->c;
	const struct agent_err why = c->err;
	int files, r;

	/* Of what was not seen at all, there is nothing to write. */
	if (end == SAMPLER_FAILED || (end == SAMPLER_LOST && !s->recording.captures))
		return -1;
	c->err = (struct agent_err){ 0 };
	out_reset(&c->err_json);
	files = write_files(s, &f);
	if (files < 0)
		ctl_note(c, "%s", c->err.message);
	r = ctl_is_json(c) ? sampler_print_json(s, &f, end) : print_text(s, &f);
	if (r < 0)
		return r;
	r = status_of(s, end, &why);
	return files < 0 && (r == 0 || r == CTL_EXIT_PARTIAL) ? CTL_EXIT_FAILURE : r;
}

static int run(struct ctl *c, int argc, char **argv)
{
	uint32_t duration_ms = DURATION_MS;
	struct sampler s;
	int r = 0;

	(void)argc;
	if (duration)
		r = args_duration(c, "--duration", duration, DURATION_MAX_MS, &duration_ms);
	if (r == 0)
		r = check_files(c);
	if (r < 0)
		return r;
	r = sampler_begin(c, &asked, argv[0], &s);
	if (r == 0) {
		uint64_t end_ns = s.budget.begin_ns + duration_ms * UINT64_C(1000000);

		r = finish(&s, sampler_run(&s, end_ns, end_ns));
	}
	sampler_end(&s);
	return r;
}

const struct ctl_verb ctl_verb_record = {
	.name = "record",
	.args = "PID",
	.summary = "Take many small captures and show where the waves are, and how often",
	.options = options,
	.min_args = 1,
	.max_args = 1,
	.run = run,
};
