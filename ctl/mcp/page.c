/* SPDX-License-Identifier: MIT */
#include "ctl/mcp/page.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/out.h"
#include "base/str.h"

static bool is_hidden(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{ 0, 0x08 },	      { 0x0b, 0x1f },	  { 0x7f, 0x9f },     { 0xad, 0xad },	  { 0x061c, 0x061c },
		{ 0x180e, 0x180e },   { 0x200b, 0x200f }, { 0x2028, 0x202e }, { 0x2060, 0x206f }, { 0xfe00, 0xfe0f },
		{ 0xfeff, 0xfeff },   { 0xfff9, 0xfffb }, { 0xe0000, 0xe0fff },
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (c >= ranges[i].first && c <= ranges[i].last)
			return true;
	return false;
}

static void clean_line(struct out *o, const char *text, size_t size)
{
	size_t kept = 0, at = 0;

	while (at < size && kept < PAGE_LINE_MAX) {
		size_t n = str_utf8_length(text + at, size - at);

		if (n && !is_hidden(str_utf8_code(text + at, n)))
			out_bytes(o, text + at, n);
		else
			out_char(o, '?');
		at += n ? n : 1;
		kept += n ? n : 1;
	}
	if (at < size)
		out_fmt(o, "... [%zu bytes more]", size - at);
}

void page_clean(struct out *o, const char *text, size_t size)
{
	while (size) {
		const char *end = memchr(text, '\n', size);
		size_t n = end ? (size_t)(end - text) : size;

		clean_line(o, text, n);
		if (end)
			out_char(o, '\n');
		n += end != NULL;
		text += n;
		size -= n;
	}
}

static void put_escape(struct out *o, uint32_t c)
{
	if (c >= 0x10000)
		out_fmt(o, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10), 0xdc00 + ((c - 0x10000) & 0x3ff));
	else
		out_fmt(o, "\\u%04x", c);
}

void page_json(struct out *o, const char *text, size_t size)
{
	size_t plain = 0;

	for (size_t at = 0, n; at < size; at += n) {
		uint32_t c;

		n = str_utf8_length(text + at, size - at);
		n = n ? n : 1;
		c = str_utf8_code(text + at, n);
		/* In JSON, those below 0x20 are blanks between what it says. */
		if (c < 0x20 || !is_hidden(c))
			continue;
		out_bytes(o, text + plain, at - plain);
		put_escape(o, c);
		plain = at + n;
	}
	out_bytes(o, text + plain, size - plain);
}

size_t page_end(const char *text, size_t size, size_t offset, size_t max)
{
	size_t end = offset + max;

	if (offset >= size || size - offset <= max)
		return size;
	for (size_t at = end; at > offset; at--)
		if (text[at - 1] == '\n')
			return at;
	/* One line is longer than a page: it is cut between two letters. */
	while (end > offset + 1 && ((unsigned char)text[end] & 0xc0) == 0x80)
		end--;
	return end;
}
