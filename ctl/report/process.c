/* SPDX-License-Identifier: MIT */
/* Tables of one process: groups of waves, queues, threads, devices. */
#include <inttypes.h>

#include "base/cleanup.h"
#include "ctl/document/host/host.h"
#include "ctl/document/place.h"
#include "ctl/document/queue_changes.h"
#include "ctl/group_rows.h"
#include "ctl/report/html.h"
#include "ctl/report/report.h"
#include "protocol/stop_reason.h"

/* Most frames of a stack. */
#define FRAMES_MAX 64

void report_put_more(struct report *r, size_t n)
{
	if (n > REPORT_ROWS_MAX)
		out_fmt(r->o, "<p>%zu more rows are in the document.</p>\n", n - REPORT_ROWS_MAX);
}

/* ------------------------------------------------------------------ waves -------------------- */

static void put_group(struct report *r, const struct group_row *row)
{
	const struct rpc_group *g = row->group;
	const char *example = rpc_arena_printf(r->a, "%u:%u:%u", g->representative.queue_id, g->representative.unit,
					       g->representative.index);

	out_str(r->o, stop_reason_is_faulting(g) ? "<tr class=\"hit\">" : "<tr>");
	html_cell_u64_if(r->o, row->number != 0, row->number);
	html_cell_class(r->o, "n", row->waves);
	html_cell_class(r->o, "n", gpu_names_text(r->gpus, r->a, g->gpu_id));
	html_cell(r->o, g->has_kernel ? g->kernel.name : NULL);
	html_cell(r->o, place_where_arguments(r->a, g));
	html_cell(r->o, row->state);
	html_cell_class(r->o, "mono", example);
	out_str(r->o, "</tr>\n");
}

int report_groups(struct report *r)
{
	const struct html_column columns[] = {
		{ "#", true },        { report_word(r, "WAVES"), true },
		{ "GPU", true },      { "KERNEL", false },
		{ "WHERE", false },   { "STATE", false },
		{ "EXAMPLE", false },
	};
	struct group_rows rows;
	int e = r->cmp ? group_rows_of_comparison(r->a, r->s, r->cmp, NULL, &rows)
		       : group_rows_of_snapshot(r->a, r->s, &rows);

	if (e < 0 || (!rows.n && !r->s->n_exited))
		return e;
	html_section(r->o, "groups", r->vendor == RPC_VENDOR_NVIDIA ? "Where the warps are" : "Where the waves are");
	html_table(r->o, r->vendor == RPC_VENDOR_NVIDIA ? "Warps at one place" : "Waves at one place", columns,
		   ARRAY_SIZE(columns));
	for (size_t i = 0; i < rows.n && i < REPORT_ROWS_MAX; i++)
		put_group(r, &rows.list[i]);
	html_table_end(r->o);
	report_put_more(r, rows.n);
	for (size_t i = 0; i < r->s->n_exited && i < REPORT_ROWS_MAX; i++) {
		out_str(r->o, "<p><span class=\"tag bad\">FAULT</span>");
		html_text(r->o, r->s->exited[i].exception);
		out_str(r->o, " ");
		html_cut(r->o, place_exited(r->a, &r->s->exited[i]), HTML_CELL_MAX * 4);
		out_str(r->o, "</p>\n");
	}
	report_put_more(r, r->s->n_exited);
	html_section_end(r->o);
	return 0;
}

/* ------------------------------------------------------------------ queues ------------------- */

static const char *queue_state(struct report *r, const struct rpc_queue *q)
{
	if (q->n_exceptions)
		return place_words(r->a, rpc_enum_join(r->a, &rpc_exception_enum, q->exceptions, q->n_exceptions));
	if (q->has_faulting_waves && q->faulting_waves)
		return rpc_arena_printf(r->a, "%u faulted", q->faulting_waves);
	return q->suspended ? "suspended" : "";
}

