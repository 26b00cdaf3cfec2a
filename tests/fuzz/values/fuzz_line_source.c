/* SPDX-License-Identifier: MIT */
/* Sources in line tables: two bytes say how much of the input is the table, two how much its strings. */
#include <errno.h>
#include <string.h>

#include "fuzzlib.h"
#include "symbols/debug/line_source.h"

static size_t take(const uint8_t *data, size_t left, size_t at)
{
	size_t n = data[at] | (size_t)data[at + 1] << 8;

	return n < left ? n : left;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct line_sections s = { 0 };
	const char *text = NULL;
	size_t n = 0;
	int r;

	if (size < 4)
		return 0;
	s.line = (struct line_section){ data + 4, take(data, size - 4, 0) };
	s.line_str = (struct line_section){ s.line.data + s.line.size, 0 };
	s.line_str.size = take(data, size - 4 - s.line.size, 2);
	s.str = (struct line_section){ s.line_str.data + s.line_str.size, size - 4 - s.line.size - s.line_str.size };
	r = line_source_find(&s, 0, "/src/kernel.cl", &text, &n);
	if (r == 0 && (!text || !n || strlen(text) != n))
		__builtin_trap();
	if (r == 0 && ((const uint8_t *)text < data || (const uint8_t *)text + n >= data + size))
		__builtin_trap();
	if (r != 0 && r != -ENOENT && r != -EBADMSG && r != -ENOMEM)
		__builtin_trap();
	return 0;
}
