/* SPDX-License-Identifier: MIT */
/*
 * An image of one release, read as another one lays it out: it is refused, or means the same.  All pairs of releases.
 */
#include <string.h>

#include "testlib.h"
#include "tests/unit/waits/nccl_image.h"
#include "waits/collective/nccl_work.h"

static struct nccl_image image;

/* Which layout and age the tables of lib/waits have for each of nccl_releases. */
static const struct {
	unsigned int layout;
	enum waits_nccl_age age;
} tables[NCCL_RELEASES] = {
	{ 0, WAITS_NCCL_EARLY }, { 1, WAITS_NCCL_EARLY }, { 2, WAITS_NCCL_EARLY }, { 3, WAITS_NCCL_EARLY },
	{ 2, WAITS_NCCL_EARLY }, { 4, WAITS_NCCL_EARLY }, { 5, WAITS_NCCL_EARLY }, { 6, WAITS_NCCL_EARLY },
	{ 6, WAITS_NCCL_EARLY }, { 6, WAITS_NCCL_LATE },  { 6, WAITS_NCCL_LATE },
};

static uint32_t get_u32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static const uint8_t *at(uint64_t address)
{
	return image.memory + (address - NCCL_COMM);
}

/* ------------------------------------------------------------------ communicators ------------ */

/* Read a channel where a layout has it.  @return whether it has the ring that it says. */
static bool read_channel(unsigned int layout, uint32_t channel, const struct waits_rccl_comm *comm,
			 struct waits_rccl_channel *ret)
{
	const uint8_t *bytes = image.memory + waits_nccl_channel_at(layout, channel), *order;

	if (waits_rccl_channel_read(bytes, WAITS_RCCL_CHANNEL, comm->ranks, ret) < 0 || ret->order < NCCL_COMM ||
	    ret->order > NCCL_COMM + NCCL_BYTES - 4 * NCCL_RANKS)
		return false;
	order = at(ret->order);
	return waits_rccl_is_order(comm, ret, get_u32(order), get_u32(order + 4),
				   get_u32(order + 4 * (NCCL_RANKS - 1)));
}

/* Whether the gates of a layout let the image pass: its pointer, its first channel, and the second one if need be. */
static bool fits(unsigned int layout)
{
	struct waits_rccl_channel channel;
	struct waits_rccl_comm comm;
	uint32_t layouts;

	return waits_nccl_comm_read(image.memory, WAITS_NCCL_COMM, NCCL_COMM, &comm, &layouts) == 0 &&
	       (layouts >> layout & 1) && read_channel(layout, 0, &comm, &channel) &&
	       (!(layouts & (layouts - 1)) || read_channel(layout, 1, &comm, &channel));
}

/* Whether a layout has all of it where the image has it. */
static bool means_the_same(unsigned int layout)
{
	const struct nccl_release *r = image.release;
	bool same = waits_nccl_slot_bytes(layout, image.memory, WAITS_NCCL_COMM, WAITS_NCCL_LL) == 128 &&
		    waits_nccl_slot_bytes(layout, image.memory, WAITS_NCCL_COMM, WAITS_NCCL_LL128) == 256;

	for (uint32_t channel = 0; channel < NCCL_CHANNELS; channel++) {
		const struct waits_rccl_comm comm = { NCCL_RANK, NCCL_RANKS, 0, 0 };
		struct waits_rccl_channel c;

		same = same && read_channel(layout, channel, &comm, &c) && c.peers == nccl_image_peers(channel) &&
		       c.previous == nccl_image_previous(channel) && c.next == nccl_image_next(channel);
		for (uint32_t rank = 0; same && rank < NCCL_RANKS; rank++)
			for (uint32_t i = 0; i < 2; i++) {
				const uint64_t first = nccl_image_connection(r, channel, rank, 0) - r->receive;
				struct waits_rccl_connection found;

				same = same && waits_nccl_connection_read(
						       layout, at(first + waits_nccl_connection_of(layout, i)),
						       WAITS_NCCL_CONNECTION, &found) == 0 &&
				       found.taken == nccl_image_taken(channel, rank, i);
			}
	}
	return same;
}

