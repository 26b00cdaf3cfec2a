/* SPDX-License-Identifier: MIT */
/* Kernels, and below each the functions that its waves are in: as wide as they have waves. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctl/document/place.h"
#include "ctl/report/html.h"
#include "ctl/report/report.h"
#include "protocol/stop_reason.h"

#define WIDTH    960
#define ROW      22
#define ROWS_MAX 24
#define COLOURS  7
/* What a character of the text takes, and how narrow a box may be that has any. */
#define CHARACTER 6.7
#define NARROW    30
/* Narrower boxes are left out: there may be a hundred thousand places. */
#define LEAST 0.6

struct leaf {
	const char *const *path;
	size_t depth;
	const struct rpc_group *group;
};

struct drawing {
	struct report *r;
	double scale; /* Of a wave. */
	size_t deepest;
	unsigned kernels; /* Boxes of the first row so far, for their colour. */
	struct out boxes;
};

static int compare(const void *x, const void *y)
{
	const struct leaf *a = x, *b = y;
	int c = place_compare_paths(a->path, a->depth, b->path, b->depth);

	return c ? c : (a->group > b->group) - (a->group < b->group);
}

static void put_box(struct drawing *d, double x, double width, size_t depth, const char *place, uint64_t waves,
		    bool faulting)
{
	struct out *o = &d->boxes;
	double y = (double)(depth * ROW);

	out_fmt(o, "<g><title>");
	html_cut(o, place, HTML_CELL_MAX);
	out_fmt(o,
		": %" PRIu64
		" %s</title><rect class=\"%s%u\" x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" height=\"%d\"></rect>",
		waves, report_word(d->r, waves == 1 ? "wave" : "waves"), faulting ? "fault c" : "c",
		d->kernels % COLOURS, x, y, width, ROW);
	if (width >= NARROW) {
		out_fmt(o, "<text x=\"%.1f\" y=\"%.0f\">", x + 4, y + 15);
		html_cut(o, place, (size_t)((width - 14) / CHARACTER));
		out_str(o, "</text>");
	}
	out_str(o, "</g>\n");
}

/* Draw the leaves, which have the same path above this depth, from @p x on. */
static void draw(struct drawing *d, const struct leaf *leaves, size_t n, size_t depth, double x)
{
	for (size_t i = 0, k; i < n && depth < ROWS_MAX; i = k) {
		uint64_t waves = 0;
		bool faulting = false;
		double width;

		if (leaves[i].depth <= depth) {
			x += leaves[i].group->waves * d->scale;
			k = i + 1;
			continue;
		}
		for (k = i; k < n && leaves[k].depth > depth && !strcmp(leaves[k].path[depth], leaves[i].path[depth]);
		     k++) {
			waves += leaves[k].group->waves;
			faulting = faulting || stop_reason_is_faulting(leaves[k].group);
		}
		width = (double)waves * d->scale;
		if (width >= LEAST || faulting) {
			put_box(d, x, width < LEAST ? LEAST : width, depth, leaves[i].path[depth], waves, faulting);
			d->deepest = depth + 1 > d->deepest ? depth + 1 : d->deepest;
			draw(d, leaves + i, k - i, depth + 1, x);
		}
		x += width;
		d->kernels += depth == 0;
	}
}

static struct leaf *make_leaves(struct report *r, uint64_t *ret_waves)
{
	struct leaf *leaves = rpc_arena_array(r->a, r->s->n_groups, sizeof(*leaves));

	for (size_t i = 0; leaves && i < r->s->n_groups; i++) {
		leaves[i].group = &r->s->groups[i];
		leaves[i].depth = place_path(r->a, leaves[i].group, &leaves[i].path);
		*ret_waves += leaves[i].group->waves;
		if (!leaves[i].depth)
			return NULL;
	}
	return leaves;
}

int report_icicle(struct report *r)
{
	bool warps = r->vendor == RPC_VENDOR_NVIDIA;
	struct drawing d = { .r = r };
	uint64_t waves = 0;
	struct leaf *leaves;

	if (!r->s->n_groups)
		return 0;
	leaves = make_leaves(r, &waves);
	if (!leaves)
		return rpc_arena_error(r->a);
	if (!waves)
		return 0;
	qsort(leaves, r->s->n_groups, sizeof(*leaves), compare);
	d.scale = (double)WIDTH / (double)waves;
	draw(&d, leaves, r->s->n_groups, 0, 0);
	html_section(r->o, "icicle",
		     warps ? "Kernels and what their warps are in" : "Kernels and what their waves are in");
	out_fmt(r->o,
		"<section class=\"scroll\" tabindex=\"0\" aria-label=\"Kernels, picture\"><svg class=\"chart\" "
		"viewBox=\"0 0 %d %zu\" role=\"img\" "
		"aria-label=\"Kernels side by side, as wide as they have %s; below each the functions that these are "
		"in. The table of places "
		"below says the same.\">\n",
		WIDTH, d.deepest * ROW, warps ? "warps" : "waves");
	out_bytes(r->o, d.boxes.data, d.boxes.size);
	out_str(r->o, "</svg></section>\n");
	html_section_end(r->o);
	if (out_error(&d.boxes) && !r->o->error)
		r->o->error = out_error(&d.boxes);
	out_deinit(&d.boxes);
	return 0;
}
