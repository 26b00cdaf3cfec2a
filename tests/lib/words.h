/* SPDX-License-Identifier: MIT */
#ifndef TESTS_WORDS_H
#define TESTS_WORDS_H

/**
 * @file words.h
 * Lines of the simulators' scripts: words between blanks; lines that begin with "#" are comments.  A script may have
 * parameters: `let NAME=VALUE` gives one its default, and $NAME or ${NAME} stands for it from there on.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORDS_MAX      32
#define WORDS_LINE_MAX 4095 /**< Bytes of a command, with the values of its parameters. */

struct words {
	char *w[WORDS_MAX + 1]; /**< NULL behind the last, as execvp() wants it. */
	int n;			/**< 0: an empty line, or a comment. */
};

/** @param text  Cut into pieces, to which @p ret points.  @return 0, -E2BIG. */
int words_split(char *text, struct words *ret);

/** Optional number at position @p i.  @return 0, -EINVAL, -ERANGE. */
int words_number(const struct words *w, int i, uint64_t fallback, uint64_t max, uint64_t *ret);

/* ------------------------------------------------------------------ scripts ------------------ */

/** Parameters; starts zeroed. */
struct words_names {
	struct words_name {
		char name[32], value[128];
		bool is_let; /**< The script has said it. */
	} list[32];
	size_t n;
};

/** What went wrong, and where. */
struct words_error {
	unsigned int line; /**< From 1 on. */
	const char *why;   /**< In words; NULL: what was returned says it. */
	char command[128]; /**< How it begins. */
};

/** Run a command.  @return 0, -errno. */
typedef int (*words_run_fn)(void *ctx, const struct words *w);

/** Give a parameter a value, whatever the script says: NAME=VALUE.  @return 0; -EINVAL; -E2BIG, it does not fit. */
int words_set(struct words_names *names, const char *text, size_t size);

/**
 * Run the commands of a script, which newlines and semicolons separate, up to the first that fails; a comment ends
 * with its line.
 * @param run  Of a command with words; NULL: only see whether this is a script.
 * @return 0; -EINVAL, -E2BIG, and what run() returned, with @p err.
 */
int words_run_script(const char *text, size_t size, struct words_names *names, words_run_fn run, void *ctx,
		     struct words_error *err);

#endif /* TESTS_WORDS_H */
