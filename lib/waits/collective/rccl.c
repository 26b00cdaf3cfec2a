/* SPDX-License-Identifier: MIT */
/*
 * RCCL of ROCm 5.4 to 6.0 (NCCL 2.13 to 2.18): src/include/devcomm.h, and which work a workgroup
 * takes in ncclKernel() of src/collectives/device/common.h.  What is read here lies at the same
 * place in all of these releases, but for what a rank receives: there each layout is told apart.
 */
#include "waits/collective/rccl.h"

#include <errno.h>
#include <string.h>

#include "waits/collective/collective.h"

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
	ELEMENT_CONNECTION = 7,
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
					   .n = (uint32_t)__builtin_popcountll(mask),
					   .channels = (uint32_t)mask };
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

/* ------------------------------------------------------------------ what a rank receives ----- */

enum { CHANNEL_PEERS = 0, CHANNEL_ORDER = 16 };
/* struct ncclDevChannelPeer: three connections to send by, and three to receive by. */
enum { PEER_BYTES = 672, PEER_RECEIVE = 336, PEER_CONNECTIONS = 3 };
/* struct ncclConnInfo. */
enum { CONNECTION_BYTES = 112, CONNECTION_TAIL = 24, CONNECTION_STEP = 80 };
/* struct ncclWorkElemP2p: the first of a work receives, as run() of src/collectives/device/sendrecv.h has it. */
enum { PAIR_TYPE_RECEIVE = 2, PAIR_GROUPS_MAX = 2, PROTOCOL_SIMPLE = 2 };
/* A workgroup has 256 work-items, in waves of 32 at least. */
#define GROUP_WAVES_MAX 8u

static const struct layout {
	uint32_t channel_bytes;
	bool has_pointers; /* channel.peers has the address of each, rather than them. */
	bool has_protocol; /* Of a pair, the work says it; before it was always Simple. */
} layouts[WAITS_RCCL_LAYOUTS] = {
	{ 160, false, false }, /* ROCm 5.4 */
	{ 176, false, true },  /* 5.5, 5.6 */
	{ 224, false, true },  /* 5.7 */
	{ 256, true, true },   /* 6.0 */
};

uint64_t waits_rccl_channel_at(unsigned int layout, uint64_t comm, uint32_t channel)
{
	return comm + COMM_FIRST_CHANNEL + (uint64_t)channel * layouts[layout].channel_bytes;
}

int waits_rccl_channel_read(const void *bytes, size_t size, uint32_t ranks,
			    struct waits_rccl_channel *ret)
{
	const uint8_t *p = bytes;

	if (size < WAITS_RCCL_CHANNEL)
		return -EINVAL;
	*ret = (struct waits_rccl_channel){ .peers = get_u64(p + CHANNEL_PEERS),
					    .order = get_u64(p + CHANNEL_ORDER),
					    .previous = get_u32(p + CHANNEL_PREVIOUS),
					    .next = get_u32(p + CHANNEL_NEXT) };
	return ret->peers && !(ret->peers % 8) && ret->order && !(ret->order % 4) && ret->previous < ranks &&
			       ret->next < ranks ?
		       0 :
		       -EINVAL;
}

bool waits_rccl_is_order(const struct waits_rccl_comm *comm, const struct waits_rccl_channel *channel,
			 uint32_t first, uint32_t second, uint32_t last)
{
	return first == comm->rank && second == channel->next && last == channel->previous;
}

static bool is_word(const struct waits_word_of_name *w, const char *text)
{
	return w->text && w->size == strlen(text) && !memcmp(w->text, text, w->size);
}

static bool is_counted(const struct waits_collective *f)
{
	return f->is_function && is_word(&f->algorithm, "RING") && is_word(&f->protocol, "SIMPLE");
}

bool waits_rccl_is_pair(const struct waits_collective *function)
{
	return is_counted(function) && is_word(&function->operation, "SendRecv");
}

bool waits_rccl_is_ring(const struct waits_collective *function)
{
	return is_counted(function) &&
	       (is_word(&function->operation, "AllReduce") || is_word(&function->operation, "AllGather") ||
		is_word(&function->operation, "ReduceScatter"));
}

static int read_pair(const struct layout *l, const uint8_t *e, struct waits_rccl_receive *ret)
{
	const uint32_t word = get_u32(e), bits = e[4] | (uint32_t)e[5] << 8;

	ret->from = l->has_protocol ? word & 0xfffffff : word & 0x3fffffff;
	ret->connection = l->has_protocol ? word >> 28 & 3 : word >> 30;
	ret->waves = bits >> 4 & 15;
	/* The type, the first wave, and how many elements there are: the second one sends. */
	if ((bits & 15) != PAIR_TYPE_RECEIVE || (l->has_protocol && word >> 30 != PROTOCOL_SIMPLE))
		return -ENOENT;
	return (bits >> 8 & 15) == 0 && bits >> 12 && bits >> 12 <= PAIR_GROUPS_MAX ? 0 : -EINVAL;
}

int waits_rccl_receive_read(unsigned int layout, const void *bytes, size_t size, bool is_pair,
			    const struct waits_rccl_comm *comm,
			    const struct waits_rccl_channel *channel, struct waits_rccl_receive *ret)
{
	const uint8_t *p = bytes, *e = p + WORK_ELEMENTS;
	uint64_t number;
	int r;

	if (size < WAITS_RCCL_WORK)
		return -EINVAL;
	*ret = (struct waits_rccl_receive){ .from = channel->previous };
	if (is_pair) {
		if (p[WORK_TYPE] != TYPE_PAIR)
			return -EINVAL;
		/* Where another work follows, it is not seen which one is executed. */
		r = p[WORK_FLAGS] & 1 ? read_pair(&layouts[layout], e, ret) : -ENOENT;
	} else {
		r = waits_rccl_work_read(bytes, size, &number);
		ret->waves = e[ELEMENT_FLAGS] >> 3;
		ret->connection = e[ELEMENT_CONNECTION] >> 6;
	}
	if (r < 0)
		return r;
	return ret->from < comm->ranks && ret->from != comm->rank && ret->connection < PEER_CONNECTIONS &&
			       ret->waves && ret->waves <= GROUP_WAVES_MAX ?
		       0 :
		       -EINVAL;
}

uint64_t waits_rccl_peer_at(unsigned int layout, const struct waits_rccl_channel *channel, uint32_t rank,
			    bool *ret_is_pointer)
{
	*ret_is_pointer = layouts[layout].has_pointers;
	return channel->peers + (uint64_t)rank * (*ret_is_pointer ? 8 : PEER_BYTES);
}

uint64_t waits_rccl_connection_at(uint64_t peer, uint32_t connection)
{
	return peer + PEER_RECEIVE + (uint64_t)connection * CONNECTION_BYTES;
}

int waits_rccl_connection_read(const void *bytes, size_t size, struct waits_rccl_connection *ret)
{
	const uint8_t *p = bytes;

	if (size < WAITS_RCCL_CONNECTION)
		return -EINVAL;
	*ret = (struct waits_rccl_connection){ .arrived = get_u64(p + CONNECTION_TAIL),
					       .taken = get_u64(p + CONNECTION_STEP) };
	return ret->arrived && !(ret->arrived % 8) ? 0 : -EINVAL;
}
