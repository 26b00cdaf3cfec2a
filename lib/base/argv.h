/* SPDX-License-Identifier: MIT */
#ifndef BASE_ARGV_H
#define BASE_ARGV_H

/**
 * @file argv.h
 * Command lines described by a table: parsing, errors and `--help` from one place.
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
	char letter;	  /**< Short form, or 0. */
	enum argv_kind kind;
	void *value;
	const char *metavar; /**< For help; NULL for flags. */
	const char *help;
};

/**
 * Parse options anywhere on the line; `--` ends them.
 * @param argv      argv[0] is skipped.  Positional arguments are moved to its front.
 * @param tables    NULL-terminated list of option tables.
 * @param error     At least 160 bytes; says which argument is wrong.
 * @return number of positional arguments, or -EINVAL.
 */
int argv_parse(int argc, char **argv, const struct argv_option *const *tables, char *error,
	       size_t error_size);

/** One aligned line per option. */
void argv_print_options(const struct argv_option *table);

#endif /* BASE_ARGV_H */
