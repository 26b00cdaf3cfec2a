/* SPDX-License-Identifier: MIT */
/* Lists of lanes: what is parsed and printed is parsed again, to the same. */
#include <stdlib.h>
#include <string.h>

#include "base/bit_list.h"
#include "fuzzlib.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	auto_out struct out o = { 0 };
	uint64_t bits, again = 0;

	if (text && bit_list_parse(text, &bits) == 0) {
		bit_list_print(bits, &o);
		if (!bits || bit_list_parse(o.data, &again) < 0 || again != bits)
			__builtin_trap();
	}
	free(text);
	return 0;
}
