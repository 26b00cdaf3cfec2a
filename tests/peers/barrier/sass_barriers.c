/* SPDX-License-Identifier: MIT */
/* Which barriers lib/waits sees in code: usage: sass_barriers ARCH <CODE.  A line for each. */
#include <stdio.h>

#include "waits/sass.h"

static void put(uint8_t reg, uint64_t value)
{
	if (reg != WAITS_SASS_NO_REGISTER)
		printf(" R%u", reg);
	else
		printf(" 0x%llx", (unsigned long long)value);
}

int main(int argc, char **argv)
{
	static unsigned char code[1 << 20];
	const size_t size = fread(code, 1, sizeof(code), stdin);
	struct waits_sass w;

	for (size_t at = 0; argc > 1; at += WAITS_SASS_BYTES) {
		if (waits_sass_read(argv[1], code + at, size - at, &w) < 0)
			break;
		if (!waits_sass_name(w.op))
			continue;
		printf("%zu %s", at, waits_sass_name(w.op));
		if (w.op == WAITS_SASS_BARRIER || w.op == WAITS_SASS_ARRIVE) {
			put(w.id_register, w.id);
			put(w.count_register, w.count);
		} else if (w.op == WAITS_SASS_WARP_SYNC) {
			if (w.mask_is_constant)
				printf(" constant");
			else
				put(w.mask_register, w.mask);
		} else if (w.op == WAITS_SASS_CONVERGE) {
			printf(" B%u", w.id);
		}
		putchar('\n');
	}
	return 0;
}
