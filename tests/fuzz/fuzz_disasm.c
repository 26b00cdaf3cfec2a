/* SPDX-License-Identifier: MIT */
#include "fuzzlib.h"

#include <stdlib.h>

#include "disasm/disasm.h"

#define LINES_MAX 64

/*
 * The first two bytes choose the range, the others are code.  Without a library, so that only our
 * own bounds are tried.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct disasm_options o[] = { { .cpu = "gfx90a", .library = "/nonexistent" },
						   { .cpu = "sm_90" } };
	static struct disasm *d[2];
	static struct disasm_line lines[LINES_MAX];
	struct disasm_range r = { .start = 0x1000 };
	uint64_t next;
	size_t at;
	ssize_t n;

	for (size_t i = 0; i < 2; i++)
		if (!d[i] && disasm_open(&o[i], &d[i]) < 0)
			abort();
	if (size < 3)
		return 0;
	r.around = r.start + data[0];
	r.before = data[1] % (LINES_MAX / 2);
	r.count = LINES_MAX / 2;
	n = disasm_lines(d[data[1] >> 7], data + 2, size - 2, &r, lines, &at);
	if (n < 0)
		return 0;
	if (!n || at > r.before || lines[at].address != r.around)
		abort();
	next = lines[0].address;
	for (ssize_t i = 0; i < n; i++) {
		if (lines[i].address != next || !lines[i].size || !lines[i].text[0] ||
		    lines[i].address - r.start + lines[i].size > size - 2)
			abort();
		next += lines[i].size;
	}
	return 0;
}
