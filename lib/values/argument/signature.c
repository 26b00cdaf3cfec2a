/* SPDX-License-Identifier: MIT */
#include "values/argument/signature.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static bool is_opening(char c)
{
	return c == '(' || c == '[' || c == '{';
}

static bool is_closing(char c)
{
	return c == ')' || c == ']' || c == '}';
}

/*
 * Find the parentheses that end the name, from the right: in front of them may be any operator, and
 * brackets that are none.  Behind them may be what a compiler has done: ` [clone .kd]`.
 */
static int find_list(const char *name, const char **ret_begin, const char **ret_end)
{
	const char *clone = strstr(name, " [clone ");
	const char *end = clone ? clone : name + strlen(name);
	size_t depth = 0;

	if (end == name || end[-1] != ')')
		return end - name >= 3 && !memcmp(end - 3, "...", 3) ? -EBADMSG : -ENOENT;
	*ret_end = end - 1;
	for (const char *at = end; at > name;) {
		at--;
		if (is_closing(*at))
			depth++;
		else if (is_opening(*at) && !--depth) {
			*ret_begin = at + 1;
			return *at == '(' && at > name ? 0 : -EBADMSG;
		}
	}
	return -EBADMSG;
}

/* @return the end of the parameter that begins at @p at: a comma that is in no brackets, or @p end.
 */
static const char *find_end(const char *at, const char *end)
{
	size_t depth = 0;

	for (; at < end; at++) {
		if (is_opening(*at) || *at == '<')
			depth++;
		else if (is_closing(*at) || (*at == '>' && at[-1] != '-')) {
			if (!depth)
				return NULL;
			depth--;
		} else if (*at == ',' && !depth) {
			break;
		}
	}
	return depth ? NULL : at;
}

int values_signature_each(const char *name, int (*visit)(void *arg, const char *type, size_t size),
			  void *arg)
{
	const char *at, *end;
	int r = find_list(name, &at, &end);

	/* Without parameters the demangler writes `()`. */
	while (r == 0 && at < end) {
		const char *stop;

		at += strspn(at, " ");
		stop = find_end(at, end);
		if (!stop || stop == at)
			return -EBADMSG;
		r = visit(arg, at, (size_t)(stop - at));
		if (stop == end)
			break;
		at = stop + 1;
		if (r == 0 && at == end)
			return -EBADMSG;
	}
	return r;
}
