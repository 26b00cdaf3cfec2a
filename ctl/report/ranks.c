/* SPDX-License-Identifier: MIT */
/* Ranks of a job: a matrix of where each is, tables of places, threads and ranks; odd ones first. */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctl/document/host/host.h"
#include "ctl/document/place.h"
#include "ctl/report/html.h"
#include "ctl/report/report.h"
#include "protocol/stop_reason.h"

/* Ranks in a row of the matrix, and the most that it has. */
#define ACROSS     64
#define MATRIX_MAX 4096
#define CELL       15
/* Places with a letter and a colour of their own; the last one stands for all others. */
#define PLACES 7
/* Most rows of ranks. */
#define RANKS_MAX 2048

/* Where ranks are: with those of one place, or of all that have no letter of their own. */
struct place {
	const char *text;
	struct merge_set set;
	bool faulting;
};

struct matrix {
	struct report *r;
	struct place places[PLACES];
	size_t n;
	uint8_t *of_rank; /* Position in places; PLACES: nothing is known of it. */
};

/* ------------------------------------------------------------------ places of ranks ---------- */

/* Give the ranks of a set that have no place yet this one.  @return 0, -ENOMEM, -EFBIG. */
static int take_place(struct matrix *m, const struct merge_set *set, const char *text, bool faulting)
{
	size_t n = m->r->s->n_ranks, at = m->n < PLACES ? m->n : PLACES - 1;
	struct place *p = &m->places[at];
	bool any = false;
	int e;

	for (size_t i = 0; i < n; i++)
		any = any || (merge_set_has(set, i) && m->of_rank[i] == PLACES);
	if (!any)
		return 0;
	if (m->n < PLACES) {
		*p = (struct place){ .text = text, .faulting = faulting };
		e = merge_set_init(m->r->a, n, &p->set);
		if (e < 0)
			return e;
		m->n++;
	} else {
		p->text = "other places";
	}
	for (size_t i = 0; i < n; i++)
		if (merge_set_has(set, i) && m->of_rank[i] == PLACES) {
			m->of_rank[i] = (uint8_t)at;
			merge_set_add(&p->set, i);
		}
	return 0;
}

/* The groups of a document stand faults first, then by waves: the first that has a rank tells most of it. */
static int find_places(struct matrix *m)
{
	struct report *r = m->r;
	int e = 0;

	m->of_rank = rpc_arena_alloc(r->a, r->s->n_ranks ? r->s->n_ranks : 1);
	if (!m->of_rank)
		return rpc_arena_error(r->a);
	memset(m->of_rank, PLACES, r->s->n_ranks);
	for (size_t i = 0; e == 0 && i < r->s->n_groups; i++) {
		const struct rpc_group *g = &r->s->groups[i];
		const char *place =
			place_of_kernel(r->a, g->has_kernel ? &g->kernel : NULL, g->frames, g->n_frames, g->pc);

		e = take_place(m, &r->sets[i], place, stop_reason_is_faulting(g));
	}
	/* A rank without waves is where its main thread is. */
	for (size_t i = 0; e == 0 && i < r->s->n_host_groups; i++) {
		const struct rpc_merged_threads *t = &r->s->host_groups[i];
		const char *python = host_python(r->a, &t->group);
		struct merge_set set;

		if (!t->has_main || !t->main)
			continue;
		e = merge_set_init(r->a, r->s->n_ranks, &set);
		if (e == 0)
			e = merge_set_parse(t->ranks, &set);
		if (e == 0)
			e = take_place(m, &set, python && python[0] ? python : host_native(r->a, &t->group), false);
	}
	return e;
}

static char letter(size_t place)
{
	return place < PLACES ? (char)('A' + place) : '-';
}

/* ------------------------------------------------------------------ matrix ------------------- */

