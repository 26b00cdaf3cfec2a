/* SPDX-License-Identifier: MIT */
#include "base/argv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "base/str.h"

/* Columns of a line of help, and the one from which on options are explained. */
#define LINE_COLUMNS  80
#define OPTION_COLUMN 33

static bool is_name(const char *name, const char *text, size_t size)
{
	return name && strlen(name) == size && !memcmp(name, text, size);
}

bool argv_option_is(const struct argv_option *o, const char *text, size_t size)
{
	return is_name(o->name, text, size) || is_name(o->alias, text, size);
}

static const struct argv_option *find_long(const struct argv_option *const *tables,
					   const char *name, size_t size)
{
	for (; *tables; tables++)
		for (const struct argv_option *o = *tables; o->name; o++)
			if (argv_option_is(o, name, size))
				return o;
	return NULL;
}

static const struct argv_option *find_short(const struct argv_option *const *tables, char letter)
{
	for (; *tables; tables++)
		for (const struct argv_option *o = *tables; o->name; o++)
			if (o->letter == letter)
				return o;
	return NULL;
}

/* The switch of store() has made sure that the option is of kind ARGV_U32. */
static int store_u32(const struct argv_option *o, const char *text, char *error, size_t error_size)
{
	uint64_t v;

	if (str_to_u64(text, 0, UINT32_MAX, &v) < 0) {
		snprintf(error, error_size, "--%s needs a number up to %u, not `%.40s'", o->name,
			 UINT32_MAX, text);
		return -EINVAL;
	}
	*(uint32_t *)o->value = (uint32_t)v;
	return 0;
}

/* Store one option; @value is the attached text or NULL, @next the following argument or NULL. */
static int store(const struct argv_option *o, const char *value, const char *next, int *used_next,
		 char *error, size_t error_size)
{
	switch (o->kind) {
	case ARGV_FLAG:
		if (value) {
			snprintf(error, error_size, "--%s takes no value", o->name);
			return -EINVAL;
		}
		*(bool *)o->value = true;
		return 0;
	case ARGV_OPTIONAL:
		*(const char **)o->value = value ? value : "";
		return 0;
	case ARGV_STRING:
	case ARGV_U32:
		break;
	}
	if (!value && !next) {
		snprintf(error, error_size, "--%s needs a value (%s)", o->name, o->metavar);
		return -EINVAL;
	}
	*used_next = !value;
	if (!value)
		value = next;
	if (o->kind == ARGV_U32)
		return store_u32(o, value, error, error_size);
	*(const char **)o->value = value;
	return 0;
}

/* Remember a name if it is nearer to the text than the best one so far. */
static void try_name(const char *text, const char *name, const char **best, size_t *least)
{
	size_t d = name ? nearest_distance(text, name) : SIZE_MAX;

	if (name && d < *least && nearest_is_near(d, strlen(name))) {
		*best = name;
		*least = d;
	}
}

/* The option that was probably meant, or NULL. */
static const char *similar_option(const struct argv_option *const *tables, const char *text)
{
	const char *best = NULL;
	size_t least = SIZE_MAX;

	for (; *tables; tables++)
		for (const struct argv_option *o = *tables; o->name; o++) {
			try_name(text, o->name, &best, &least);
			try_name(text, o->alias, &best, &least);
		}
	return best;
}

static int unknown_option(const char *name, size_t size, const struct argv_option *const *tables,
			  char *error, size_t error_size)
{
	const char *similar;
	char text[61];

	snprintf(text, sizeof(text), "%.*s", (int)(size > 60 ? 60 : size), name);
	similar = similar_option(tables, text);
	if (similar)
		snprintf(error, error_size, "unknown option --%s; did you mean --%s?", text, similar);
	else
		snprintf(error, error_size, "unknown option --%s", text);
	return -EINVAL;
}

static int parse_long(const char *arg, const char *next, int *used_next,
		      const struct argv_option *const *tables, char *error, size_t error_size)
{
	const char *eq = strchr(arg, '=');
	size_t size = eq ? (size_t)(eq - arg) : strlen(arg);
	const struct argv_option *o = find_long(tables, arg, size);

	if (!o)
		return unknown_option(arg, size, tables, error, error_size);
	return store(o, eq ? eq + 1 : NULL, next, used_next, error, error_size);
}

/* Parse a cluster of short flags, of which the last may take a value. */
static int parse_short(const char *arg, const char *next, int *used_next,
		       const struct argv_option *const *tables, char *error, size_t error_size)
{
	for (; *arg; arg++) {
		const struct argv_option *o = find_short(tables, *arg);
		int r;

		if (!o) {
			snprintf(error, error_size, "unknown option -%c", *arg);
			return -EINVAL;
		}
		if (o->kind == ARGV_FLAG || o->kind == ARGV_OPTIONAL) {
			r = store(o, NULL, NULL, used_next, error, error_size);
			if (r < 0)
				return r;
			continue;
		}
		return store(o, arg[1] ? arg + 1 : NULL, next, used_next, error, error_size);
	}
	return 0;
}

int argv_parse(int argc, char **argv, const struct argv_option *const *tables, char *error,
	       size_t error_size)
{
	int n = 0, r;

	for (int i = 1; i < argc; i++) {
		char *arg = argv[i];
		const char *next = i + 1 < argc ? argv[i + 1] : NULL;
		int used_next = 0;

		/* A single `-` is a positional argument. */
		if (arg[0] != '-' || !arg[1]) {
			argv[n++] = arg;
			continue;
		}
		if (!strcmp(arg, "--")) {
			while (++i < argc)
				argv[n++] = argv[i];
			break;
		}
		if (arg[1] == '-')
			r = parse_long(arg + 2, next, &used_next, tables, error, error_size);
		else
			r = parse_short(arg + 1, next, &used_next, tables, error, error_size);
		if (r < 0)
			return r;
		i += used_next;
	}
	return n;
}

void argv_print_item(const char *name, int column, const char *text)
{
	int at = printf("  %-*s", column - 3, name) + 1;
	const char *before = " ";

	while (*text) {
		int n = (int)strcspn(text, " ");

		/* A word that does not fit begins a line, unless it is the first of one. */
		if (at + n > LINE_COLUMNS && at > column) {
			printf("\n%*s", column, "");
			at = column;
			before = "";
		}
		at += printf("%s%.*s", before, n, text);
		text += n;
		text += strspn(text, " ");
		before = " ";
	}
	putchar('\n');
}

void argv_print_options(const struct argv_option *table)
{
	for (; table->name; table++) {
		char left[48], text[300];
		const char *sep = table->kind == ARGV_FLAG ? "" : table->kind == ARGV_OPTIONAL ? "[=" : " ";

		snprintf(left, sizeof(left), "%s%c%s --%s%s%s%s", table->letter ? "-" : " ",
			 table->letter ? table->letter : ' ', table->letter ? "," : " ", table->name, sep,
			 table->metavar ? table->metavar : "",
			 table->kind == ARGV_OPTIONAL ? "]" : "");
		snprintf(text, sizeof(text), "%s%s%s%s", table->help, table->alias ? " (alias: --" : "",
			 table->alias ? table->alias : "", table->alias ? ")" : "");
		argv_print_item(left, OPTION_COLUMN, text);
	}
}
