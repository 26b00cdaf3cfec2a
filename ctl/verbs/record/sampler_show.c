/* SPDX-License-Identifier: MIT */
/* What captures have seen, as tables and as a document. */
#include <errno.h>

#include "base/cleanup.h"
#include "ctl/ctl.h"
#include "ctl/verbs/record/sampler.h"

#define SCHEMA "gpu-agent.recording/1"

/* ------------------------------------------------------------------ tables ------------------- */

/* Where the waves or threads of a stack are, from the inside out, behind the process and the kernel. */
static const char *where(struct sampler *s, const struct recording_stack *stack)
{
	uint32_t first = stack->threads ? 1 : 2;
	auto_out struct out o = { 0 };

	for (uint32_t i = stack->depth; i > first; i--)
		out_fmt(&o, "%s%s", i < stack->depth ? " <- " : "", stack->frames[i - 1]->name);
	if (!o.size)
		out_str(&o, "-");
	return out_error(&o) ? NULL : rpc_arena_strndup(&s->answers, o.data, o.size);
}

static const char *percent(struct sampler *s, double share)
{
	return rpc_arena_printf(&s->answers, "%.1f %%", share * 100);
}

static void add_row(struct sampler *s, struct table *t, const struct recording_share *share)
{
	const struct recording_stack *stack = share->stack;

	table_str(t, percent(s, share->share));
	table_str(t, rpc_arena_printf(&s->answers, "%.1f - %.1f %%", share->interval.low * 100,
				      share->interval.high * 100));
	if (!stack->threads)
		table_str(t, stack->depth > 1 ? stack->frames[1]->name : NULL);
	table_str(t, where(s, stack));
}

static int show_table(struct sampler *s, const struct recording_share *list, bool threads, size_t most)
{
	static const struct table_column of_waves[] = {
		{ .title = "SHARE", .right = true },
		{ .title = "95% INTERVAL", .right = true },
		{ .title = "KERNEL", .importance = 2, .min = 8 },
		{ .title = "WHERE", .importance = 1, .min = 12, .wrap = true },
	};
	static const struct table_column of_threads[] = {
		{ .title = "SHARE", .right = true },
		{ .title = "95% INTERVAL", .right = true },
		{ .title = "THREADS", .importance = 1, .min = 12, .wrap = true },
	};
	auto_table struct table t = { 0 };
	size_t shown = 0, more = 0;
	int r;

	table_init(&t, threads ? of_threads : of_waves, threads ? 3 : 4);
	for (size_t i = 0; i < s->recording.n_stacks; i++) {
		if (list[i].stack->threads != threads)
			continue;
		if (most && shown == most)
			more++;
		else if (++shown)
			add_row(s, &t, &list[i]);
	}
	if (more)
		table_note(&t, "%zu more: --verbose", more);
	r = rpc_arena_error(&s->answers);
	return r < 0 ? ctl_fail(s->c, -r, "the table") : ctl_print_table(s->c, &t);
}

int sampler_show(struct sampler *s, size_t most)
{
	struct recording_share *list;
	int r;

	rpc_arena_reset(&s->answers);
	r = recording_shares(&s->recording, &s->answers, &list);
	if (r < 0)
		return ctl_fail(s->c, -r, "the shares");
	r = show_table(s, list, false, most);
	if (r < 0 || !s->recording.thread_captures)
		return r;
	out_char(&s->c->output.text, '\n');
	return show_table(s, list, true, most);
}

/* ------------------------------------------------------------------ the document ------------- */

static const char *end_name(enum sampler_end end)
{
	static const char *const names[] = {
		[SAMPLER_GOES_ON] = "duration", [SAMPLER_SIGNAL] = "signal", [SAMPLER_EXITED] = "process ended",
		[SAMPLER_LOST] = "lost",
	};

	return names[end];
}

static uint32_t ppm(double share)
{
	return (uint32_t)(share * BUDGET_WHOLE + 0.5);
}

static void put_share(struct out *o, const struct recording_share *s)
{
	out_json_fmt(o, ",{'of':%s,'share_ppm':%u,'low_ppm':%u,'high_ppm':%u,'frames':[",
		     s->stack->threads ? "threads" : "waves", ppm(s->share), ppm(s->interval.low),
		     ppm(s->interval.high));
	for (uint32_t i = 1; i < s->stack->depth; i++)
		recording_put_frame(o, s->stack->frames[i]);
	out_str(o, "]}");
}

int sampler_print_json(struct sampler *s, const struct recording_facts *f, enum sampler_end end)
{
	const struct recording *r = &s->recording;
	struct recording_share *list;
	auto_out struct out doc = { 0 };
	int k;

	rpc_arena_reset(&s->answers);
	k = recording_shares(r, &s->answers, &list);
	if (k < 0)
		return ctl_fail(s->c, -k, "the shares");
	out_json_fmt(&doc, "{'schema':%s,'pid':%u,'process':%s,'agent':%s,'ended':%s", SCHEMA, s->c->session.pid,
		     r->process, GPU_AGENT_VERSION, end_name(end));
	out_json_fmt(&doc, ",'time_us':%lu,'duration_us':%lu,'stopped_us':%lu", f->begin_us, f->duration_us,
		     f->stopped_us);
	out_json_fmt(&doc, ",'unmeasured_us':%lu,'budget_ppm':%u,'overhead_ppm':%u", f->unmeasured_us, f->budget_ppm,
		     f->measured_ppm);
	out_json_fmt(&doc, ",'shortest_us':%lu,'longest_us':%lu", s->shortest_us, s->longest_us);
	out_json_fmt(&doc, ",'captures':%u,'thread_captures':%u,'incomplete':%u", r->captures, r->thread_captures,
		     s->incomplete);
	out_json_fmt(&doc, ",'cut':%u,'refused':%u,'failed':%u", s->cut, s->refused, s->failed);
	out_json_fmt(&doc, ",'complete':%i,'missing':[", sampler_is_complete(s));
	if (sampler_missing(s)[0])
		out_json_fmt(&doc, "%s", sampler_missing(s));
	out_str(&doc, "],\"shares\":[");
	for (size_t i = 0; i < r->n_stacks; i++)
		put_share(&doc, &list[i]);
	out_str(&doc, "]}");
	return ctl_print_json(s->c, &doc);
}
