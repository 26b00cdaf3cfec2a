/* SPDX-License-Identifier: MIT */
/* Layouts are those of ROCr's sdma_registers.h; the sizes of a copy are one bit wider on each generation. */
#include "sdma.h"

#include <errno.h>
#include <string.h>

/* Operations, in the lowest byte of the first word. */
enum op {
	OP_NOP = 0,
	OP_COPY = 1,
	OP_FENCE = 5,
	OP_TRAP = 6,
	OP_POLL = 8, /* Also a flush of the host path. */
	OP_ATOMIC = 10,
	OP_FILL = 11,
	OP_TIMESTAMP = 13,
	OP_CACHES = 17,
};
#define ATOMIC_ADD64 0x2fu
/* Sub-operation of OP_TIMESTAMP that stores the global time. */
#define TIMESTAMP_GLOBAL 2u
/* Bits of a copy's size, of the generation that has most of them. */
#define SIZE_MASK 0x3fffffffu

static uint32_t word_at(const uint8_t *p, size_t i)
{
	uint32_t v;

	memcpy(&v, p + i * 4, sizeof(v));
	return v;
}

static uint64_t pair_at(const uint8_t *p, size_t i)
{
	return word_at(p, i) | (uint64_t)word_at(p, i + 1) << 32;
}

/* How many words a command has; 0: it is not known. */
static uint32_t words_of(uint32_t head)
{
	switch (head & 0xff) {
	case OP_NOP: return 1 + (head >> 16 & 0x3fff);
	case OP_COPY: return head >> 8 & 0xff ? 0 : 7;
	case OP_FENCE: return 4;
	case OP_TRAP: return 2;
	case OP_POLL: return 6;
	case OP_ATOMIC: return head >> 25 == ATOMIC_ADD64 ? 8 : 0;
	case OP_FILL: return 5;
	case OP_TIMESTAMP: return (head >> 8 & 0xff) == TIMESTAMP_GLOBAL ? 3 : 0;
	case OP_CACHES: return 5;
	default: return 0;
	}
}

/* Read the words of a command that does something. */
static void parse_words(const uint8_t *p, struct sdma_command *c)
{
	uint32_t head = word_at(p, 0);

	switch (head & 0xff) {
	case OP_COPY:
		c->kind = SDMA_COPY;
		c->size = (uint64_t)(word_at(p, 1) & SIZE_MASK) + 1;
		c->source = pair_at(p, 3);
		c->address = pair_at(p, 5);
		break;
	case OP_FENCE:
		c->kind = SDMA_WRITE;
		c->address = pair_at(p, 1);
		c->value = word_at(p, 3);
		break;
	case OP_TRAP:
		c->kind = SDMA_TRAP;
		c->value = word_at(p, 1);
		break;
	case OP_POLL:
		if (!(head >> 31))
			break;
		c->kind = SDMA_WAIT;
		c->function = head >> 28 & 7;
		c->address = pair_at(p, 1);
		c->value = word_at(p, 3);
		c->mask = word_at(p, 4);
		break;
	case OP_ATOMIC:
		c->kind = SDMA_ADD;
		c->address = pair_at(p, 1);
		c->value = pair_at(p, 3);
		break;
	case OP_FILL:
		c->kind = SDMA_FILL;
		c->address = pair_at(p, 1);
		c->value = word_at(p, 3);
		/* The size is that of all but the last word. */
		c->size = ((uint64_t)(word_at(p, 4) & SIZE_MASK) & ~UINT64_C(3)) + 4;
		break;
	case OP_TIMESTAMP:
		c->kind = SDMA_TIMESTAMP;
		c->address = pair_at(p, 1);
		break;
	default:
		break;
	}
}

int sdma_command_parse(const void *bytes, size_t size, struct sdma_command *ret)
{
	struct sdma_command c = { .kind = SDMA_NOTHING };
	uint32_t words;

	if (size < sizeof(uint32_t))
		return -EAGAIN;
	words = words_of(word_at(bytes, 0));
	if (!words)
		return -ENOTSUP;
	c.length = words * UINT64_C(4);
	if ((word_at(bytes, 0) & 0xff) != OP_NOP) {
		if (c.length > size)
			return -EAGAIN;
		parse_words(bytes, &c);
	}
	*ret = c;
	return 0;
}

bool sdma_wait_is_over(const struct sdma_command *c, uint32_t word)
{
	uint32_t v = word & c->mask, want = (uint32_t)c->value;

	switch (c->function) {
	case 0: return true;
	case 1: return v < want;
	case 2: return v <= want;
	case 3: return v == want;
	case 4: return v != want;
	case 5: return v >= want;
	default: return v > want;
	}
}
