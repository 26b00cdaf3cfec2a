/* SPDX-License-Identifier: MIT */
/*
 * What lib/waits makes of words: reads lines `GFX_TARGET_VERSION WORD...` with numbers as C has them, and prints the
 * name of one instruction, or what a loop of several words polls.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "waits/poll.h"

static void print_name(enum waits_family f, uint32_t word)
{
	struct waits_instruction i;

	if (waits_instruction_read(f, &word, sizeof(word), &i) < 0)
		puts("?");
	else
		puts(i.op ? i.name : "-");
}

static void print_loop(enum waits_family f, const uint32_t *words, size_t n)
{
	struct waits_poll p;

	if (waits_poll_find(f, (const uint8_t *)words, n * 4, 0, &p) < 0)
		puts("-");
	else
		printf("%s %s%u at %d%s%s%s\n", waits_compare_name(p.op), p.is_signed ? "i" : "u", p.bytes * 8u,
		       p.place.offset, p.each_lane ? " each" : "", p.sleeps ? " sleeps" : "", p.is_lock ? " lock" : "");
}

int main(void)
{
	char line[8192];

	while (fgets(line, sizeof(line), stdin)) {
		uint32_t words[256];
		size_t n = 0;
		char *save = NULL, *version = strtok_r(line, " \n", &save);

		for (char *w; version && n < 256 && (w = strtok_r(NULL, " \n", &save)) != NULL;)
			words[n++] = (uint32_t)strtoul(w, NULL, 0);
		if (n == 1)
			print_name(waits_family_of((uint32_t)atoi(version)), words[0]);
		else if (n)
			print_loop(waits_family_of((uint32_t)atoi(version)), words, n);
	}
	return 0;
}
