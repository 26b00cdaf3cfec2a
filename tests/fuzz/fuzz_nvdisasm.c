/* SPDX-License-Identifier: MIT */
#include "fuzzlib.h"

#include <stdlib.h>
#include <string.h>

#include "disasm/backend.h"

#define WORDS 64

/* The first byte chooses the length of words; the others are what nvdisasm may have printed. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint64_t starts[] = { 0, 0x100, 0x7f0a00000000, UINT64_MAX - 255 };
	static char texts[WORDS][DISASM_TEXT_SIZE];
	uint8_t bytes[WORDS * 16];
	uint32_t word;
	uint64_t start;
	size_t found, filled = 0;

	if (size < 1)
		return 0;
	word = data[0] & 1 ? 8 : 16;
	start = starts[data[0] >> 1 & 3];
	memset(texts, 0, sizeof(texts));
	memset(bytes, 0xff, sizeof(bytes));
	found = disasm_nvidia_parse((const char *)data + 1, size - 1, start, word, texts, WORDS);
	for (size_t i = 0; i < WORDS; i++) {
		if (strnlen(texts[i], sizeof(texts[i])) == sizeof(texts[i]))
			abort();
		filled += texts[i][0] != '\0';
	}
	if (found != filled)
		abort();
	disasm_nvidia_blank((const char *)data + 1, size - 1, start, word, bytes, WORDS);
	for (size_t i = 0; i < WORDS * word; i += word)
		for (size_t k = 1; k < word; k++)
			if (bytes[i + k] != bytes[i])
				abort();
	return 0;
}
