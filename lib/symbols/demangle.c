/* SPDX-License-Identifier: MIT */
#include "symbols/demangle.h"

#include <setjmp.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "base/str.h"

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
	const char *last = raw[0] == '$' ? strrchr(raw + 1, '$') : NULL;

	return last && last[1] ? last + 1 : raw;
}

bool symbols_demangle(const char *name, char *buf, size_t size)
{
	const char *raw = function_of(name);
	struct sink s = { .buf = buf, .size = size };
	/* The built-in limit refuses names beyond 1 KiB, which kernels of libraries do reach. */
	int options = DMGL_PARAMS | DMGL_ANSI | DMGL_NO_RECURSE_LIMIT;

	if (raw[0] == '_' && raw[1] == 'Z' && strnlen(raw, SYMBOLS_MANGLED_MAX + 1) <=
						       SYMBOLS_MANGLED_MAX) {
		if (setjmp(s.full)) {
			end_with_dots(buf, size);
			return true;
		}
		if (cplus_demangle_v3_callback(raw, options, collect, &s)) {
			buf[s.used] = '\0';
			return true;
		}
	}
	str_copy(buf, size, name);
	return false;
}
