/* SPDX-License-Identifier: MIT */
/* What scontrol prints: never more processes than there is room for, and none twice. */
#include <stdlib.h>

#include "ctl/job/slurm.h"
#include "fuzzlib.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t list[8];
	size_t n = slurm_read_pids((const char *)data, size, "3", list, 8);

	if (n > 8)
		abort();
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++)
			if (!list[i] || list[i] == list[k])
				abort();
	return 0;
}
