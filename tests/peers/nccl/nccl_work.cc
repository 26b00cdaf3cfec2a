/* SPDX-License-Identifier: MIT */
/*
 * What a block of NCCL's keeps of what it executes, filled in by NCCL's own declarations, and read by lib/waits.  Output
 * as nccl_layout.cc has it.  work.h is what test_nccl_layout.py takes of NCCL's device code, which needs a compiler for
 * devices: the declaration of what a block keeps, in namespaces for devices before sm_90 and others, and how warps are
 * dealt to who receives.
 */
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "device.h"
#include "network/unpack/unpack_defs.h"
#include "work.h"

extern "C" {
#include "waits/collective/nccl_work.h"
}

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
using Comm = ncclKernelComm;
using CommAndChannels = ncclKernelCommAndChannels;
#else
using Comm = ncclDevComm;
using CommAndChannels = ncclDevCommAndChannels;
#endif
static constexpr bool is_late = NCCL_VERSION_CODE >= NCCL_VERSION(2, 29, 0);
/* Which of these two it is, memory does not say. */
static constexpr bool is_either = NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0) && !is_late;
static constexpr waits_nccl_age age = is_late ? WAITS_NCCL_LATE : WAITS_NCCL_EARLY;

enum { RANK = 3, RANKS = 8, CHANNEL = 5 };
static constexpr uint64_t COMM_AT = 0x7f0000000000, PEERS_AT = 0x7f1000000000, ORDER_AT = 0x7f2000000000, MAP_AT = 0x560000000010,
			  CHANNELS = 0xff;
static const waits_rccl_comm comm = { RANK, RANKS, 0, 0 };

template <typename T> static T *at(uint64_t address)
{
	return reinterpret_cast<T *>(address);
}

static void put(const char *name, uint64_t of_nccl, uint64_t of_ours)
{
	printf("%s %llu %llu\n", name, (unsigned long long)of_nccl, (unsigned long long)of_ours);
}

/* From 2.29 on there is a map. */
template <typename R> static auto put_map(R *ring, int) -> decltype(ring->rankToIndex, void())
{
	ring->rankToIndex = at<int>(MAP_AT);
}
template <typename R> static void put_map(R *, long)
{
}

static ncclDevChannel make_channel()
{
	ncclDevChannel channel;

	memset(static_cast<void *>(&channel), 0, sizeof(channel));
	channel.peers = at<ncclDevChannelPeer *>(PEERS_AT);
	channel.ring.prev = 2;
	channel.ring.next = 4;
	channel.ring.userRanks = at<int>(ORDER_AT);
	put_map(&channel.ring, 0);
	channel.ring.index = 6;
	channel.tree.depth = 2;
	channel.tree.up = 1;
	channel.tree.down[0] = 7;
	channel.tree.down[1] = 4;
	channel.tree.down[2] = -1;
	return channel;
}

static void put_channel(unsigned int layout)
{
	const ncclDevChannel channel = make_channel();
	waits_nccl_tree tree = {};
	uint64_t peers = 0;
	uint32_t place = 0;

	put("age", 1, waits_nccl_ages(layout) >> age & 1);
	put("peers.read", 0, (uint64_t)waits_nccl_peers_read(&channel, sizeof(channel), &peers));
	put("peers", PEERS_AT, peers);
	put("place.read", 0, (uint64_t)waits_nccl_place_read(&channel, sizeof(channel), age, RANKS, &place));
	put("place", 6, place);
	put("tree.read", 0, (uint64_t)waits_nccl_tree_read(&channel, sizeof(channel), age, &comm, &tree));
	put("tree.up", 1, tree.up);
	put("tree.down", 7, tree.down[0]);
	put("tree.down", 4, tree.down[1]);
	put("tree.down", WAITS_NCCL_NOBODY, tree.down[2]);
	put("tree.arity", NCCL_MAX_TREE_ARITY, WAITS_NCCL_TREE_ARITY);
	put("tree.root", 2, NCCL_MAX_TREE_ARITY_TOP);
	for (uint32_t i = 0; i < 2; i++)
		put("connection", offsetof(ncclDevChannelPeer, recv) + i * sizeof(ncclConnInfo), waits_nccl_connection_of(layout, i));
}

template <typename S> static void put_shared(unsigned int layout, bool is_sm_90_or_newer)
{
	static S shared;
	waits_nccl_launch launch = { COMM_AT, CHANNELS, false };
	waits_nccl_block block = {};
	uint8_t bytes[WAITS_NCCL_COMM] = { 0 };

	memset(static_cast<void *>(&shared), 0, sizeof(shared));
	shared.args.comm = at<Comm>(COMM_AT);
	shared.args.channelMask = CHANNELS;
	shared.channelId = CHANNEL;
	memset(static_cast<void *>(&shared.comm), 0x5a, sizeof(shared.comm));
	memcpy(bytes, &shared.comm, sizeof(shared.comm) < sizeof(bytes) ? sizeof(shared.comm) : sizeof(bytes));
	shared.channel = make_channel();
	shared.nextBatchIx = -1;
	shared.workType = ncclDevWorkTypeP2p;
	shared.nWorks = 3;
	shared.workSize = sizeof(ncclDevWorkP2p);
	put("block", 0, (uint64_t)waits_nccl_block_read(layout, &shared, sizeof(shared), bytes, &launch, CHANNEL, PEERS_AT, &block));
	put("block.is_pair", 1, block.is_pair);
	put("block.is_last", 1, block.is_last);
	put("block.works", 3, block.works);
	put("block.bytes", sizeof(ncclDevWorkP2p), block.bytes);
	put("block.work", offsetof(S, workStorage), waits_nccl_work_at(layout, age, is_sm_90_or_newer));
	shared.nextBatchIx = 1;
	shared.workType = ncclDevWorkTypeCollReg;
	shared.nWorks = 1;
	shared.workSize = sizeof(ncclDevWorkCollReg);
	put("block", 0, (uint64_t)waits_nccl_block_read(layout, &shared, sizeof(shared), bytes, &launch, CHANNEL, PEERS_AT, &block));
	put("block.is_pair", 0, block.is_pair);
	put("block.is_last", 0, block.is_last);
	/* All of it is compared. */
	reinterpret_cast<uint8_t *>(&shared.comm)[sizeof(shared.comm) - 1] ^= 1;
	put("block.other", -EINVAL, (uint64_t)waits_nccl_block_read(layout, &shared, sizeof(shared), bytes, &launch, CHANNEL, PEERS_AT, &block));
}

