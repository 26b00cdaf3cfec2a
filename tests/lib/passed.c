/* SPDX-License-Identifier: MIT */
#include "tests/lib/passed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORD_MAX 1024

struct layout {
	uint8_t *buf;
	size_t size;
};

static int add(struct layout *l, const void *bytes, size_t size, size_t alignment)
{
	size_t at = (l->size + alignment - 1) / alignment * alignment;

	if (at > PASSED_MAX || size > PASSED_MAX - at)
		return -E2BIG;
	memset(l->buf + l->size, 0, at - l->size);
	memcpy(l->buf + at, bytes, size);
	l->size = at + size;
	return 0;
}

static int add_bytes(struct layout *l, const char *hex)
{
	uint8_t bytes[WORD_MAX / 2];
	size_t n = 0;

	for (; hex[2 * n]; n++)
		if (sscanf(hex + 2 * n, "%2hhx", &bytes[n]) != 1 || !hex[2 * n + 1])
			return -EINVAL;
	return n ? add(l, bytes, n, 4) : -EINVAL;
}

static int add_floating(struct layout *l, char type, const char *text)
{
	char *end;
	double d = strtod(text, &end);
	float f = (float)d;

	if (end == text || *end)
		return -EINVAL;
	return type == 'f' ? add(l, &f, sizeof(f), sizeof(f)) : add(l, &d, sizeof(d), sizeof(d));
}

static int add_word(struct layout *l, const char *word)
{
	static const char types[] = "csilp";
	static const size_t sizes[] = { 1, 2, 4, 8, 8 };
	const char *type = word[0] ? strchr(types, word[0]) : NULL;
	uint64_t number;
	char *end;

	if (!word[0] || word[1] != ':' || !word[2])
		return -EINVAL;
	if (word[0] == 'x')
		return add_bytes(l, word + 2);
	if (word[0] == 'f' || word[0] == 'd')
		return add_floating(l, word[0], word + 2);
	number =
		word[2] == '-' ? (uint64_t)strtoll(word + 2, &end, 0) : strtoull(word + 2, &end, 0);
	if (!type || *end)
		return -EINVAL;
	return add(l, &number, sizes[type - types], sizes[type - types]);
}

int passed_encode(const char *text, uint8_t *buf, size_t *ret_size)
{
	struct layout l = { .buf = buf };
	int r = 0;

	while (r == 0 && *text) {
		size_t n = strcspn(text, ",");
		char word[WORD_MAX];

		if (n >= sizeof(word))
			return -E2BIG;
		memcpy(word, text, n);
		word[n] = '\0';
		r = add_word(&l, word);
		text += n + (text[n] == ',');
	}
	*ret_size = l.size;
	return r;
}
