/* SPDX-License-Identifier: MIT */
/* What kubectl prints: every word that comes out of it can be an argument of kubectl.  The same bytes as a cgroup. */
#include <stdlib.h>
#include <string.h>

#include "ctl/job/pods.h"
#include "fuzzlib.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pod list[8];
	size_t n = 0;
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	pods_has_process("12-ab", text, size);
	if (pods_parse(text, size, list, 8, &n) == 0)
		for (size_t i = 0; i < n; i++)
			if (!pods_is_uid(list[i].uid) || !list[i].name[0] || strpbrk(list[i].name, " \t\n/") || list[i].node[0] == '-')
				abort();
	free(text);
	return 0;
}