/* @return 0, or what is wrong, as waits_nccl_pair_read() does. */
static int read_pair(const ncclDevWorkP2p *work, int works, int channel, uint32_t i, int warps, waits_nccl_pair *ret)
{
	const waits_nccl_block block = { true, true, (uint32_t)works, sizeof(*work), is_either };

	return waits_nccl_pair_read(work, sizeof(*work), age, &comm, &block, (uint32_t)channel, i, (uint32_t)warps, ret);
}

static void put_part(int of_nccl, int of_ours)
{
	put("part", (uint64_t)of_nccl, (uint64_t)(is_either && of_ours == -EINVAL ? of_nccl : of_ours));
}

static void put_pair()
{
	ncclDevWorkP2p work;
	waits_nccl_pair pair = {};

	memset(static_cast<void *>(&work), 0, sizeof(work));
	work.sendRank = 6;
	work.recvRank = 2;
	work.recvBytes = 1;
	work.nP2pChannels = 8;
	work.channelBase = 3;
	work.nSendChannels = 8;
	/* A part that the work has, and the first that it has not. */
	for (int part = 0; part < 8; part++) {
		const int channel = ncclP2pChannelForPart(8, 3, part);

		work.nRecvChannels = (uint8_t)(part + 1);
		put_part(0, read_pair(&work, 1, channel, 0, 16, &pair));
		work.nRecvChannels = (uint8_t)part;
		put_part(-ENOENT, read_pair(&work, 1, channel, 0, 16, &pair));
	}
	work.nRecvChannels = 8;
	for (int works = 1; works <= 8; works++)
		for (int warps = 2 * works; warps <= 20; warps++) {
			const int each = warps / works, all = senders(each) + receivers(each);

			work.nSendChannels = 8;
			put("pair", 0, (uint64_t)read_pair(&work, works, 3, (uint32_t)works - 1, warps, &pair));
			put("pair.warp", (works - 1) * all + senders(each), pair.warp);
			work.nSendChannels = 0;
			put("pair", 0, (uint64_t)read_pair(&work, works, 3, (uint32_t)works - 1, warps, &pair));
			put("pair.warp", (works - 1) * all, pair.warp);
		}
	put("pair.from", 2, pair.from);
	put("pair.simple", WAITS_NCCL_SIMPLE, pair.protocol);
	work.recvProtoLL = 1;
	put("pair", 0, (uint64_t)read_pair(&work, 1, 3, 0, 16, &pair));
	put("pair.ll", WAITS_NCCL_LL, pair.protocol);
	work.recvBytes = 0;
	put("pair.empty", -ENOENT, (uint64_t)read_pair(&work, 1, 3, 0, 16, &pair));
}

template <int id> struct Proto {
	static constexpr int Id = id;
};

static void put_tree_work()
{
	ncclDevWorkColl work;

	memset(static_cast<void *>(&work), 0xff, sizeof(work));
	for (int warps = 1; warps <= 20; warps++) {
		work.nWarps = (uint32_t)warps;
		put("work.warps", (uint64_t)warps, waits_nccl_work_warps(&work, sizeof(work)));
		put("tree.warp", split<Proto<NCCL_PROTO_SIMPLE>>(warps * WARP_SIZE) / WARP_SIZE,
		    waits_nccl_tree_warp(WAITS_NCCL_SIMPLE, (uint32_t)warps));
		put("tree.warp", split<Proto<NCCL_PROTO_LL>>(warps * WARP_SIZE) / WARP_SIZE,
		    waits_nccl_tree_warp(WAITS_NCCL_LL, (uint32_t)warps));
	}
}

/* @return the layout of this release. */
static unsigned int find_layout()
{
	uint8_t bytes[WAITS_NCCL_COMM] = { 0 };
	waits_rccl_comm found;
	uint32_t layouts = 0;
	static CommAndChannels whole;

	memset(static_cast<void *>(&whole), 0xff, sizeof(whole));
	whole.comm.rank = RANK;
	whole.comm.nRanks = RANKS;
	whole.comm.channels = at<ncclDevChannel>(COMM_AT + offsetof(CommAndChannels, channels));
	memcpy(bytes, &whole, sizeof(bytes));
	waits_nccl_comm_read(bytes, sizeof(bytes), COMM_AT, &found, &layouts);
	for (unsigned int i = 0; i < WAITS_NCCL_LAYOUTS; i++)
		if (layouts >> i & 1 &&
		    waits_nccl_channel_at(i, 1) == offsetof(CommAndChannels, channels) + sizeof(ncclDevChannel) && waits_nccl_has_work(i))
			return i;
	return WAITS_NCCL_LAYOUTS;
}

int main()
{
	const unsigned int layout = find_layout();

	if (layout == WAITS_NCCL_LAYOUTS)
		return 1;
	put_channel(layout);
	put_shared<narrow::ncclShmemData>(layout, false);
	put_shared<wide::ncclShmemData>(layout, true);
	put_pair();
	put_tree_work();
	return 0;
}
