/* SPDX-License-Identifier: MIT */
#include "hoststack/native/stack_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE  UINT64_C(4096)
#define CHUNK UINT64_C(16384)

void native_stack_copy_begin(struct native_stack_copy *c, uint64_t stack_pointer)
{
	c->begin = stack_pointer;
	c->size = 0;
	c->is_whole = c->was_left = false;
}

static int reserve(struct native_stack_copy *c, size_t size)
{
	uint8_t *grown;

	if (size <= c->capacity)
		return 0;
	grown = realloc(c->bytes, size);
	if (!grown)
		return -ENOMEM;
	c->bytes = grown;
	c->capacity = size;
	return 0;
}

int native_stack_copy_take(struct native_stack_copy *c, uint64_t begin, const void *bytes, size_t size)
{
	native_stack_copy_begin(c, begin);
	if (reserve(c, size) < 0)
		return -ENOMEM;
	if (size)
		memcpy(c->bytes, bytes, size);
	c->size = size;
	c->is_whole = true;
	return 0;
}

void native_stack_copy_free(struct native_stack_copy *c)
{
	free(c->bytes);
	c->bytes = NULL;
	c->size = c->capacity = 0;
}

/* Copy on up to an address. */
static int extend(struct native_stack_copy *c, uint64_t end)
{
	const uint64_t size = end - c->begin;
	int r = reserve(c, size);

	if (r < 0)
		return r;
	r = hoststack_read(c->memory, c->begin + c->size, c->bytes + c->size, size - c->size);
	if (r == 0)
		c->size = size;
	return r;
}

int native_stack_copy_read(struct native_stack_copy *c, uint64_t address, void *buf, size_t size)
{
	const uint64_t offset = address - c->begin;
	int r = 0;

	if (c->is_whole && (address < c->begin || offset > c->size || size > c->size - offset)) {
		c->was_left = true;
		return -EFAULT;
	}
	if (c->is_whole) {
		memcpy(buf, c->bytes + offset, size);
		return 0;
	}
	if (address < c->begin || offset > NATIVE_COPY_MAX - CHUNK - PAGE || size > PAGE)
		return hoststack_read(c->memory, address, buf, size);
	if (offset + size > c->size) {
		const uint64_t end = (address + size + PAGE - 1) & ~(PAGE - 1);

		/* Most walks need one page.  Whoever reads beyond what is mapped has all mappings looked up again. */
		r = extend(c, end + (c->size < CHUNK ? c->size : CHUNK));
		/* Less than that is mapped. */
		if (r == -EFAULT)
			r = extend(c, end);
	}
	if (r == 0)
		memcpy(buf, c->bytes + offset, size);
	return r;
}
