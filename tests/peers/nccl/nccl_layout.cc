/* SPDX-License-Identifier: MIT */
/*
 * What NCCL gives its kernels, filled in by its own headers, and read by lib/waits.  A line for each value: its name, as
 * NCCL has it, as lib/waits reads it.  Compiled by test_nccl_layout.py.
 */
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "device.h"

extern "C" {
#include "waits/collective/nccl.h"
}

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
using Comm = ncclKernelComm;
using CommAndChannels = ncclKernelCommAndChannels;
#else
using Comm = ncclDevComm;
using CommAndChannels = ncclDevCommAndChannels;
#endif

enum { RANK = 3, RANKS = 8, PREVIOUS = 2, NEXT = 5 };

/* Where all of it is said to lie. */
static constexpr uint64_t COMM_AT = 0x7f0000000000, PEERS_AT = 0x7f1000000000, ORDER_AT = 0x7f2000000000,
			  TAIL_AT = 0x7f3000000000;
static constexpr uint64_t LL_AT = 0x7f4000000000, LL128_AT = 0x7f5000000000;
static constexpr uint64_t STEP = 0x123456789, CHANNELS = 0xb;
static constexpr int LL_BYTES = 0x80000, LL128_BYTES = 0x4b0000;
static constexpr size_t CHANNELS_AT = offsetof(CommAndChannels, channels);

template <typename T> static T *at(uint64_t address)
{
	return reinterpret_cast<T *>(address);
}

static void put(const char *name, uint64_t of_nccl, uint64_t of_ours)
{
	printf("%s %llu %llu\n", name, (unsigned long long)of_nccl, (unsigned long long)of_ours);
}

static void put_launch()
{
	ncclDevKernelArgs args;
	waits_nccl_launch launch = {};

	memset(static_cast<void *>(&args), 0xff, sizeof(args));
	args.comm = at<Comm>(COMM_AT);
	args.channelMask = CHANNELS;
	put("launch", 0, (uint64_t)waits_nccl_launch_read(&args, sizeof(args), &launch));
	put("launch.has_empty_channels", 0, launch.has_empty_channels);
	put("launch.comm", COMM_AT, launch.comm);
	put("launch.channels", CHANNELS, launch.channels);
}

/* @return the layouts that it may have. */
static uint32_t put_comm(const CommAndChannels *all)
{
	waits_rccl_comm comm = {};
	uint32_t layouts = 0;

	put("comm", 0, (uint64_t)waits_nccl_comm_read(all, WAITS_NCCL_COMM, COMM_AT, &comm, &layouts));
	put("comm.rank", RANK, comm.rank);
	put("comm.ranks", RANKS, comm.ranks);
	return layouts;
}

/* @return the layout whose channels are where NCCL has them. */
static unsigned int put_layout(uint32_t layouts)
{
	unsigned int found = WAITS_NCCL_LAYOUTS, n = 0;

	for (unsigned int i = 0; i < WAITS_NCCL_LAYOUTS; i++)
		if (layouts >> i & 1 && waits_nccl_channel_at(i, 1) == CHANNELS_AT + sizeof(ncclDevChannel)) {
			found = i;
			n++;
		}
	put("layouts", 1, n);
	return found;
}

static void put_channels(const CommAndChannels *all, unsigned int layout)
{
	waits_rccl_channel channel = {};

	for (uint32_t i = 0; i < MAXCHANNELS; i++)
		put("channel", CHANNELS_AT + i * sizeof(ncclDevChannel), waits_nccl_channel_at(layout, i));
	put("channels", 0, waits_nccl_channel_at(layout, MAXCHANNELS));
	put("channel.read", 0, (uint64_t)waits_rccl_channel_read(&all->channels[1], WAITS_RCCL_CHANNEL, RANKS, &channel));
	put("channel.peers", PEERS_AT, channel.peers);
	put("channel.order", ORDER_AT, channel.order);
	put("channel.previous", PREVIOUS, channel.previous);
	put("channel.next", NEXT, channel.next);
}

