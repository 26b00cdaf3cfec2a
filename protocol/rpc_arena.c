/* SPDX-License-Identifier: MIT */
/*
 * The arena is a list of blocks.  Pieces are cut off the first block; one that does not fit there
 * gets a new block in front, and what was left of the old one stays unused.
 */
#include "protocol/rpc_arena.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT  16
#define BLOCK_SIZE 4096

struct rpc_arena_block {
	struct rpc_arena_block *next;
	size_t size, used; /* Bytes of data, and those handed out. */
	_Alignas(ALIGNMENT) char data[];
};

void rpc_arena_init(struct rpc_arena *a, size_t limit)
{
	*a = (struct rpc_arena){ .limit = limit ? limit : RPC_ARENA_LIMIT_DEFAULT };
}

static void free_blocks(struct rpc_arena_block *b)
{
	struct rpc_arena_block *next;

	for (; b; b = next) {
		next = b->next;
		free(b);
	}
}

void rpc_arena_deinit(struct rpc_arena *a)
{
	free_blocks(a->head);
	*a = (struct rpc_arena){ 0 };
}

void rpc_arena_reset(struct rpc_arena *a)
{
	struct rpc_arena_block *keep = a->head;

	if (keep) {
		free_blocks(keep->next);
		keep->next = NULL;
		keep->used = 0;
		/* One large call must not make an idle connection keep a large block. */
		if (keep->size > BLOCK_SIZE) {
			free(keep);
			keep = NULL;
		}
	}
	*a = (struct rpc_arena){ .head = keep, .limit = a->limit };
}

static void *failed(struct rpc_arena *a, int error)
{
	if (!a->error)
		a->error = error;
	return NULL;
}

static struct rpc_arena_block *add_block(struct rpc_arena *a, size_t size)
{
	struct rpc_arena_block *b;

	if (size < BLOCK_SIZE)
		size = BLOCK_SIZE;
	b = malloc(sizeof(*b) + size);
	if (!b)
		return failed(a, -ENOMEM);
	b->size = size;
	b->used = 0;
	b->next = a->head;
	a->head = b;
	return b;
}

void *rpc_arena_alloc(struct rpc_arena *a, size_t size)
{
	struct rpc_arena_block *b = a->head;
	size_t padded;
	void *p;

	if (size > a->limit || a->used > a->limit - size)
		return failed(a, -EFBIG);
	/* The size is at most the limit, so that the sum does not overflow. */
	padded = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	if (!padded)
		padded = ALIGNMENT;
	if (!b || padded > b->size - b->used) {
		b = add_block(a, padded);
		if (!b)
			return NULL;
	}
	p = b->data + b->used;
	b->used += padded;
	a->used += padded;
	return memset(p, 0, size);
}

void *rpc_arena_array(struct rpc_arena *a, size_t n, size_t size)
{
	size_t total;

	if (__builtin_mul_overflow(n, size, &total))
		return failed(a, -EFBIG);
	return rpc_arena_alloc(a, total);
}

char *rpc_arena_strndup(struct rpc_arena *a, const char *s, size_t size)
{
	char *p;

	if (size == SIZE_MAX)
		return failed(a, -EFBIG);
	p = rpc_arena_alloc(a, size + 1);
	if (p && size)
		memcpy(p, s, size);
	return p;
}

char *rpc_arena_strdup(struct rpc_arena *a, const char *s)
{
	return s ? rpc_arena_strndup(a, s, strlen(s)) : NULL;
}

char *rpc_arena_vprintf(struct rpc_arena *a, const char *fmt, va_list ap)
{
	va_list again;
	char *p;
	int n;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (n < 0)
		return failed(a, -ENOMEM);
	p = rpc_arena_alloc(a, (size_t)n + 1);
	if (p)
		vsnprintf(p, (size_t)n + 1, fmt, ap);
	return p;
}

char *rpc_arena_printf(struct rpc_arena *a, const char *fmt, ...)
{
	va_list ap;
	char *p;

	va_start(ap, fmt);
	p = rpc_arena_vprintf(a, fmt, ap);
	va_end(ap);
	return p;
}

char *rpc_arena_base64(struct rpc_arena *a, const void *data, size_t size)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *text = rpc_arena_alloc(a, (size + 2) / 3 * 4 + 1), *o = text;
	const uint8_t *p = data;

	if (!text)
		return NULL;
	for (; size >= 3; size -= 3, p += 3) {
		uint32_t v = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];

		*o++ = digits[v >> 18];
		*o++ = digits[v >> 12 & 63];
		*o++ = digits[v >> 6 & 63];
		*o++ = digits[v & 63];
	}
	if (size) {
		/* One or two bytes are left; they become two or three digits, and padding. */
		uint32_t v = (uint32_t)p[0] << 16 | (size > 1 ? (uint32_t)p[1] << 8 : 0);

		*o++ = digits[v >> 18];
		*o++ = digits[v >> 12 & 63];
		*o++ = size > 1 ? digits[v >> 6 & 63] : '=';
		*o++ = '=';
	}
	*o = '\0';
	return text;
}
