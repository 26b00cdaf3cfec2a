/* SPDX-License-Identifier: MIT */
#include "tests/unit/waits/nccl_image.h"

#include <string.h>

#include "testlib.h"

/* Releases in one row are alike in all of this: DWARF of all 27 from 2.19.1 to 2.30.7 (docs/reference/waits.md). */
const struct nccl_release nccl_releases[NCCL_RELEASES] = {
	{ "2.19", 56, 8, 48, 64, 240, 24, 36, 40, 304, 104, 0, 0, { 0, 0 }, 0 },
	{ "2.20", 72, 16, 64, 80, 272, 24, 36, 40, 288, 96, 0, 0, { 0, 0 }, 0 },
	{ "2.21", 72, 16, 64, 80, 368, 24, 36, 40, 304, 104, 0, 0, { 0, 0 }, 0 },
	{ "2.22", 64, 16, 56, 64, 368, 24, 36, 40, 304, 104, 112, 488, { 6016, 20480 }, 64 },
	{ "2.23, 2.24", 80, 16, 64, 80, 368, 24, 36, 40, 304, 104, 128, 504, { 6032, 20496 }, 96 },
	{ "2.25", 80, 16, 64, 80, 352, 24, 36, 40, 304, 104, 128, 488, { 6016, 20480 }, 96 },
	{ "2.26", 96, 16, 64, 96, 368, 24, 36, 40, 304, 104, 144, 520, { 6064, 20528 }, 96 },
	{ "2.27", 88, 16, 56, 96, 368, 24, 36, 40, 304, 104, 144, 520, { 6064, 20528 }, 96 },
	{ "2.28", 88, 16, 56, 96, 368, 24, 36, 40, 304, 104, 144, 520, { 6064, 20528 }, 96 },
	{ "2.29", 88, 16, 56, 96, 368, 32, 44, 48, 304, 104, 144, 520, { 5936, 20400 }, 96 },
	{ "2.30", 88, 16, 56, 96, 368, 32, 44, 48, 304, 104, 144, 520, { 5936, 20400 }, 128 },
};

/* Of each channel: the ring from this rank on, and who is above it in its tree and below it. */
static const uint32_t rings[NCCL_CHANNELS][NCCL_RANKS] = { { 2, 7, 1, 0, 6, 4, 3, 5 },
							   { 2, 3, 4, 5, 6, 7, 0, 1 },
							   { 2, 0, 5, 7, 4, 6, 1, 3 } };
#define NOBODY UINT32_MAX
static const struct {
	uint32_t up, down[3];
} trees[NCCL_CHANNELS] = { { 6, { 0, 4, NOBODY } }, { 1, { 3, NOBODY, NOBODY } }, { 1, { 5, 3, 7 } } };
/* Of each block: of whom its pairs receive. */
static const uint32_t pairs[NCCL_BLOCKS][2] = { { 5, 7 }, { 1, 6 } };

#define PEERS	    (NCCL_COMM + 0x6100)
#define CONNECTIONS (NCCL_COMM + 0x7000)
#define COUNTS	    (NCCL_COMM + 0xb000)
#define BUFFERS	    (NCCL_COMM + 0xc000)
/* Bytes of a slot of LL, and of LL128; a connection has a buffer of 8 of each. */
#define SLOT_LL	   128u
#define SLOT_LL128 256u
#define SLOTS	   8u
#define BUFFER	   (SLOTS * (SLOT_LL + SLOT_LL128))
#define HOST_MAP   UINT64_C(0x560000000010)

static void put(uint8_t *bytes, size_t at, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		bytes[at + i] = (uint8_t)(value >> 8 * i);
}

static void plant(struct nccl_image *m, uint64_t address, uint64_t value, size_t size)
{
	put(m->memory, address - NCCL_COMM, value, size);
}

/* What nobody names has any value, and the same one in each run. */
static void fill(uint8_t *bytes, size_t size)
{
	uint32_t x = 2463534242u;

	for (size_t i = 0; i < size; i++) {
		x = x * 1664525 + 1013904223;
		bytes[i] = (uint8_t)(x >> 24);
	}
}

