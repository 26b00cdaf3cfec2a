/* SPDX-License-Identifier: MIT */
/* Processors whose instructions nothing on a machine can read: only their length is known. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "disasm/backend.h"

struct words {
	char note[120];
};

/* "CUDA Binary Utilities": 64 bits until sm_62, 128 from sm_70 on; letters may follow. */
uint32_t disasm_words_size(const char *cpu)
{
	char number[8];
	size_t n;
	uint64_t sm;

	if (!str_starts_with(cpu, "sm_"))
		return 0;
	n = strspn(cpu + 3, "0123456789");
	if (n >= sizeof(number) || strspn(cpu + 3 + n, "af") != strlen(cpu + 3 + n))
		return 0;
	memcpy(number, cpu + 3, n);
	number[n] = '\0';
	if (str_to_u64(number, 10, 999, &sm) < 0)
		return 0;
	return sm < 70 ? 8 : 16;
}

static uint32_t decode(void *ctx, const uint8_t *bytes, uint32_t size, uint64_t address,
		       char *ret_text)
{
	return 0;
}

static size_t measure(void *ctx, const uint8_t *bytes, size_t size, uint64_t address,
		      uint8_t *ret_sizes, size_t capacity)
{
	return 0;
}

static const char *source(void *ctx)
{
	return NULL;
}

static const char *note(void *ctx)
{
	return ((struct words *)ctx)->note;
}

int disasm_words_open(const struct disasm_options *o, void **ret_ctx)
{
	struct words *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	snprintf(
		w->note, sizeof(w->note),
		"instructions of %.16s are shown as their words: only NVIDIA's tools can read them",
		o->cpu);
	*ret_ctx = w;
	return 0;
}

const struct disasm_backend disasm_words = {
	.decode = decode,
	.measure = measure,
	.source = source,
	.note = note,
	.close = free,
};
