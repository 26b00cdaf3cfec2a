/* SPDX-License-Identifier: MIT */
/*
 * Whole images of NCCL in which something was changed.  A field by which others are checked is a gate: with any other
 * value of it, nothing is told of the blocks that it is a gate of.  Whatever else is changed, nothing is ever proven,
 * and what is told is of the communicator.
 */
#include <stdlib.h>
#include <string.h>

#include "agentd/worker/wait/look.h"
#include "testlib.h"
#include "tests/unit/waits/nccl_image.h"

#define KERNEL "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE"
#define ALL ((1u << NCCL_BLOCKS) - 1)

static struct nccl_image image;

/* ------------------------------------------------------------------ what is told ------------- */

/* One look, as a reply. */
struct told {
	struct rpc_arena arena;
	const struct target_collective *read;
	struct rpc_why_get_result why;
	struct look look;
};

static void tell(struct told *t)
{
	static const struct target_ops ops = { .vendor = RPC_VENDOR_NVIDIA };
	static struct target target = { .ops = &ops };
	static struct location_kernel kernels[] = { { 0 }, { .raw = KERNEL, .name = "AllReduce" } };
	struct snapshot seen;
	struct history *history = NULL;
	uint32_t number;

	memset(t, 0, sizeof(*t));
	rpc_arena_init(&t->arena, 1 << 20);
	t->read = nccl_image_read(&image, &t->arena);
	for (size_t i = 0; i < image.all.n_waves; i++)
		image.waves[i].kernel = 1;
	seen = (struct snapshot){ .waves = image.all };
	t->look = (struct look){ .target = &target, .arena = &t->arena, .seen = &seen,
				 .places = { .kernels = kernels, .n_kernels = 2 },
				 .missing = rpc_arena_array(&t->arena, LOOK_MISSING_MAX, sizeof(char *)),
				 .is_collective = rpc_arena_array(&t->arena, image.all.n_waves, sizeof(bool)) };
	t->look.now = history_begin(&history, 1, 0, &number);
	look_at_collectives(&t->look, &t->why);
	history_free(history);
}

static void told_deinit(struct told *t)
{
	rpc_arena_deinit(&t->arena);
	free(t->look.waits);
	free(t->look.nodes);
	free(t->look.edges);
}

/*
 * Whatever the image says: nothing is proven, ranks are those of a communicator, what is told is of blocks that are
 * there, and what is not told is named.
 */
static bool is_sound(const struct told *t)
{
	const struct target_collective *c = t->read;
	bool sound = c && image.reads <= NCCL_READS_MAX && t->why.n_collectives <= 1;

	if (!sound)
		return false;
	for (size_t i = 0; i < t->why.n_collectives; i++) {
		const struct rpc_collective *r = &t->why.collectives[i];

		sound &= r->confidence != RPC_CONFIDENCE_PROVEN && r->rank < r->ranks && r->previous < r->ranks &&
			 r->next < r->ranks && !r->has_unchanged_since_us;
		for (size_t k = 0; k < r->n_waits_for; k++)
			sound &= r->waits_for[k] < r->ranks && r->waits_for[k] != r->rank;
	}
	for (size_t i = 0; i < t->look.n_waits; i++)
		sound &= t->look.waits[i].rpc.confidence != RPC_CONFIDENCE_PROVEN;
	for (uint32_t i = 0; i < c->n_receives; i++)
		sound &= c->receives[i].block < NCCL_BLOCKS && c->receives[i].arrived <= c->receives[i].taken;
	if (!c->is_read)
		return sound && !t->why.n_collectives && t->look.n_undecoded + t->look.n_missing > 0;
	return sound && (!(c->unread | c->left | c->empty | c->old | c->between) || t->look.n_missing > 0);
}

/*
 * @return whether nothing is told of these blocks, it is said so, and of the others all is told that the image says, or
 * nothing of any.
 */
static bool is_refused(const struct told *t, uint32_t blocks)
{
	for (uint32_t i = 0; i < t->read->n_receives; i++)
		if (blocks >> t->read->receives[i].block & 1)
			return false;
	for (uint32_t block = 0; block < NCCL_BLOCKS && t->read->is_read; block++)
		if (!(blocks >> block & 1) && !nccl_image_is_told(&image, t->read, block))
			return false;
	return t->look.n_undecoded + t->look.n_missing > 0;
}

/* ------------------------------------------------------------------ gates -------------------- */

struct gate {
	const char *name;
	uint8_t *bytes;
	size_t size;
	uint32_t blocks; /* Of which it is one: a bit each. */
};

struct gates {
	struct gate list[64];
	size_t n;
};