uint32_t nccl_image_next(uint32_t channel)
{
	return rings[channel][1];
}

uint32_t nccl_image_previous(uint32_t channel)
{
	return rings[channel][NCCL_RANKS - 1];
}

uint64_t nccl_image_peers(uint32_t channel)
{
	return PEERS + (uint64_t)channel * 8 * NCCL_RANKS;
}

/*
 * Later channels lie in front.  Three places of an order are read, so that with too many ranks a ring may be believed
 * where another one that lies behind it has its rank in front of this one just there.
 */
uint64_t nccl_image_order(uint32_t channel)
{
	return NCCL_COMM + 0x6000 + 64 * (uint64_t)(NCCL_CHANNELS - 1 - channel);
}

static uint32_t number_of(uint32_t channel, uint32_t rank, uint32_t connection)
{
	return (channel * NCCL_RANKS + rank) * 2 + connection;
}

uint64_t nccl_image_taken(uint32_t channel, uint32_t rank, uint32_t connection)
{
	return 1000 + 11 * (uint64_t)number_of(channel, rank, connection);
}

static uint64_t peer_at(uint32_t channel, uint32_t rank)
{
	return CONNECTIONS + number_of(channel, rank, 0) * UINT64_C(0x140);
}

uint64_t nccl_image_connection(const struct nccl_release *r, uint32_t channel, uint32_t rank, uint32_t connection)
{
	return peer_at(channel, rank) + r->receive + (uint64_t)connection * r->receive / 2;
}

/* ------------------------------------------------------------------ memory of the device ----- */

/* Nothing has come by it since the last step was taken. */
static void make_connection(struct nccl_image *m, uint32_t channel, uint32_t rank, uint32_t connection)
{
	const struct nccl_release *r = m->release;
	const uint32_t n = number_of(channel, rank, connection);
	const uint64_t at = nccl_image_connection(r, channel, rank, connection);
	const uint64_t buffer = BUFFERS + (uint64_t)n * BUFFER;
	const uint64_t taken = nccl_image_taken(channel, rank, connection);

	plant(m, at, buffer, 8);
	plant(m, at + 8, buffer + SLOTS * SLOT_LL, 8);
	plant(m, at + 48, COUNTS + 8 * (uint64_t)n, 8);
	plant(m, at + r->step, taken, 8);
	plant(m, COUNTS + 8 * (uint64_t)n, taken, 8);
	for (uint64_t step = taken - SLOTS; step < taken; step++) {
		const uint64_t slot = step % SLOTS, line = buffer + slot * SLOT_LL;

		plant(m, line + 4, step + 1, 4);
		plant(m, line + 12, step + 1, 4);
		plant(m, buffer + SLOTS * SLOT_LL + slot * SLOT_LL128 + 120, step + 1, 8);
	}
}

static void make_channel(struct nccl_image *m, uint32_t channel)
{
	const struct nccl_release *r = m->release;
	const uint64_t at = NCCL_COMM + r->first + (uint64_t)channel * r->channel;
	const uint64_t order = nccl_image_order(channel);
	uint32_t place = 0;

	plant(m, at, nccl_image_peers(channel), 8);
	plant(m, at + 8, nccl_image_previous(channel), 4);
	plant(m, at + 12, nccl_image_next(channel), 4);
	plant(m, at + 16, order, 8);
	for (uint32_t i = 0; i < NCCL_RANKS; i++) {
		plant(m, order + 4 * (uint64_t)i, rings[channel][i], 4);
		place = rings[channel][i] ? place : (NCCL_RANKS - i) % NCCL_RANKS;
		plant(m, nccl_image_peers(channel) + 8 * (uint64_t)i, peer_at(channel, i), 8);
		make_connection(m, channel, i, 0);
		make_connection(m, channel, i, 1);
	}
	/* In front of the place, later releases have the host's address of a map; behind it is room until the tree. */
	if (r->place > 24)
		plant(m, at + 24, HOST_MAP, 8);
	plant(m, at + r->place, place, 8);
	plant(m, at + r->up, trees[channel].up, 4);
	for (uint32_t i = 0; i < 3; i++)
		plant(m, at + r->down + 4 * (uint64_t)i, trees[channel].down[i], 4);
}

