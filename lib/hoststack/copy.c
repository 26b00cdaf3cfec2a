/* SPDX-License-Identifier: MIT */
#include "hoststack/copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Blocks are 16 KiB, unless one frame needs more; deeper stacks are copied in part, the innermost. */
#define COPY_MAX     ((size_t)1 << 20)
#define BLOCK_HEAD   24 /* Of struct _stack_chunk: previous, size, top. */

/* What must not change while the copy is taken. */
struct bracket {
	uint64_t frame; /* Or the cframe's address. */
	uint64_t block;
	uint64_t cframe_frame;
	uint64_t pthread; /* The state may be another thread's by now. */
};

static struct bracket bracket_of(const struct hoststack_layout *l, const uint8_t *state, uint64_t cframe_frame)
{
	return (struct bracket){ .frame = hoststack_number(state, l->thread_frame, 8),
				 .block = l->thread_chunk ? hoststack_number(state, l->thread_chunk, 8) : 0,
				 .cframe_frame = cframe_frame,
				 .pthread = hoststack_number(state, l->thread_id, 8) };
}

static bool is_same(const struct bracket *a, const struct bracket *b)
{
	return a->frame == b->frame && a->block == b->block && a->cframe_frame == b->cframe_frame &&
	       a->pthread == b->pthread;
}

/* Follow the list of blocks, newest first. */
static int find_blocks(struct hoststack_memory *m, uint64_t block, struct hoststack_copy *c, size_t *ret_bytes)
{
	uint64_t head[BLOCK_HEAD / 8];
	size_t sum = 0;
	int r = 0;

	while (block && c->n_blocks < HOSTSTACK_BLOCKS_MAX) {
		r = hoststack_read(m, block, head, sizeof(head));
		if (r < 0 || head[1] < BLOCK_HEAD || head[1] > COPY_MAX - sum)
			break;
		c->blocks[c->n_blocks].address = block;
		c->blocks[c->n_blocks++].size = head[1];
		sum += head[1];
		block = head[0];
	}
	c->n_stack = c->n_blocks;
	*ret_bytes = sum;
	return hoststack_is_over(r) ? r : 0;
}

/*
 * The newest block is used up to datastack_top, which follows datastack_chunk in the thread state.  What is pushed
 * after that is not in the copy, and told as such.
 */
static size_t cut_newest(const struct hoststack_layout *l, const uint8_t *state, struct hoststack_copy *c)
{
	uint64_t used, size;

	if (!c->n_stack || l->thread_chunk + 16 > l->thread_size)
		return 0;
	size = c->blocks[0].size;
	used = hoststack_number(state, l->thread_chunk + 8, 8) - c->blocks[0].address;
	if (used < BLOCK_HEAD || used >= size)
		return 0;
	c->blocks[0].size = used;
	return size - used;
}

/* What the last walk found elsewhere. */
static size_t add_outside(struct hoststack_copy *c, uint32_t frame_size)
{
	size_t n = c->n_outside;

	for (size_t i = 0; i < n; i++) {
		c->blocks[c->n_blocks].address = c->outside[i];
		c->blocks[c->n_blocks++].size = frame_size;
	}
	c->n_outside = 0;
	return n * frame_size;
}

static int make_room(struct hoststack_copy *c, size_t bytes)
{
	uint8_t *grown, *at;

	if (bytes > c->capacity) {
		grown = realloc(c->memory, bytes);
		if (!grown)
			return -ENOMEM;
		c->memory = grown;
		c->capacity = bytes;
	}
	at = c->memory;
	for (size_t i = 0; i < c->n_blocks; at += c->blocks[i++].size)
		c->blocks[i].bytes = at;
	return 0;
}

/* The list is what it was when it was followed. */
static bool has_same_list(const struct hoststack_copy *c)
{
	for (size_t i = 0; i < c->n_stack; i++)
		if ((i && hoststack_number(c->blocks[i].bytes, 8, 8) != c->blocks[i].size) ||
		    (i + 1 < c->n_stack && hoststack_number(c->blocks[i].bytes, 0, 8) != c->blocks[i + 1].address))
			return false;
	return true;
}

