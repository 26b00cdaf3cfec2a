/* SPDX-License-Identifier: MIT */
/*
 * NCCL 2.22 to 2.30: struct ncclShmemData of src/device/common.h, which a kernel fills before it executes anything, and
 * what of it are the receivers in src/device/sendrecv.h and in runTreeSplit() of src/device/all_reduce.h.
 */
#include "waits/collective/nccl_work.h"

#include <errno.h>
#include <string.h>

/* The copy begins with the arguments; behind channel and batch it differs by what devices may be connected to. */
enum { SHARED_COMM = 0, SHARED_CHANNELS = 8, SHARED_CHANNEL_ID = 32, SHARED_ABORTED = 36, SHARED_COMM_COPY = 48 };
enum { BATCH_NEXT = 4, BATCH_TYPE = 8, BATCH_WORKS = 12, BATCH_WORK_BYTES = 16 };
enum { TYPE_PAIR, TYPE_COLLECTIVE, TYPE_REGISTERED };
enum {
	PAIR_RECEIVE_BYTES = 24,
	PAIR_TO = 32,
	PAIR_FROM = 36,
	PAIR_CHANNELS = 40,
	PAIR_FIRST_CHANNEL = 41,
	PAIR_SENDS = 42,
	PAIR_RECEIVES = 43,
	PAIR_FLAGS = 46,
	PAIR_BYTES = 48
};
enum { PAIR_RECEIVES_LL = 2 };
enum { WORK_WARPS = 2, WORK_BYTES_MIN = 64 };
/* In a channel, and by how much the last three moved. */
enum { CHANNEL_MAP = 24, CHANNEL_PLACE = 24, CHANNEL_TREE_UP = 36, CHANNEL_TREE_DOWN = 40, LATE_BY = 8 };
enum { WARP_LANES = 32 };

/* By layout, as in nccl.c; 0: it is not known. */
static const struct shared {
	uint8_t comm; /* Bytes of a communicator. */
	uint16_t batch;
	uint16_t work[2], late[2]; /* From there; of devices before sm_90, and others. */
} all[WAITS_NCCL_LAYOUTS] = {
	{ 0 },
	{ 0 },
	{ 80, 496, { 5536, 20000 }, { 0 } }, /* 2.23, 2.24 */
	{ 64, 480, { 5536, 20000 }, { 0 } }, /* 2.22 */
	{ 80, 480, { 5536, 20000 }, { 0 } }, /* 2.25 */
	{ 96, 512, { 5552, 20016 }, { 0 } }, /* 2.26 */
	{ 88, 512, { 5552, 20016 }, { 5424, 19888 } }, /* 2.27, 2.28; 2.29, 2.30 */
};

static uint32_t get_u32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t get_u64(const uint8_t *p)
{
	return get_u32(p) | (uint64_t)get_u32(p + 4) << 32;
}

bool waits_nccl_has_work(unsigned int layout)
{
	return layout < WAITS_NCCL_LAYOUTS && all[layout].batch;
}

uint32_t waits_nccl_ages(unsigned int layout)
{
	return 1u << WAITS_NCCL_EARLY | (all[layout].late[0] ? 1u << WAITS_NCCL_LATE : 0);
}

int waits_nccl_peers_read(const void *channel, size_t size, uint64_t *ret)
{
	if (size < WAITS_NCCL_CHANNEL)
		return -EINVAL;
	*ret = get_u64(channel);
	return *ret && !(*ret % 8) ? 0 : -EINVAL;
}

int waits_nccl_place_read(const void *channel, size_t size, enum waits_nccl_age age, uint32_t ranks, uint32_t *ret)
{
	const uint8_t *p = channel;
	uint64_t map;

	if (size < WAITS_NCCL_CHANNEL)
		return -EINVAL;
	/*
	 * There the host's address of a map lies in front of it, which no device can follow.  It may be low, as a
	 * program has its heap behind itself; but where one has a place there, that is less.
	 */
	map = get_u64(p + CHANNEL_MAP);
	if (age == WAITS_NCCL_LATE && (map < WAITS_RCCL_RANKS_MAX || map % 4))
		return -EINVAL;
	*ret = get_u32(p + CHANNEL_PLACE + (age == WAITS_NCCL_LATE ? LATE_BY : 0));
	return *ret < ranks ? 0 : -EINVAL;
}

