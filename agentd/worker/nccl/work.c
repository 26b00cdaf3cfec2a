/* SPDX-License-Identifier: MIT */
/*
 * Blocks that receive of single ranks, or along a tree.  Of whom, the copy says that each keeps in its shared memory of
 * what it executes.  It is believed where arguments, communicator and channel in it are those that memory of the device
 * has.
 */
#include "agentd/worker/nccl/reading.h"

#include <errno.h>

/* A rank that nobody is above is in a tree of which no rank has more below it. */
#define ROOT_ARITY 2u

/* What is known of a block. */
struct work {
	const struct waits_nccl_launch *launch;
	const struct waits_nccl_function *is;
	const struct wave *wave;
	uint32_t block, channel;
	uint32_t warps; /* A bit for each that has not ended what it executes. */
	uint64_t peers;
	uint8_t bytes[WAITS_NCCL_CHANNEL];
	struct waits_nccl_block own;
	uint8_t list[WAITS_NCCL_WORK_BYTES_MAX];
	struct target_collective *to;
};

/*
 * Warps that stand in the kernel itself may have ended a function, or wait for others: it is what those that are in a
 * function are in.  Where there are none, it is the function that the kernel is named after and has inside.
 */
const struct nccl_function *nccl_work_of(const struct nccl_block *b)
{
	const struct nccl_function *kernel = NULL, *found = NULL;

	for (uint32_t i = 0; i < WAITS_NCCL_WARPS_MAX; i++) {
		const struct nccl_function *f = b->in[i];
		const struct nccl_function **to = f && f->is.is_kernel ? &kernel : &found;

		if (f && *to && *to != f)
			return NULL;
		if (f)
			*to = f;
	}
	found = found ? found : kernel;
	return found && (found->is.way == WAITS_NCCL_PAIR ||
			 (found->is.way == WAITS_NCCL_TREE && found->is.protocol != WAITS_NCCL_NO_PROTOCOL)) ?
		       found :
		       NULL;
}

/* Of releases whose communicators are alike it is the one by which the place of rank 0 in the ring is right. */
static bool find_age(struct nccl_reading *r)
{
	const uint32_t ages = waits_nccl_ages(r->layout), ranks = r->comm.ranks;
	uint8_t bytes[WAITS_NCCL_CHANNEL];
	uint32_t fit = 0, place, rank;

	if (r->is_aged)
		return r->has_age;
	if (!(ages & (ages - 1))) {
		r->age = WAITS_NCCL_EARLY;
		return r->is_aged = r->has_age = true;
	}
	if (!nccl_read_bytes(r, r->at + waits_nccl_channel_at(r->layout, 0), bytes, sizeof(bytes)))
		return false;
	for (unsigned int age = WAITS_NCCL_EARLY; age <= WAITS_NCCL_LATE; age++)
		if (waits_nccl_place_read(bytes, sizeof(bytes), (enum waits_nccl_age)age, ranks, &place) == 0 &&
		    nccl_read_u32(r, r->order + 4 * (uint64_t)((ranks - place) % ranks), &rank) && rank == 0) {
			fit |= 1u << age;
			r->age = (enum waits_nccl_age)age;
		}
	/* What was not tried is asked for again. */
	r->is_aged = !r->cut;
	r->has_age = r->is_aged && fit && !(fit & (fit - 1));
	return r->has_age;
}

/* ------------------------------------------------------------------ what a block keeps ------- */

static bool is_sm_90_or_newer(const struct nccl_reading *r, const struct wave *w)
{
	return r->from->is_sm_90_or_newer(r->from->ctx, w);
}

/* Read what a block executes, where it keeps it. */
static bool read_own(struct nccl_reading *r, struct work *k)
{
	static const uint32_t bases[] = WAITS_NCCL_SHARED_BASES;
	const uint32_t n = sizeof(bases) / sizeof(bases[0]);
	uint8_t shared[WAITS_NCCL_SHARED];
	uint32_t at;

	for (uint32_t i = 0; i < n; i++) {
		const unsigned int base = (r->base + i) % n;

		if (!nccl_read_shared(r, k->wave, bases[base], shared, sizeof(shared)) ||
		    waits_nccl_block_read(r->layout, shared, sizeof(shared), r->bytes, k->launch, k->channel, k->peers,
					  &k->own) < 0)
			continue;
		r->base = base;
		at = bases[base] + waits_nccl_work_at(r->layout, r->age, is_sm_90_or_newer(r, k->wave));
		return nccl_read_shared(r, k->wave, at, k->list, k->own.works * k->own.bytes);
	}
	return false;
}

/* Note that nothing has come from a rank since the block has begun.  @return whether that is known. */
static bool read_from(struct nccl_reading *r, const struct work *k, uint32_t from, uint32_t connection,
		      enum waits_nccl_protocol protocol, bool *ret_came)
{
	struct target_receive *to = nccl_next_receive(r, k->to, k->block);

