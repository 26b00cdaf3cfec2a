/* SPDX-License-Identifier: MIT */
#include "agentd/worker/spin/spin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/elf_view.h"
#include "base/reader.h"
#include "base/vec.h"
#include "symbols/image.h"
#include "waits/grid.h"
#include "waits/sass.h"

/* Of one image. */
#define SITES_MAX 16384u
/* Of those, how many are asked whether they wait for a grid: what an image makes of that shall not take long. */
#define TRACED_MAX 1024u
/* Loops that the lanes of one warp are in, of those that are compared. */
#define LOOPS_MAX 4u

/* ------------------------------------------------------------------ instructions ------------- */

static void tell_grid(struct spin_sites *s, const char *arch, const uint8_t *code, size_t size, struct spin_site *to)
{
	if (to->polls.n != 1 || !waits_grid_may_be_loop(&to->polls.any[0]))
		return;
	to->is_untraced = s->n_traced == TRACED_MAX;
	if (to->is_untraced)
		return;
	s->n_traced++;
	to->is_grid = waits_grid_is_loop(arch, code, size, &to->polls.any[0]);
}

/* @return the loop that the pc is in; NULL: none.  No loop lies in another one: the branch back is its only one. */
static struct spin_site *site_at(const struct spin_sites *s, uint64_t pc)
{
	struct spin_site *site;
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->list[middle].begin <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	site = low ? &s->list[low - 1] : NULL;
	return site && pc < site->end ? site : NULL;
}

/*
 * Loops that lanes leave early, and come back into from behind: such a word has not ended the wait.  The code of a
 * section is looked through once, whatever the number of its loops is.
 * @param first  Of the section's.
 */
static void drop_entered(struct spin_sites *s, size_t first, const char *arch, const uint8_t *code, size_t size)
{
	const struct spin_sites own = { .list = s->list + first, .n = s->n - first };
	size_t to, n = first;
	bool any = false;

	for (size_t i = first; i < s->n; i++)
		any |= s->list[i].polls.n > 1;
	for (size_t at = 0; any && waits_sass_back_find(arch, code, size, &at, &to) == 0; at += WAITS_SASS_BYTES) {
		struct spin_site *site = site_at(&own, own.list->text + to);

		if (site && site->polls.n > 1 && to > site->polls.any[0].begin && at >= site->polls.any[0].end)
			site->is_entered = true;
	}
	for (size_t i = first; i < s->n; i++)
		if (!s->list[i].is_entered)
			s->list[n++] = s->list[i];
	s->n = n;
}

static int search_section(const struct elf_view *elf, const Elf64_Shdr *section, const char *arch,
			  struct spin_sites *ret)
{
	size_t size, at = 0, first = ret->n;
	const uint8_t *code = elf_view_bytes(elf, section, &size);
	struct waits_sass_polls p;

	for (; code && waits_sass_poll_find(arch, code, size, &at, &p) == 0; at += WAITS_SASS_BYTES) {
		if (ret->n == SITES_MAX) {
			ret->is_cut = true;
			break;
		}
		if (vec_reserve(&ret->list, ret->n, 1, &ret->capacity, sizeof(*ret->list)) < 0)
			return -ENOMEM;
		ret->list[ret->n] = (struct spin_site){ .begin = section->sh_addr + p.any[0].begin,
							.end = section->sh_addr + p.any[0].end,
							.text = section->sh_addr, .polls = p };
		tell_grid(ret, arch, code, size, &ret->list[ret->n++]);
	}
	if (ret->n > first)
		drop_entered(ret, first, arch, code, size);
	return 0;
}

static int compare(const void *x, const void *y)
{
	const struct spin_site *a = x, *b = y;

	return a->begin < b->begin ? -1 : a->begin > b->begin;
}

int spin_sites_find(const struct symbols_image *image, const char *arch, struct spin_sites *ret)
{
	const struct elf_view *elf = symbols_image_elf(image);

	*ret = (struct spin_sites){ 0 };
	for (size_t i = 0; i < elf->n_sections; i++) {
		const Elf64_Shdr s = elf_view_section(elf, i);

		if (s.sh_type != SHT_PROGBITS || !(s.sh_flags & SHF_EXECINSTR) || !s.sh_addr)
			continue;
		if (search_section(elf, &s, arch, ret) < 0) {
			spin_sites_deinit(ret);
			return -ENOMEM;
		}
	}
	if (ret->n)
		qsort(ret->list, ret->n, sizeof(*ret->list), compare);
	return 0;
}

void spin_sites_deinit(struct spin_sites *s)
{
	free(s->list);
	*s = (struct spin_sites){ 0 };
}

/* ------------------------------------------------------------------ one loop ----------------- */

struct lane {
	const struct spin_source *from;
	uint32_t number;
};

static bool read_operand(const void *ctx, const struct waits_sass_operand *o, uint32_t *ret)
{
	const struct lane *l = ctx;

	if (o->kind == WAITS_SASS_BANK)
		return l->from->argument(l->from->ctx, o->value, ret);
	return l->from->word(l->from->ctx, o->kind == WAITS_SASS_UNIFORM, l->number, o->value, ret);
}

/* @return whether it is known what the word is; of memory, nothing is known that the lane could not read itself. */
static bool read_word(const struct spin_source *from, const struct waits_sass_poll *p, uint32_t number,
		      struct target_word *to)
{
	const struct lane lane = { .from = from, .number = number };
	struct waits_word word;
	uint8_t bytes[8];
	struct reader r;

