/* SPDX-License-Identifier: MIT */
/* A merged document for people: faults and odd ranks, header, tree. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctl/document/host/host.h"
#include "ctl/document/merge.h"
#include "ctl/document/place.h"
#include "ctl/document/vendor_words.h"
#include "ctl/terminal/table.h"
#include "ctl/terminal/text.h"
#include "protocol/stop_reason.h"

/* A group, and its path from the kernel inwards. */
struct leaf {
	const char *const *path;
	size_t depth; /* Nodes of the path. */
	const struct rpc_group *group;
	struct merge_set set;
};

/* What the functions of the tree work on; an error ends the tree. */
struct printer {
	struct rpc_arena *arena;
	const struct rpc_gpu_snapshot_result *s;
	const struct table_form *form;
	struct table table;
	int error;
};

/* ------------------------------------------------------------------ tree --------------------- */

/* Orders leaves by path, so that the leaves of each node are neighbours. */
static int compare_leaves(const void *x, const void *y)
{
	const struct leaf *a = x, *b = y;
	int c = place_compare_paths(a->path, a->depth, b->path, b->depth);

	return c ? c : (a->group > b->group) - (a->group < b->group);
}

/* The leaves that have the same path up to a depth, added up. */
struct node {
	struct leaf *leaves;
	size_t n;
	uint64_t waves;
	bool faulting;
	struct merge_set set;
};

/* Orders nodes: faults first, then by waves. */
static int compare_nodes(const void *x, const void *y)
{
	const struct node *a = x, *b = y;

	if (a->faulting != b->faulting)
		return a->faulting ? -1 : 1;
	if (a->waves != b->waves)
		return a->waves > b->waves ? -1 : 1;
	return a->leaves < b->leaves ? -1 : a->leaves > b->leaves;
}

/* Append one row; only leaves have a state. */
static void print_row(struct printer *p, const struct merge_set *set, uint64_t waves,
		      const char *place, size_t indent, const struct rpc_group *g)
{
	struct table *t = &p->table;

	table_u64(t, merge_set_count(set));
	table_u64(t, waves);
	table_str(t, rpc_arena_printf(p->arena, "%*s%s", (int)(2 * indent), "", place));
	if (g)
		table_style(t, stop_reason_is_faulting(g) ? COLOR_BAD : COLOR_PLAIN,
			    place_state(p->arena, g));
	else
		table_str(t, " ");
	table_str(t, merge_set_names(p->arena, p->s, set));
}

static void print_level(struct printer *p, struct leaf *leaves, size_t n, size_t depth);

/* Append a node: the leaves that end here, and below it what goes on inwards. */
static void print_node(struct printer *p, const struct node *node, size_t depth)
{
	struct leaf *leaves = node->leaves;
	const char *place = leaves[0].path[depth];
	size_t ending = 0;

	/* Shorter paths sort first. */
	while (ending < node->n && leaves[ending].depth == depth + 1)
		ending++;
	if (ending < node->n)
		print_row(p, &node->set, node->waves, place, depth, NULL);
	for (size_t i = 0; i < ending; i++)
		print_row(p, &leaves[i].set, leaves[i].group->waves, place,
			  ending < node->n ? depth + 1 : depth, leaves[i].group);
	if (ending < node->n)
		print_level(p, leaves + ending, node->n - ending, depth + 1);
}

/* Split leaves into nodes by their text at this depth. */
static size_t make_nodes(struct printer *p, struct leaf *leaves, size_t n, size_t depth,
			 struct node *nodes)
{
	size_t last = 0;

	for (size_t i = 0; i < n && p->error == 0; i++) {
		struct node *node;

		if (!i || strcmp(leaves[i].path[depth], leaves[i - 1].path[depth])) {
			nodes[last] = (struct node){ .leaves = &leaves[i] };
			p->error = merge_set_init(p->arena, leaves[i].set.n, &nodes[last++].set);
			if (p->error < 0)
				break;
		}
		node = &nodes[last - 1];
		node->n++;
		node->waves += leaves[i].group->waves;
		node->faulting = node->faulting || stop_reason_is_faulting(leaves[i].group);
		merge_set_join(&node->set, &leaves[i].set);
	}
	return last;
}