/* As other tables have it: the queues of ROCm are AQL's, and need no more than that word. */
static const char *queue_type(struct report *r, const struct rpc_queue *q)
{
	if (q->type == RPC_QUEUE_TYPE_CONTEXT)
		return "";
	if (q->type == RPC_QUEUE_TYPE_COMPUTE_AQL)
		return "compute";
	return q->type == RPC_QUEUE_TYPE_COMPUTE ? "compute PM4"
						 : place_words(r->a, rpc_enum_name(&rpc_queue_type_enum, q->type));
}

static void put_queue(struct report *r, const struct rpc_queue *q, const struct rpc_queue_change *change)
{
	bool indices = q->has_read_index && q->has_write_index;

	out_str(r->o, (q->has_faulting_waves && q->faulting_waves) || q->n_exceptions ? "<tr class=\"hit\">" : "<tr>");
	html_cell_u64(r->o, q->queue_id);
	html_cell_class(r->o, "n", gpu_names_text(r->gpus, r->a, q->gpu_id));
	if (r->s->n_devices)
		html_cell(r->o, queue_type(r, q));
	html_cell_u64_if(r->o, q->has_waves, q->waves);
	html_cell(r->o,
		  indices ? rpc_arena_printf(r->a, "%" PRIu64 " of %" PRIu64 " taken", q->read_index, q->write_index)
			  : NULL);
	if (indices)
		html_cell_share(r->o, q->read_index, q->write_index);
	else
		out_str(r->o, "<td></td>");
	html_cell(r->o, queue_state(r, q));
	if (r->cmp) {
		html_cell(r->o,
			  change && change->has_verdict ? rpc_enum_name(&rpc_progress_enum, change->verdict) : NULL);
		html_cell(r->o, change ? change->evidence : NULL);
	}
	out_str(r->o, "</tr>\n");
}

int report_queues(struct report *r)
{
	const struct html_column columns[] = {
		{ report_word(r, "QUEUE"), true },
		{ "GPU", true },
		/* A comparison without its later snapshot does not tell it. */
		{ r->s->n_devices ? "TYPE" : NULL, false },
		{ report_word(r, "WAVES"), true },
		{ "PACKETS", false },
		{ "TAKEN", false },
		{ "STATE", false },
		{ r->cmp ? "VERDICT" : NULL, false },
		{ r->cmp ? "WHY" : NULL, false },
	};
	struct queue_changes changes;
	int e = r->cmp ? queue_changes_init(r->a, r->cmp, &changes) : 0;

	if (e < 0 || !r->s->n_queues)
		return e;
	html_section(r->o, "queues", r->vendor == RPC_VENDOR_NVIDIA ? "Contexts" : "Queues");
	html_table(r->o, r->vendor == RPC_VENDOR_NVIDIA ? "All contexts" : "All queues", columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < r->s->n_queues && i < REPORT_ROWS_MAX; i++) {
		const struct rpc_queue *q = &r->s->queues[i];
		size_t n = 0, at = r->cmp ? queue_changes_find(&changes, q->gpu_id, q->queue_id, &n) : 0;

		put_queue(r, q, n ? &r->cmp->queues[changes.sorted[at]] : NULL);
	}
	html_table_end(r->o);
	report_put_more(r, r->s->n_queues);
	html_section_end(r->o);
	return 0;
}

/* ------------------------------------------------------------------ threads ------------------ */

static void put_frames(struct report *r, const struct rpc_thread_group *g)
{
	for (size_t i = 0; i < g->n_frames && i < FRAMES_MAX; i++) {
		const struct rpc_thread_frame *f = &g->frames[i];

		out_str(r->o, "<li>");
		html_cut(r->o, f->file, HTML_CELL_MAX);
		if (f->has_line)
			out_fmt(r->o, ":%u", f->line);
		out_str(r->o, " ");
		html_cut(r->o, f->function, HTML_CELL_MAX);
		out_str(r->o, "</li>\n");
	}
	for (size_t i = 0; i < g->n_native_frames && i < FRAMES_MAX; i++) {
		const struct rpc_native_frame *f = &g->native_frames[i];

		out_str(r->o, "<li>");
		if (f->function)
			html_cut(r->o, f->function, HTML_CELL_MAX);
		else
			out_hex(r->o, f->address);
		if (f->module)
			out_str(r->o, " in ");
		html_cut(r->o, f->module, HTML_CELL_MAX);
		out_str(r->o, f->has_guessed && f->guessed ? " (guessed)</li>\n" : "</li>\n");
	}
}