static bool is_neighbour(uint32_t rank, const struct waits_rccl_comm *comm)
{
	return rank == WAITS_NCCL_NOBODY || (rank < comm->ranks && rank != comm->rank);
}

int waits_nccl_tree_read(const void *channel, size_t size, enum waits_nccl_age age, const struct waits_rccl_comm *comm,
			 struct waits_nccl_tree *ret)
{
	const uint8_t *p = channel;
	const size_t late = age == WAITS_NCCL_LATE ? LATE_BY : 0;
	bool fits;

	if (size < WAITS_NCCL_CHANNEL)
		return -EINVAL;
	ret->up = get_u32(p + CHANNEL_TREE_UP + late);
	fits = is_neighbour(ret->up, comm);
	for (uint32_t i = 0; i < WAITS_NCCL_TREE_ARITY; i++) {
		const uint32_t rank = get_u32(p + CHANNEL_TREE_DOWN + late + 4 * (size_t)i);

		fits = fits && is_neighbour(rank, comm) && (rank == WAITS_NCCL_NOBODY || rank != ret->up);
		/* The first that is nobody is the last one. */
		fits = fits && (rank == WAITS_NCCL_NOBODY || !i || ret->down[i - 1] != WAITS_NCCL_NOBODY);
		for (uint32_t k = 0; k < i; k++)
			fits = fits && (rank == WAITS_NCCL_NOBODY || ret->down[k] != rank);
		ret->down[i] = rank;
	}
	/* A rank that has nobody is alone, or in no tree. */
	return fits && (ret->up != WAITS_NCCL_NOBODY || ret->down[0] != WAITS_NCCL_NOBODY) ? 0 : -EINVAL;
}

uint32_t waits_nccl_tree_warp(enum waits_nccl_protocol protocol, uint32_t warps)
{
	uint32_t lanes = warps * WARP_LANES / 2;

	if (protocol != WAITS_NCCL_SIMPLE)
		return warps * 7 / 10;
	return (lanes >= 256 ? lanes + 64 : lanes) / WARP_LANES;
}

uint32_t waits_nccl_work_at(unsigned int layout, enum waits_nccl_age age, bool is_sm_90_or_newer)
{
	const struct shared *s = &all[layout];

	return s->batch + (age == WAITS_NCCL_LATE ? s->late : s->work)[is_sm_90_or_newer];
}

int waits_nccl_block_read(unsigned int layout, const void *shared, size_t size, const void *comm,
			  const struct waits_nccl_launch *launch, uint32_t channel, uint64_t peers,
			  struct waits_nccl_block *ret)
{
	const struct shared *s = &all[layout];
	const uint8_t *p = shared, *batch = p + s->batch;
	/* The communicator ends at a multiple of 16. */
	const size_t own = SHARED_COMM_COPY + (s->comm + 15u) / 16 * 16;
	uint8_t type;

	if (size < WAITS_NCCL_SHARED || !s->batch || get_u64(p + SHARED_COMM) != launch->comm ||
	    get_u64(p + SHARED_CHANNELS) != launch->channels || get_u32(p + SHARED_CHANNEL_ID) != channel ||
	    get_u32(p + SHARED_ABORTED) || memcmp(p + SHARED_COMM_COPY, comm, s->comm) != 0 ||
	    get_u64(p + own) != peers)
		return -EINVAL;
	type = batch[BATCH_TYPE];
	*ret = (struct waits_nccl_block){ .is_pair = type == TYPE_PAIR,
					  .is_last = get_u32(batch + BATCH_NEXT) == UINT32_MAX,
					  .works = get_u32(batch + BATCH_WORKS),
					  .bytes = get_u32(batch + BATCH_WORK_BYTES),
					  .is_either = s->late[0] != 0 };
	if (type > TYPE_REGISTERED || !ret->works || ret->works > WAITS_NCCL_WORKS_MAX ||
	    ret->bytes > WAITS_NCCL_WORK_BYTES_MAX / ret->works)
		return -EINVAL;
	if (ret->is_pair)
		return ret->bytes == PAIR_BYTES ? 0 : -EINVAL;
	return ret->bytes >= WORK_BYTES_MIN && !(ret->bytes % 16) ? 0 : -EINVAL;
}

