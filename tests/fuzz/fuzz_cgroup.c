/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "agentd/cgroup.h"
#include "fuzzlib.h"

/* What is found lies within the text, and has no slash in it unless it is the path. */
static void check(struct cgroup_part p, const char *text, size_t size, int is_path)
{
	if (!p.size)
		return;
	if (p.text < text || p.size > size || p.text + p.size > text + size)
		abort();
	if (memchr(p.text, '\n', p.size) || (!is_path && memchr(p.text, '/', p.size)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;

	check(cgroup_path(text, size), text, size, 1);
	check(cgroup_unit(text, size), text, size, 0);
	check(cgroup_container(text, size), text, size, 0);
	return 0;
}
