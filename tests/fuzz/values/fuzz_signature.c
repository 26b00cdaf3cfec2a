/* SPDX-License-Identifier: MIT */
/* The types of parameters in a demangled name, which a target chose, and what they mean. */
#include <stdlib.h>
#include <string.h>

#include "fuzzlib.h"
#include "values/scalar.h"
#include "values/argument/signature.h"

struct name {
	const char *text;
	size_t size, n;
};

static int look(void *arg, const char *type, size_t size)
{
	struct name *n = arg;
	struct values_scalar s;
	char copy[256];

	if (!size || type < n->text || type + size > n->text + n->size)
		__builtin_trap();
	if (size < sizeof(copy)) {
		memcpy(copy, type, size);
		copy[size] = '\0';
		(void)values_scalar_parse(copy, &s);
	}
	return ++n->n == 1000;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct name n;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	n = (struct name){ .text = text, .size = strlen(text) };
	(void)values_signature_each(text, look, &n);
	free(text);
	return 0;
}