/* One run of ranks of a row that are at the same place, and odd or not alike. */
static void put_run(struct matrix *m, size_t from, size_t to)
{
	const struct rpc_rank *first = &m->r->s->ranks[from];
	size_t place = m->of_rank[from], x = from % ACROSS * CELL, y = from / ACROSS * CELL, n = to - from;
	struct out *o = m->r->o;

	out_str(o, "<g><title>");
	html_cut(o, first->name, 40);
	if (n > 1) {
		out_str(o, " to ");
		html_cut(o, m->r->s->ranks[to - 1].name, 40);
	}
	out_str(o, ": ");
	html_cut(o, place < PLACES ? m->places[place].text : "nothing is known", HTML_CELL_MAX);
	out_fmt(o, "%s</title><rect class=\"c%zu\" x=\"%zu\" y=\"%zu\" width=\"%zu\" height=\"%d\"></rect>",
		first->odd ? " (odd)" : "", place < PLACES ? place : PLACES - 1, x, y, n * CELL, CELL);
	out_fmt(o, "<text x=\"%zu\" y=\"%zu\" text-anchor=\"middle\">%c</text></g>\n", x + n * CELL / 2, y + CELL - 4,
		letter(place));
	/* It lies on its neighbours. */
	for (size_t i = from; first->odd && i < to; i++)
		out_fmt(o, "<rect class=\"odd\" x=\"%zu\" y=\"%zu\" width=\"%d\" height=\"%d\"></rect>\n",
			i % ACROSS * CELL + 1, y + 1, CELL - 2, CELL - 2);
}

static void put_matrix(struct matrix *m)
{
	size_t n = m->r->s->n_ranks < MATRIX_MAX ? m->r->s->n_ranks : MATRIX_MAX;
	const struct rpc_rank *ranks = m->r->s->ranks;
	struct out *o = m->r->o;

	out_fmt(o,
		"<section class=\"scroll\" tabindex=\"0\" aria-label=\"Ranks, picture\"><svg class=\"chart\" "
		"viewBox=\"0 0 %d %zu\" role=\"img\" "
		"aria-label=\"A box for each rank, %d a row, with the letter of its place; odd ranks have a frame. The "
		"tables below say the "
		"same.\">\n",
		ACROSS * CELL, (n + ACROSS - 1) / ACROSS * CELL, ACROSS);
	for (size_t from = 0, to; from < n; from = to) {
		for (to = from + 1;
		     to < n && to % ACROSS && m->of_rank[to] == m->of_rank[from] && !ranks[to].odd == !ranks[from].odd;
		     to++)
			;
		put_run(m, from, to);
	}
	out_str(o, "</svg></section>\n");
	if (n < m->r->s->n_ranks)
		out_fmt(o, "<p>The picture has the first %zu ranks of %zu.</p>\n", n, m->r->s->n_ranks);
}

/* The key of the matrix, and its twin for who does not see it. */
static void put_places(struct matrix *m)
{
	static const struct html_column columns[] = {
		{ "LETTER", false }, { "RANKS", true }, { "WHERE", false }, { "WHICH", false }
	};
	struct out *o = m->r->o;

	html_table(o, "Places of ranks", columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < m->n; i++) {
		out_fmt(o,
			"<tr%s><td><svg class=\"key\" width=\"14\" height=\"14\" aria-hidden=\"true\"><rect "
			"class=\"c%zu\" width=\"14\" "
			"height=\"14\"></rect></svg>%c</td>",
			m->places[i].faulting ? " class=\"hit\"" : "", i, letter(i));
		html_cell_u64(o, merge_set_count(&m->places[i].set));
		html_cell(o, m->places[i].text);
		html_cell(o, merge_set_names(m->r->a, m->r->s, &m->places[i].set));
		out_str(o, "</tr>\n");
	}
	html_table_end(o);
}

/* ------------------------------------------------------------------ ranks -------------------- */

static void put_rank(struct matrix *m, size_t i)
{
	const struct rpc_rank *k = &m->r->s->ranks[i];
	struct out *o = m->r->o;

	out_str(o, k->odd ? "<tr class=\"hit\">" : "<tr>");
	html_cell_u64(o, i);
	html_cell(o, k->name);
	html_cell(o, k->host);
	html_cell_u64(o, k->pid);
	html_cell_u64(o, k->waves);
	html_cell_u64_if(o, k->has_packets, k->packets);
	out_fmt(o, "<td>%c</td>", letter(m->of_rank[i]));
	html_cell(o, k->odd ? k->odd : k->complete ? NULL : "seen in part");
	out_str(o, "</tr>\n");
}

