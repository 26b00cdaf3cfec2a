/* SPDX-License-Identifier: MIT */
#include "symbols/code_list.h"

#include <errno.h>
#include <stdlib.h>

#include "base/reader.h"
#include "base/vec.h"
#include "symbols/uri.h"

/* Sizes of the structures on a 64-bit host, as in glibc's <link.h>. */
#define R_DEBUG_SIZE  40
#define LINK_MAP_SIZE 40

struct link_map_image {
	uint64_t bias, name, next;
};

/* The lists that grow during the walk. */
struct walk {
	const struct symbols_memory *m;
	struct symbols_code *items;
	size_t *uri_at; /**< Offsets of the URIs in @c text, which moves when it grows. */
	size_t n, capacity, uri_capacity;
	char *text;
	size_t text_size, text_capacity;
};

static int read_link_map(const struct symbols_memory *m, uint64_t address,
			 struct link_map_image *ret)
{
	uint8_t bytes[LINK_MAP_SIZE];
	struct reader r;
	int error = symbols_memory_read(m, address, bytes, sizeof(bytes));

	if (error < 0)
		return error;
	reader_init(&r, bytes, sizeof(bytes));
	ret->bias = reader_u64(&r);
	ret->name = reader_u64(&r);
	reader_skip(&r, 8); /* The member l_ld. */
	ret->next = reader_u64(&r);
	return 0;
}

static int add(struct walk *w, uint64_t entry, const struct link_map_image *l)
{
	ssize_t length = -EFAULT;

	if (vec_reserve(&w->items, w->n, 1, &w->capacity, sizeof(*w->items)) < 0 ||
	    vec_reserve(&w->uri_at, w->n, 1, &w->uri_capacity, sizeof(*w->uri_at)) < 0 ||
	    vec_reserve(&w->text, w->text_size, SYMBOLS_URI_MAX + 1, &w->text_capacity, 1) < 0)
		return -ENOMEM;
	if (l->name)
		length = symbols_memory_string(w->m, l->name, w->text + w->text_size,
					       SYMBOLS_URI_MAX);
	if (length < 0)
		length = 0;
	w->text[w->text_size + (size_t)length] = '\0';
	w->uri_at[w->n] = w->text_size;
	w->items[w->n++] = (struct symbols_code){ .entry = entry, .bias = l->bias };
	w->text_size += (size_t)length + 1;
	return 0;
}

/*
 * Drop the entries that the walk met twice: it was at the same entry @p period entries before the
 * end.
 */
static void drop_repeated(struct walk *w, size_t period)
{
	size_t i = 0;

	while (i + period < w->n && w->items[i].entry != w->items[i + period].entry)
		i++;
	if (i + period < w->n)
		w->n = i + period;
}

static int walk_entries(struct walk *w, uint64_t entry, enum symbols_code_list_end *ret_end)
{
	uint64_t mark = 0;
	size_t marked_at = 0, next_mark = 1;
	int r;

	while (entry) {
		struct link_map_image l;

		/*
		 * Brent's algorithm finds cycles: the mark jumps ahead in powers of two until it
		 * lies inside the cycle.
		 */
		if (entry == mark) {
			drop_repeated(w, w->n - marked_at);
			*ret_end = SYMBOLS_CODE_LIST_CYCLE;
			return 0;
		}
		if (w->n == next_mark) {
			mark = entry;
			marked_at = w->n;
			next_mark *= 2;
		}
		if (w->n == SYMBOLS_CODE_LIST_MAX || w->text_size > SYMBOLS_CODE_LIST_URI_BYTES) {
			*ret_end = SYMBOLS_CODE_LIST_TOO_MANY;
			return 0;
		}
		if (read_link_map(w->m, entry, &l) < 0) {
			*ret_end = SYMBOLS_CODE_LIST_UNREADABLE;
			return 0;
		}
		r = add(w, entry, &l);
		if (r < 0)
			return r;
		entry = l.next;
	}
	*ret_end = SYMBOLS_CODE_LIST_COMPLETE;
	return 0;
}

int symbols_code_list_read(const struct symbols_memory *m, uint64_t r_debug,
			   struct symbols_code_list *ret)
{
	struct symbols_code_list l = { 0 };
	struct walk w = { .m = m };
	uint8_t bytes[R_DEBUG_SIZE];
	struct reader rd;
	uint64_t first;
	int32_t state;
	int r = symbols_memory_read(m, r_debug, bytes, sizeof(bytes));

	if (r < 0)
		return r;
	reader_init(&rd, bytes, sizeof(bytes));
	l.r_version = (int32_t)reader_u32(&rd);
	reader_skip(&rd, 4);
	first = reader_u64(&rd);
	l.r_brk = reader_u64(&rd);
	state = (int32_t)reader_u32(&rd);
	if (l.r_version < SYMBOLS_R_VERSION_MIN)
		return -EPROTONOSUPPORT;
	if (state != 0)
		return SYMBOLS_CODE_LIST_CHANGING;
	r = walk_entries(&w, first, &l.end);
	for (size_t i = 0; i < w.n; i++)
		w.items[i].uri = w.text + w.uri_at[i];
	free(w.uri_at);
	l.items = w.items;
	l.n_items = w.n;
	l.text = w.text;
	if (r < 0) {
		symbols_code_list_deinit(&l);
		return r;
	}
	*ret = l;
	return 0;
}

void symbols_code_list_deinit(struct symbols_code_list *l)
{
	free(l->items);
	free(l->text);
	*l = (struct symbols_code_list){ 0 };
}