static void add(struct gates *g, const char *name, uint8_t *bytes, size_t size, uint32_t blocks)
{
	TEST_EQ_FATAL(g->n < ARRAY_SIZE(g->list), true);
	g->list[g->n++] = (struct gate){ name, bytes, size, blocks };
}

/* The order of a ring, of which the first two and the last are looked at, has to be that of the channel. */
static void add_ring(struct gates *g, uint32_t channel, uint32_t blocks)
{
	const struct nccl_release *r = image.release;
	uint8_t *at = image.memory + r->first + (size_t)channel * r->channel;
	uint8_t *order = image.memory + (nccl_image_order(channel) - NCCL_COMM);

	add(g, "previous", at + 8, 4, blocks);
	add(g, "next", at + 12, 4, blocks);
	add(g, "order", at + 16, 8, blocks);
	add(g, "first in order", order, 4, blocks);
	add(g, "second in order", order + 4, 4, blocks);
	add(g, "last in order", order + 4 * (NCCL_RANKS - 1), 4, blocks);
}

/* What a block keeps has to agree with memory of the device, and with what the kernel was given. */
static void add_shared(struct gates *g, uint32_t block)
{
	const struct nccl_release *r = image.release;
	const uint32_t bit = 1u << block;
	uint8_t *to = image.shared[block];

	add(g, "kept communicator", to, 8, bit);
	add(g, "kept mask", to + 8, 8, bit);
	add(g, "kept channel", to + 32, 4, bit);
	add(g, "aborted", to + 36, 4, bit);
	add(g, "kept copy", to + 48, r->comm, bit);
	add(g, "kept peers", to + r->own, 8, bit);
	add(g, "peers", image.memory + r->first + (size_t)block * 2 * r->channel, 8, bit);
}

static void find_gates(struct gates *g)
{
	const struct nccl_release *r = image.release;
	const bool is_ring = image.kind < NCCL_TREE;

	g->n = 0;
	add(g, "communicator", image.arguments, 8, ALL);
	add(g, "rank", image.memory, 4, ALL);
	add(g, "ranks", image.memory + 4, 4, ALL);
	add(g, "channels", image.memory + r->pointer, 8, ALL);
	add_ring(g, 0, ALL);
	/* Where the pointer leaves several releases, the second channel tells them apart. */
	if (r->first == 80)
		add_ring(g, 1, ALL);
	if (is_ring) {
		add_ring(g, 2, 1u << 1);
		return;
	}
	add(g, "all of the communicator", image.memory, r->comm, ALL);
	if (r->first == 96 && r->pointer == 56)
		add(g, "place in the ring", image.memory + r->first + r->place, 4, ALL);
	for (uint32_t block = 0; block < NCCL_BLOCKS; block++)
		add_shared(g, block);
}

/* Put other bytes into a gate, look, and put back what was there. */
static uint32_t try_gate(const struct gate *gate, size_t at, const uint8_t *bytes, size_t size)
{
	uint8_t before[8];
	struct told t;
	bool good;

	memcpy(before, gate->bytes + at, size);
	memcpy(gate->bytes + at, bytes, size);
	tell(&t);
	good = is_sound(&t) && is_refused(&t, gate->blocks);
	told_deinit(&t);
	memcpy(gate->bytes + at, before, size);
	return !good;
}

/*
 * Each byte with other values, of numbers with all, and the whole of it with some: of what is longer than 8 bytes, the
 * first of them.
 */
static void shut(const struct gate *gate)
{
	const size_t size = gate->size < 8 ? gate->size : 8;
	const uint32_t step = gate->size < 8 ? 1 : gate->size == 8 ? 5 : 51;
	uint32_t wrong = 0;

	for (size_t i = 0; i < gate->size; i++)
		for (uint32_t add_up = 1; add_up < 256; add_up += step) {
			const uint8_t byte = (uint8_t)(gate->bytes[i] + add_up);

			wrong += try_gate(gate, i, &byte, 1);
		}
	for (uint32_t i = 0; i < 64; i++) {
		const uint64_t word = test_random() >> (i % 2 ? 0 : 40);

		if (memcmp(&word, gate->bytes, size) != 0)
			wrong += try_gate(gate, 0, (const uint8_t *)&word, size);
	}
	if (wrong)
		printf("%s of %s, kind %u, %s sm_90\n", gate->name, image.release->name, image.kind,
		       image.is_sm_90 ? "from" : "before");
	TEST_EQ(wrong, 0);
}