static void put_ranks(struct matrix *m)
{
	const struct html_column columns[] = {
		{ "RANK", true },
		{ "NAME", false },
		{ "HOST", false },
		{ "PID", true },
		{ report_word(m->r, "WAVES"), true },
		{ "PACKETS", true },
		{ "PLACE", false },
		{ "HOW IT DIFFERS", false },
	};
	const struct rpc_gpu_snapshot_result *s = m->r->s;
	size_t left = RANKS_MAX, more = 0;

	html_table(m->r->o, "All ranks, odd ones first", columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < s->n_ranks; i++)
		if (s->ranks[i].odd || !s->ranks[i].complete) {
			left -= left > 0;
			more += left == 0;
			if (left)
				put_rank(m, i);
		}
	for (size_t i = 0; i < s->n_ranks; i++)
		if (!s->ranks[i].odd && s->ranks[i].complete) {
			left -= left > 0;
			more += left == 0;
			if (left)
				put_rank(m, i);
		}
	html_table_end(m->r->o);
	if (more)
		out_fmt(m->r->o, "<p>%zu more ranks are in the document.</p>\n", more);
}

int report_ranks(struct report *r)
{
	struct matrix m = { .r = r };
	int e = find_places(&m);

	if (e < 0)
		return e;
	html_section(r->o, "ranks", "Which rank is where");
	put_matrix(&m);
	put_places(&m);
	put_ranks(&m);
	html_section_end(r->o);
	return 0;
}

/* ------------------------------------------------------------------ places and threads ------- */

int report_merged_groups(struct report *r)
{
	const struct html_column columns[] = {
		{ "RANKS", true },   { "OF ALL", false }, { report_word(r, "WAVES"), true },
		{ "KERNEL", false }, { "WHERE", false },  { "STATE", false },
		{ "WHICH", false },
	};

	if (!r->s->n_groups)
		return 0;
	html_section(r->o, "groups", r->vendor == RPC_VENDOR_NVIDIA ? "Where the warps are" : "Where the waves are");
	html_table(r->o, r->vendor == RPC_VENDOR_NVIDIA ? "Warps of all ranks" : "Waves of all ranks", columns,
		   ARRAY_SIZE(columns));
	for (size_t i = 0; i < r->s->n_groups && i < REPORT_ROWS_MAX; i++) {
		const struct rpc_group *g = &r->s->groups[i];

		out_str(r->o, stop_reason_is_faulting(g) ? "<tr class=\"hit\">" : "<tr>");
		html_cell_u64(r->o, merge_set_count(&r->sets[i]));
		html_cell_share(r->o, merge_set_count(&r->sets[i]), r->s->n_ranks);
		html_cell_u64(r->o, g->waves);
		html_cell(r->o, g->has_kernel ? g->kernel.name : NULL);
		html_cell(r->o, place_where(r->a, g));
		html_cell(r->o, place_state(r->a, g));
		html_cell(r->o, merge_set_names(r->a, r->s, &r->sets[i]));
		out_str(r->o, "</tr>\n");
	}
	html_table_end(r->o);
	report_put_more(r, r->s->n_groups);
	html_section_end(r->o);
	return 0;
}

static int put_merged_threads(struct report *r, const struct rpc_merged_threads *t)
{
	struct merge_set set;
	int e = merge_set_init(r->a, r->s->n_ranks, &set);

	if (e == 0)
		e = merge_set_parse(t->ranks, &set);
	if (e < 0)
		return e;
	out_str(r->o, "<tr>");
	html_cell_u64(r->o, merge_set_count(&set));
	html_cell_u64(r->o, t->group.threads);
	html_cell(r->o, t->has_main && t->main ? "main" : NULL);
	html_cell(r->o, host_python(r->a, &t->group));
	html_cell(r->o, host_native(r->a, &t->group));
	html_cell(r->o, host_state(r->a, &t->group));
	html_cell(r->o, merge_set_names(r->a, r->s, &set));
	report_put_stack(r, &t->group);
	out_str(r->o, "</tr>\n");
	return 0;
}

int report_merged_threads(struct report *r)
{
	static const struct html_column columns[] = {
		{ "RANKS", true },   { "THREADS", true }, { "MAIN", false },  { "PYTHON", false },
		{ "NATIVE", false }, { "STATE", false },  { "WHICH", false }, { "STACK", false },
	};
	int e = 0;

	if (!r->s->n_host_groups)
		return 0;
	html_section(r->o, "threads", "Threads on the processors");
	html_table(r->o, "Threads of all ranks that do the same", columns, ARRAY_SIZE(columns));
	for (size_t i = 0; e == 0 && i < r->s->n_host_groups && i < REPORT_ROWS_MAX; i++)
		e = put_merged_threads(r, &r->s->host_groups[i]);
	html_table_end(r->o);
	report_put_more(r, r->s->n_host_groups);
	html_section_end(r->o);
	return e;
}