static void make_memory(struct nccl_image *m)
{
	const struct nccl_release *r = m->release;

	fill(m->memory, sizeof(m->memory));
	plant(m, NCCL_COMM, NCCL_RANK, 4);
	plant(m, NCCL_COMM + 4, NCCL_RANKS, 4);
	plant(m, NCCL_COMM + r->sizes, SLOTS * SLOT_LL, 4);
	plant(m, NCCL_COMM + r->sizes + 4, SLOTS * SLOT_LL128, 4);
	plant(m, NCCL_COMM + r->pointer, NCCL_COMM + r->first, 8);
	for (uint32_t i = 0; i < NCCL_CHANNELS; i++)
		make_channel(m, i);
}

/* ------------------------------------------------------------------ what blocks keep --------- */

static void make_pair(uint8_t *work, uint32_t channel, uint32_t from)
{
	put(work, 24, 4096, 8);
	put(work, 32, (from + 1) % NCCL_RANKS == NCCL_RANK ? 0 : (from + 1) % NCCL_RANKS, 4);
	put(work, 36, from, 4);
	/* One channel, which has the only part of what is sent and of what is received, by Simple. */
	put(work, 40, 1, 1);
	put(work, 41, channel, 1);
	put(work, 42, 0x0101, 2);
	put(work, 46, 0, 1);
}

static void make_shared(struct nccl_image *m, uint32_t block)
{
	const struct nccl_release *r = m->release;
	const uint32_t channel = 2 * block, n = m->kind == NCCL_PAIRS ? 2 : 1;
	uint8_t *to = m->shared[block], *works = to + r->works[m->is_sm_90];

	fill(to, NCCL_SHARED_BYTES);
	if (!r->own)
		return;
	put(to, 0, NCCL_COMM, 8);
	put(to, 8, NCCL_MASK, 8);
	put(to, 32, channel, 4);
	put(to, 36, 0, 4);
	memcpy(to + 48, m->memory, r->comm);
	memcpy(to + r->own, m->memory + r->first + (size_t)channel * r->channel, r->channel);
	put(to, r->type - 4u, UINT32_MAX, 4);
	put(to, r->type, m->kind == NCCL_PAIRS ? 0 : 1, 1);
	put(to, r->type + 4u, n, 4);
	put(to, r->type + 8u, n == 2 ? 48 : r->work, 4);
	if (n == 1)
		put(works, 2, NCCL_WARPS, 1);
	for (uint32_t i = 0; n == 2 && i < n; i++)
		make_pair(works + 48 * (size_t)i, channel, pairs[block][i]);
}

void nccl_image_make(struct nccl_image *m, const struct nccl_release *r, enum nccl_kind kind, bool is_sm_90)
{
	memset(m, 0, sizeof(*m));
	m->release = r;
	m->kind = kind;
	m->is_sm_90 = is_sm_90;
	make_memory(m);
	put(m->arguments, 0, NCCL_COMM, 8);
	put(m->arguments, 8, NCCL_MASK, 8);
	/* Before 2.22, they end behind the address of what is to be done. */
	m->given = (struct target_arguments){ .bytes = m->arguments, .size = r->own ? sizeof(m->arguments) : 24 };
	for (uint32_t i = 0; i < NCCL_BLOCKS * NCCL_WARPS; i++)
		m->waves[i] = (struct wave){ .has_dispatch = true, .kernel_handle = NCCL_KINDS, .pc = kind,
					     .has_workgroup = true, .workgroup = { i / NCCL_WARPS },
					     .has_wave_in_group = true, .wave_in_group = (uint8_t)(i % NCCL_WARPS),
					     .group_waves = NCCL_WARPS };
	for (uint32_t block = 0; block < NCCL_BLOCKS; block++)
		make_shared(m, block);
	m->all = (struct target_waves){ .waves = m->waves, .n_waves = NCCL_BLOCKS * NCCL_WARPS, .arguments = &m->given,
					.n_arguments = 1 };
}

