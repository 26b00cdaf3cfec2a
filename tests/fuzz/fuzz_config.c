/* SPDX-License-Identifier: MIT */
#include "agentd/spawn/config.h"
#include "fuzzlib.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config c;
	char error[256];

	config_init(&c);
	(void)config_parse(&c, "input", (const char *)data, size, error, sizeof(error));
	return 0;
}
