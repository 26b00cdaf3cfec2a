/* SPDX-License-Identifier: MIT */
/* The arguments of a process, which it may have overwritten with anything. */
#include <string.h>

#include "agentd/worker/inspect/command_line.h"
#include "base/str.h"
#include "fuzzlib.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct command_line line;
	size_t n;

	command_line_parse((const char *)data, size, &line);
	if (strlen(line.text) > COMMAND_LINE_MAX || (line.is_cut && size <= COMMAND_LINE_MAX))
		__builtin_trap();
	for (const char *s = line.text; *s; s += n) {
		n = str_utf8_length(s, strlen(s));
		if (!n || (unsigned char)*s < ' ' || *s == 0x7f)
			__builtin_trap();
	}
	return 0;
}
