/* SPDX-License-Identifier: MIT */
/*
 * NCCL 2.19 to 2.30: src/include/device.h (devcomm.h in 2.19) of each of its releases, as a compiler lays it out.  The
 * communicator is struct ncclDevComm, since 2.28 struct ncclKernelComm.
 */
#include "waits/collective/nccl.h"

#include <errno.h>
#include <string.h>

#include "waits/collective/collective.h"

enum { ARGUMENT_COMM = 0, ARGUMENT_CHANNELS = 8 };
enum { COMM_RANK = 0, COMM_RANKS = 4 };
enum { CONNECTION_TAIL = 48 };

static const struct layout {
	uint8_t pointer;  /* Of the channels, in a communicator. */
	uint8_t first;	  /* Where the first one is. */
	uint16_t channel; /* Bytes from one to the next. */
	uint8_t channels; /* Room for so many. */
	uint16_t receive; /* In what a channel has of a rank. */
	uint8_t step;	  /* In a connection. */
} layouts[WAITS_NCCL_LAYOUTS] = {
	{ 48, 64, 240, 32, 304, 104 }, /* 2.19 */
	{ 64, 80, 272, 32, 288, 96 },  /* 2.20 */
	{ 64, 80, 368, 32, 304, 104 }, /* 2.21, 2.23, 2.24 */
	{ 56, 64, 368, 32, 304, 104 }, /* 2.22 */
	{ 64, 80, 352, 64, 304, 104 }, /* 2.25 */
	{ 64, 96, 368, 64, 304, 104 }, /* 2.26 */
	{ 56, 96, 368, 64, 304, 104 }, /* 2.27 to 2.30 */
};

static uint32_t get_u32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t get_u64(const uint8_t *p)
{
	return get_u32(p) | (uint64_t)get_u32(p + 4) << 32;
}

bool waits_nccl_is_kernel(const char *symbol)
{
	struct waits_collective c;

	/* Kernels of symmetric memory, and those until 2.18, have other arguments, and other names. */
	return symbol && strstr(symbol, "ncclDevKernel_") && waits_collective_read(symbol, &c) == 0 && !c.is_function;
}

int waits_nccl_launch_read(const void *bytes, size_t size, struct waits_nccl_launch *ret)
{
	const uint8_t *p = bytes;

	if (size < WAITS_NCCL_ARGUMENTS)
		return -EINVAL;
	*ret = (struct waits_nccl_launch){ .comm = get_u64(p + ARGUMENT_COMM),
					   .channels = get_u64(p + ARGUMENT_CHANNELS) };
	return ret->comm && !(ret->comm % 8) && ret->channels ? 0 : -EINVAL;
}

uint32_t waits_nccl_channel_of(uint64_t channels, uint32_t block)
{
	if (block >= WAITS_NCCL_CHANNELS_MAX)
		return WAITS_NCCL_CHANNELS_MAX;
	for (; block && channels; block--)
		channels &= channels - 1;
	return channels ? (uint32_t)__builtin_ctzll(channels) : WAITS_NCCL_CHANNELS_MAX;
}

int waits_nccl_comm_read(const void *bytes, size_t size, uint64_t address, struct waits_rccl_comm *ret,
			 uint32_t *ret_layouts)
{
	const uint8_t *p = bytes;

	*ret_layouts = 0;
	if (size < WAITS_NCCL_COMM)
		return -EINVAL;
	*ret = (struct waits_rccl_comm){ .rank = get_u32(p + COMM_RANK), .ranks = get_u32(p + COMM_RANKS) };
	if (!ret->ranks || ret->ranks > WAITS_RCCL_RANKS_MAX || ret->rank >= ret->ranks)
		return -EINVAL;
	/* The channels follow the communicator: what else lies there does not say so of itself. */
	for (unsigned int i = 0; i < WAITS_NCCL_LAYOUTS; i++)
		if (get_u64(p + layouts[i].pointer) == address + layouts[i].first)
			*ret_layouts |= 1u << i;
	return *ret_layouts ? 0 : -EINVAL;
}

uint32_t waits_nccl_channel_at(unsigned int layout, uint32_t channel)
{
	const struct layout *l = &layouts[layout];

	return channel < l->channels ? l->first + channel * l->channel : 0;
}

uint32_t waits_nccl_connection_at(unsigned int layout)
{
	return layouts[layout].receive;
}

int waits_nccl_connection_read(unsigned int layout, const void *bytes, size_t size,
			       struct waits_rccl_connection *ret)
{
	const uint8_t *p = bytes;

	if (size < WAITS_NCCL_CONNECTION)
		return -EINVAL;
	*ret = (struct waits_rccl_connection){ .arrived = get_u64(p + CONNECTION_TAIL),
					       .taken = get_u64(p + layouts[layout].step) };
	return ret->arrived && !(ret->arrived % 8) ? 0 : -EINVAL;
}