/* Append all nodes of a level and what is below; place_path() bounds the depth. */
static void print_level(struct printer *p, struct leaf *leaves, size_t n, size_t depth)
{
	struct node *nodes = rpc_arena_array(p->arena, n, sizeof(*nodes));
	size_t n_nodes;

	if (!nodes) {
		p->error = rpc_arena_error(p->arena);
		return;
	}
	n_nodes = make_nodes(p, leaves, n, depth, nodes);
	qsort(nodes, n_nodes, sizeof(*nodes), compare_nodes);
	for (size_t i = 0; i < n_nodes && p->error == 0; i++)
		print_node(p, &nodes[i], depth);
}

/* Make a leaf of each group, sorted by path. */
static int make_leaves(struct printer *p, struct leaf **ret)
{
	size_t n = p->s->n_groups;
	struct leaf *leaves = rpc_arena_array(p->arena, n, sizeof(*leaves));
	int r = leaves ? 0 : rpc_arena_error(p->arena);

	for (size_t i = 0; r == 0 && i < n; i++) {
		leaves[i].group = &p->s->groups[i];
		leaves[i].depth = place_path(p->arena, leaves[i].group, &leaves[i].path);
		r = leaves[i].depth ? merge_set_init(p->arena, p->s->n_ranks, &leaves[i].set)
				    : rpc_arena_error(p->arena);
		if (r == 0)
			r = leaves[i].group->ranks
				    ? merge_set_parse(leaves[i].group->ranks, &leaves[i].set)
				    : -EINVAL;
	}
	if (r < 0)
		return r;
	qsort(leaves, n, sizeof(*leaves), compare_leaves);
	*ret = leaves;
	return 0;
}

/* ------------------------------------------------------------------ page --------------------- */

/* How many different hosts the ranks have. */
static size_t count_hosts(const struct rpc_gpu_snapshot_result *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_ranks; i++) {
		size_t k = 0;

		while (k < i && strcmp(s->ranks[k].host, s->ranks[i].host))
			k++;
		n += k == i;
	}
	return n;
}

/* Columns of what stands in front of a line of the headline. */
#define TAG_WIDTH 7

static const char *word(const struct printer *p, const char *neutral)
{
	return vendor_word(p->s->process.vendor, neutral);
}

/* Append a line with a tag in front; the text is escaped. */
static void put_line(struct printer *p, struct out *o, const char *tag, enum color_style style,
		     const char *text)
{
	auto_out struct out line = { 0 };

	if (tag)
		out_fmt(&line, "%-*s", TAG_WIDTH, tag);
	text_escape(&line, text, strlen(text));
	out_str(o, color_begin(style, p->form->color));
	text_wrap(o, line.data ? line.data : "", line.size,
		  p->form->legend ? p->form->width : 0, tag ? TAG_WIDTH : 2);
	if (style != COLOR_PLAIN && p->form->color && o->size) {
		o->size--;
		out_fmt(o, "%s\n", color_end(style, true));
	}
	p->error = p->error ? p->error : out_error(&line);
}

static enum color_style style_of(const struct merge_line *l)
{
	if (l->tag && l->tag[0])
		return COLOR_BAD;
	return l->good ? COLOR_GOOD : COLOR_PLAIN;
}

/* Append what is wrong, faults first. */
static void print_headline(struct printer *p, struct out *o, const struct leaf *leaves)
{
	const struct rpc_gpu_snapshot_result *s = p->s;
	struct merge_set *sets = rpc_arena_array(p->arena, s->n_groups, sizeof(*sets));
	struct merge_line *lines = NULL;
	size_t n = 0;
	int r = sets ? 0 : rpc_arena_error(p->arena);

	for (size_t i = 0; r == 0 && i < s->n_groups; i++)
		sets[leaves[i].group - s->groups] = leaves[i].set;
	if (r == 0)
		r = merge_headline(p->arena, s, sets, &lines, &n);
	p->error = p->error ? p->error : r;
	for (size_t i = 0; r == 0 && i < n; i++)
		put_line(p, o, lines[i].tag, style_of(&lines[i]), lines[i].text);
}

