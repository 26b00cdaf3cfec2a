/* SPDX-License-Identifier: MIT */
/* gpu-agentctl metrics: what the agent counts and what its store holds, as monitoring systems read it. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ctl/ctl.h"
#include "ctl/terminal/text.h"

static bool openmetrics, no_store;
static bool on_terminal; /* The text goes to one. */

static const struct argv_option options[] = {
	{ "openmetrics", 0, ARGV_FLAG, &openmetrics, NULL, "print OpenMetrics 1.0 instead of Prometheus's text format" },
	{ "no-store", 0, ARGV_FLAG, &no_store, NULL, "leave out the store, for which a process is started" },
	{ 0 },
};

/* ------------------------------------------------------------------ the store ---------------- */

/* The figures of cores.usage as metrics. */
static const struct store_metric {
	const char *name, *unit, *help;
	size_t offset;
} store_metrics[] = {
#define STORE_METRIC(name, unit, member, help)                                                     \
	{ "gpu_agent_store_" name, unit, help, offsetof(struct rpc_cores_usage_result, member) }
	STORE_METRIC("records", NULL, records, "Records in the store."),
	STORE_METRIC("records_limit", NULL, max_records, "Most records; 0: any number."),
	STORE_METRIC("records_pinned", NULL, pinned, "Records that are pinned."),
	STORE_METRIC("cores", NULL, bodies, "Core files in the store."),
	STORE_METRIC("used_bytes", "bytes", disk_bytes, "What everything in the store takes on the disk."),
	STORE_METRIC("limit_bytes", "bytes", max_use_bytes, "Most that everything may take."),
	STORE_METRIC("cores_bytes", "bytes", body_bytes, "What finished core files take."),
	STORE_METRIC("unfinished_bytes", "bytes", unfinished_bytes, "What core files take that are being written."),
	STORE_METRIC("pinned_bytes", "bytes", pinned_bytes, "What pinned records take."),
	STORE_METRIC("free_bytes", "bytes", free_bytes, "Free on the file system of the store."),
	STORE_METRIC("keep_free_bytes", "bytes", keep_free_bytes, "Core files go when less than this is free."),
#undef STORE_METRIC
};

#define STORE_METRICS_MAX (1 + ARRAY_SIZE(store_metrics))

/* Append a gauge to an array that has room for it. */
static void add_gauge(struct ctl *c, struct rpc_agent_metrics_result *m, const struct store_metric *k, uint64_t value)
{
	struct rpc_metric_sample *sample = rpc_arena_array(&c->arena, 1, sizeof(*sample));

	if (!sample)
		return;
	sample->name = k->name;
	sample->value = rpc_arena_printf(&c->arena, "%" PRIu64, value);
	m->metrics[m->n_metrics++] = (struct rpc_metric){ .name = k->name,
							  .type = RPC_METRIC_TYPE_GAUGE,
							  .unit = k->unit,
							  .help = k->help,
							  .samples = sample,
							  .n_samples = 1 };
}

/*
 * Append the metrics of the store to those of the agent, which are worth having without it.
 * @return 0, CTL_EXIT_PARTIAL, or negative with err.
 */
static int add_store(struct ctl *c, struct rpc_agent_metrics_result *m)
{
	static const struct store_metric up = { "gpu_agent_store_up", NULL, "1: the store can be read.", 0 };
	struct rpc_metric *all = rpc_arena_array(&c->arena, m->n_metrics + STORE_METRICS_MAX, sizeof(*all));
	struct rpc_cores_usage_result usage;
	int r = ctl_called(c, rpc_client_cores_usage(c->client, NULL, &c->arena, &usage, &c->err));

	if (!all)
		return agent_err_no_memory(&c->err, NULL);
	if (m->n_metrics)
		memcpy(all, m->metrics, m->n_metrics * sizeof(*all));
	m->metrics = all;
	add_gauge(c, m, &up, r == 0);
	if (r < 0)
		ctl_note(c, "the store: %s", c->err.message);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(store_metrics); i++)
		add_gauge(c, m, &store_metrics[i],
			  *(const uint64_t *)(const void *)((const char *)&usage + store_metrics[i].offset));
	if (rpc_arena_error(&c->arena))
		return agent_err_no_memory(&c->err, NULL);
	return ctl_status(r == 0, false);
}

