/* SPDX-License-Identifier: MIT */
/*
 * Paths in the form that the client wants: as they are, or as URIs (pathFormat of `initialize`; RFC
 * 3986, RFC 8089).
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "dap/adapter.h"

#define SCHEME "file://"

/* Whether a character of a path stands for itself in a URI. */
static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-._~/", c));
}

void dap_put_path(const struct dap *d, struct out *o, const char *path)
{
	auto_out struct out uri = { 0 };

	if (!d->uris) {
		out_json_fmt(o, ",'path':%s", path);
		return;
	}
	out_str(&uri, SCHEME);
	for (; *path; path++) {
		if (is_plain(*path))
			out_char(&uri, *path);
		else
			out_fmt(&uri, "%%%02X", (unsigned char)*path);
	}
	out_json_fmt(o, ",'path':%s", uri.data);
}

/*
 * Decode the path of a URI; ret may be in the same buffer, since it never grows.
 * @return false if it has a query, a fragment, a bad escape or a NUL.
 */
static bool decode(const char *text, char *ret)
{
	for (; *text; text++) {
		char c = *text;

		if (c == '?' || c == '#')
			return false;
		if (c == '%') {
			const char digits[] = { text[1], text[1] ? text[2] : '\0', '\0' };

			if (!isxdigit((unsigned char)digits[0]) || !isxdigit((unsigned char)digits[1]))
				return false;
			c = (char)strtoul(digits, NULL, 16);
			text += 2;
		}
		if (!c)
			return false;
		*ret++ = c;
	}
	*ret = '\0';
	return true;
}

bool dap_take_path(const struct dap *d, char *path)
{
	const char *rest = path + strlen(SCHEME);

	/* What a user wrote into a configuration is a path, whatever the editor sends itself. */
	if (!d->uris || !str_starts_with(path, SCHEME))
		return true;
	if (str_starts_with(rest, "localhost/"))
		rest += strlen("localhost");
	return *rest == '/' && decode(rest, path);
}
