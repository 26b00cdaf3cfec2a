/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "ctl/document/when.h"
#include "fuzzlib.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), shown[32];
	uint64_t us;

	memcpy(text, data, size);
	text[size] = '\0';
	if (when_parse(text, UINT64_C(1795252653000000), &us) == 0)
		when_format(us, shown, sizeof(shown));
	free(text);
	return 0;
}
