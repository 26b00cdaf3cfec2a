/* SPDX-License-Identifier: MIT */
#ifndef BASE_ARGV_H
#define BASE_ARGV_H

/**
 * @file argv.h
 * Command lines that a table describes: parsing, error messages and `--help` come from one place.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum argv_kind {
	ARGV_FLAG,   /**< No value; *(bool *)value = true. */
	ARGV_STRING, /**< *(const char **)value, borrowed from argv. */
	ARGV_U32,    /**< *(uint32_t *)value, decimal; left alone when not given. */
	ARGV_OPTIONAL, /**< `--name` or `--name=VALUE`; *(const char **)value, "" without value. */
};

struct argv_option {
	const char *name; /**< Long name without dashes; NULL ends the table. */
	char letter;	  /**< One-letter form, or 0 if there is none. */
	enum argv_kind kind;
	void *value;
	const char *metavar; /**< Name of the value in the help; NULL for flags. */
	const char *help;
	const char *alias; /**< Another long name, where users of one vendor know the thing by it. */
};

/**
 * Parse the options of a command line; they may stand anywhere, and `--` ends them.
 * @param argv      argv[0] is skipped.  Positional arguments are moved to its front.
 * @param tables    NULL-terminated list of option tables, whose values are set.
 * @param error     At least 160 bytes; on failure it says which argument is wrong, and which option
 *                  was probably meant by one that does not exist.
 * @return the number of positional arguments, or -EINVAL.
 */
int argv_parse(int argc, char **argv, const struct argv_option *const *tables, char *error,
	       size_t error_size);

/** Whether the first @p size letters of a text, which has no dashes, are a name of the option. */
bool argv_option_is(const struct argv_option *o, const char *text, size_t size);

/**
 * Print an item of help on stdout: a name, then a text from column @p column on, in lines of at
 * most 80 columns.
 */
void argv_print_item(const char *name, int column, const char *text);
/** Print aligned help for each option on stdout. */
void argv_print_options(const struct argv_option *table);

#endif /* BASE_ARGV_H */
