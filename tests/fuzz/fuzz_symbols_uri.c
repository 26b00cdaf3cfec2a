/* SPDX-License-Identifier: MIT */
/* URIs of code objects, which the target writes. */
#include <string.h>

#include "fuzzlib.h"
#include "symbols/uri.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbols_uri u;
	uint64_t end;

	if (symbols_uri_parse((const char *)data, size, &u) < 0)
		return 0;
	if ((u.kind == SYMBOLS_URI_FILE) != (u.path[0] != '\0') ||
	    strlen(u.path) > SYMBOLS_URI_PATH_MAX)
		__builtin_trap();
	if ((u.kind == SYMBOLS_URI_MEMORY) != (u.pid != 0))
		__builtin_trap();
	if (u.has_size && (!u.size || __builtin_add_overflow(u.offset, u.size, &end)))
		__builtin_trap();
	return 0;
}
