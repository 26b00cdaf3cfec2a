/* SPDX-License-Identifier: MIT */
#include "agentd/worker/snapshot/locations.h"

#include <errno.h>
#include <stdlib.h>

#include "agentd/worker/snapshot/hash.h"
#include "agentd/worker/snapshot/id_map.h"
#include "base/cleanup.h"
#include "base/out.h"

struct site {
	uint32_t place, kernel;
	bool wants_kernel; /**< A wave there does not know its dispatch. */
};

/* What is needed only while places are found. */
struct work {
	struct code_set *set;
	struct locations *p;
	struct id_map addresses; /* The addresses of the sites. */
	struct id_map texts;     /* Hashes of the keys of places with a line: see write_key(). */
	struct id_map kernels;   /* The addresses of kernels; number 0 is address 0. */
	struct site *sites;
	uint32_t *of_text; /* The place that belongs to each number in `texts`. */
	size_t text_capacity, text_bytes; /* Room in `of_text`; bytes of text shown so far. */
	size_t place_capacity;
	struct out key;
};

static void work_deinit(struct work *w)
{
	id_map_deinit(&w->addresses);
	id_map_deinit(&w->texts);
	id_map_deinit(&w->kernels);
	free(w->sites);
	free(w->of_text);
	out_deinit(&w->key);
}

void locations_deinit(struct locations *p)
{
	free(p->places);
	free(p->kernels);
	*p = (struct locations){ 0 };
}

/* Call a function with the waves, and then with the parts of each. */
static int for_all(struct work *w, struct wave *waves, size_t n,
		   int (*fn)(struct work *w, struct wave *waves, size_t n))
{
	int r = fn(w, waves, n);

	for (size_t i = 0; r == 0 && i < n; i++)
		if (wave_n_parts(&waves[i]))
			r = fn(w, waves[i].parts->list, waves[i].parts->n);
	return r;
}

/* ------------------------------------------------------------------ sites -------------------- */

/* The start of the instruction that the wave is at. */
static uint64_t address_of(const struct wave *w)
{
	return w->pc - w->behind;
}

static int collect_addresses(struct work *w, struct wave *waves, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int64_t site;

		/* Neighbours are mostly at the same site. */
		if (i && address_of(&waves[i]) == address_of(&waves[i - 1])) {
			waves[i].site = waves[i - 1].site;
			continue;
		}
		site = id_map_put(&w->addresses, address_of(&waves[i]));
		if (site < 0)
			return (int)site;
		waves[i].site = (uint32_t)site;
	}
	return 0;
}

static int mark_sites(struct work *w, struct wave *waves, size_t n)
{
	for (size_t i = 0; i < n; i++)
		w->sites[waves[i].site].wants_kernel |= !waves[i].kernel_handle;
	return 0;
}

static int collect_sites(struct work *w, struct wave *waves, size_t n)
{
	int r = for_all(w, waves, n, collect_addresses);

	if (r < 0)
		return r;
	w->p->n_sites = w->addresses.n;
	w->sites = calloc(w->addresses.n + 1, sizeof(*w->sites));
	return w->sites ? for_all(w, waves, n, mark_sites) : -ENOMEM;
}

struct by_address {
	uint64_t address;
	uint32_t site;
};

static int compare_addresses(const void *x, const void *y)
{
	const struct by_address *a = x, *b = y;

	return a->address < b->address ? -1 : a->address > b->address;
}

/* ------------------------------------------------------------------ places ------------------- */

/* Make room for one more item.  @return the items, or NULL; the old ones are then still there. */
static void *grow(void *items, size_t n, size_t *capacity, size_t size)
{
	size_t wanted = *capacity ? 2 * *capacity : 64;

	if (n < *capacity)
		return items;
	items = realloc(items, wanted * size);
	if (items)
		*capacity = wanted;
	return items;
}

