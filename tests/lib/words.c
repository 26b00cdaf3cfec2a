/* SPDX-License-Identifier: MIT */
#include "tests/lib/words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
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

static int run_line(char *line, const char *program, int (*run)(void *ctx, const struct words *w), void *ctx)
{
	char *save = NULL;
	int r = 0;

	for (char *t = strtok_r(line, ";", &save); t && !r; t = strtok_r(NULL, ";", &save)) {
		auto_free char *shown = strdup(t);
		struct words w;

		/* Whatever is behind it on the line belongs to the comment. */
		if (t[strspn(t, " \t")] == '#')
			return 0;
		r = words_split(t, &w);
		if (r == 0 && w.n)
			r = run(ctx, &w);
		if (r)
			fprintf(stderr, "%s: '%s': %s\n", program, shown ? shown : "", strerror(-r));
	}
	return r;
}

int words_run_script(const char *text, const char *program, int (*run)(void *ctx, const struct words *w), void *ctx)
{
	auto_free char *copy = strdup(text);
	char *save = NULL;
	int r = 0;

	if (!copy)
		return -ENOMEM;
	for (char *t = strtok_r(copy, "\n", &save); t && !r; t = strtok_r(NULL, "\n", &save))
		r = run_line(t, program, run, ctx);
	return r;
}
