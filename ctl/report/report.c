/* SPDX-License-Identifier: MIT */
/* The order of the page: what is wrong, what to run next, facts, tables, and the document itself. */
#include "ctl/report/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "ctl/document/document.h"
#include "ctl/document/headline.h"
#include "ctl/report/html.h"
#include "ctl/terminal/text.h"
#include "protocol/stop_reason.h"

/* Bytes of a sentence or fact at the top, and of the title, which a tab shows. */
#define VERDICT_MAX 400
#define TITLE_MAX   48
/* Most lines below the sentence, and most commands. */
#define LINES_MAX    40
#define ODD_COMMANDS 3

/* One sentence of what is wrong, of a process or a job. */
struct finding {
	const char *tag; /* "" where there is none. */
	const char *style;
	const char *text;
};

/* ------------------------------------------------------------------ what is wrong ------------ */

static const char *style_of(enum headline_kind kind, bool complete)
{
	switch (kind) {
	case HEADLINE_FAULT:
	case HEADLINE_CAUSE:
	case HEADLINE_ALSO:
	case HEADLINE_HUNG:
		return "bad";
	case HEADLINE_HELD:
	case HEADLINE_UNSURE:
	case HEADLINE_SLOW:
	case HEADLINE_WAITS:
		return "warn";
	case HEADLINE_FINE:
		break;
	}
	/* No news is good news only where everything was seen. */
	return complete ? "good" : "warn";
}

static bool is_complete(const struct report *r)
{
	return r->cmp ? r->cmp->complete : r->s->complete;
}

static int find_in_process(struct report *r, struct finding **ret, size_t *ret_n)
{
	const struct headline_input in = { .snapshot = r->s, .comparison = r->cmp };
	struct finding *list = rpc_arena_array(r->a, HEADLINE_MAX + 2, sizeof(*list));
	struct headline h;
	int e = list ? headline_make(r->a, &in, r->gpus, &h) : rpc_arena_error(r->a);

	if (e < 0)
		return e;
	for (size_t i = 0; i < h.n; i++)
		list[i] = (struct finding){ h.lines[i].kind == HEADLINE_FINE ? "" : headline_tag(h.lines[i].kind),
					    style_of(h.lines[i].kind, is_complete(r)), h.lines[i].text };
	if (h.more_causes)
		list[h.n++] = (struct finding){ "", "warn", headline_more_causes(r->a, &h) };
	if (h.more)
		list[h.n++] =
			(struct finding){ "", "warn", rpc_arena_printf(r->a, "%zu more; see the tables", h.more) };
	*ret = list;
	*ret_n = h.n;
	return rpc_arena_error(r->a);
}

static int find_in_job(struct report *r, struct finding **ret, size_t *ret_n)
{
	struct merge_line *lines;
	struct finding *list;
	size_t n;
	int e = merge_headline(r->a, r->s, r->sets, &lines, &n);

	if (e < 0)
		return e;
	list = rpc_arena_array(r->a, n, sizeof(*list));
	if (!list)
		return rpc_arena_error(r->a);
	for (size_t i = 0; i < n; i++)
		list[i] = (struct finding){ lines[i].tag ? lines[i].tag : "",
					    lines[i].tag                      ? "bad"
					    : lines[i].good && r->s->complete ? "good"
									      : "warn",
					    lines[i].text };
	*ret = list;
	*ret_n = n;
	return 0;
}

static void put_finding(struct report *r, const struct finding *f, size_t max)
{
	if (f->tag[0])
		out_fmt(r->o, "<span class=\"tag %s\">%s</span> ", f->style, f->tag);
	html_cut(r->o, f->text, max);
}

/* ------------------------------------------------------------------ what it is of ------------ */

