/* SPDX-License-Identifier: MIT */
/*
 * RCCL of ROCm 5.4 to 6.0 (NCCL 2.13 to 2.18): src/include/devcomm.h, and which work a workgroup
 * takes in ncclKernel() of src/collectives/device/common.h.  What is read here lies at the same
 * place in all of these releases.
 */
#include "waits/rccl.h"

#include <errno.h>
#include <string.h>

#include "waits/collective.h"

/* struct ncclDevComm, and struct ncclDevCommAndChannels around it. */
enum {
	COMM_RANK = 0,
	COMM_RANKS = 4,
	COMM_CHANNELS = 40,
	COMM_FIRST_CHANNEL = 80,
	CHANNEL_PREVIOUS = 8,
	CHANNEL_NEXT = 12
};
/* struct ncclWork: a header, and up to four of struct ncclWorkElem. */
enum { WORK_FLAGS = 6, WORK_TYPE = 7, WORK_ELEMENTS = 8, WORK_ELEMENTS_MAX = 4 };
enum {
	ELEMENT_BYTES = 56,
	ELEMENT_FLAGS = 0,
	ELEMENT_CHANNEL = 2,
	ELEMENT_CHANNELS = 3,
	ELEMENT_NUMBER = 48
};
enum { TYPE_UNUSED, TYPE_COLLECTIVE, TYPE_PAIR, TYPE_REGISTERED };

static uint32_t get_u32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t get_u64(const uint8_t *p)
{
	return get_u32(p) | (uint64_t)get_u32(p + 4) << 32;
}

bool waits_rccl_is_kernel(const char *symbol)
{
	static const char arguments[] = "P11ncclDevCommmP8ncclWork";
	struct waits_collective c;
	size_t n = symbol ? strlen(symbol) : 0, m = sizeof(arguments) - 1;

	/* A descriptor has the name of its kernel, and this behind it. */
	if (n > 3 && !strcmp(symbol + n - 3, ".kd"))
		n -= 3;
	/* Since NCCL 2.19 names are ncclDevKernel_...; before 2.13 the arguments are others. */
	return n > m && !memcmp(symbol + n - m, arguments, m) && !strstr(symbol, "ncclDevKernel") &&
	       waits_collective_read(symbol, &c) == 0 && !c.is_function;
}

int waits_rccl_launch_read(const void *bytes, size_t size, struct waits_rccl_launch *ret)
{
	const uint8_t *p = bytes;
	uint64_t mask;

	if (size < WAITS_RCCL_ARGUMENTS)
		return -EINVAL;
	mask = get_u64(p + 8);
	*ret = (struct waits_rccl_launch){ .comm = get_u64(p),
					   .work = get_u64(p + 16),
					   .n = (uint32_t)__builtin_popcountll(mask) };
	return ret->n && !(mask >> WAITS_RCCL_CHANNELS_MAX) && ret->comm && ret->work ? 0 : -EINVAL;
}

int waits_rccl_comm_read(const void *bytes, size_t size, uint64_t address,
			 struct waits_rccl_comm *ret)
{
	const uint8_t *p = bytes, *channel;

	if (size < WAITS_RCCL_COMM)
		return -EINVAL;
	channel = p + COMM_FIRST_CHANNEL;
	*ret = (struct waits_rccl_comm){ .rank = get_u32(p + COMM_RANK),
					 .ranks = get_u32(p + COMM_RANKS),
					 .previous = get_u32(channel + CHANNEL_PREVIOUS),
					 .next = get_u32(channel + CHANNEL_NEXT) };
	if (!ret->ranks || ret->ranks > WAITS_RCCL_RANKS_MAX || ret->rank >= ret->ranks ||
	    ret->previous >= ret->ranks || ret->next >= ret->ranks)
		return -EINVAL;
	/* The channels follow the communicator: what else lies there does not say so of itself. */
	return get_u64(p + COMM_CHANNELS) == address + COMM_FIRST_CHANNEL ? 0 : -EINVAL;
}

int waits_rccl_work_read(const void *bytes, size_t size, uint64_t *ret)
{
	const uint8_t *p = bytes, *e;
	unsigned used = 0;

	if (size < WAITS_RCCL_WORK || p[WORK_TYPE] == TYPE_UNUSED || p[WORK_TYPE] > TYPE_REGISTERED)
		return -EINVAL;
	if (p[WORK_TYPE] != TYPE_COLLECTIVE)
		return -ENOENT;
	e = p + WORK_ELEMENTS;
	if (!(e[ELEMENT_FLAGS] & 1) || !e[ELEMENT_CHANNELS] ||
	    e[ELEMENT_CHANNELS] > WAITS_RCCL_CHANNELS_MAX ||
	    e[ELEMENT_CHANNEL] >= e[ELEMENT_CHANNELS])
		return -EINVAL;
	while (used < WORK_ELEMENTS_MAX && e[used * ELEMENT_BYTES + ELEMENT_FLAGS] & 1)
		used++;
	/* Of several, or where another work follows, it is not seen which one is executed. */
	if (used > 1 || !(p[WORK_FLAGS] & 1))
		return -ENOENT;
	*ret = get_u64(e + ELEMENT_NUMBER);
	return 0;
}
