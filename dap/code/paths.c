/* SPDX-License-Identifier: MIT */
/*
 * Paths in the form that the client wants: as they are, or as URIs (pathFormat of `initialize`; RFC
 * 3986, RFC 8089).
 *
 * Those of sources are as the compiler wrote them, maybe on another machine: `sourceMap` replaces how
 * they begin, and below `sourceFolders` the longest end of a path is taken that is a file there.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "dap/adapter.h"

#define SCHEME "file://"
/* Most folders that an end of a path is tried without. */
#define TAILS_MAX 32

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

/* ------------------------------------------------------------------ sources ------------------ */

static bool is_file(const char *path)
{
	struct stat st;

	return path && path[0] == '/' && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Copy an absolute path without the slashes that end it.  @return 0, -EINVAL, -ENOMEM. */
static int take_path(const struct dap *d, struct dap_json v, char **ret)
{
	char path[DAP_PATH_MAX];
	size_t n;

	if (!dap_json_str(v, path, sizeof(path)) || !dap_take_path(d, path) || path[0] != '/')
		return -EINVAL;
	n = strlen(path);
	while (n && path[n - 1] == '/')
		n--;
	*ret = strndup(path, n);
	return *ret ? 0 : -ENOMEM;
}

void dap_sources_deinit(struct dap_sources *s)
{
	for (size_t i = 0; i < s->n_map; i++) {
		free(s->map[i].from);
		free(s->map[i].to);
	}
	for (size_t i = 0; i < s->n_folders; i++)
		free(s->folders[i]);
	*s = (struct dap_sources){ 0 };
}

static int take_map(struct dap *d, struct dap_json list)
{
	struct dap_sources *s = &d->sources;
	struct dap_json pair;
	int r = 0;

	for (; r == 0 && dap_json_has(pair = dap_json_item(list, s->n_map)); s->n_map++) {
		if (s->n_map == DAP_SOURCES_MAX)
			return -EINVAL;
		s->map[s->n_map].from = s->map[s->n_map].to = NULL;
		r = take_path(d, dap_json_item(pair, 0), &s->map[s->n_map].from);
		if (r == 0)
			r = take_path(d, dap_json_item(pair, 1), &s->map[s->n_map].to);
		if (r == 0 && dap_json_has(dap_json_item(pair, 2)))
			r = -EINVAL;
	}
	return r;
}

static int take_folders(struct dap *d, struct dap_json list)
{
	struct dap_sources *s = &d->sources;
	struct dap_json v;
	int r;

	for (; dap_json_has(v = dap_json_item(list, s->n_folders)); s->n_folders++) {
		if (s->n_folders == DAP_SOURCES_MAX)
			return -EINVAL;
		r = take_path(d, v, &s->folders[s->n_folders]);
		if (r < 0)
			return r;
	}
	return 0;
}

int dap_sources_arg(struct dap *d, struct dap_json args, struct agent_err *err)
{
	struct dap_json map = dap_json_get(args, "sourceMap"), folders = dap_json_get(args, "sourceFolders");
	int r;

	dap_sources_deinit(&d->sources);
	if (dap_json_has(map) && map.text[0] != '[')
		return dap_invalid(err, "sourceMap: must be a list of pairs [FROM, TO]");
	if (dap_json_has(folders) && folders.text[0] != '[')
		return dap_invalid(err, "sourceFolders: must be a list of paths");
	r = take_map(d, map);
	if (r == -EINVAL)
		return dap_invalid(err, "sourceMap: must be at most %u pairs [FROM, TO] of absolute paths",
				   DAP_SOURCES_MAX);
	if (r == 0)
		r = take_folders(d, folders);
	if (r == -EINVAL)
		return dap_invalid(err, "sourceFolders: must be at most %u absolute paths", DAP_SOURCES_MAX);
	return r < 0 ? agent_err_no_memory(err, NULL) : 0;
}

/* The file with another beginning; NULL if that is none of those which are replaced, or not there. */
static const char *find_mapped(const struct dap *d, struct rpc_arena *a, const char *file)
{
	for (size_t i = 0; i < d->sources.n_map; i++) {
		size_t n = strlen(d->sources.map[i].from);
		const char *path;

		if (strncmp(file, d->sources.map[i].from, n) != 0 || file[n] != '/')
			continue;
		path = rpc_arena_printf(a, "%s%s", d->sources.map[i].to, file + n);
		if (is_file(path))
			return path;
	}
	return NULL;
}

/* The longest end of the path that is a file below one of the folders. */
static const char *find_tail(const struct dap *d, struct rpc_arena *a, const char *file)
{
	const char *tail = file[0] == '/' ? file + 1 : file;

	for (int tries = 0; tries < TAILS_MAX && *tail; tries++) {
		/* Nothing outside of a folder is in it. */
		for (size_t i = 0; !strstr(tail, "../") && i < d->sources.n_folders; i++) {
			const char *path = rpc_arena_printf(a, "%s/%s", d->sources.folders[i], tail);

			if (is_file(path))
				return path;
		}
		tail = strchr(tail, '/');
		if (!tail)
			return NULL;
		tail++;
	}
	return NULL;
}

const char *dap_source_path(const struct dap *d, struct rpc_arena *a, const char *file)
{
	const char *path = find_mapped(d, a, file);

	if (path)
		return path;
	return is_file(file) ? file : find_tail(d, a, file);
}
