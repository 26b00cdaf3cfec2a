/* SPDX-License-Identifier: MIT */
#include "agentd/access.h"
#include "fuzzlib.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct access_target t;

	(void)access_status_parse((const char *)data, size, &t);
	return 0;
}
