/* SPDX-License-Identifier: MIT */
/* Memory of a process that says that it is Python: headers, table of offsets, lists, frames, strings, lines. */
#include <errno.h>
#include <string.h>

#include "fuzzlib.h"
#include "hoststack/line_table.h"
#include "hoststack/stack.h"

#define BASE UINT64_C(0x10000)

struct image {
	const uint8_t *data;
	size_t size;
};

static int read_image(void *ctx, const struct hoststack_piece *pieces, size_t n)
{
	const struct image *i = ctx;

	for (size_t k = 0; k < n; k++) {
		/* Small addresses lead somewhere, too, so that mutations reach far. */
		uint64_t at = pieces[k].address >= BASE ? pieces[k].address - BASE : pieces[k].address;

		memset(pieces[k].buf, 0, pieces[k].size);
		if (at >= i->size)
			return -EFAULT;
		memcpy(pieces[k].buf, i->data + at, pieces[k].size < i->size - at ? pieces[k].size : i->size - at);
	}
	return 0;
}

static bool no(void *ctx, uint64_t tid)
{
	return false;
}

static void read_threads(struct hoststack_memory *m, const struct hoststack_python *p)
{
	static const uint32_t tids[] = { 1, 2, 3 };
	struct hoststack_reader r = { .memory = m, .python = p, .watch = { no, no, NULL } };
	struct hoststack_threads t;
	struct hoststack_stack s;

	if (hoststack_threads_list(m, p, &t) < 0)
		return;
	hoststack_find_tids(m, &t, tids, 3);
	for (size_t i = 0; i < t.n && i < 4; i++)
		hoststack_stack_read(&r, &t.list[i], &s);
	hoststack_threads_free(&t);
	hoststack_reader_deinit(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct image image = { data, size };
	struct hoststack_memory m = { .read = read_image, .ctx = &image, .bytes_left = 1 << 20 };
	struct hoststack_python p;

	if (hoststack_python_find(&m, BASE, &p) == 0)
		read_threads(&m, &p);
	for (unsigned minor = 8; minor <= 12; minor++) {
		p = (struct hoststack_python){ .runtime = BASE, .layout = *hoststack_layout_row(minor) };
		m.bytes_left = 1 << 20;
		read_threads(&m, &p);
		hoststack_line(minor, data, size, 1000, 1);
	}
	p = (struct hoststack_python){ .runtime = BASE };
	m.bytes_left = 1 << 20;
	if (size >= 16 && hoststack_layout_read(data, size, &p.layout) == 0)
		read_threads(&m, &p);
	return 0;
}