/* Does a release tell that much?  Before 2.22 nothing is told but of the protocol Simple. */
static bool is_whole(const struct nccl_release *r, enum nccl_kind kind)
{
	return r->own || kind == NCCL_SIMPLE;
}

static void a_gate_with_another_value_tells_nothing(void)
{
	static struct gates g;
	struct told t;

	for (size_t i = 0; i < NCCL_RELEASES; i++)
		for (unsigned int kind = 0; kind < NCCL_KINDS; kind++) {
			if (!is_whole(&nccl_releases[i], (enum nccl_kind)kind))
				continue;
			nccl_image_make(&image, &nccl_releases[i], (enum nccl_kind)kind, i % 2);
			/* Unchanged, it says all of it. */
			tell(&t);
			TEST_ROW_EQ(i, is_sound(&t) && t.why.n_collectives == 1 && t.why.collectives[0].has_waits_for &&
					       !t.look.n_missing && !is_refused(&t, 0), true);
			for (uint32_t block = 0; block < NCCL_BLOCKS; block++)
				TEST_ROW_EQ(i, nccl_image_is_told(&image, t.read, block), true);
			told_deinit(&t);
			find_gates(&g);
			for (size_t k = 0; k < g.n; k++)
				shut(&g.list[k]);
		}
}

/* ------------------------------------------------------------------ anything ----------------- */

static uint8_t *any_byte(void)
{
	const struct nccl_release *r = image.release;
	const uint64_t random = test_random();
	const size_t at = (size_t)(random >> 8);
	uint8_t *shared = image.shared[random >> 7 & 1];

	switch (random % 8) {
	case 0:
		return image.arguments + at % 24;
	case 1:
		return image.memory + at % r->comm;
	case 2:
	case 3:
		return image.memory + r->first + at % (3u * r->channel);
	case 4:
		return shared + at % 544;
	case 5:
		return shared + (r->own ? r->works[image.is_sm_90] + at % 256 : at % NCCL_SHARED_BYTES);
	case 6:
		return image.memory + 0x6000 + at % 0x6000;
	default:
		return image.memory + at % NCCL_BYTES;
	}
}

#define CHANGES_MAX 4u

struct change {
	uint8_t *at, before[8];
	size_t size;
};

/* One to four changes of up to 8 bytes: of a bit, to any value, to 0 or all ones, or to what stands elsewhere. */
static uint32_t change_some(struct change *changes)
{
	const uint32_t n = 1 + (uint32_t)(test_random() % CHANGES_MAX);

	for (uint32_t i = 0; i < n; i++) {
		uint8_t *to = any_byte();
		const uint64_t random = test_random(), value = test_random();
		const uint8_t *end = image.arguments + sizeof(image.arguments), *other = any_byte();
		size_t size = (size_t)1 << (random >> 8) % 4;

		size = to + size <= end && other + size <= end ? size : 1;
		changes[i] = (struct change){ .at = to, .size = size };
		memcpy(changes[i].before, to, size);
		switch (random % 4) {
		case 0:
			*to ^= (uint8_t)(1u << (value & 7));
			break;
		case 1:
			memcpy(to, &value, size);
			break;
		case 2:
			memset(to, value & 1 ? 0xff : 0, size);
			break;
		default:
			memmove(to, other, size);
		}
	}
	return n;
}

static void undo(const struct change *changes, uint32_t n)
{
	while (n--)
		memcpy(changes[n].at, changes[n].before, changes[n].size);
}

static void nothing_is_proven_of_any_image(void)
{
	enum { CHANGES = 100000, IMAGES = 25 };
	struct change changes[CHANGES_MAX];
	uint32_t wrong = 0, told = 0, n;
	struct told t;

	for (uint32_t i = 0; i < CHANGES; i++) {
		if (i % (CHANGES / IMAGES) == 0) {
			const struct nccl_release *r = &nccl_releases[test_random() % NCCL_RELEASES];
			const enum nccl_kind kind = (enum nccl_kind)(i / (CHANGES / IMAGES) % NCCL_KINDS);

			nccl_image_make(&image, r, kind, test_random() & 1);
		}
		n = change_some(changes);
		tell(&t);
		wrong += !is_sound(&t);
		told += t.why.n_collectives > 0 && t.why.collectives[0].has_waits_for;
		told_deinit(&t);
		undo(changes, n);
	}
	TEST_EQ(wrong, 0);
	/* Most changes are of what nobody reads: this looks at what is told, and not only at refusals. */
	TEST_EQ(told > CHANGES / 10, true);
}

TEST_SUITE(worker_nccl_gates, TEST(a_gate_with_another_value_tells_nothing), TEST(nothing_is_proven_of_any_image));
