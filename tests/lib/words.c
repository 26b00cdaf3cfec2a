/* SPDX-License-Identifier: MIT */
#include "tests/lib/words.h"

#include <ctype.h>
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

/* ------------------------------------------------------------------ parameters --------------- */

static size_t name_length(const char *text, size_t size)
{
	size_t n = 0;

	while (n < size && (isalnum((unsigned char)text[n]) || text[n] == '_'))
		n++;
	return n;
}

static struct words_name *find(struct words_names *names, const char *name, size_t length)
{
	for (size_t i = 0; i < names->n; i++)
		if (strlen(names->list[i].name) == length && !memcmp(names->list[i].name, name, length))
			return &names->list[i];
	return NULL;
}

/* A value is one word, or a part of one. */
static bool is_value(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if ((unsigned char)text[i] <= ' ' || text[i] == ';')
			return false;
	return true;
}

static int give(struct words_names *names, const char *text, size_t size, bool is_let)
{
	size_t length = name_length(text, size), rest = size - length;
	struct words_name *n = find(names, text, length);

	if (!length || !rest || text[length] != '=' || !is_value(text + length + 1, rest - 1))
		return -EINVAL;
	if (length >= sizeof(n->name) || rest > sizeof(n->value) ||
	    (!n && names->n == sizeof(names->list) / sizeof(names->list[0])))
		return -E2BIG;
	/* What the user says counts, and not the default. */
	if (n && is_let) {
		n->is_let = true;
		return 0;
	}
	n = n ? n : &names->list[names->n++];
	*n = (struct words_name){ .is_let = is_let };
	memcpy(n->name, text, length);
	memcpy(n->value, text + length + 1, rest - 1);
	return 0;
}

int words_set(struct words_names *names, const char *text, size_t size)
{
	return give(names, text, size, false);
}

/* ------------------------------------------------------------------ one command -------------- */

/* A command that is being put together. */
struct line {
	char text[WORDS_LINE_MAX + 1];
	size_t n;
};

static int add(struct line *l, const char *text, size_t size)
{
	if (size > WORDS_LINE_MAX - l->n)
		return -E2BIG;
	memcpy(l->text + l->n, text, size);
	l->n += size;
	return 0;
}

/* @return bytes that the name behind a "$" takes, 0: there is none. */
static size_t read_name(const char *text, size_t size, const char **ret, size_t *ret_length)
{
	bool braced = size && *text == '{';

	*ret = text + braced;
	*ret_length = name_length(text + braced, size - braced);
	if (!*ret_length || !braced)
		return *ret_length;
	return *ret_length + 1 < size && text[*ret_length + 1] == '}' ? *ret_length + 2 : 0;
}

static int expand(const char *text, size_t size, struct words_names *names, struct line *ret, struct words_error *err)
{
	int r = 0;

	ret->n = 0;
	for (size_t i = 0, used; i < size && r == 0; i += used) {
		const struct words_name *n;
		const char *name;
		size_t length;

		used = 1;
		if (text[i] != '$') {
			r = add(ret, text + i, 1);
			continue;
		}
		used += read_name(text + i + 1, size - i - 1, &name, &length);
		n = used > 1 ? find(names, name, length) : NULL;
		if (!n || !n->is_let) {
			err->why = used > 1 ? "it names a parameter that was not let" : "the name of a parameter must follow $";
			return -EINVAL;
		}
		r = add(ret, n->value, strlen(n->value));
	}
	if (r < 0)
		err->why = "it is too long";
	ret->text[ret->n] = '\0';
	return r;
}

static int let(const struct words *w, struct words_names *names, struct words_error *err)
{
	for (int i = 1; i < w->n; i++) {
		int r = give(names, w->w[i], strlen(w->w[i]), true);

		if (r < 0) {
			err->why = r == -E2BIG ? "a parameter is too long, or there are more than 32" : "must be NAME=VALUE";
			return r;
		}
	}
	return 0;
}

static int run_command(const char *text, size_t size, struct words_names *names, words_run_fn run, void *ctx,
		       struct words_error *err)
{
	struct line line;
	struct words w;
	int r;

	if (memchr(text, '\0', size)) {
		err->why = "there is a zero byte in it";
		return -EINVAL;
	}
	r = expand(text, size, names, &line, err);
	if (r < 0)
		return r;
	r = words_split(line.text, &w);
	if (r < 0)
		err->why = "it has more than 32 words";
	if (r < 0 || !w.n)
		return r;
	if (!strcmp(w.w[0], "let"))
		return let(&w, names, err);
	return run ? run(ctx, &w) : 0;
}

/* ------------------------------------------------------------------ all of them -------------- */

static int run_line(const char *text, size_t size, struct words_names *names, words_run_fn run, void *ctx,
		    struct words_error *err)
{
	int r = 0;

	for (size_t at = 0, end; at < size && r == 0; at = end + 1) {
		const char *next = memchr(text + at, ';', size - at);
		size_t shown;

		end = next ? (size_t)(next - text) : size;
		while (at < end && (text[at] == ' ' || text[at] == '\t'))
			at++;
		/* Whatever is behind it on the line belongs to the comment. */
		if (at < size && text[at] == '#')
			return 0;
		r = run_command(text + at, end - at, names, run, ctx, err);
		if (r == 0)
			continue;
		shown = end - at < sizeof(err->command) ? end - at : sizeof(err->command) - 1;
		memcpy(err->command, text + at, shown);
		err->command[shown] = '\0';
	}
	return r;
}

int words_run_script(const char *text, size_t size, struct words_names *names, words_run_fn run, void *ctx,
		     struct words_error *err)
{
	int r = 0;

	*err = (struct words_error){ .line = 0 };
	for (size_t at = 0, end; at < size && r == 0; at = end + 1) {
		const char *next = memchr(text + at, '\n', size - at);

		end = next ? (size_t)(next - text) : size;
		err->line++;
		r = run_line(text + at, end - at, names, run, ctx, err);
	}
	return r;
}
