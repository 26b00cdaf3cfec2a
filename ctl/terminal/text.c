/* SPDX-License-Identifier: MIT */
/*
 * Text for people.  What a stranger chose is shown with escapes, because a terminal obeys control
 * characters and reorders text that says so.
 */
#include "ctl/terminal/text.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/out.h"
#include "base/str.h"

/*
 * Whether a character steers the terminal or reorders text: Bidirectional_Control of Unicode 15,
 * line separators, C1 controls, DEL and the byte order mark; or is none at all (U+FFFE and U+FFFF), which XML refuses.
 */
static bool is_steering(uint32_t c)
{
	return (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff ||
	       c == 0xfffe || c == 0xffff;
}

void text_escape(struct out *o, const char *s, size_t size)
{
	for (size_t i = 0, n; i < size; i += n) {
		unsigned char byte = (unsigned char)s[i];
		uint32_t c;

		n = str_utf8_length(s + i, size - i);
		c = n ? str_utf8_code(s + i, n) : 0;
		if (!n) {
			out_fmt(o, "\\x%02x", byte);
			n = 1;
		} else if (c == '\n') {
			out_str(o, "\\n");
		} else if (c == '\t') {
			out_str(o, "\\t");
		} else if (c < 0x20 || c == 0x7f) {
			out_fmt(o, "\\x%02x", byte);
		} else if (is_steering(c)) {
			out_fmt(o, "\\u%04" PRIx32, c);
		} else {
			out_bytes(o, s + i, n);
		}
	}
}

void text_put(struct out *o, const char *before, const char *name, const char *behind)
{
	out_str(o, before);
	text_escape(o, name, strlen(name));
	out_str(o, behind);
}

size_t text_columns(const char *s, size_t size)
{
	size_t columns = 0;

	for (size_t i = 0; i < size; i++)
		/* Continuation bytes of UTF-8 take no column. */
		columns += ((unsigned char)s[i] & 0xc0) != 0x80;
	return columns;
}

/* Bytes of the word at s, with the blanks in front of it. */
static size_t word_size(const char *s, size_t size)
{
	size_t n = 0;

	while (n < size && s[n] == ' ')
		n++;
	while (n < size && s[n] != ' ')
		n++;
	return n;
}

void text_wrap(struct out *o, const char *s, size_t size, size_t width, size_t indent)
{
	size_t column = 0;

	for (size_t n; size; s += n, size -= n) {
		n = word_size(s, size);
		if (width && column && column + text_columns(s, n) > width) {
			out_fmt(o, "\n%*s", (int)indent, "");
			column = indent;
			while (n && *s == ' ')
				s++, size--, n--;
		}
		out_bytes(o, s, n);
		column += text_columns(s, n);
	}
	out_char(o, '\n');
}

void text_size(struct out *o, uint64_t bytes)
{
	static const char *const units[] = { "", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB" };
	uint64_t tenths = 0;
	size_t unit = 0;

	while (bytes >= 1024 && unit + 1 < ARRAY_SIZE(units)) {
		tenths = bytes % 1024 * 10 / 1024;
		bytes /= 1024;
		unit++;
	}
	out_u64(o, bytes);
	if (tenths)
		out_fmt(o, ".%" PRIu64, tenths);
	out_str(o, units[unit]);
}

void text_duration(struct out *o, uint64_t ms)
{
	if (ms < 1000)
		out_fmt(o, "%" PRIu64 " ms", ms);
	else
		out_fmt(o, "%" PRIu64 ".%" PRIu64 " s", ms / 1000, ms % 1000 / 100);
}

/* Append one row of at most 16 bytes; a short one is padded, so that the ASCII view is aligned. */
static void hexdump_row(struct out *o, uint64_t address, const uint8_t *data, size_t n)
{
	out_fmt(o, "%016" PRIx64 " ", address);
	for (size_t i = 0; i < 16; i++) {
		out_str(o, i == 8 ? "  " : " ");
		if (i < n)
			out_fmt(o, "%02x", data[i]);
		else
			out_str(o, "  ");
	}
	out_str(o, "  |");
	for (size_t i = 0; i < n; i++)
		out_char(o, data[i] >= 0x20 && data[i] < 0x7f ? (char)data[i] : '.');
	out_str(o, "|\n");
}

void text_hexdump(struct out *o, uint64_t address, const uint8_t *data, size_t size)
{
	for (size_t at = 0; at < size; at += 16)
		hexdump_row(o, address + at, data + at, size - at < 16 ? size - at : 16);
}
