/* SPDX-License-Identifier: MIT */
/*
 * The configuration is read anew for each question, so that tests may change it while a library is
 * loaded.
 */
#include "conf.h"

#include <dlfcn.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"

#define CONF_FILE_MAX 65536

/* Find the value of a key; the last line that begins with it wins. */
static void search(char *text, const char *separators, const char *key, char *ret)
{
	size_t n = strlen(key);
	char *save = NULL;

	for (char *l = strtok_r(text, separators, &save); l;
	     l = strtok_r(NULL, separators, &save)) {
		l += strspn(l, " \t");
		if (!strncmp(l, key, n) && l[n] == ' ')
			str_copy(ret, CONF_VALUE_MAX, l + n + 1);
	}
}

/* Look into the file beside the library that this code is part of. */
static void search_file(const char *key, char *ret)
{
	auto_free char *copy = NULL, *text = NULL;
	char path[4096 + 16];
	Dl_info info;
	size_t size;

	if (!dladdr((const void *)conf_get, &info) || !(copy = strdup(info.dli_fname)))
		return;
	snprintf(path, sizeof(path), "%s/cudasim.conf", dirname(copy));
	if (!fd_read_file(path, CONF_FILE_MAX, &text, &size))
		search(text, "\n", key, ret);
}

void conf_get(const char *key, char *ret)
{
	const char *env = getenv("GPU_AGENT_CUDASIM");
	auto_free char *copy = env ? strdup(env) : NULL;

	*ret = 0;
	search_file(key, ret);
	if (copy)
		search(copy, ";", key, ret);
}

uint32_t conf_number(const char *key, uint32_t fallback)
{
	char value[CONF_VALUE_MAX];
	uint64_t n;

	conf_get(key, value);
	return str_to_u64(value, 0, UINT32_MAX, &n) ? fallback : (uint32_t)n;
}

uint32_t conf_release(uint32_t fallback)
{
	char value[CONF_VALUE_MAX], *minor;
	uint64_t x, y;

	conf_get("version", value);
	minor = strchr(value, '.');
	if (!minor)
		return fallback;
	*minor++ = 0;
	if (str_to_u64(value, 1, 99, &x) || str_to_u64(minor, 0, 99, &y))
		return fallback;
	return (uint32_t)(x * 100 + y);
}
