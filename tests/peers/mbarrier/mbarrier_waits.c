/* SPDX-License-Identifier: MIT */
/* Which waits for barrier objects lib/waits finds in code: usage: mbarrier_waits ARCH <CODE.  A line for each. */
#include <stdio.h>

#include "waits/mbarrier.h"
#include "waits/sass.h"

static void put_register(const char *letter, uint8_t number)
{
	if (number == WAITS_MBARRIER_NO_REGISTER)
		printf(" -");
	else
		printf(" %s%u", letter, number);
}

int main(int argc, char **argv)
{
	static unsigned char code[1 << 20];
	size_t size = fread(code, 1, sizeof(code), stdin), at = 0;
	struct waits_mbarrier_wait w;

	for (; argc > 1 && waits_mbarrier_find(argv[1], code, size, &at, &w) == 0; at += WAITS_SASS_BYTES) {
		printf("%zu", at);
		put_register("R", w.address_register);
		put_register("UR", w.uniform_register);
		printf(" %d", w.offset);
		put_register("R", w.phase_register);
		putchar('\n');
	}
	return 0;
}
