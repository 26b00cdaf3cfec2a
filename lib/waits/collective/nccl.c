/* SPDX-License-Identifier: MIT */
/*
 * NCCL 2.19 to 2.30: src/include/device.h of each of its releases, as a compiler lays it out.  The
 * communicator is struct ncclDevComm, since 2.28 struct ncclKernelComm.
 */
#include "waits/collective/nccl.h"

#include <errno.h>
#include <string.h>

#include "waits/collective/collective.h"

enum { ARGUMENT_COMM = 0, ARGUMENT_CHANNELS = 8 };
enum { COMM_RANK = 0, COMM_RANKS = 4 };
enum { CONNECTION_BUFFERS = 0, CONNECTION_TAIL = 48 };
/* Those since 2.22 have what is to be done behind these: before, they end with a pointer to it. */
enum { ARGUMENTS_OLD = 24 };
/* LL128 has the flag in the last 8 of the 128 bytes of a line; LL has lines of 16, with two flags of 4. */
enum { LL_FLAGS = 4, LL_SECOND = 8, LL128_LINE = 128, LL128_FLAG = 8 };
/* More than a buffer may be made to have. */
#define SLOT_BYTES_MAX ((uint32_t)128 << 20)

static const struct layout {
	uint8_t pointer;  /* Of the channels, in a communicator. */
	uint8_t first;	  /* Where the first one is. */
	uint16_t channel; /* Bytes from one to the next. */
	uint8_t channels; /* Room for so many. */
	uint16_t receive; /* In what a channel has of a rank. */
	uint8_t step;	  /* In a connection. */
	uint8_t sizes;	  /* Of the buffers of connections, in a communicator. */
} layouts[WAITS_NCCL_LAYOUTS] = {
	{ 48, 64, 240, 32, 304, 104, 8 },  /* 2.19 */
	{ 64, 80, 272, 32, 288, 96, 16 }, /* 2.20 */
	{ 64, 80, 368, 32, 304, 104, 16 }, /* 2.21, 2.23, 2.24 */
	{ 56, 64, 368, 32, 304, 104, 16 }, /* 2.22 */
	{ 64, 80, 352, 64, 304, 104, 16 }, /* 2.25 */
	{ 64, 96, 368, 64, 304, 104, 16 }, /* 2.26 */
	{ 56, 96, 368, 64, 304, 104, 16 }, /* 2.27 to 2.30 */
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

static bool is_word(const struct waits_word_of_name *w, const char *text)
{
	return w->text && w->size == strlen(text) && !memcmp(w->text, text, w->size);
}

static enum waits_nccl_way way_of(const struct waits_collective *c)
{
	const bool is_reduce = is_word(&c->operation, "AllReduce");

	if (is_word(&c->operation, "SendRecv"))
		return WAITS_NCCL_PAIR;
	if (is_word(&c->algorithm, "TREE"))
		return is_reduce ? WAITS_NCCL_TREE : WAITS_NCCL_NO_WAY;
	/* A rank may end in others before it receives, and of other algorithms it receives of several. */
	return is_word(&c->algorithm, "RING") && (is_reduce || is_word(&c->operation, "AllGather") ||
						  is_word(&c->operation, "ReduceScatter")) ?
		       WAITS_NCCL_RING :
		       WAITS_NCCL_NO_WAY;
}

static enum waits_nccl_protocol protocol_of(const struct waits_collective *c, enum waits_nccl_way way)
{
	static const char *const names[WAITS_NCCL_NO_PROTOCOL] = { "LL", "LL128", "SIMPLE" };
	unsigned int i = 0;

	if (way != WAITS_NCCL_RING && way != WAITS_NCCL_TREE)
		return WAITS_NCCL_NO_PROTOCOL;
	while (i < WAITS_NCCL_NO_PROTOCOL && !is_word(&c->protocol, names[i]))
		i++;
	return (enum waits_nccl_protocol)i;
}

int waits_nccl_function_read(const char *symbol, struct waits_nccl_function *ret)
{
	struct waits_collective c;
	enum waits_nccl_way way;

	if (!symbol || waits_collective_read(symbol, &c) < 0 ||
	    !strstr(symbol, c.is_function ? "ncclDevFunc_" : "ncclDevKernel_"))
		return -ENOENT;
	way = way_of(&c);
	*ret = (struct waits_nccl_function){ .protocol = protocol_of(&c, way), .is_kernel = !c.is_function, .way = way,
					     .has_empty_steps = way == WAITS_NCCL_RING &&
								is_word(&c.operation, "AllReduce") };
	return 0;
}

int waits_nccl_launch_read(const void *bytes, size_t size, struct waits_nccl_launch *ret)
{
	const uint8_t *p = bytes;

	if (size < WAITS_NCCL_ARGUMENTS)
		return -EINVAL;
	*ret = (struct waits_nccl_launch){ .comm = get_u64(p + ARGUMENT_COMM),
					   .channels = get_u64(p + ARGUMENT_CHANNELS),
					   .has_empty_channels = size <= ARGUMENTS_OLD };
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

uint32_t waits_nccl_slot_bytes(unsigned int layout, const void *comm, size_t size, enum waits_nccl_protocol protocol)
{
	const uint8_t *p = comm;
	uint32_t bytes;

	if (size < WAITS_NCCL_COMM || protocol > WAITS_NCCL_LL128)
		return 0;
	bytes = get_u32(p + layouts[layout].sizes + 4 * (size_t)protocol) / WAITS_NCCL_SLOTS;
	/* The device, too, counts in whole lines. */
	bytes -= bytes % (protocol == WAITS_NCCL_LL ? WAITS_NCCL_FLAG : 8);
	return bytes >= LL128_LINE && bytes <= SLOT_BYTES_MAX ? bytes : 0;
}

uint64_t waits_nccl_flag_at(const void *connection, size_t size, enum waits_nccl_protocol protocol)
{
	const uint8_t *p = connection;
	uint64_t at;

	if (size < WAITS_NCCL_CONNECTION || protocol > WAITS_NCCL_LL128)
		return 0;
	at = get_u64(p + CONNECTION_BUFFERS + 8 * (size_t)protocol);
	/* Devices load 16 bytes at once. */
	if (!at || at % WAITS_NCCL_FLAG)
		return 0;
	return protocol == WAITS_NCCL_LL ? at : at + LL128_LINE - WAITS_NCCL_FLAG;
}

/*
 * A flag is the number of its step, plus 1, of which LL has the lower half.  All ever written to a slot have its
 * remainder.  @param ahead  By how much it is more than what was taken.
 */
static enum waits_nccl_slot read_flag(uint64_t flag, uint32_t slot, int64_t ahead)
{
	const bool fits = (flag + WAITS_NCCL_SLOTS - 1) % WAITS_NCCL_SLOTS == slot;

	/* Buffers are 0 at first. */
	if (!fits)
		return flag ? WAITS_NCCL_SLOT_WRONG : WAITS_NCCL_SLOT_OLD;
	return ahead > 0 ? WAITS_NCCL_SLOT_CAME : WAITS_NCCL_SLOT_OLD;
}

enum waits_nccl_slot waits_nccl_slot_read(const void *bytes, enum waits_nccl_protocol protocol, uint32_t slot,
					  uint64_t taken)
{
	const uint8_t *p = bytes;
	enum waits_nccl_slot a, b;
	uint64_t flag;
	uint32_t one, two;

	if (protocol == WAITS_NCCL_LL128) {
		flag = get_u64(p + LL128_FLAG);
		return read_flag(flag, slot, (int64_t)(flag - taken));
	}
	one = get_u32(p + LL_FLAGS);
	two = get_u32(p + LL_FLAGS + LL_SECOND);
	a = read_flag(one, slot, (int32_t)(one - (uint32_t)taken));
	b = read_flag(two, slot, (int32_t)(two - (uint32_t)taken));
	if (a == WAITS_NCCL_SLOT_WRONG || b == WAITS_NCCL_SLOT_WRONG)
		return WAITS_NCCL_SLOT_WRONG;
	if (a == WAITS_NCCL_SLOT_CAME || b == WAITS_NCCL_SLOT_CAME)
		return WAITS_NCCL_SLOT_CAME;
	/* Both are written at once, and what is old is whole. */
	return one == two ? WAITS_NCCL_SLOT_OLD : WAITS_NCCL_SLOT_WRONG;
}