/* ------------------------------------------------------------------ reading ------------------ */

static bool read_memory(const void *ctx, const struct wave *w, enum nccl_memory of, uint64_t address, void *buf,
			uint32_t size)
{
	struct nccl_image *m = (struct nccl_image *)(uintptr_t)ctx;

	(void)w;
	m->reads++;
	if (of != NCCL_DEVICE || address < NCCL_COMM || address - NCCL_COMM > NCCL_BYTES ||
	    size > NCCL_BYTES - (address - NCCL_COMM))
		return false;
	memcpy(buf, m->memory + (address - NCCL_COMM), size);
	return true;
}

static bool read_shared(const void *ctx, const struct wave *w, uint32_t address, void *buf, uint32_t size)
{
	struct nccl_image *m = (struct nccl_image *)(uintptr_t)ctx;
	const uint32_t at = address - NCCL_SHARED;

	m->reads++;
	if (address < NCCL_SHARED || at > NCCL_SHARED_BYTES || size > NCCL_SHARED_BYTES - at)
		return false;
	memcpy(buf, m->shared[w->workgroup[0]] + at, size);
	return true;
}

static bool is_sm_90_or_newer(const void *ctx, const struct wave *w)
{
	(void)w;
	return ((const struct nccl_image *)ctx)->is_sm_90;
}

const struct target_collective *nccl_image_read(struct nccl_image *m, struct rpc_arena *a)
{
	static struct nccl_function list[] = {
		{ NCCL_SIMPLE, 1, { WAITS_NCCL_SIMPLE, false, true, WAITS_NCCL_RING } },
		{ NCCL_LL, 1, { WAITS_NCCL_LL, false, true, WAITS_NCCL_RING } },
		{ NCCL_LL128, 1, { WAITS_NCCL_LL128, false, true, WAITS_NCCL_RING } },
		{ NCCL_TREE, 1, { WAITS_NCCL_SIMPLE, false, false, WAITS_NCCL_TREE } },
		{ NCCL_PAIRS, 1, { WAITS_NCCL_NO_PROTOCOL, false, false, WAITS_NCCL_PAIR } },
		{ NCCL_KINDS, 1, { WAITS_NCCL_LL, true, true, WAITS_NCCL_RING } },
	};
	static const struct nccl_functions functions = { list, ARRAY_SIZE(list), ARRAY_SIZE(list) };
	static const struct nccl_code code = { 0, &functions };
	const struct nccl_source from = { &code, 1, read_memory, m, 0, read_shared, is_sm_90_or_newer };

	m->reads = 0;
	nccl_read(&from, a, &m->all);
	return m->all.n_collectives == 1 ? m->all.collectives : NULL;
}

/* ------------------------------------------------------------------ what it says ------------- */

static uint32_t count(const uint32_t *list, uint32_t n)
{
	uint32_t i = 0;

	while (i < n && list[i] != NOBODY)
		i++;
	return i;
}

bool nccl_image_is_told(const struct nccl_image *m, const struct target_collective *c, uint32_t block)
{
	const uint32_t channel = 2 * block, ring = nccl_image_previous(channel), connection = m->kind == NCCL_PAIRS;
	const uint32_t *wanted = m->kind == NCCL_PAIRS ? pairs[block] :
				 m->kind == NCCL_TREE ? trees[channel].down :
							&ring;
	const uint32_t n = m->kind == NCCL_PAIRS ? 2 : m->kind == NCCL_TREE ? count(wanted, 3) : 1;
	uint32_t found = 0;

	for (uint32_t i = 0; i < c->n_receives; i++) {
		const struct target_receive *r = &c->receives[i];
		const uint64_t taken = nccl_image_taken(channel, r->from, connection);

		if (r->block != block)
			continue;
		if (found == n || r->from != wanted[found] || r->connection != connection || r->taken != taken ||
		    r->arrived != taken)
			return false;
		found++;
	}
	return found == n;
}