/* ------------------------------------------------------------------ text --------------------- */

/*
 * Append a text as the formats want it: in quotes for labels, in OpenMetrics for help as well.  They let every other
 * character through, and programs that read them do, too; a terminal would obey some.
 */
static void put_escaped(struct out *o, const char *text, bool quotes)
{
	auto_out struct out exact = { 0 };

	for (; *text; text++) {
		if (*text == '\n')
			out_str(&exact, "\\n");
		else if (*text == '\\' || (quotes && *text == '"'))
			out_fmt(&exact, "\\%c", *text);
		else
			out_char(&exact, *text);
	}
	if (on_terminal && exact.size)
		text_escape(o, exact.data, exact.size);
	else if (exact.size)
		out_bytes(o, exact.data, exact.size);
	if (out_error(&exact) && !o->error)
		o->error = out_error(&exact);
}

/* Append a name or a number, which have no character that needs an escape unless the agent is none of ours. */
static void put_plain(struct out *o, const char *before, const char *text)
{
	text_put(o, before, text, "");
}

/*
 * Append the comments in front of samples.  Prometheus's format has the name of a counter's samples
 * there, and knows no units.
 */
static void put_head(struct out *o, const struct rpc_metric *m)
{
	const char *suffix = !openmetrics && m->type == RPC_METRIC_TYPE_COUNTER ? "_total" : "";
	const char *type = rpc_metric_type_name(m->type);

	put_plain(o, "# TYPE ", m->name);
	out_fmt(o, "%s %s\n", suffix, type ? type : openmetrics ? "unknown" : "untyped");
	if (openmetrics && m->unit) {
		put_plain(o, "# UNIT ", m->name);
		put_plain(o, " ", m->unit);
		out_char(o, '\n');
	}
	put_plain(o, "# HELP ", m->name);
	out_fmt(o, "%s ", suffix);
	put_escaped(o, m->help, openmetrics);
	out_char(o, '\n');
}

static void put_sample(struct out *o, const struct rpc_metric_sample *s)
{
	put_plain(o, "", s->name);
	for (size_t i = 0; i < s->n_labels; i++) {
		put_plain(o, i ? "," : "{", s->labels[i].name);
		out_str(o, "=\"");
		put_escaped(o, s->labels[i].value, true);
		out_char(o, '"');
	}
	put_plain(o, s->n_labels ? "} " : " ", s->value);
	out_char(o, '\n');
}

static void put_text(struct out *o, const struct rpc_agent_metrics_result *m)
{
	for (size_t i = 0; i < m->n_metrics; i++) {
		put_head(o, &m->metrics[i]);
		for (size_t k = 0; k < m->metrics[i].n_samples; k++)
			put_sample(o, &m->metrics[i].samples[k]);
	}
	/* In Prometheus's format it is a comment like any other: both say that nothing was cut off. */
	out_str(o, "# EOF\n");
}

static int print_json(struct ctl *c, const struct rpc_agent_metrics_result *m)
{
	auto_out struct out doc = { 0 };

	out_init(&doc, 0);
	rpc_agent_metrics_result_encode(&doc, m);
	return ctl_print_json(c, &doc);
}

static int run(struct ctl *c, int argc, char **argv)
{
	struct rpc_agent_metrics_result metrics;
	int status = 0, r = ctl_connect(c);

	if (r == 0)
		r = ctl_called(c, rpc_client_agent_metrics(c->client, NULL, &c->arena, &metrics, &c->err));
	if (r == 0 && !no_store)
		status = r = add_store(c, &metrics);
	if (r < 0)
		return r;
	if (ctl_is_json(c))
		r = print_json(c, &metrics);
	if (ctl_is_json(c))
		return r < 0 ? r : status;
	c->output.pager = false;
	on_terminal = !c->output.path && isatty(STDOUT_FILENO);
	put_text(&c->output.text, &metrics);
	return status;
}

const struct ctl_verb ctl_verb_metrics = {
	.name = "metrics",
	.args = "",
	.summary = "Print what the agent has counted, for monitoring",
	.options = options,
	.run = run,
};