/* Of two releases, a communicator of the one is refused by the other one's table, or they lay it out alike. */
static void communicators_of_other_releases_are_refused(void)
{
	uint32_t refused = 0, same = 0;

	for (size_t i = 0; i < NCCL_RELEASES; i++) {
		nccl_image_make(&image, &nccl_releases[i], NCCL_SIMPLE, true);
		for (size_t k = 0; k < NCCL_RELEASES; k++) {
			const unsigned int layout = tables[k].layout;
			const bool is_alike = layout == tables[i].layout;

			TEST_ROW_EQ(100 * i + k, fits(layout), is_alike);
			if (is_alike)
				TEST_ROW_EQ(100 * i + k, means_the_same(layout), true);
			refused += !is_alike;
			same += is_alike && i != k;
		}
	}
	/* Of 110 pairs of two: 2.21 and 2.23 are alike, and so are the four from 2.27 on. */
	TEST_EQ(refused, 96);
	TEST_EQ(same, 14);
}

/* ------------------------------------------------------------------ what blocks keep --------- */

static int read_block(size_t release, uint32_t block, struct waits_nccl_block *ret)
{
	const struct waits_nccl_launch launch = { NCCL_COMM, NCCL_MASK, false };

	return waits_nccl_block_read(tables[release].layout, image.shared[block], WAITS_NCCL_SHARED, image.memory,
				     &launch, 2 * block, nccl_image_peers(2 * block), ret);
}

/* By the place of rank 0 in the ring of the first channel. */
static bool has_age(size_t release)
{
	const unsigned int layout = tables[release].layout;
	uint32_t place;

	return waits_nccl_place_read(image.memory + waits_nccl_channel_at(layout, 0), WAITS_NCCL_CHANNEL,
				     tables[release].age, NCCL_RANKS, &place) == 0 &&
	       get_u32(at(nccl_image_order(0) + 4 * (uint64_t)((NCCL_RANKS - place) % NCCL_RANKS))) == 0;
}

/* What a block keeps is refused, or lies where it does; the communicator has passed, or is as if it had. */
static void what_blocks_keep_of_other_releases_is_refused(void)
{
	struct waits_nccl_block b;

	for (size_t i = 0; i < NCCL_RELEASES; i++)
		for (uint32_t is_sm_90 = 0; is_sm_90 < 2; is_sm_90++) {
			const struct nccl_release *r = &nccl_releases[i];

			nccl_image_make(&image, r, NCCL_PAIRS, is_sm_90);
			for (size_t k = 0; k < NCCL_RELEASES; k++) {
				const unsigned int layout = tables[k].layout;
				const size_t row = 1000 * is_sm_90 + 100 * i + k;
				bool passes = waits_nccl_has_work(layout) && fits(layout) && has_age(k);

				for (uint32_t block = 0; passes && block < NCCL_BLOCKS; block++)
					passes = read_block(k, block, &b) == 0 && b.is_pair && b.works == 2;
				TEST_ROW_EQ(row, passes && !r->own, false);
				TEST_ROW_EQ(row, i == k && r->own ? passes : true, true);
				if (passes)
					TEST_ROW_EQ(row, waits_nccl_work_at(layout, tables[k].age, is_sm_90),
						    r->works[is_sm_90]);
			}
		}
}

/* ------------------------------------------------------------------ all together ------------- */

/* What the worker reads of each is that, and of no other release. */
static void each_release_is_read_as_it_is(void)
{
	for (size_t i = 0; i < NCCL_RELEASES; i++)
		for (unsigned int kind = 0; kind < 2 * NCCL_KINDS; kind++) {
			const struct nccl_release *r = &nccl_releases[i];
			const struct target_collective *c;
			struct rpc_arena arena;
			bool told;

			rpc_arena_init(&arena, 1 << 20);
			nccl_image_make(&image, r, (enum nccl_kind)(kind / 2), kind % 2);
			c = nccl_image_read(&image, &arena);
			TEST_ROW_EQ(100 * i + kind, c && c->is_read && c->rank == NCCL_RANK && c->ranks == NCCL_RANKS &&
							    c->previous == nccl_image_previous(0) &&
							    c->next == nccl_image_next(0), true);
			/* Before 2.22 it is only of the protocol Simple, along a ring. */
			told = c && c->n_receives;
			TEST_ROW_EQ(100 * i + kind, told, r->own || image.kind == NCCL_SIMPLE);
			for (uint32_t block = 0; told && block < NCCL_BLOCKS; block++)
				TEST_ROW_EQ(100 * i + kind, nccl_image_is_told(&image, c, block), true);
			if (!told)
				TEST_ROW_EQ(100 * i + kind, c ? c->empty | c->old : 0, 3);
			rpc_arena_deinit(&arena);
		}
}

TEST_SUITE(worker_nccl_releases, TEST(communicators_of_other_releases_are_refused),
	   TEST(what_blocks_keep_of_other_releases_is_refused), TEST(each_release_is_read_as_it_is));