/* Thread state, blocks, thread state, in this order. */
static int read_bracketed(struct hoststack_memory *m, const struct hoststack_layout *l, uint64_t state,
			  const struct bracket *before, struct hoststack_copy *c)
{
	uint8_t first[HOSTSTACK_STATE_MAX], last[HOSTSTACK_STATE_MAX];
	struct hoststack_piece pieces[HOSTSTACK_BLOCKS_MAX + HOSTSTACK_OUTSIDE_MAX + 4];
	uint64_t first_frame = 0, last_frame = 0;
	struct bracket a, b;
	size_t n = 0;
	int r;

	pieces[n++] = (struct hoststack_piece){ state, first, l->thread_size };
	if (l->has_cframe)
		pieces[n++] = (struct hoststack_piece){ before->frame + l->cframe_frame, &first_frame, 8 };
	for (size_t i = 0; i < c->n_blocks; i++)
		pieces[n++] = (struct hoststack_piece){ c->blocks[i].address, c->blocks[i].bytes, c->blocks[i].size };
	if (l->has_cframe)
		pieces[n++] = (struct hoststack_piece){ before->frame + l->cframe_frame, &last_frame, 8 };
	pieces[n++] = (struct hoststack_piece){ state, last, l->thread_size };
	r = hoststack_read_pieces(m, pieces, n);
	if (r < 0)
		return r == -EFAULT ? -EAGAIN : r;
	a = bracket_of(l, first, first_frame);
	b = bracket_of(l, last, last_frame);
	if (!is_same(&a, &b) || a.frame != before->frame || a.block != before->block ||
	    a.pthread != before->pthread || !has_same_list(c))
		return -EAGAIN;
	c->frame = l->has_cframe ? first_frame : a.frame;
	return 0;
}

int hoststack_copy_take(struct hoststack_memory *m, const struct hoststack_python *p,
			const struct hoststack_thread *thread, struct hoststack_copy *c)
{
	const struct hoststack_layout *l = &p->layout;
	uint8_t state[HOSTSTACK_STATE_MAX];
	struct bracket before;
	size_t bytes = 0;
	int r = hoststack_read(m, thread->state, state, l->thread_size);

	c->n_blocks = c->n_stack = 0;
	c->frame = 0;
	if (r < 0)
		return r;
	before = bracket_of(l, state, 0);
	if (before.pthread != thread->pthread)
		return -EAGAIN;
	/* It has no frame at all, or has not begun. */
	if (!before.frame)
		return 0;
	if (before.block)
		r = find_blocks(m, before.block, c, &bytes);
	bytes -= cut_newest(l, state, c);
	bytes += add_outside(c, l->frame_size);
	if (r == 0)
		r = make_room(c, bytes);
	return r < 0 ? r : read_bracketed(m, l, thread->state, &before, c);
}

void hoststack_copy_free(struct hoststack_copy *c)
{
	free(c->memory);
	*c = (struct hoststack_copy){ 0 };
}

void hoststack_copy_forget(struct hoststack_copy *c)
{
	c->n_outside = 0;
}

int hoststack_copy_read(struct hoststack_copy *c, struct hoststack_memory *m, uint64_t address, void *buf, size_t size,
			bool *ret_live)
{
	for (size_t i = 0; i < c->n_blocks; i++)
		if (address >= c->blocks[i].address && address - c->blocks[i].address < c->blocks[i].size &&
		    size <= c->blocks[i].size - (address - c->blocks[i].address)) {
			memcpy(buf, c->blocks[i].bytes + (address - c->blocks[i].address), size);
			if (i >= c->n_stack && c->n_outside < HOSTSTACK_OUTSIDE_MAX)
				c->outside[c->n_outside++] = address;
			return 0;
		}
	if (c->n_outside < HOSTSTACK_OUTSIDE_MAX)
		c->outside[c->n_outside++] = address;
	*ret_live = true;
	return hoststack_read(m, address, buf, size);
}
