/* SPDX-License-Identifier: MIT */
#ifndef TESTS_WORDS_H
#define TESTS_WORDS_H

/** @file words.h  Lines of the simulators' scripts: words between blanks; lines that begin with "#" are comments. */

#include <stdint.h>

#define WORDS_MAX 32

struct words {
	char *w[WORDS_MAX + 1]; /**< NULL behind the last, as execvp() wants it. */
	int n;			/**< 0: an empty line, or a comment. */
};

/** @param text  Cut into pieces, to which @p ret points.  @return 0, -E2BIG. */
int words_split(char *text, struct words *ret);

/** Optional number at position @p i.  @return 0, -EINVAL, -ERANGE. */
int words_number(const struct words *w, int i, uint64_t fallback, uint64_t max, uint64_t *ret);

/**
 * Run the commands of a script, which newlines and semicolons separate, up to the first that fails; a comment ends
 * with its line.
 * @param program  Says on standard error which command failed, and why.
 * @param run      Of a command with words.  @return 0, -errno.
 * @return 0, -E2BIG, -ENOMEM, what run() returned.
 */
int words_run_script(const char *text, const char *program, int (*run)(void *ctx, const struct words *w), void *ctx);

#endif /* TESTS_WORDS_H */