	if (!to || !nccl_read_connection(r, k->peers, from, connection, protocol, false, to))
		return false;
	*ret_came = to->arrived > to->taken;
	k->to->n_receives += !*ret_came;
	return true;
}

/* ------------------------------------------------------------------ point to point ----------- */

static bool read_pairs(struct nccl_reading *r, const struct work *k, uint32_t warps)
{
	bool all = k->own.is_pair, came;

	for (uint32_t i = 0; k->own.is_pair && i < k->own.works; i++) {
		struct waits_nccl_pair pair;
		const int e = waits_nccl_pair_read(k->list + (size_t)i * k->own.bytes, k->own.bytes, r->age, &r->comm,
						   &k->own, k->channel, i, warps, &pair);

		if (e == -ENOENT)
			continue;
		/* Of those that have received all, count and steps are alike again. */
		if (e == 0 && !(k->warps >> pair.warp & 1))
			continue;
		all &= e == 0 && read_from(r, k, pair.from, 1, pair.protocol, &came);
	}
	return all;
}

/* ------------------------------------------------------------------ trees -------------------- */

/* @return how many warps execute each work of a block; 0: not all do so many, and they may wait for each other. */
static uint32_t warps_of(const struct work *k)
{
	uint32_t warps = 0;

	for (uint32_t i = 0; !k->own.is_pair && i < k->own.works; i++) {
		const uint32_t n = waits_nccl_work_warps(k->list + (size_t)i * k->own.bytes, k->own.bytes);

		if (!n || (i && n != warps))
			return 0;
		warps = n;
	}
	return warps;
}

/* What comes from above is what all below have sent before: while one of them has not, that one is waited for. */
static bool read_tree(struct nccl_reading *r, const struct work *k)
{
	const uint32_t warps = warps_of(k);
	const enum waits_nccl_protocol protocol = k->is->protocol;
	struct waits_nccl_tree tree;
	bool all = true, came;
	uint32_t n_awaited = 0, arity;

	if (!warps || waits_nccl_tree_read(k->bytes, sizeof(k->bytes), r->age, &r->comm, &tree) < 0)
		return false;
	arity = tree.up == WAITS_NCCL_NOBODY ? ROOT_ARITY : WAITS_NCCL_TREE_ARITY;
	for (uint32_t i = 0; k->warps & 1 && i < arity && tree.down[i] != WAITS_NCCL_NOBODY; i++) {
		const bool is_read = read_from(r, k, tree.down[i], 0, protocol, &came);

		all &= is_read;
		n_awaited += is_read && !came;
	}
	if (!all || n_awaited || tree.up == WAITS_NCCL_NOBODY ||
	    !(k->warps >> waits_nccl_tree_warp(protocol, warps) & 1))
		return all;
	return read_from(r, k, tree.up, 0, protocol, &came);
}

/* ------------------------------------------------------------------ one block ---------------- */

static bool read_all(struct nccl_reading *r, struct work *k, const struct nccl_block *b)
{
	const uint32_t at = waits_nccl_channel_at(r->layout, k->channel);

	if (!at || !find_age(r) || !nccl_read_bytes(r, r->at + at, k->bytes, sizeof(k->bytes)) ||
	    waits_nccl_peers_read(k->bytes, sizeof(k->bytes), &k->peers) < 0 || !read_own(r, k))
		return false;
	/* With more to do, warps wait in the kernel for those that have not ended this. */
	if (k->is->is_kernel && !k->own.is_last) {
		k->to->between |= UINT64_C(1) << k->block;
		return true;
	}
	return k->is->way == WAITS_NCCL_PAIR ? read_pairs(r, k, b->wave->group_waves) : read_tree(r, k);
}

void nccl_read_work(struct nccl_reading *r, const struct waits_nccl_launch *launch, const struct nccl_function *f,
		    const struct nccl_block *b, uint32_t block, struct target_collective *to)
{
	const uint64_t bit = UINT64_C(1) << block;
	struct work k = { .launch = launch, .is = &f->is, .wave = b->wave, .block = block, .to = to,
			  .channel = waits_nccl_channel_of(launch->channels, block) };

	/* 2.21 has the communicator of 2.23, and the arguments of those before it. */
	if (launch->has_empty_channels || !waits_nccl_has_work(r->layout)) {
		to->old |= bit;
		return;
	}
	/* A warp that has ended is not there: one that is may be in code that a function calls, and wait in that. */
	if (b->has_other) {
		to->unread |= bit;
		return;
	}
	for (uint32_t i = 0; i < WAITS_NCCL_WARPS_MAX; i++)
		k.warps |= (uint32_t)(b->in[i] == f) << i;
	r->cut = false;
	if (read_all(r, &k, b))
		return;
	if (r->cut)
		to->left |= bit;
	else
		to->unread |= bit;
}
