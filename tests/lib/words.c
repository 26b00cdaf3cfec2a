/* SPDX-License-Identifier: MIT */
#include "tests/lib/words.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"

int words_split(char *text, struct words *ret)
{
	char *save = NULL;

	*ret = (struct words){ .n = 0 };
	for (char *t = strtok_r(text, " \t", &save); t; t = strtok_r(NULL, " \t", &save)) {
		if (*t == '#' && !ret->n)
			return 0;
		if (ret->n == WORDS_MAX)
			return -E2BIG;
		ret->w[ret->n++] = t;
	}
	return 0;
}

int words_number(const struct words *w, int i, uint64_t fallback, uint64_t max, uint64_t *ret)
{
	*ret = fallback;
	return i < w->n ? str_to_u64(w->w[i], 0, max, ret) : 0;
}
