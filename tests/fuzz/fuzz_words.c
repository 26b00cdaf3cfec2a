/* SPDX-License-Identifier: MIT */
/* Scripts of the simulators. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuzzlib.h"
#include "tests/lib/words.h"

/* What a command was given; every eighth one fails. */
static int run(void *ctx, const struct words *w)
{
	unsigned int *n = ctx;

	if (w->n < 1 || w->n > WORDS_MAX || w->w[w->n] || *w->w[0] == '#')
		abort();
	for (int i = 0; i < w->n; i++)
		if (!*w->w[i] || strlen(w->w[i]) > WORDS_LINE_MAX || strpbrk(w->w[i], " \t\n;"))
			abort();
	return ++*n % 8 ? 0 : -EIO;
}

static unsigned int count_lines(const uint8_t *data, size_t size)
{
	unsigned int n = 1;

	for (size_t i = 0; i < size; i++)
		n += data[i] == '\n';
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct words_names names = { .n = 0 }, again;
	struct words_error err;
	unsigned int n = 0, checked = 0;
	int r;

	if (words_set(&names, "groups=7", 8) || words_set(&names, text, size < 40 ? size : 40) > 0)
		abort();
	again = names;
	r = words_run_script(text, size, &again, NULL, NULL, &err);
	checked = err.line;
	if (err.line > count_lines(data, size) || strlen(err.command) >= sizeof(err.command) || (r == 0 && err.why))
		abort();
	/* Whoever runs a script sees no other mistakes than who has only read it, but for those of its commands. */
	if (words_run_script(text, size, &names, run, &n, &err) != -EIO && err.line != checked)
		abort();
	return 0;
}
