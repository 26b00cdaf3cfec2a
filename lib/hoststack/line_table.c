/* SPDX-License-Identifier: MIT */
#include "hoststack/line_table.h"

#include "base/reader.h"

/* Codes of an entry (3.11 on). */
enum { SHORT_MAX = 9, ONE_LINE_MIN = 10, ONE_LINE_MAX = 12, NO_COLUMNS = 13, LONG = 14, NONE = 15 };

#define NO_LINE (-128) /* In tables of 3.10. */

static uint32_t as_line(int64_t line)
{
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

/* Up to 3.9: pairs of an address and a line increment. */
static uint32_t line_of_increments(struct reader *t, int64_t offset, uint32_t first)
{
	int64_t line = first, at = 0;

	while (reader_left(t) >= 2) {
		at += reader_u8(t);
		if (at > offset)
			break;
		line += (int8_t)reader_u8(t);
	}
	return as_line(line);
}

/* 3.10: pairs of the length of a range and a line increment. */
static uint32_t line_of_ranges(struct reader *t, int64_t offset, uint32_t first)
{
	int64_t line = first, end = 0;

	while (reader_left(t) >= 2) {
		uint8_t length = reader_u8(t);
		int8_t delta = (int8_t)reader_u8(t);

		end += length;
		if (delta != NO_LINE)
			line += delta;
		if (offset < end)
			return delta == NO_LINE ? 0 : as_line(line);
	}
	return 0;
}

static uint64_t read_varint(struct reader *t)
{
	uint64_t v = 0;
	unsigned shift = 0;
	uint8_t b;

	do {
		b = reader_u8(t);
		if (shift < 60)
			v |= (uint64_t)(b & 0x3f) << shift;
		shift += 6;
	} while (b & 0x40 && !reader_is_bad(t));
	return v & UINT32_MAX;
}

static int64_t read_signed(struct reader *t)
{
	uint64_t v = read_varint(t);

	return v & 1 ? -(int64_t)(v >> 1) : (int64_t)(v >> 1);
}

/* 3.11 on: entries of a code, a length in units of two bytes, and what the code has. */
static uint32_t line_of_entries(struct reader *t, int64_t offset, uint32_t first)
{
	int64_t line = first, end = 0;

	while (reader_left(t)) {
		uint8_t head = reader_u8(t), code = head >> 3 & 15;

		if (!(head & 0x80))
			return 0;
		end += 2 * ((head & 7) + 1);
		if (code == LONG || code == NO_COLUMNS)
			line += read_signed(t);
		else if (code >= ONE_LINE_MIN && code <= ONE_LINE_MAX)
			line += code - ONE_LINE_MIN;
		if (offset < end)
			return code == NONE || reader_is_bad(t) ? 0 : as_line(line);
		if (code <= SHORT_MAX)
			reader_skip(t, 1);
		else if (code <= ONE_LINE_MAX)
			reader_skip(t, 2);
		else if (code == LONG)
			for (int i = 0; i < 3; i++)
				read_varint(t);
	}
	return 0;
}

uint32_t hoststack_line(unsigned minor, const uint8_t *table, size_t size, int64_t offset, uint32_t first)
{
	struct reader t;

	if (offset < 0)
		return as_line(first);
	reader_init(&t, table, size);
	if (minor < 10)
		return line_of_increments(&t, offset, first);
	return minor == 10 ? line_of_ranges(&t, offset, first) : line_of_entries(&t, offset, first);
}