static void put_connection(unsigned int layout)
{
	ncclDevChannelPeer peer;
	waits_rccl_connection connection = {};

	memset(static_cast<void *>(&peer), 0xff, sizeof(peer));
	peer.recv[0].tail = at<uint64_t>(TAIL_AT);
	peer.recv[0].step = STEP;
	peer.recv[0].buffs[NCCL_PROTO_LL] = at<char>(LL_AT);
	peer.recv[0].buffs[NCCL_PROTO_LL128] = at<char>(LL128_AT);
	put("connection.at", offsetof(ncclDevChannelPeer, recv), waits_nccl_connection_at(layout));
	put("connection", 0, (uint64_t)waits_nccl_connection_read(layout, &peer.recv[0], WAITS_NCCL_CONNECTION, &connection));
	put("connection.arrived", TAIL_AT, connection.arrived);
	put("connection.taken", STEP, connection.taken);
	put("connection.ll", LL_AT, waits_nccl_flag_at(&peer.recv[0], sizeof(peer.recv[0]), WAITS_NCCL_LL));
	put("connection.ll128", LL128_AT + (NCCL_LL128_LINEELEMS - 2) * sizeof(uint64_t),
	    waits_nccl_flag_at(&peer.recv[0], sizeof(peer.recv[0]), WAITS_NCCL_LL128));
}

/* Of each slot the flag of its own step, of the step before that, and of one that lies in another slot. */
static void put_slots(const CommAndChannels *all, unsigned int layout)
{
	put("slots", NCCL_STEPS, WAITS_NCCL_SLOTS);
	put("slot.ll", LL_BYTES / NCCL_STEPS / sizeof(ncclLLFifoLine) * sizeof(ncclLLFifoLine),
	    waits_nccl_slot_bytes(layout, all, WAITS_NCCL_COMM, WAITS_NCCL_LL));
	put("slot.ll128", LL128_BYTES / NCCL_STEPS / sizeof(uint64_t) * sizeof(uint64_t),
	    waits_nccl_slot_bytes(layout, all, WAITS_NCCL_COMM, WAITS_NCCL_LL128));
	put("protocols", 1, NCCL_PROTO_LL == WAITS_NCCL_LL && NCCL_PROTO_LL128 == WAITS_NCCL_LL128 && NCCL_PROTO_SIMPLE == WAITS_NCCL_SIMPLE);
	for (uint64_t step = STEP; step < STEP + NCCL_STEPS; step++) {
		const uint32_t slot = step % NCCL_STEPS;
		const uint64_t flags[] = { step + 1, step + 1 - NCCL_STEPS, step };
		const waits_nccl_slot are[] = { WAITS_NCCL_SLOT_CAME, WAITS_NCCL_SLOT_OLD, WAITS_NCCL_SLOT_WRONG };

		for (size_t i = 0; i < 3; i++) {
			ncclLLFifoLine ll = {};
			uint64_t ll128[2] = { 0, flags[i] };

			ll.flag1 = ll.flag2 = NCCL_LL_FLAG(flags[i]);
			put("slot.ll.flag", are[i], waits_nccl_slot_read(&ll, WAITS_NCCL_LL, slot, STEP));
			put("slot.ll128.flag", are[i], waits_nccl_slot_read(ll128, WAITS_NCCL_LL128, slot, STEP));
		}
	}
}

int main()
{
	static CommAndChannels all;
	unsigned int layout;

	memset(static_cast<void *>(&all), 0xff, sizeof(all));
	all.comm.rank = RANK;
	all.comm.nRanks = RANKS;
	all.comm.buffSizes[NCCL_PROTO_LL] = LL_BYTES;
	all.comm.buffSizes[NCCL_PROTO_LL128] = LL128_BYTES;
	all.comm.channels = at<ncclDevChannel>(COMM_AT + CHANNELS_AT);
	all.channels[1].peers = at<ncclDevChannelPeer *>(PEERS_AT);
	all.channels[1].ring.prev = PREVIOUS;
	all.channels[1].ring.next = NEXT;
	all.channels[1].ring.userRanks = at<int>(ORDER_AT);
	put_launch();
	layout = put_layout(put_comm(&all));
	if (layout == WAITS_NCCL_LAYOUTS)
		return 1;
	put_channels(&all, layout);
	put_connection(layout);
	put_slots(&all, layout);
	return 0;
}