struct rpc_frame *locations_convert_frames(struct rpc_arena *a, const struct symbols_location *l)
{
	struct rpc_frame *frames = rpc_arena_array(a, l->n_frames, sizeof(*frames));
	const char *file = NULL;

	for (size_t i = 0; frames && i < l->n_frames; i++) {
		const struct symbols_frame *f = &l->frames[i];

		frames[i] = (struct rpc_frame){
			.function = rpc_arena_strdup(a, f->function),
			.raw = f->raw != f->function ? rpc_arena_strdup(a, f->raw) : NULL,
			.file = i && f->file == l->frames[i - 1].file
					? file
					: rpc_arena_strdup(a, f->file),
			.has_line = f->line,
			.line = f->line,
			.has_column = f->column,
			.column = f->column,
			.inlined = f->inlined,
		};
		file = frames[i].file;
	}
	return frames;
}

static int64_t new_place(struct work *w, const struct symbols_location *l)
{
	struct locations *p = w->p;
	struct location *places = grow(p->places, p->n_places, &w->place_capacity, sizeof(*places));
	struct location *to;

	if (!places)
		return -ENOMEM;
	p->places = places;
	to = &places[p->n_places];
	*to = (struct location){ 0 };
	if (l && w->text_bytes + l->text_used > LOCATIONS_TEXT_MAX) {
		p->cut = true;
	} else if (l) {
		to->frames = locations_convert_frames(w->set->arena, l);
		to->n_frames = to->frames ? l->n_frames : 0;
		w->text_bytes += l->text_used;
	}
	return (int64_t)p->n_places++;
}

/* Write all that tells places apart; columns do not. */
static void write_key(struct out *key, const struct symbols_location *l)
{
	out_reset(key);
	for (size_t i = 0; i < l->n_frames; i++) {
		const struct symbols_frame *f = &l->frames[i];

		out_str(key, f->raw ? f->raw : "");
		out_char(key, '\0');
		out_str(key, f->file ? f->file : "");
		out_char(key, '\0');
		out_bytes(key, (const char *)&f->line, sizeof(f->line));
		out_char(key, (char)f->inlined);
	}
}

/* Find or make the place with that line and that chain of calls. */
static int64_t line_place(struct work *w, const struct symbols_location *l)
{
	size_t n = w->texts.n;
	int64_t text, place;
	uint32_t *of_text;

	write_key(&w->key, l);
	if (out_error(&w->key))
		return -ENOMEM;
	/* The hash stands for the text: 64 bits that begin with a secret do not collide. */
	text = id_map_put(&w->texts, hash_bytes(w->texts.secret, w->key.data, w->key.size));
	if (text < 0 || (size_t)text < n)
		return text < 0 ? text : w->of_text[text];
	of_text = grow(w->of_text, n, &w->text_capacity, sizeof(*of_text));
	if (!of_text)
		return -ENOMEM;
	w->of_text = of_text;
	place = new_place(w, l);
	if (place >= 0)
		of_text[text] = (uint32_t)place;
	return place;
}

static int64_t kernel_number(struct work *w, uint64_t address)
{
	return id_map_put(&w->kernels, address);
}

static int find_site(struct work *w, uint64_t address, struct site *site)
{
	const struct symbols_location *l = NULL;
	struct code_symbol kernel;
	int64_t place, number;

	if (code_locate(w->set, address, &l) < 0)
		w->p->n_unknown++;
	place = l && l->n_frames && l->frames[0].line ? line_place(w, l) : new_place(w, l);
	if (place < 0)
		return (int)place;
	site->place = (uint32_t)place;
	if (!site->wants_kernel || !l || code_kernel_around(w->set, address, &kernel) < 0)
		return 0;
	number = kernel_number(w, kernel.address);
	if (number < 0)
		return (int)number;
	site->kernel = (uint32_t)number;
	return 0;
}