static void print_header(struct printer *p, struct out *o)
{
	const struct rpc_gpu_snapshot_result *s = p->s;
	size_t hosts = count_hosts(s);

	out_fmt(o, "%zu rank%s on %zu host%s, %u %s, %s\n", s->n_ranks, s->n_ranks == 1 ? "" : "s", hosts,
		hosts == 1 ? "" : "s", s->wave_count, word(p, s->wave_count == 1 ? "wave" : "waves"),
		s->complete ? "complete" : "NOT COMPLETE");
	for (size_t i = 0; i < s->n_missing; i++) {
		const char *text = rpc_arena_printf(p->arena, "missing  %s", s->missing[i]);

		put_line(p, o, NULL, COLOR_PLAIN, text ? text : "");
	}
}

/* Append a row for each group of threads, those of main threads first. */
static int print_threads(struct printer *p, struct out *o)
{
	static const struct table_column columns[] = {
		{ .title = "RANKS", .right = true },
		{ .title = "THREADS", .right = true },
		{ .title = "PYTHON", .importance = 4, .min = 16, .wrap = true, .optional = true },
		{ .title = "NATIVE", .importance = 2, .min = 14, .wrap = true, .optional = true },
		{ .title = "STATE", .importance = 3, .min = 16, .wrap = true },
		{ .title = "WHICH", .importance = 1, .min = 8 },
	};
	auto_table struct table t;

	table_init(&t, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < p->s->n_host_groups; i++) {
		const struct rpc_merged_threads *m = &p->s->host_groups[i];
		struct merge_set set;
		int r = merge_set_init(p->arena, p->s->n_ranks, &set);

		if (r == 0)
			r = merge_set_parse(m->ranks, &set);
		if (r < 0)
			return r;
		table_u64(&t, merge_set_count(&set));
		table_u64(&t, m->group.threads);
		table_str(&t, host_python(p->arena, &m->group));
		table_str(&t, host_native(p->arena, &m->group));
		table_str(&t, host_state(p->arena, &m->group));
		table_str(&t, merge_set_names(p->arena, p->s, &set));
	}
	if (!p->s->n_host_groups)
		return 0;
	out_char(o, '\n');
	return rpc_arena_error(p->arena) ? rpc_arena_error(p->arena) : table_print(&t, o, p->form);
}

int merge_print(struct rpc_arena *a, struct out *o, const struct rpc_gpu_snapshot_result *s,
		const struct table_form *form)
{
	const struct table_column columns[] = {
		{ .title = "RANKS", .right = true },
		{ .title = vendor_word(s->process.vendor, "WAVES"), .right = true },
		{ .title = "WHERE", .importance = 2, .min = 26, .wrap = true },
		{ .title = "STATE", .importance = 3, .min = 16, .wrap = true },
		{ .title = "WHICH", .importance = 1, .min = 8 },
	};
	struct printer p = { .arena = a, .s = s, .form = form };
	struct leaf *leaves;
	int r = make_leaves(&p, &leaves);

	if (r < 0)
		return r;
	print_headline(&p, o, leaves);
	print_header(&p, o);
	table_init(&p.table, columns, ARRAY_SIZE(columns));
	print_level(&p, leaves, s->n_groups, 0);
	r = p.error < 0 ? p.error : rpc_arena_error(a);
	if (r == 0 && s->n_groups) {
		out_char(o, '\n');
		r = table_print(&p.table, o, form);
	}
	if (r == 0)
		r = print_threads(&p, o);
	table_deinit(&p.table);
	return r;
}
