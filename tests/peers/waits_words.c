/* SPDX-License-Identifier: MIT */
/* What lib/waits makes of words: reads lines `GFX_TARGET_VERSION WORD`, both as C has numbers, and prints names. */
#include <stdio.h>

#include "waits/isa.h"

int main(void)
{
	unsigned version, word;

	while (scanf("%i %i", (int *)&version, (int *)&word) == 2) {
		struct waits_instruction i;
		const char *name = "?";

		if (waits_instruction_read(waits_family_of(version), &word, sizeof(word), &i) == 0)
			name = i.op ? waits_op_name(i.op) : "-";
		printf("%s\n", name);
	}
	return 0;
}