/* Sites are looked up in the order of addresses, so that each code object is opened once. */
static int find_sites(struct work *w)
{
	size_t n = w->addresses.n;
	auto_free struct by_address *order = malloc((n + 1) * sizeof(*order));
	int r = 0;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		order[i] = (struct by_address){ w->addresses.keys[i], (uint32_t)i };
	qsort(order, n, sizeof(*order), compare_addresses);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = find_site(w, order[i].address, &w->sites[order[i].site]);
	return r;
}

/* ------------------------------------------------------------------ stacks ------------------- */

bool locations_find_callers(struct code_set *s, struct rpc_caller *callers, size_t n, size_t *text)
{
	const struct symbols_location *l;
	bool all = true;

	for (size_t i = 0; i < n; i++) {
		/* Another document of the same waves has its own memory for what it says of them. */
		callers[i].frames = NULL;
		callers[i].n_frames = 0;
		/* The call ends in front of its return address, which may be on another line. */
		if (!callers[i].address || code_locate(s, callers[i].address - 1, &l) < 0)
			continue;
		if (l->text_used > *text) {
			all = false;
			continue;
		}
		*text -= l->text_used;
		callers[i].frames = locations_convert_frames(s->arena, l);
		callers[i].n_frames = callers[i].frames ? l->n_frames : 0;
	}
	return all;
}

static void find_stacks(struct work *w, struct wave *waves, size_t n)
{
	size_t left = w->text_bytes < LOCATIONS_TEXT_MAX ? LOCATIONS_TEXT_MAX - w->text_bytes : 0;

	for (size_t i = 0; i < n; i++) {
		struct wave_stack *stack = waves[i].stack;

		if (stack && !locations_find_callers(w->set, stack->callers, stack->n, &left))
			w->p->cut = true;
	}
}

/* ------------------------------------------------------------------ kernels, waves ----------- */

/* The dispatch of a wave says best which kernel it runs; the site is the second choice. */
static int fill_waves(struct work *w, struct wave *waves, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct site *site = &w->sites[waves[i].site];
		int64_t kernel = site->kernel;

		waves[i].place = site->place;
		if (waves[i].kernel_handle)
			kernel = i && waves[i].kernel_handle == waves[i - 1].kernel_handle ?
					 waves[i - 1].kernel :
					 kernel_number(w, waves[i].kernel_handle);
		if (kernel < 0)
			return (int)kernel;
		waves[i].kernel = (uint32_t)kernel;
	}
	return 0;
}

static int name_kernels(struct work *w)
{
	struct locations *p = w->p;

	p->n_kernels = w->kernels.n;
	p->kernels = calloc(p->n_kernels, sizeof(*p->kernels));
	if (!p->kernels)
		return -ENOMEM;
	for (size_t i = 1; i < p->n_kernels; i++) {
		struct code_symbol symbol = { 0 };

		p->kernels[i].address = w->kernels.keys[i];
		if (code_kernel(w->set, w->kernels.keys[i], &symbol) < 0)
			continue;
		p->kernels[i].name = symbol.name;
		p->kernels[i].raw = symbol.raw;
	}
	return 0;
}

static int work_init(struct work *w)
{
	out_init(&w->key, 0);
	if (id_map_init(&w->addresses) < 0 || id_map_init(&w->texts) < 0 ||
	    id_map_init(&w->kernels) < 0)
		return -ENOMEM;
	return kernel_number(w, 0) < 0 ? -ENOMEM : 0;
}

int locations_find(struct code_set *s, struct wave *waves, size_t n, struct locations *ret)
{
	struct work w = { .set = s, .p = ret };
	int r;

	*ret = (struct locations){ 0 };
	r = work_init(&w);
	if (r == 0)
		r = collect_sites(&w, waves, n);
	if (r == 0)
		r = find_sites(&w);
	if (r == 0)
		find_stacks(&w, waves, n);
	if (r == 0)
		r = for_all(&w, waves, n, fill_waves);
	if (r == 0)
		r = name_kernels(&w);
	work_deinit(&w);
	return r;
}
