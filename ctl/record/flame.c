/* SPDX-License-Identifier: MIT */
/*
 * A flame graph as one SVG file: no script, nothing loaded, and readable without colours.  It hangs from the top, the
 * process above, so that the sentence that tells what the widths are stands where reading begins.
 */
#include <inttypes.h>
#include <string.h>

#include "ctl/record/recording.h"
#include "ctl/report/html.h"

#define WIDTH	1200
#define MARGIN	10
#define ROW	18
#define HEAD	62 /* Above the first row: what it is, and what it was made of. */
#define FOOT	26
#define COLOURS 7
/* What a character of the text takes, and how narrow a box may be that has any. */
#define CHARACTER 6.7
#define NARROW	  24
/* Narrower boxes are left out, and counted. */
#define LEAST 0.4
/* Bytes of a name that the title of a box has. */
#define TITLE_MAX 400
/* Shares that the description has, for who cannot see the picture. */
#define TOLD 8

struct drawing {
	const struct recording *r;
	const struct recording_stack *const *list;
	double scale; /* Of a whole capture. */
	size_t deepest;
	unsigned colour;
	uint64_t left_out;
	struct out boxes;
};

/* All pairs of text and ground have a contrast of at least 4.5, in both forms. */
static const char style[] =
	":root{color-scheme:light dark;--ground:#fff;--text:#1b1f27;--dim:#565e6c;--line:#fff;"
	"--c0:#c9d8ee;--c1:#cfe6d4;--c2:#f1dfbf;--c3:#e2d3ec;--c4:#c8e4e6;--c5:#f0d3d8;--c6:#e1e4e9}\n"
	"@media (prefers-color-scheme:dark){"
	":root{--ground:#14171c;--text:#f0f2f5;--dim:#a3abb8;--line:#14171c;"
	"--c0:#2b4263;--c1:#264a33;--c2:#55431d;--c3:#46345a;--c4:#1f4a4e;--c5:#58313a;--c6:#343942}}\n"
	".ground{fill:var(--ground)}\n"
	"text{fill:var(--text);font:11px ui-monospace,\"DejaVu Sans Mono\",Menlo,Consolas,monospace}\n"
	".head{font:600 15px system-ui,\"DejaVu Sans\",sans-serif}\n"
	".dim{fill:var(--dim);font:12px system-ui,\"DejaVu Sans\",sans-serif}\n"
	"g rect{stroke:var(--line);stroke-width:1}g:hover rect{stroke:var(--text)}\n"
	".c0{fill:var(--c0)}.c1{fill:var(--c1)}.c2{fill:var(--c2)}.c3{fill:var(--c3)}\n"
	".c4{fill:var(--c4)}.c5{fill:var(--c5)}.c6{fill:var(--c6)}\n";

static void put_share(struct out *o, const struct recording_share *s)
{
	out_fmt(o, "%.1f %% (95 %% interval: %.1f to %.1f %%)", s->share * 100, s->interval.low * 100,
		s->interval.high * 100);
}

static void put_box(struct drawing *d, double x, double width, size_t depth, const struct recording_frame *f,
		    const struct recording_share *share)
{
	struct out *o = &d->boxes;
	size_t y = HEAD + depth * ROW;

	/* A process and what has no place are grey: colours are of kernels. */
	unsigned colour = f->kind == RECORDING_ROOT || f->kind == RECORDING_STATE ? COLOURS - 1
										   : d->colour % (COLOURS - 1);

	out_str(o, "<g><title>");
	html_cut(o, f->name, TITLE_MAX);
	if (f->kind == RECORDING_FUNCTION && f->file[0]) {
		out_str(o, ", ");
		html_cut(o, f->file, TITLE_MAX);
	}
	out_str(o, ": ");
	put_share(o, share);
	out_fmt(o, "</title><rect class=\"c%u\" x=\"%.1f\" y=\"%zu\" width=\"%.1f\" height=\"%d\"/>", colour, x, y,
		width, ROW);
	if (width >= NARROW) {
		out_fmt(o, "<text x=\"%.1f\" y=\"%zu\">", x + 3, y + 13);
		html_cut(o, f->name, (size_t)((width - 6) / CHARACTER));
		out_str(o, "</text>");
	}
	out_str(o, "</g>\n");
}

/*
 * Draw the stacks from @p first to @p end, which have the same frames above this depth, from @p x on.  The depth of a
 * recursion is that of a stack.
 */