void report_put_stack(struct report *r, const struct rpc_thread_group *g)
{
	out_str(r->o, "<td>");
	if (g->n_frames + g->n_native_frames) {
		out_fmt(r->o, "<details><summary>%zu Python, %zu native</summary><ol class=\"mono\">\n", g->n_frames,
			g->n_native_frames);
		put_frames(r, g);
		out_str(r->o, "</ol></details>");
	}
	out_str(r->o, "</td>");
}

static const char *names(struct report *r, const struct rpc_thread_group *g)
{
	auto_out struct out o = { 0 };

	for (size_t i = 0; i < g->n_names; i++)
		out_fmt(&o, "%s%s", i ? ", " : "", g->names[i]);
	return rpc_arena_strdup(r->a, o.data ? o.data : "");
}

int report_threads(struct report *r)
{
	static const struct html_column columns[] = {
		{ "THREADS", true }, { "PYTHON", false }, { "NATIVE", false },
		{ "STATE", false },  { "NAMES", false },  { "STACK", false },
	};
	const struct rpc_host_stacks_result *h = &r->s->host;
	size_t *order;
	int e = r->s->has_host ? host_order(r->a, r->s, &order) : 0;

	if (e < 0 || !r->s->has_host)
		return e;
	html_section(r->o, "threads", "Threads on the processors");
	for (size_t i = 0; h->has_findings && i < h->n_findings && i < REPORT_ROWS_MAX; i++) {
		out_str(r->o, "<p>");
		html_cut(r->o, h->findings[i], HTML_CELL_MAX * 4);
		out_str(r->o, "</p>\n");
	}
	report_put_more(r, h->has_findings ? h->n_findings : 0);
	html_table(r->o, "Threads that do the same", columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < h->n_groups && i < REPORT_ROWS_MAX; i++) {
		const struct rpc_thread_group *g = &h->groups[order[i]];

		out_str(r->o, "<tr>");
		html_cell_u64(r->o, g->threads);
		html_cell(r->o, host_python(r->a, g));
		html_cell(r->o, host_native(r->a, g));
		html_cell(r->o, host_state(r->a, g));
		html_cell(r->o, names(r, g));
		report_put_stack(r, g);
		out_str(r->o, "</tr>\n");
	}
	html_table_end(r->o);
	report_put_more(r, h->n_groups);
	html_section_end(r->o);
	return 0;
}

/* ------------------------------------------------------------------ devices ------------------ */

int report_devices(struct report *r)
{
	static const struct html_column columns[] = {
		{ "GPU", true }, { "NAME", false }, { "ARCH", false }, { "PCI", false }, { "EXCEPTIONS", false },
	};

	if (!r->s->n_devices)
		return 0;
	html_section(r->o, "devices", "GPUs");
	html_table(r->o, "GPUs of the process", columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < r->s->n_devices && i < REPORT_ROWS_MAX; i++) {
		const struct rpc_device *d = &r->s->devices[i];

		out_str(r->o, d->n_exceptions ? "<tr class=\"hit\">" : "<tr>");
		html_cell_class(r->o, "n", gpu_names_text(r->gpus, r->a, d->gpu_id));
		html_cell(r->o, d->name);
		html_cell(r->o, d->arch);
		html_cell_class(r->o, "mono", d->pci);
		html_cell(r->o,
			  place_words(r->a, rpc_enum_join(r->a, &rpc_exception_enum, d->exceptions, d->n_exceptions)));
		out_str(r->o, "</tr>\n");
	}
	html_table_end(r->o);
	report_put_more(r, r->s->n_devices);
	html_section_end(r->o);
	return 0;
}
