/* SPDX-License-Identifier: MIT */
/* Chooses records by `FIELD=VALUE`. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "store/internal.h"

static bool is_name(const char *match)
{
	return !strncasecmp(match, "NAME=", 5);
}

int store_match_check(const char *match)
{
	const char *equal = strchr(match, '=');

	if (!equal)
		return -EINVAL;
	return is_name(match) || store_field_find(match, (size_t)(equal - match)) ? 0 : -EINVAL;
}

static bool matches_one(const char *match, const struct store_meta *m)
{
	const char *value = strchr(match, '=') + 1;
	const struct store_field *f = store_field_find(match, (size_t)(value - match) - 1);
	char buf[21];

	/*
	 * Most records have no kernel, and somebody who asks for an empty name does not mean all of
	 * those.
	 */
	if (is_name(match))
		return value[0] && (!strcmp(m->comm, value) || !strcmp(m->kernel, value));
	if (f->offset == offsetof(struct store_meta, id))
		return value[0] && str_starts_with(m->id, value);
	return !strcmp(store_field_text(m, f, buf), value);
}

static bool same_field(const char *a, const char *b)
{
	size_t n = (size_t)(strchr(a, '=') - a) + 1;

	return !strncasecmp(a, b, n);
}

/* Does one of the alternatives for the field of @p of fit? */
static bool field_fits(const struct store_filter *f, const char *of, const struct store_meta *m)
{
	for (size_t i = 0; i < f->n_matches; i++)
		if (same_field(of, f->matches[i]) && matches_one(f->matches[i], m))
			return true;
	return false;
}

bool store_match(const struct store_filter *f, const struct store_meta *m)
{
	if (m->time_us < f->since_us || (f->has_until && m->time_us > f->until_us))
		return false;
	for (size_t i = 0; i < f->n_matches; i++)
		if (!field_fits(f, f->matches[i], m))
			return false;
	return true;
}