/* Which part of what is sent a channel has.  @param is_reversed  Bits of it are the other way round, as before 2.28. */
static uint32_t part_of(const uint8_t *p, uint32_t channel, bool is_reversed)
{
	const uint32_t channels = p[PAIR_CHANNELS];
	uint32_t delta = (channel - p[PAIR_FIRST_CHANNEL]) & (channels - 1), part = 0;

	if (!is_reversed)
		return delta;
	for (uint32_t bit = 1; bit < channels; bit <<= 1, delta >>= 1)
		part = part << 1 | (delta & 1);
	return part;
}

/* A channel is given a work only if it sends or receives a part of it (addP2pToPlan() in src/enqueue.cc). */
static int find_part(const uint8_t *p, enum waits_nccl_age age, bool is_either, uint32_t channel, uint32_t *ret)
{
	const uint32_t sends = p[PAIR_SENDS], receives = p[PAIR_RECEIVES];
	bool is_found = false;

	for (uint32_t i = 0; i < 2; i++) {
		const bool is_reversed = i == 0;
		const uint32_t part = part_of(p, channel, is_reversed);

		if (is_reversed == (age == WAITS_NCCL_LATE) && !is_either)
			continue;
		if (part >= sends && part >= receives)
			continue;
		if (is_found && ((part < receives) != (*ret < receives) || (part < sends) != (*ret < sends)))
			return -EINVAL;
		*ret = part;
		is_found = true;
	}
	return is_found ? 0 : -EINVAL;
}

int waits_nccl_pair_read(const void *work, size_t size, enum waits_nccl_age age, const struct waits_rccl_comm *comm,
			 const struct waits_nccl_block *block, uint32_t channel, uint32_t i, uint32_t warps,
			 struct waits_nccl_pair *ret)
{
	const uint8_t *p = work;
	uint32_t channels, part, each, receivers, senders, to;

	if (size < PAIR_BYTES || !block->works || i >= block->works)
		return -EINVAL;
	channels = p[PAIR_CHANNELS];
	if (!channels || channels > WAITS_NCCL_CHANNELS_MAX || channels & (channels - 1) ||
	    p[PAIR_FIRST_CHANNEL] >= WAITS_NCCL_CHANNELS_MAX || p[PAIR_SENDS] > channels || p[PAIR_RECEIVES] > channels)
		return -EINVAL;
	if (find_part(p, age, block->is_either && age == WAITS_NCCL_EARLY, channel, &part) < 0)
		return -EINVAL;
	to = get_u32(p + PAIR_TO);
	/* A rank copies to itself. */
	if (to == comm->rank || part >= p[PAIR_RECEIVES])
		return -ENOENT;
	*ret = (struct waits_nccl_pair){ .from = get_u32(p + PAIR_FROM), .protocol = WAITS_NCCL_SIMPLE };
	if (p[PAIR_FLAGS] & PAIR_RECEIVES_LL)
		ret->protocol = WAITS_NCCL_LL;
	if (ret->from >= comm->ranks || ret->from == comm->rank)
		return -EINVAL;
	/* Lines without data do not come; with the other protocol something comes even then. */
	if (ret->protocol == WAITS_NCCL_LL && !get_u64(p + PAIR_RECEIVE_BYTES))
		return -ENOENT;
	each = warps / block->works;
	receivers = each <= 4 ? each / 2 : (each - 1) / 2;
	senders = each <= 4 ? receivers : receivers + 1;
	if (!receivers || warps > WAITS_NCCL_WARPS_MAX)
		return -EINVAL;
	ret->warp = i * (senders + receivers) + (part < p[PAIR_SENDS] ? senders : 0);
	return 0;
}

uint32_t waits_nccl_work_warps(const void *work, size_t size)
{
	const uint8_t *p = work;

	return size >= WORK_BYTES_MIN && p[WORK_WARPS] <= WAITS_NCCL_WARPS_MAX ? p[WORK_WARPS] : 0;
}

uint32_t waits_nccl_connection_of(unsigned int layout, uint32_t i)
{
	/* In front of those by which it receives are as many by which it sends. */
	return waits_nccl_connection_at(layout) + i * (waits_nccl_connection_at(layout) / 2);
}
