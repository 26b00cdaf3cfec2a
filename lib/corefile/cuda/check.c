/* SPDX-License-Identifier: MIT */
/*
 * Checks that a core has what debuggers need to open it, and finds what one that was read lacks of
 * that.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "corefile/cuda/write.h"

/* An entry of an index: the row, the row that it belongs to (its owner) and its id. */
struct key {
	uint32_t owner, row;
	uint64_t id;
};

struct keys {
	struct key *list; /* Sorted by owner, then id, then row. */
	uint32_t n;
};

/* More kinds of gaps than there are: a kind without a place would not be told. */
#define GAPS_MAX 32

/* Rows that lack the same thing: the first of them, and how many there are. */
struct gap {
	const char *kind; /* Format of the text, whose address tells kinds apart. */
	struct corefile_problem first;
	uint64_t n;
};

struct check {
	const struct cudacore *core;
	struct corefile_problem *error;
	bool is_read; /* The core was read: note what is wrong, and go on. */
	struct gap gaps[GAPS_MAX];
	size_t n_gaps;
	struct keys contexts, grids; /* Their owner is the device. */
	struct keys code;	     /* Modules that have code; their owner is the context. */
	/* Not 0 for each grid that has a block; only of a core that was read. */
	uint8_t *has_block;
};

static struct gap *gap_of(struct check *c, const char *kind)
{
	for (size_t i = 0; i < c->n_gaps; i++)
		if (c->gaps[i].kind == kind)
			return &c->gaps[i];
	if (c->n_gaps == GAPS_MAX)
		return NULL;
	c->gaps[c->n_gaps] = (struct gap){ .kind = kind };
	return &c->gaps[c->n_gaps++];
}

/* @return the place for a problem of that kind; NULL if it is only counted. */
static struct corefile_problem *place_for(struct check *c, const char *kind)
{
	struct gap *gap;

	if (!c->is_read)
		return c->error;
	gap = gap_of(c, kind);
	return gap && !gap->n++ ? &gap->first : NULL;
}

/*
 * Set, or note, a problem.  Its value is -EINVAL; in a core that was read it is 0, so that the next
 * row is looked at.
 */