static void put_time(struct out *o, uint64_t us)
{
	time_t at = (time_t)(us / 1000000);
	char when[40];
	struct tm tm;

	if (us && gmtime_r(&at, &tm) && strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", &tm))
		out_str(o, when);
	else
		out_str(o, "unknown");
}

static int compare_names(const void *x, const void *y)
{
	return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* How many hosts the ranks are on; 0 where memory is out. */
static size_t count_hosts(struct report *r)
{
	const char **hosts = rpc_arena_array(r->a, r->s->n_ranks, sizeof(*hosts));
	size_t n = 0;

	for (size_t i = 0; hosts && i < r->s->n_ranks; i++)
		hosts[i] = r->s->ranks[i].host;
	if (hosts)
		qsort(hosts, r->s->n_ranks, sizeof(*hosts), compare_names);
	for (size_t i = 0; hosts && i < r->s->n_ranks; i++)
		n += !i || strcmp(hosts[i], hosts[i - 1]) != 0;
	return n;
}

static void put_kind(struct report *r)
{
	const struct rpc_gpu_snapshot_result *s = r->s;
	const struct rpc_process *p = &s->process;

	if (r->merged) {
		out_fmt(r->o, "Job of which %zu rank%s seen", s->n_ranks, s->n_ranks == 1 ? " was" : "s were");
		return;
	}
	out_str(r->o, r->cmp ? "Comparison of two snapshots of " : s->source.format ? "Core of " : "Snapshot of ");
	if (!p->pid) {
		out_str(r->o, "an unknown process");
		return;
	}
	out_fmt(r->o, "process %u (", p->pid);
	html_text(r->o, p->comm);
	out_str(r->o, ") on ");
	html_text(r->o, s->source.host);
}

static void put_fact(struct out *o, const char *name, const char *value)
{
	if (!value)
		return;
	out_fmt(o, "<div><dt>%s</dt><dd>", name);
	html_cut(o, value, VERDICT_MAX);
	out_str(o, "</dd></div>\n");
}

static void put_job_facts(struct report *r)
{
	size_t odd = 0, partial = 0, hosts = count_hosts(r);

	for (size_t i = 0; i < r->s->n_ranks; i++) {
		odd += r->s->ranks[i].odd != NULL;
		partial += !r->s->ranks[i].complete;
	}
	put_fact(r->o, "Ranks",
		 rpc_arena_printf(r->a, "%zu on %zu host%s", r->s->n_ranks, hosts, hosts == 1 ? "" : "s"));
	put_fact(r->o, "Odd ranks", rpc_arena_printf(r->a, "%zu", odd));
	put_fact(r->o, "Ranks seen in part", rpc_arena_printf(r->a, "%zu", partial));
}

static void put_process_facts(struct report *r)
{
	const struct rpc_process *p = &r->s->process;

	put_fact(r->o, "Program", p->exe ? p->exe : p->comm);
	put_fact(r->o, "User", rpc_arena_printf(r->a, "%u", p->uid));
	put_fact(r->o, "Container", p->container);
	if (r->s->source.format) {
		put_fact(r->o, "Core", r->s->source.file);
		put_fact(r->o, "Written by", r->s->source.writer);
	}
	put_fact(r->o, "Record", r->s->record);
	if (r->cmp)
		put_fact(r->o, "Verdict", rpc_enum_name(&rpc_progress_enum, r->cmp->verdict));
	if (r->cmp)
		put_fact(r->o, "Apart", rpc_arena_printf(r->a, "%" PRIu64 " ms", r->cmp->interval_us / 1000));
}

static void put_facts(struct report *r)
{
	out_str(r->o, "<dl>\n");
	if (r->merged)
		put_job_facts(r);
	else
		put_process_facts(r);
	put_fact(r->o, r->vendor == RPC_VENDOR_NVIDIA ? "Warps" : "Waves",
		 rpc_arena_printf(r->a, "%u", r->s->wave_count));
	out_str(r->o, "<div><dt>Taken</dt><dd>");
	put_time(r->o, r->s->time_us);
	out_str(r->o, "</dd></div>\n");
	if (!r->s->source.format)
		put_fact(r->o, r->merged ? "Longest stop" : "Stopped for",
			 rpc_arena_printf(r->a, "%" PRIu64 ".%" PRIu64 " ms", r->s->stopped_us / 1000,
					  r->s->stopped_us % 1000 / 100));
	put_fact(r->o, "Complete", is_complete(r) ? "yes" : "no: see what is missing");
	out_str(r->o, "</dl>\n");
}

/* ------------------------------------------------------------------ sections ----------------- */

static void put_command(struct report *r, const char *why, const char *command)
{
	out_fmt(r->o, "<p>%s</p>\n<pre tabindex=\"0\"><code>", why);
	html_text(r->o, command);
	out_str(r->o, "</code></pre>\n");
}

static void put_job_commands(struct report *r)
{
	unsigned n = 0;

	for (size_t i = 0; i < r->s->n_ranks && n < ODD_COMMANDS; i++) {
		const struct rpc_rank *k = &r->s->ranks[i];

		if (!k->odd)
			continue;
		n++;
		out_str(r->o, "<p>What ");
		html_text(r->o, k->name);
		out_str(r->o, " waits for, and where its threads are; on ");
		html_text(r->o, k->host);
		out_str(r->o, ":</p>\n<pre tabindex=\"0\"><code>");
		if (r->vendor == RPC_VENDOR_AMD)
			out_fmt(r->o, "gpu-agentctl why %u --twice\n", k->pid);
		out_fmt(r->o, "gpu-agentctl stacks %u</code></pre>\n", k->pid);
	}
	if (!n)
		put_command(r, "No rank is odd: look at one of them, with its process id from the table of ranks.",
			    r->vendor == RPC_VENDOR_AMD ? "gpu-agentctl why PID --twice" : "gpu-agentctl stacks PID");
}

static void put_process_commands(struct report *r)
{
	const struct rpc_gpu_snapshot_result *s = r->s;
	bool has_gpu = r->vendor == RPC_VENDOR_AMD || r->vendor == RPC_VENDOR_NVIDIA;
	uint32_t pid = s->process.pid;

	if (s->source.format) {
		put_command(r, "Look further into the core:", "gpu-agentctl analyze --waves --registers FILE");
		return;
	}
	/* The fault of a queue or a device has no waves. */
	if (s->n_groups && stop_reason_is_faulting(&s->groups[0]))
		put_command(r, "The faulted ones, one by one:",
			    rpc_arena_printf(r->a, "gpu-agentctl waves %u --group 1", pid));
	if (r->vendor == RPC_VENDOR_AMD)
		put_command(r, "What each of them waits for, and who has not come:",
			    rpc_arena_printf(r->a, "gpu-agentctl why %u --twice", pid));
	put_command(r, "What its threads do on the processors:", rpc_arena_printf(r->a, "gpu-agentctl stacks %u", pid));
	if (has_gpu && !r->cmp)
		put_command(r, "Whether it is hung, slow or progressing:",
			    rpc_arena_printf(r->a, "gpu-agentctl snapshot %u --again 2000", pid));
}

static void put_next(struct report *r)
{
	html_section(r->o, "next", "What to run next");
	if (r->merged)
		put_job_commands(r);
	else
		put_process_commands(r);
	html_section_end(r->o);
}

static void put_missing(struct report *r)
{
	size_t n = r->cmp ? r->cmp->n_missing : r->s->n_missing;

	if (!n)
		return;
	html_section(r->o, "missing", "What is missing");
	out_str(r->o, "<ul>\n");
	for (size_t i = 0; i < n && i < REPORT_ROWS_MAX; i++) {
		auto_out struct out words = { 0 };

		vendor_sentence(&words, r->vendor, r->cmp ? r->cmp->missing[i] : r->s->missing[i]);
		out_str(r->o, "<li>");
		html_long(r->o, words.data);
		out_str(r->o, "</li>\n");
	}
	out_str(r->o, "</ul>\n");
	report_put_more(r, n);
	html_section_end(r->o);
}

/* The document as JSON; a comparison has its later snapshot in it. */
static void encode(struct report *r, const struct rpc_gpu_snapshot_result *s, struct out *ret)
{
	auto_out struct out later = { 0 };
	struct rpc_comparison cmp;

	if (!r->cmp) {
		rpc_gpu_snapshot_result_encode(ret, s);
		return;
	}
	cmp = *r->cmp;
	rpc_gpu_snapshot_result_encode(&later, s);
	cmp.snapshot = later.data;
	rpc_comparison_encode(ret, &cmp);
}

/* Append the document, if need be without what is of single waves: the tables have none of that. */
static int put_data(struct report *r)
{
	struct rpc_gpu_snapshot_result s = *r->s;
	auto_out struct out json = { 0 };
	const char *lacks = "";

	encode(r, &s, &json);
	if (json.size > REPORT_DATA_MAX) {
		s.has_waves = s.has_registers = false;
		lacks = " without the list of its waves and their registers, which made it too large";
		out_reset(&json);
		encode(r, &s, &json);
	}
	if (out_error(&json))
		return out_error(&json);
	html_section(r->o, "data", "The document itself");
	if (json.size > REPORT_DATA_MAX) {
		out_fmt(r->o, "<p>The document has %zu bytes, too many for a page: keep its file.</p>\n", json.size);
		html_section_end(r->o);
		return 0;
	}
	out_fmt(r->o,
		"<p>This page has the document%s: as JSON, in the element <code>gpu-agent-document</code> of its "
		"source. Saved as a file, it is read by <code>gpu-agentctl %s</p>\n",
		lacks, r->cmp ? "report</code>." : "analyze</code>, <code>merge</code> and <code>report</code>.");
	html_section_end(r->o);
	out_str(r->o, "<script type=\"application/json\" id=\"gpu-agent-document\">");
	html_data(r->o, json.data, json.size);
	out_str(r->o, "</script>\n");
	return 0;
}

/* ------------------------------------------------------------------ the page ----------------- */

static void put_top(struct report *r, const struct finding *list, size_t n)
{
	out_str(r->o,
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
		"base-uri 'none'; form-action 'none'\">\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<meta name=\"generator\" content=\"gpu-agentctl report\">\n<title>");
	html_cut(r->o, list[0].text, TITLE_MAX);
	out_fmt(r->o, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<header>\n<p class=\"kind\">", html_style);
	put_kind(r);
	out_str(r->o, "</p>\n<h1>");
	put_finding(r, &list[0], VERDICT_MAX);
	out_str(r->o, "</h1>\n");
	if (n > 1)
		out_str(r->o, "<ul class=\"lines\">\n");
	for (size_t i = 1; i < n && i < LINES_MAX; i++) {
		out_str(r->o, "<li>");
		put_finding(r, &list[i], VERDICT_MAX);
		out_str(r->o, "</li>\n");
	}
	if (n > LINES_MAX)
		out_fmt(r->o, "<li>%zu more; see the tables</li>\n", n - LINES_MAX);
	if (n > 1)
		out_str(r->o, "</ul>\n");
	put_facts(r);
	out_str(r->o, "</header>\n<main>\n");
}

static int put_tables(struct report *r)
{
	int (*const job[])(struct report *) = { report_ranks, report_nccl, report_icicle, report_merged_groups,
						report_merged_threads };
	int (*const process[])(struct report *) = { report_nccl,	 report_icicle,	 report_groups,
						    report_queues, report_threads, report_devices };
	int e = 0;

	for (size_t i = 0; e == 0 && r->merged && i < ARRAY_SIZE(job); i++)
		e = job[i](r);
	for (size_t i = 0; e == 0 && !r->merged && i < ARRAY_SIZE(process); i++)
		e = process[i](r);
	return e;
}

static int write_page(struct report *r)
{
	struct finding *list = NULL;
	size_t n = 0;
	int e = r->merged ? find_in_job(r, &list, &n) : find_in_process(r, &list, &n);

	if (e < 0)
		return e;
	put_top(r, list, n);
	put_next(r);
	put_missing(r);
	e = put_tables(r);
	if (e == 0)
		e = put_data(r);
	out_fmt(r->o, "</main>\n<footer><p>Written by gpu-agentctl report, from a document of gpu-agent ");
	html_text(r->o, r->s->source.agent);
	out_str(r->o, ".</p></footer>\n</body>\n</html>\n");
	return e < 0 ? e : rpc_arena_error(r->a) ? rpc_arena_error(r->a) : out_error(r->o);
}

int report_write(struct rpc_arena *a, struct out *o, const struct report_input *in)
{
	struct gpu_names *gpus = rpc_arena_alloc(a, sizeof(*gpus));
	struct report r = { .a = a,
			    .o = o,
			    .s = in->snapshot,
			    .cmp = in->comparison,
			    .merged = in->merged,
			    .vendor = in->snapshot->process.vendor,
			    .gpus = gpus };
	struct merge_set *sets = NULL;
	int e = in->merged ? merge_group_sets(a, in->snapshot, &sets) : 0;

	if (!gpus)
		return rpc_arena_error(a);
	gpu_names_set(gpus, in->snapshot->devices, in->snapshot->n_devices);
	r.sets = sets;
	return e < 0 ? e : write_page(&r);
}