	if (waits_sass_poll_word(p, read_operand, &lane, &word) < 0)
		return false;
	*to = (struct target_word){ .address = word.address, .is_shared = p->space == WAITS_SASS_SHARED,
				    .bytes = word.bytes, .op = (uint8_t)word.op, .is_signed = word.is_signed,
				    .with = word.with, .mask = word.mask };
	if (word.address % word.bytes ||
	    !from->memory(from->ctx, p->space, number, word.address, bytes, word.bytes, &to->is_host))
		return true;
	reader_init(&r, bytes, word.bytes);
	to->value = word.bytes == 8 ? reader_u64(&r) : word.bytes == 4 ? reader_u32(&r) :
		    word.bytes == 2 ? reader_u16(&r) : reader_u8(&r);
	to->has_value = true;
	return true;
}

_Static_assert(TARGET_SPIN_WORDS == WAITS_SASS_WORDS, "all words of a loop are told");

/* All operands of all words, or nothing is known of the loop. */
static void read_words(const struct spin_source *from, const struct spin_site *site, struct target_spin *to)
{
	to->n_words = site->polls.n;
	to->is_read = true;
	for (uint8_t i = 0; to->is_read && i < to->n_words; i++) {
		to->is_read = read_word(from, &site->polls.any[i], to->lane, &to->words[i]);
		to->words[i].load = site->text + site->polls.any[i].load;
	}
	if (to->is_read && to->n_words == 1 && to->lanes & (to->lanes - 1))
		to->has_last = read_word(from, &site->polls.any[0], 31 - (uint32_t)__builtin_clz(to->lanes), &to->last);
}

/* ------------------------------------------------------------------ one look ----------------- */

int spins_begin(struct spins *s, struct rpc_arena *a, struct target_waves *waves)
{
	*s = (struct spins){ .waves = waves };
	waves->n_spins = 0;
	waves->spins = rpc_arena_array(a, SPINS_MAX, sizeof(*waves->spins));
	return waves->spins ? 0 : -ENOMEM;
}

static struct target_spin *find(const struct spins *s, const struct wave *w, const struct spin_site *site)
{
	for (size_t i = 0; i < s->waves->n_spins; i++) {
		struct target_spin *known = &s->waves->spins[i];
		const struct wave *of = &s->waves->waves[known->wave];

		if (known->begin == site->begin && of->gpu_id == w->gpu_id && of->queue_id == w->queue_id &&
		    of->dispatch == w->dispatch)
			return known;
	}
	return NULL;
}

/* Lanes whose pc is from begin on, and before end. */
static uint32_t lanes_in(uint64_t begin, uint64_t end, const uint64_t *pcs, uint32_t lanes)
{
	uint32_t in = 0;

	for (uint32_t left = lanes; left; left &= left - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(left);

		if (pcs[lane] >= begin && pcs[lane] < end)
			in |= UINT32_C(1) << lane;
	}
	return in;
}

/* Any one of the words may be given by the host, and then ends the loop. */
static bool is_of_device(const struct waits_sass_polls *p)
{
	bool all = true;

	for (uint8_t i = 0; i < p->n; i++)
		all &= p->any[i].of_device || p->any[i].space == WAITS_SASS_SHARED;
	return all;
}

void spins_add(struct spins *s, uint32_t wave, const uint64_t *pcs, uint32_t lanes, const struct spin_sites *sites,
	       const struct spin_source *from, bool late)
{
	uint32_t in;

	s->cut += sites && sites->is_cut;
	s->waves->polls_left_out |= sites && sites->is_cut;
	for (uint32_t left = lanes, n = 0; sites && sites->n && left && n < LOOPS_MAX; left &= ~in) {
		const uint32_t lane = (uint32_t)__builtin_ctz(left);
		const struct spin_site *site = site_at(sites, pcs[lane]);
		struct target_spin *to;

		/* Most lanes of a warp are at one place: those are looked up once. */
		in = site ? lanes_in(site->begin, site->end, pcs, lanes) :
			    lanes_in(pcs[lane], pcs[lane] + 1, pcs, lanes);
		in |= UINT32_C(1) << lane; /* There is nothing behind the last address. */
		if (!site)
			continue;
		n++;
		s->untraced += site->is_untraced;
		to = find(s, &s->waves->waves[wave], site);
		if (to) {
			to->warps++;
			continue;
		}
		if (late || s->waves->n_spins == SPINS_MAX) {
			s->left_out++;
			s->waves->polls_left_out = true;
			return;
		}
		to = &s->waves->spins[s->waves->n_spins++];
		*to = (struct target_spin){ .wave = wave, .pc = pcs[lane], .begin = site->begin, .end = site->end,
					    .lane = lane, .lanes = in, .warps = 1,
					    .is_lock = site->polls.any[0].is_lock,
					    .sleeps = site->polls.any[0].sleeps, .is_grid = site->is_grid,
					    .of_device = is_of_device(&site->polls) };
		read_words(from, site, to);
		if (!from->grid(from->ctx, to->grid))
			memset(to->grid, 0, sizeof(to->grid));
	}
}

/* Where loops are not looked at, others that are may still be those of grids. */
void spins_missing(const struct spins *s, struct rpc_arena *a, const char *ret[SPINS_MISSING_MAX])
{
	memset(ret, 0, SPINS_MISSING_MAX * sizeof(*ret));
	if (s->left_out)
		ret[0] = rpc_arena_printf(a, "words that are polled: %u warp%s in a loop that was not looked at, "
					  "for lack of time, or because there are too many", s->left_out,
					  s->left_out == 1 ? " is" : "s are");
	if (s->cut)
		ret[1] = "words that are polled: loops of a code object that has too many";
	if (s->untraced)
		ret[2] = rpc_arena_printf(a, "barriers of grids: %u warp%s as blocks of a grid do, in a code "
					  "object that has too many such loops to tell whether they wait for the grid",
					  s->untraced, s->untraced == 1 ? " polls" : "s poll");
}
