/* SPDX-License-Identifier: MIT */
/*
 * Which loops that poll memory lib/waits finds in code: usage: sass_polls ARCH SIZE... <CODE.  Of each piece of code of
 * so many bytes a line for each word that ends a loop, and one that says `end`.
 */
#include <stdio.h>
#include <stdlib.h>

#include "waits/grid.h"
#include "waits/sass.h"
#include "waits/sass_poll.h"

static void put(struct waits_sass_operand o)
{
	static const char *const forms[] = { "-", "", "R", "UR", "c" };

	if (o.kind == WAITS_SASS_NONE)
		printf(" -");
	else if (o.kind == WAITS_SASS_REGISTER || o.kind == WAITS_SASS_UNIFORM)
		printf(" %s%u", forms[o.kind], o.value);
	else
		printf(" %s0x%x", forms[o.kind], o.value);
}

static void put_word(const struct waits_sass_poll *p, bool is_grid)
{
	static const char *const spaces[] = { "LDG", "LD", "LDS" };

	/* With a sign in front of words that have one, and are compared with 32 bits. */
	printf("%u %u %u %s %s%u %d", p->begin, p->load, p->end, p->is_lock ? "ATOMG.CAS" : spaces[p->space],
	       p->extends ? "-" : "", p->bytes, p->offset);
	for (unsigned int i = 0; i < 3; i++)
		put(p->base[i]);
	printf(" %u", p->shift);
	printf(" %s%s", waits_compare_name(p->op), p->is_signed ? ".s" : "");
	put(p->with[0]);
	put(p->with[1]);
	put(p->mask);
	put(p->toggle);
	printf(" %s\n", is_grid ? "grid" : "-");
}

static void put_loops(const char *arch, const unsigned char *code, size_t size)
{
	struct waits_sass_polls p;

	for (size_t at = 0; waits_sass_poll_find(arch, code, size, &at, &p) == 0; at += WAITS_SASS_BYTES)
		for (unsigned int i = 0; i < p.n; i++)
			put_word(&p.any[i], p.n == 1 && waits_grid_is_loop(arch, code, size, &p.any[0]));
	printf("end\n");
}

int main(int argc, char **argv)
{
	static unsigned char code[1 << 20];

	for (int i = 2; i < argc; i++) {
		size_t size = strtoul(argv[i], NULL, 10);

		if (size > sizeof(code) || fread(code, 1, size, stdin) != size) {
			fprintf(stderr, "no piece of %s bytes\n", argv[i]);
			return 1;
		}
		put_loops(argv[1], code, size);
	}
	return 0;
}
