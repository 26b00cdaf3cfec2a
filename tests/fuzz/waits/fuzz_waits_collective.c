/* SPDX-License-Identifier: MIT */
/* Names are what a process chose. */
#include <stdlib.h>
#include <string.h>

#include "fuzzlib.h"
#include "waits/collective/collective.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = calloc(1, size + 1);
	struct waits_collective c = { 0 };

	if (!name)
		return 0;
	if (size)
		memcpy(name, data, size);
	if (waits_collective_read(name, &c) == 0) {
		const struct waits_word_of_name *words[] = { &c.operation, &c.algorithm, &c.protocol, &c.reduction,
							     &c.type };

		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			if (words[i]->text && (words[i]->text < name ||
					       words[i]->text + words[i]->size > name + strlen(name)))
				__builtin_trap();
	}
	free(name);
	return 0;
}