#define REFUSE(c, table, row, format, ...)                                                         \
	(corefile_problem_set(place_for(c, format), table, row, format, ##__VA_ARGS__),            \
	 (c)->is_read ? 0 : -EINVAL)

static int check_sms(struct check *c, uint32_t device)
{
	const struct cudacore_device *d = &c->core->devices[device];
	auto_free uint8_t *seen = calloc(d->sm_count ? d->sm_count : 1, 1);

	if (!seen)
		return -ENOMEM;
	for (uint32_t i = d->sms.first; i < d->sms.first + d->sms.n; i++) {
		uint32_t id = c->core->sms[i].id;

		if (id >= d->sm_count || seen[id])
			return REFUSE(c, CUDACORE_SMS, i, "SM number %u of device %u %s", id,
				      device, id < d->sm_count ? "comes twice" : "is too high");
		seen[id] = 1;
	}
	return 0;
}

static int check_device(struct check *c, uint32_t i)
{
	const struct cudacore_device *d = &c->core->devices[i];

	if (d->id != i)
		return REFUSE(c, CUDACORE_DEVICES, i, "device %u has the number %u", i, d->id);
	if (!d->name || !d->type || !d->sm_type || !str_starts_with(d->sm_type, "sm_"))
		return REFUSE(c, CUDACORE_DEVICES, i, "device %u lacks a name, type or sm_NN", i);
	if (d->warps_per_sm > 64 || d->lanes_per_warp > 32)
		return REFUSE(c, CUDACORE_DEVICES, i,
			      "device %u: %u warps per SM, %u lanes per warp",
			      i, d->warps_per_sm, d->lanes_per_warp);
	if (d->sms.n != d->sm_count)
		return REFUSE(c, CUDACORE_DEVICES, i,
			      "device %u has %u SMs but %u rows for them",
			      i, d->sm_count, d->sms.n);
	return check_sms(c, i);
}

/* ------------------------------------------------------------------ looking up --------------- */

static int by_key(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	if (x->owner != y->owner)
		return x->owner < y->owner ? -1 : 1;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

static struct key *make_keys(const struct cudacore *c, enum cudacore_table table)
{
	return calloc(c->n[table] + UINT64_C(1), sizeof(struct key));
}

static void sort_keys(struct keys *k, uint32_t n)
{
	k->n = n;
	qsort(k->list, n, sizeof(*k->list), by_key);
}

/*
 * Build the index of all tables that are searched: a file may have a million grids and as many
 * blocks, and each must be found at once.
 */
static int make_index(struct check *c)
{
	const struct cudacore *core = c->core;
	uint32_t n = 0;

	c->contexts.list = make_keys(core, CUDACORE_CONTEXTS);
	c->grids.list = make_keys(core, CUDACORE_GRIDS);
	c->code.list = make_keys(core, CUDACORE_MODULES);
	if (!c->contexts.list || !c->grids.list || !c->code.list)
		return -ENOMEM;
	for (uint32_t i = 0; i < core->n[CUDACORE_CONTEXTS]; i++)
		c->contexts.list[i] =
			(struct key){ core->contexts[i].device, i, core->contexts[i].id };
	for (uint32_t i = 0; i < core->n[CUDACORE_GRIDS]; i++)
		c->grids.list[i] = (struct key){ core->grids[i].device, i, core->grids[i].id };
	for (uint32_t i = 0; i < core->n[CUDACORE_MODULES]; i++)
		if (core->modules[i].relocated.size)
			c->code.list[n++] = (struct key){ core->modules[i].context, i,
							  core->modules[i].handle };
	sort_keys(&c->contexts, core->n[CUDACORE_CONTEXTS]);
	sort_keys(&c->grids, core->n[CUDACORE_GRIDS]);
	sort_keys(&c->code, n);
	return 0;
}

/* @return the first row with that id of an owner; NULL if there is none. */
static const struct key *find(const struct keys *k, uint32_t owner, uint64_t id)
{
	const struct key wanted = { owner, 0, id };
	uint32_t low = 0, high = k->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (by_key(&k->list[middle], &wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < k->n && k->list[low].owner == owner && k->list[low].id == id ? &k->list[low] : NULL;
}

/* ------------------------------------------------------------------ grids -------------------- */

#define ORIGIN_GPU  1
#define GRID_ACTIVE 2

static int check_grid(struct check *c, uint32_t i)
{
	const struct cudacore_grid *g = &c->core->grids[i];
	const struct key *context = find(&c->contexts, g->device, g->context_id);
	long long id = (long long)g->id;

	if (!context)
		return REFUSE(c, CUDACORE_GRIDS, i,
			      "grid %lld: no context 0x%llx on its device", id,
			      (unsigned long long)g->context_id);
	if (!find(&c->code, context->row, g->module_handle))
		return REFUSE(c, CUDACORE_GRIDS, i,
			      "grid %lld: no module 0x%llx with a relocated image in its context",
			      id, (unsigned long long)g->module_handle);
	if (!g->status)
		return REFUSE(c, CUDACORE_GRIDS, i, "grid %lld has no status", id);
	/* The parent is not shown to anybody who reads a core, so it need not be there then. */
	if (!c->is_read && g->origin == ORIGIN_GPU && !find(&c->grids, g->device, g->parent_id))
		return REFUSE(c, CUDACORE_GRIDS, i, "grid %lld: no parent grid %lld", id,
			      (long long)g->parent_id);
	return 0;
}

static int check_frames(struct check *c, uint32_t lane)
{
	const struct cudacore_lane *l = &c->core->lanes[lane];

	if (l->frames.n != l->call_depth || l->syscall_depth > l->call_depth)
		return REFUSE(c, CUDACORE_LANES, lane,
			      "%u frames for call depth %u, %u of them syscalls",
			      l->frames.n, l->call_depth, l->syscall_depth);
	for (uint32_t i = 0; i < l->frames.n; i++)
		if (c->core->frames[l->frames.first + i].level != i)
			return REFUSE(c, CUDACORE_FRAMES, l->frames.first + i,
				      "frame of level %u in place of %u",
				      c->core->frames[l->frames.first + i].level, i);
	return 0;
}

static int check_lanes(struct check *c, uint32_t warp, uint32_t lanes_per_warp)
{
	const struct cudacore_warp *w = &c->core->warps[warp];
	uint32_t seen = 0;

	for (uint32_t i = w->lanes.first; i < w->lanes.first + w->lanes.n; i++) {
		uint32_t number = c->core->lanes[i].number;
		int r = check_frames(c, i);

		if (r < 0)
			return r;
		if (number >= lanes_per_warp || number >= 32 || seen & UINT32_C(1) << number)
			return REFUSE(c, CUDACORE_LANES, i,
				      "lane %u of warp %u comes twice or is too high",
				      number, w->id);
		seen |= UINT32_C(1) << number;
	}
	if (seen != w->valid_lanes)
		return REFUSE(c, CUDACORE_WARPS, warp,
			      "warp %u: valid lanes 0x%x, but rows for 0x%x",
			      w->id, w->valid_lanes, seen);
	/*
	 * In a core that was read, a warp that stands still with all of its lanes is a fact, not an
	 * error.
	 */
	if (!c->is_read && (!w->active_lanes || w->active_lanes & ~w->valid_lanes))
		return REFUSE(c, CUDACORE_WARPS, warp, "warp %u: active lanes 0x%x of valid 0x%x",
			      w->id, w->active_lanes, w->valid_lanes);
	return 0;
}

/* Check a block.  @p slots collects the warps of all blocks of the SM, which must not share one. */
static int check_block(struct check *c, uint32_t block, uint64_t *slots)
{
	const struct cudacore_block *b = &c->core->blocks[block];
	uint32_t device = c->core->sms[b->sm].device;
	const struct cudacore_device *d = &c->core->devices[device];
	const struct key *grid = find(&c->grids, device, b->grid_id);

	if (grid && c->has_block)
		c->has_block[grid->row] = 1;
	if (!grid && REFUSE(c, CUDACORE_BLOCKS, block, "block of grid %lld, which is not there",
			    (long long)b->grid_id) < 0)
		return -EINVAL;
	if (c->is_read && !b->warps.n)
		return REFUSE(c, CUDACORE_BLOCKS, block, "block %u,%u,%u of grid %lld without warps",
			      b->index[0], b->index[1], b->index[2], (long long)b->grid_id);
	for (uint32_t i = b->warps.first; i < b->warps.first + b->warps.n; i++) {
		uint32_t id = c->core->warps[i].id;
		int r;

		if (id >= d->warps_per_sm || id >= 64 || *slots & UINT64_C(1) << id)
			return REFUSE(c, CUDACORE_WARPS, i,
				      "warp %u of SM %u comes twice or is too high",
				      id, c->core->sms[b->sm].id);
		*slots |= UINT64_C(1) << id;
		r = check_lanes(c, i, d->lanes_per_warp);
		if (r < 0)
			return r;
	}
	return 0;
}

static int check_sm(struct check *c, uint32_t sm)
{
	const struct cudacore_range *r = &c->core->sms[sm].blocks;
	uint64_t slots = 0;
	int err = 0;

	for (uint32_t i = r->first; i < r->first + r->n && err == 0; i++)
		err = check_block(c, i, &slots);
	return err;
}

static int check_rows(struct check *c)
{
	const struct cudacore *core = c->core;
	int r = 0;

	for (uint32_t i = 0; i < core->n[CUDACORE_DEVICES] && r == 0; i++)
		r = check_device(c, i);
	for (uint32_t i = 0; i < core->n[CUDACORE_CONTEXTS] && r == 0; i++)
		if (core->contexts[i].device_row != core->contexts[i].device)
			r = REFUSE(c, CUDACORE_CONTEXTS, i, "context of device %u says device %u",
				   core->contexts[i].device, core->contexts[i].device_row);
	for (uint32_t i = 0; i < core->n[CUDACORE_GRIDS] && r == 0; i++)
		r = check_grid(c, i);
	for (uint32_t i = 0; i < core->n[CUDACORE_SMS] && r == 0; i++)
		r = check_sm(c, i);
	return r;
}

static int run(struct check *c)
{
	int r;

	if (c->core->n[CUDACORE_DEVICES] == 0 && REFUSE(c, CUDACORE_DEVICES, 0, "no device") < 0)
		return -EINVAL;
	if (c->core->n[CUDACORE_META] > 1 && REFUSE(c, CUDACORE_META, 1, "metadata comes twice") < 0)
		return -EINVAL;
	r = make_index(c);
	if (r == 0)
		r = check_rows(c);
	free(c->contexts.list);
	free(c->grids.list);
	free(c->code.list);
	return r;
}

int cudacore_check(const struct cudacore *core, struct corefile_problem *error)
{
	struct check c = { .core = core, .error = error };

	return run(&c);
}

/* A grid may be without blocks for a moment, but one that is said to be active has some. */
static void find_empty_grids(struct check *c)
{
	for (uint32_t i = 0; i < c->core->n[CUDACORE_GRIDS]; i++)
		if (c->core->grids[i].status == GRID_ACTIVE && !c->has_block[i])
			(void)REFUSE(c, CUDACORE_GRIDS, i, "grid %lld is active, but has no block",
				     (long long)c->core->grids[i].id);
}

int cudacore_find_gaps(struct cudacore *core)
{
	auto_free uint8_t *has_block = calloc(core->n[CUDACORE_GRIDS] + UINT64_C(1), 1);
	struct check c = { .core = core, .is_read = true, .has_block = has_block };
	int r = has_block ? run(&c) : -ENOMEM;

	if (r < 0)
		return r;
	find_empty_grids(&c);
	for (size_t i = 0; i < c.n_gaps; i++) {
		const struct gap *g = &c.gaps[i];

		if (g->n == 1)
			corefile_problem_add(&core->problems, COREFILE_NO_SECTION, COREFILE_NO_OFFSET,
					     "%s", g->first.text);
		else
			corefile_problem_add(&core->problems, COREFILE_NO_SECTION, COREFILE_NO_OFFSET,
					     "%.80s, and %llu more like it", g->first.text,
					     (unsigned long long)g->n - 1);
	}
	return 0;
}
