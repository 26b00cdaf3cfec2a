/* SPDX-License-Identifier: MIT */
/* Text like that of /proc/PID/maps, whose last column a process can choose. */
#include <stdlib.h>
#include <string.h>

#include "agentd/worker/process/mappings.h"
#include "fuzzlib.h"

static volatile size_t seen;

static void look(void *arg, const struct mapping *m)
{
	if (m->begin >= m->end)
		__builtin_trap();
	seen += strlen(m->path) + m->readable;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	/* Not a byte behind what it is given may be touched. */
	memcpy(text + 1, data, size);
	mappings_parse(text + 1, size, look, NULL);
	free(text);
	return 0;
}
