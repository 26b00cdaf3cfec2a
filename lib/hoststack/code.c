/* SPDX-License-Identifier: MIT */
#include "hoststack/code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "hoststack/line_table.h"
#include "hoststack/string.h"

#define TABLE_MAX  (UINT64_C(1) << 20)
#define LENGTH_MAX (UINT64_C(1) << 28) /* Instructions of one function. */
#define TLBC_MAX   2048
#define HEAD_MAX   320

/* What identifies a code object; the strings follow from it. */
struct identity {
	uint64_t function, file, lines;
	uint64_t length; /* Bytes of instructions; up to 3.10 not known, and 0. */
	uint64_t first_line; /* As wide as the others: they are compared as bytes. */
};

struct hoststack_code {
	uint64_t address; /* 0: the slot is empty. */
	struct identity id;
	char *function, *file;
	uint8_t *lines;
	size_t lines_size;
};

static int read_identity(struct hoststack_memory *m, const struct hoststack_python *p, uint64_t address,
			 struct identity *ret, uint64_t *ret_tlbc)
{
	const struct hoststack_layout *l = &p->layout;
	uint8_t head[HOSTSTACK_CODE_MAX];
	int r = hoststack_read(m, address, head, l->code_size);

	if (r < 0)
		return r;
	if (p->code_type && hoststack_number(head, l->object_type, 8) != p->code_type)
		return -EBADMSG;
	*ret = (struct identity){
		.function = hoststack_number(head, l->code_qualname ? l->code_qualname : l->code_name, 8),
		.file = hoststack_number(head, l->code_file, 8),
		.lines = hoststack_number(head, l->code_lines, 8),
		.first_line = hoststack_number(head, l->code_first_line, 4),
	};
	*ret_tlbc = l->code_tlbc ? hoststack_number(head, l->code_tlbc, 8) : 0;
	/* ob_size of a variable object is behind its head. */
	if (l->minor >= 11) {
		ret->length = 2 * hoststack_number(head, l->object_size, 8);
		if (ret->length > LENGTH_MAX)
			return -EBADMSG;
	}
	return 0;
}

static int read_lines(struct hoststack_memory *m, const struct hoststack_python *p, struct hoststack_code *c)
{
	const struct hoststack_layout *l = &p->layout;
	uint8_t head[HEAD_MAX];
	uint64_t size;
	int r = hoststack_read(m, c->id.lines, head, l->bytes_data);

	if (r < 0)
		return r;
	size = hoststack_number(head, l->bytes_length, 8);
	if ((p->bytes_type && hoststack_number(head, l->object_type, 8) != p->bytes_type) || size > INT64_MAX)
		return -EBADMSG;
	/* Without it the first line is told; a frame is not left out for that. */
	if (size > TABLE_MAX)
		return 0;
	c->lines = malloc(size + 1);
	if (!c->lines)
		return -ENOMEM;
	c->lines_size = size;
	return hoststack_read(m, c->id.lines + l->bytes_data, c->lines, size);
}

static void free_code(struct hoststack_code *c)
{
	free(c->function);
	free(c->file);
	free(c->lines);
}

static int read_code(struct hoststack_memory *m, const struct hoststack_python *p, uint64_t address,
		     const struct identity *id, struct hoststack_code *ret)
{
	struct hoststack_code c = { .address = address, .id = *id };
	int r = hoststack_string(m, &p->layout, id->function, p->str_type, &c.function);

	if (r == 0)
		r = hoststack_string(m, &p->layout, id->file, p->str_type, &c.file);
	if (r == 0)
		r = read_lines(m, p, &c);
	if (r < 0)
		free_code(&c);
	else
		*ret = c;
	return r;
}

/* ------------------------------------------------------------------ the cache ---------------- */

