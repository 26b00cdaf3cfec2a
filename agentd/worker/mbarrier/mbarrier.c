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

static int add_site(struct mbarrier_sites *to, const struct mbarrier_site *site)
{
	if (to->n == SITES_MAX) {
		to->is_cut = true;
		return 0;
	}
	if (vec_reserve(&to->list, to->n, 1, &to->capacity, sizeof(*to->list)) < 0)
		return -ENOMEM;
	to->list[to->n++] = *site;
	return 0;
}

static int search_section(const struct elf_view *elf, const Elf64_Shdr *section, const char *arch,
			  struct mbarrier_sites *ret)
{
	size_t size, at = 0;
	const uint8_t *code = elf_view_bytes(elf, section, &size);
	struct mbarrier_site site = { 0 };
	int r = 0;

	for (; r == 0 && code && waits_mbarrier_find(arch, code, size, &at, &site.wait) == 0; at += WAITS_SASS_BYTES) {
		site.pc = section->sh_addr + at;
		r = add_site(ret, &site);
	}
	site = (struct mbarrier_site){ .is_cluster = true };
	for (at = 0; r == 0 && code && size - at >= WAITS_SASS_BYTES; at += WAITS_SASS_BYTES) {
		struct waits_sass s;

		site.pc = section->sh_addr + at;
		if (waits_sass_read(arch, code + at, WAITS_SASS_BYTES, &s) == 0 && s.op == WAITS_SASS_CLUSTER_WAIT)
			r = add_site(ret, &site);
	}
	return r;
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
	waves->n_mbarriers = waves->n_clusters = 0;
	waves->mbarriers = rpc_arena_array(a, MBARRIERS_MAX, sizeof(*waves->mbarriers));
	waves->clusters = rpc_arena_array(a, MBARRIERS_CLUSTERS_MAX, sizeof(*waves->clusters));
	return waves->mbarriers && waves->clusters ? 0 : -ENOMEM;
}

/* @return whether there was room and time. */
static bool add_object(struct target_waves *to, uint32_t wave, uint64_t pc, uint32_t lane,
		       const struct mbarrier_site *site, const struct mbarrier_source *from)
{
	struct target_mbarrier *m;

	if (to->n_mbarriers == MBARRIERS_MAX)
		return false;
	m = &to->mbarriers[to->n_mbarriers++];
	*m = (struct target_mbarrier){ .wave = wave, .pc = pc, .at = site->pc };
	m->has_unknown_cluster = !from->cluster(from->ctx, m->cluster);
	m->is_read = read_object(from, &site->wait, lane, m);
	return true;
}

/* Likewise.  Waves of a workgroup lie together. */
static bool add_cluster(struct target_waves *to, uint32_t wave, const struct mbarrier_source *from)
{
	struct target_cluster *last = to->n_clusters ? &to->clusters[to->n_clusters - 1] : NULL;

	if (last && to->waves[last->wave].leader == to->waves[wave].leader)
		return true;
	if (to->n_clusters == MBARRIERS_CLUSTERS_MAX)
		return false;
	last = &to->clusters[to->n_clusters++];
	*last = (struct target_cluster){ .wave = wave };
	last->is_unknown = !from->cluster(from->ctx, last->size);
	return true;
}

void mbarriers_add(struct mbarriers *m, uint32_t wave, const uint64_t *pcs, uint32_t lanes,
		   const struct mbarrier_sites *sites, const struct mbarrier_source *from, bool late)
{
	uint64_t seen[PLACES_MAX];
	uint32_t n = 0;

	m->cut += sites && sites->is_cut;
	m->waves->polls_left_out |= sites && sites->is_cut;
	for (uint32_t left = lanes; sites && sites->n && left && n < PLACES_MAX; left &= left - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(left), i = 0;
		const struct mbarrier_site *site;

		while (i < n && seen[i] != pcs[lane])
			i++;
		if (i < n)
			continue;
		seen[n++] = pcs[lane];
		site = mbarrier_site_at(sites, pcs[lane]);
		if (!site)
			continue;
		if (late || !(site->is_cluster ? add_cluster(m->waves, wave, from) :
						 add_object(m->waves, wave, pcs[lane], lane, site, from))) {
			m->left_out++;
			m->waves->polls_left_out = true;
			return;
		}
	}
}

const char *mbarriers_missing(const struct mbarriers *m, struct rpc_arena *a)
{
	if (m->left_out)
		return rpc_arena_printf(a, "barriers in memory and of clusters: %u warp%s at one that was not read, for lack of time, "
					   "or because there are too many", m->left_out, m->left_out == 1 ? " stands" : "s stand");
	return m->cut ? "barriers in memory and of clusters: instructions of a code object that has too many" : NULL;
}
