/* SPDX-License-Identifier: MIT */
#include "agentd/worker/mbarrier/mbarrier.h"

#include <errno.h>
#include <stdlib.h>

#include "base/elf_view.h"
#include "base/reader.h"
#include "base/vec.h"
#include "symbols/image.h"
#include "waits/sass.h"

/* Of one image. */
#define SITES_MAX 16384u
/* Places that the lanes of one warp are at, of those that are compared. */
#define PLACES_MAX 8u
/* Registers of one read. */
#define NEAR_MAX 16u
/* In an address, the bits above these are the number of the block in its cluster. */
#define SHARED_MASK 0xffffffu

/* ------------------------------------------------------------------ instructions ------------- */

static int search_section(const struct elf_view *elf, const Elf64_Shdr *section, const char *arch,
			  struct mbarrier_sites *ret)
{
	size_t size, at = 0;
	const uint8_t *code = elf_view_bytes(elf, section, &size);
	struct waits_mbarrier_wait wait;

	for (; code && waits_mbarrier_find(arch, code, size, &at, &wait) == 0; at += WAITS_SASS_BYTES) {
		if (ret->n == SITES_MAX) {
			ret->is_cut = true;
			return 0;
		}
		if (vec_reserve(&ret->list, ret->n, 1, &ret->capacity, sizeof(*ret->list)) < 0)
			return -ENOMEM;
		ret->list[ret->n++] = (struct mbarrier_site){ .pc = section->sh_addr + at, .wait = wait };
	}
	return 0;
}

static int compare(const void *x, const void *y)
{
	const struct mbarrier_site *a = x, *b = y;

	return a->pc < b->pc ? -1 : a->pc > b->pc;
}

int mbarrier_sites_find(const struct symbols_image *image, const char *arch, struct mbarrier_sites *ret)
{
	const struct elf_view *elf = symbols_image_elf(image);

	*ret = (struct mbarrier_sites){ 0 };
	if (!waits_mbarrier_known(arch))
		return 0;
	for (size_t i = 0; i < elf->n_sections; i++) {
		const Elf64_Shdr s = elf_view_section(elf, i);

		if (s.sh_type != SHT_PROGBITS || !(s.sh_flags & SHF_EXECINSTR) || !s.sh_addr)
			continue;
		if (search_section(elf, &s, arch, ret) < 0) {
			mbarrier_sites_deinit(ret);
			return -ENOMEM;
		}
	}
	if (ret->n)
		qsort(ret->list, ret->n, sizeof(*ret->list), compare);
	return 0;
}

void mbarrier_sites_deinit(struct mbarrier_sites *s)
{
	free(s->list);
	*s = (struct mbarrier_sites){ 0 };
}

/* @return the instruction that whoever is at the pc waits at; NULL: none. */
static const struct mbarrier_site *mbarrier_site_at(const struct mbarrier_sites *s, uint64_t pc)
{
	const struct mbarrier_site *site;
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->list[middle].pc <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	site = low ? &s->list[low - 1] : NULL;
	return site && pc - site->pc <= (uint64_t)site->wait.behind * WAITS_SASS_BYTES ? site : NULL;
}

/* ------------------------------------------------------------------ one wait ----------------- */

/* Two registers of a lane; one read is enough for those that are near each other. */
static bool read_pair(const struct mbarrier_source *from, uint32_t lane, const uint8_t numbers[2], uint32_t ret[2])
{
	const bool both = numbers[0] != WAITS_MBARRIER_NO_REGISTER && numbers[1] != WAITS_MBARRIER_NO_REGISTER;
	const uint32_t first = numbers[0] < numbers[1] ? numbers[0] : numbers[1];
	const uint32_t n = numbers[0] + numbers[1] - 2 * first + 1;
	uint32_t words[NEAR_MAX];
	bool good = true;

	if (both && n <= NEAR_MAX) {
		good = from->words(from->ctx, false, lane, first, n, words);
		for (int i = 0; good && i < 2; i++)
			ret[i] = words[numbers[i] - first];
		return good;
	}
	for (int i = 0; good && i < 2; i++) {
		ret[i] = 0;
		if (numbers[i] != WAITS_MBARRIER_NO_REGISTER)
			good = from->words(from->ctx, false, lane, numbers[i], 1, &ret[i]);
	}
	return good;
}

/* All of it, or nothing is known of the wait. */
static bool read_object(const struct mbarrier_source *from, const struct waits_mbarrier_wait *w, uint32_t lane,
			struct target_mbarrier *ret)
{
	uint8_t bytes[WAITS_MBARRIER_BYTES];
	const uint8_t numbers[2] = { w->address_register, w->phase_register };
	uint32_t pair[2], uniform = 0;
	struct reader r;

	if (!read_pair(from, lane, numbers, pair) ||
	    (w->uniform_register != WAITS_MBARRIER_NO_REGISTER &&
	     !from->words(from->ctx, true, lane, w->uniform_register, 1, &uniform)))
		return false;
	ret->phase_register = pair[1];
	/* Whoever waits does so for an object of its own block. */
	ret->address = (pair[0] + uniform + (uint32_t)w->offset) & SHARED_MASK;
	if (ret->address % WAITS_MBARRIER_BYTES ||
	    !from->shared(from->ctx, lane, ret->address, bytes, WAITS_MBARRIER_BYTES))
		return false;
	reader_init(&r, bytes, sizeof(bytes));
	ret->word = reader_u64(&r);
	return true;
}

/* ------------------------------------------------------------------ one look ----------------- */

int mbarriers_begin(struct mbarriers *m, struct rpc_arena *a, struct target_waves *waves)
{
	*m = (struct mbarriers){ .waves = waves };
	waves->n_mbarriers = 0;
	waves->mbarriers = rpc_arena_array(a, MBARRIERS_MAX, sizeof(*waves->mbarriers));
	return waves->mbarriers ? 0 : -ENOMEM;
}

void mbarriers_add(struct mbarriers *m, uint32_t wave, const uint64_t *pcs, uint32_t lanes,
		   const struct mbarrier_sites *sites, const struct mbarrier_source *from, bool late)
{
	uint64_t seen[PLACES_MAX];
	uint32_t n = 0;

	m->cut += sites && sites->is_cut;
	for (uint32_t left = lanes; sites && sites->n && left && n < PLACES_MAX; left &= left - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(left), i = 0;
		const struct mbarrier_site *site;
		struct target_mbarrier *to;

		while (i < n && seen[i] != pcs[lane])
			i++;
		if (i < n)
			continue;
		seen[n++] = pcs[lane];
		site = mbarrier_site_at(sites, pcs[lane]);
		if (!site)
			continue;
		if (late || m->waves->n_mbarriers == MBARRIERS_MAX) {
			m->left_out++;
			return;
		}
		to = &m->waves->mbarriers[m->waves->n_mbarriers++];
		*to = (struct target_mbarrier){ .wave = wave, .pc = pcs[lane], .at = site->pc };
		to->has_unknown_cluster = !from->cluster(from->ctx, to->cluster);
		to->is_read = read_object(from, &site->wait, lane, to);
	}
}

const char *mbarriers_missing(const struct mbarriers *m, struct rpc_arena *a)
{
	if (m->left_out)
		return rpc_arena_printf(a, "barriers in memory: %u warps stand at one that was not read, for lack of time, "
					   "or because there are too many", m->left_out);
	return m->cut ? "barriers in memory: instructions of a code object that has too many" : NULL;
}