static struct hoststack_code *slot_of(struct hoststack_codes *c, uint64_t address)
{
	size_t i = (size_t)((address >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (c->capacity - 1);

	while (c->slots[i].address && c->slots[i].address != address)
		i = (i + 1) & (c->capacity - 1);
	return &c->slots[i];
}

static int grow(struct hoststack_codes *c)
{
	struct hoststack_codes larger = { .capacity = c->capacity ? 2 * c->capacity : 256 };

	if (2 * c->n < c->capacity)
		return 0;
	larger.slots = calloc(larger.capacity, sizeof(*larger.slots));
	if (!larger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < c->capacity; i++)
		if (c->slots[i].address)
			*slot_of(&larger, c->slots[i].address) = c->slots[i];
	free(c->slots);
	c->slots = larger.slots;
	c->capacity = larger.capacity;
	return 0;
}

/* Another object lies there now, but what the old one was called may have been told. */
static int retire(struct hoststack_codes *c, const struct hoststack_code *code)
{
	struct hoststack_code **grown = reallocarray(c->replaced, c->n_replaced + 1, sizeof(struct hoststack_code *));
	struct hoststack_code *kept = grown ? malloc(sizeof(*kept)) : NULL;

	if (grown)
		c->replaced = grown;
	if (!kept)
		return -ENOMEM;
	*kept = *code;
	c->replaced[c->n_replaced++] = kept;
	return 0;
}

static int find(struct hoststack_codes *c, struct hoststack_memory *m, const struct hoststack_python *p,
		uint64_t address, const struct identity *id, struct hoststack_code **ret)
{
	struct hoststack_code *slot, fresh;
	int r = grow(c);

	if (r < 0)
		return r;
	slot = slot_of(c, address);
	if (slot->address && !memcmp(&slot->id, id, sizeof(*id))) {
		*ret = slot;
		return 0;
	}
	r = read_code(m, p, address, id, &fresh);
	if (r < 0)
		return r;
	if (slot->address)
		r = retire(c, slot);
	else
		c->n++;
	if (r < 0) {
		free_code(&fresh);
		return r;
	}
	*slot = fresh;
	*ret = slot;
	return 0;
}

void hoststack_codes_free(struct hoststack_codes *c)
{
	for (size_t i = 0; i < c->capacity; i++)
		free_code(&c->slots[i]);
	for (size_t i = 0; i < c->n_replaced; i++) {
		free_code(c->replaced[i]);
		free(c->replaced[i]);
	}
	free(c->slots);
	free(c->replaced);
	*c = (struct hoststack_codes){ 0 };
}

/* ------------------------------------------------------------------ places ------------------- */

/* Free-threaded builds give threads copies of the instructions: {n, n pointers}. */
static int find_copy(struct hoststack_memory *m, uint64_t array, uint64_t index, uint64_t *ret)
{
	uint64_t n;
	int r = hoststack_read_u64(m, array, &n);

	if (r == 0 && (index >= n || n > TLBC_MAX))
		return -EBADMSG;
	return r < 0 ? r : hoststack_read_u64(m, array + 8 + 8 * index, ret);
}

/* Bytes from the first instruction; the one before it means that the function has not begun. */
static int offset_of(struct hoststack_memory *m, const struct hoststack_python *p, const struct hoststack_frame *f,
		     const struct identity *id, uint64_t tlbc, int64_t *ret)
{
	uint64_t first = f->code + p->layout.code_instructions;
	int r = 0;

	if (p->layout.minor < 11) {
		*ret = (int32_t)f->at * (p->layout.minor == 10 ? 2 : 1);
		return *ret >= -2 && *ret <= (int64_t)LENGTH_MAX ? 0 : -EBADMSG;
	}
	if (f->tlbc && tlbc)
		r = find_copy(m, tlbc, f->tlbc, &first);
	if (r < 0)
		return r;
	*ret = (int64_t)(f->at - first);
	return *ret >= -2 && *ret < (int64_t)id->length ? 0 : -EBADMSG;
}

int hoststack_codes_name(struct hoststack_codes *c, struct hoststack_memory *m, const struct hoststack_python *p,
			 const struct hoststack_frame *f, struct hoststack_place *ret)
{
	struct hoststack_code *code;
	struct identity id;
	int64_t offset = 0;
	uint64_t tlbc;
	int r;

	r = read_identity(m, p, f->code, &id, &tlbc);
	if (r == 0)
		r = offset_of(m, p, f, &id, tlbc, &offset);
	if (r == 0)
		r = find(c, m, p, f->code, &id, &code);
	if (r < 0)
		return r;
	*ret = (struct hoststack_place){ .function = code->function, .file = code->file,
					.is_entry = f->is_entry };
	ret->line = hoststack_line(p->layout.minor, code->lines, code->lines_size, code->lines ? offset : -1,
				   (uint32_t)id.first_line);
	return 0;
}
