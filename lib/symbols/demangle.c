/* SPDX-License-Identifier: MIT */
#include "symbols/demangle.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "base/str.h"

#define SUFFIXES_MAX 8u /* Places that are tried as the end of a mangled name. */

/* The buffer that gets the readable name. */
struct sink {
	char *buf;
	size_t size, used;
	jmp_buf full;
};

/*
 * Take a piece of the readable name.  Substitutions double a name's length with every few
 * characters, and the callback has no way to say stop.  This form of the demangler owns no heap
 * memory (it serves std::terminate), so leaving it by a jump loses nothing.
 */
static void collect(const char *text, size_t length, void *arg)
{
	struct sink *s = arg;
	size_t room = s->size - 1 - s->used;

	if (length > room) {
		memcpy(s->buf + s->used, text, room);
		s->used += room;
		longjmp(s->full, 1);
	}
	memcpy(s->buf + s->used, text, length);
	s->used += length;
}

static void end_with_dots(char *buf, size_t size)
{
	size_t n = size - 1;
	static const char dots[] = "...";

	if (n < sizeof(dots))
		n = 0;
	else
		n -= sizeof(dots) - 1;
	str_copy(buf + n, size - n, dots);
}

/*
 * Find the function in a name: nvcc names the copy of a function that one kernel alone uses
 * $KERNEL$FUNCTION.
 */
static const char *function_of(const char *raw)
{
	const char *last = NULL;

	for (const char *at = raw[0] == '$' ? raw : NULL; at; at = strstr(at + 1, "$_Z"))
		last = at;
	return last && last != raw ? last + 1 : raw;
}

/* @return false when it is no mangled name; a readable name that is too long ends in dots. */
static bool demangle(const char *raw, char *buf, size_t size)
{
	struct sink s = { .buf = buf, .size = size };
	/* The built-in limit refuses names beyond 1 KiB, which kernels of libraries do reach. */
	int options = DMGL_PARAMS | DMGL_ANSI | DMGL_NO_RECURSE_LIMIT;

	if (setjmp(s.full)) {
		end_with_dots(buf, size);
		return true;
	}
	if (!cplus_demangle_v3_callback(raw, options, collect, &s))
		return false;
	buf[s.used] = '\0';
	return true;
}

/* Say what follows a name as the demangler says it of the suffixes of GCC's clones, which it knows. */
static bool demangle_clone(const char *raw, size_t length, char *buf, size_t size)
{
	char name[SYMBOLS_MANGLED_MAX + 1];
	size_t end = 2;

	for (unsigned i = 0; i < SUFFIXES_MAX; i++, end++) {
		size_t n;

		end += strcspn(raw + end, ".$");
		if (end == length)
			return false;
		memcpy(name, raw, end);
		name[end] = '\0';
		if (!demangle(name, buf, size))
			continue;
		n = strlen(buf);
		if (n + strlen(" [clone ]") + (length - end) < size)
			snprintf(buf + n, size - n, " [clone %s]", raw + end);
		return true;
	}
	return false;
}

bool symbols_demangle(const char *name, char *buf, size_t size)
{
	const char *raw = function_of(name);
	size_t length = strnlen(raw, SYMBOLS_MANGLED_MAX + 1);

	if (raw[0] == '_' && raw[1] == 'Z' && length <= SYMBOLS_MANGLED_MAX &&
	    (demangle(raw, buf, size) || demangle_clone(raw, length, buf, size)))
		return true;
	str_copy(buf, size, name);
	return false;
}
