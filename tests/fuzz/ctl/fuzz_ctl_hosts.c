/* SPDX-License-Identifier: MIT */
/* A list of hosts: every name that comes out of it can be an argument of ssh. */
#include <stdlib.h>
#include <string.h>

#include "ctl/job/hosts.h"
#include "fuzzlib.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hosts h;
	const char *why = NULL;
	size_t line = 0;

	if (hosts_parse((const char *)data, size, &h, &line, &why) < 0) {
		if (!line || !why || h.n)
			abort();
		return 0;
	}
	if (h.n > HOSTS_MAX)
		abort();
	for (size_t i = 0; i < h.n; i++) {
		if (h.list[i][0] == '-' || !h.list[i][0] || strlen(h.list[i]) > HOSTS_NAME_MAX ||
		    strpbrk(h.list[i], " ;$`'\"\\|&<>()[],\n"))
			abort();
		hosts_split_port(h.list[i]);
	}
	hosts_deinit(&h);
	return 0;
}
