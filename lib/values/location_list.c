/* SPDX-License-Identifier: MIT */
#include "values/location_list.h"

#include <dwarf.h>
#include <errno.h>

#include "base/reader.h"

#define ENTRIES_MAX 100000u

static struct values_operations read_expression(struct reader *r, uint64_t size)
{
	struct values_operations x = { .data = reader_bytes(r, size), .size = size };

	return x;
}

static int find_old(const struct location_list *l, struct reader *r, uint64_t address,
		    struct values_operations *ret)
{
	uint64_t base = l->base;

	for (unsigned i = 0; i < ENTRIES_MAX; i++) {
		uint64_t low = reader_u64(r), high = reader_u64(r);

		if (reader_is_bad(r))
			return -EBADMSG;
		if (!low && !high)
			return -ENOENT;
		if (low == UINT64_MAX) {
			base = high;
			continue;
		}
		*ret = read_expression(r, reader_u16(r));
		if (reader_is_bad(r))
			return -EBADMSG;
		if (address >= base + low && address < base + high)
			return 0;
	}
	return -EBADMSG;
}

/* An address by its number; the reader turns bad when there is none. */
static uint64_t indexed(const struct location_list *l, struct reader *r)
{
	uint64_t i = reader_uleb(r);
	struct reader a;

	if (i >= l->n_addresses) {
		reader_fail(r);
		return 0;
	}
	reader_init(&a, l->addresses + i * 8, 8);
	return reader_u64(&a);
}

struct entry {
	uint64_t low, high;
	bool has_expression, is_default;
};

static void read_entry(const struct location_list *l, struct reader *r, uint8_t kind,
		       uint64_t *base, struct entry *e)
{
	*e = (struct entry){ .has_expression = true };
	switch (kind) {
	case DW_LLE_base_addressx:
		*base = indexed(l, r);
		e->has_expression = false;
		break;
	case DW_LLE_startx_endx:
		e->low = indexed(l, r);
		e->high = indexed(l, r);
		break;
	case DW_LLE_startx_length:
		e->low = indexed(l, r);
		e->high = e->low + reader_uleb(r);
		break;
	case DW_LLE_offset_pair:
		e->low = *base + reader_uleb(r);
		e->high = *base + reader_uleb(r);
		break;
	case DW_LLE_default_location:
		e->is_default = true;
		break;
	case DW_LLE_base_address:
		*base = reader_u64(r);
		e->has_expression = false;
		break;
	case DW_LLE_start_end:
		e->low = reader_u64(r);
		e->high = reader_u64(r);
		break;
	case DW_LLE_start_length:
		e->low = reader_u64(r);
		e->high = e->low + reader_uleb(r);
		break;
	default:
		reader_fail(r);
	}
}

static int find_new(const struct location_list *l, struct reader *r, uint64_t address,
		    struct values_operations *ret)
{
	uint64_t base = l->base;
	bool has_default = false;
	struct values_operations x;
	struct entry e;

	for (unsigned i = 0; i < ENTRIES_MAX; i++) {
		uint8_t kind = reader_u8(r);

		if (reader_is_bad(r))
			return -EBADMSG;
		if (kind == DW_LLE_end_of_list)
			return has_default ? 0 : -ENOENT;
		read_entry(l, r, kind, &base, &e);
		if (!e.has_expression)
			continue;
		x = read_expression(r, reader_uleb(r));
		if (reader_is_bad(r))
			return -EBADMSG;
		if (e.is_default || (address >= e.low && address < e.high))
			*ret = x;
		if (!e.is_default && address >= e.low && address < e.high)
			return 0;
		has_default |= e.is_default;
	}
	return -EBADMSG;
}

int location_list_find(const struct location_list *l, uint64_t address,
		       struct values_operations *ret)
{
	struct reader r;

	if (!l->section || l->offset > l->size)
		return -EBADMSG;
	reader_init(&r, l->section, l->size);
	reader_seek(&r, l->offset);
	return l->is_old ? find_old(l, &r, address, ret) : find_new(l, &r, address, ret);
}