static void draw(struct drawing *d, size_t first, size_t end, size_t depth, double x)
{
	for (size_t i = first, k; i < end; i = k) {
		const struct recording_stack *s = d->list[i];
		uint64_t weight = 0;
		struct recording_share share;
		double width;

		k = i + 1;
		if (s->depth <= depth) {
			x += (double)s->weight * d->scale;
			continue;
		}
		weight = s->weight;
		for (; k < end && d->list[k]->depth > depth && d->list[k]->frames[depth] == s->frames[depth]; k++)
			weight += d->list[k]->weight;
		width = (double)weight * d->scale;
		share = recording_share(d->r, s->threads, weight);
		if (width >= LEAST) {
			put_box(d, x, width, depth, s->frames[depth], &share);
			d->deepest = depth + 1 > d->deepest ? depth + 1 : d->deepest;
			draw(d, i, k, depth + 1, x);
		} else {
			d->left_out++;
		}
		x += width;
		d->colour += depth == 1;
	}
}

/* What the picture says, in words. */
static int put_description(struct out *o, struct rpc_arena *a, const struct recording *r,
			   const struct recording_facts *f)
{
	struct recording_share *shares;
	int k = recording_shares(r, a, &shares);

	if (k < 0)
		return k;
	recording_put_facts(o, r, f);
	out_str(o, ". The most frequent places: ");
	for (size_t i = 0; i < r->n_stacks && i < TOLD; i++) {
		const struct recording_stack *s = shares[i].stack;

		out_str(o, i ? "; " : "");
		for (uint32_t n = 1; n < s->depth; n++) {
			out_str(o, n > 1 ? ", " : s->threads ? "threads: " : "");
			html_cut(o, s->frames[n]->name, TITLE_MAX);
		}
		out_char(o, ' ');
		put_share(o, &shares[i]);
	}
	out_str(o, ".");
	return 0;
}

static int put_head(struct out *o, struct rpc_arena *a, const struct drawing *d, const struct recording_facts *f)
{
	size_t height = HEAD + d->deepest * ROW + FOOT;
	int k;

	out_fmt(o, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
		   "height=\"%zu\" viewBox=\"0 0 %d %zu\" role=\"img\" aria-labelledby=\"title description\">\n",
		WIDTH + 2 * MARGIN, height, WIDTH + 2 * MARGIN, height);
	out_str(o, "<title id=\"title\">Where the waves of ");
	html_text(o, d->r->process);
	out_str(o, " are, and how often</title>\n<desc id=\"description\">");
	k = put_description(o, a, d->r, f);
	out_fmt(o, "</desc>\n<style>%s</style>\n<rect class=\"ground\" width=\"100%%\" height=\"100%%\"/>\n", style);
	out_fmt(o, "<text class=\"head\" x=\"%d\" y=\"24\">", MARGIN);
	html_cut(o, d->r->process, 100);
	out_fmt(o, "</text>\n<text class=\"dim\" x=\"%d\" y=\"44\">", MARGIN);
	recording_put_facts(o, d->r, f);
	out_str(o, "</text>\n");
	return k;
}

static void put_foot(struct out *o, const struct drawing *d)
{
	out_fmt(o, "<text class=\"dim\" x=\"%d\" y=\"%zu\">A box is as wide as the share of captures that it was in; "
		   "its title has the share and how certain it is.",
		MARGIN, HEAD + d->deepest * ROW + 18);
	if (d->left_out)
		out_fmt(o, " %" PRIu64 " are too narrow to be drawn.", d->left_out);
	out_str(o, "</text>\n</svg>\n");
}

int recording_write_flame(struct out *o, const struct recording *r, const struct recording_facts *f)
{
	struct drawing d = { .r = r };
	uint64_t captures = (uint64_t)r->captures + r->thread_captures;
	struct rpc_arena a;
	int k;

	rpc_arena_init(&a, 0);
	k = recording_sorted(r, &a, &d.list);
	d.scale = (double)WIDTH / (double)(captures ? captures : 1) / (double)RECORDING_CAPTURE;
	if (k == 0)
		draw(&d, 0, r->n_stacks, 0, MARGIN);
	if (k == 0)
		k = put_head(o, &a, &d, f);
	if (k == 0) {
		out_bytes(o, d.boxes.size ? d.boxes.data : "", d.boxes.size);
		put_foot(o, &d);
		k = out_error(&d.boxes);
	}
	out_deinit(&d.boxes);
	rpc_arena_deinit(&a);
	return k < 0 ? k : out_error(o);
}
