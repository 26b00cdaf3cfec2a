/* SPDX-License-Identifier: MIT */
#include "agentd/rules/config/config.h"
#include "agentd/rules/engine/rules.h"
#include "fuzzlib.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rules rules = { 0 };
	const struct config_reading how = { .rules = &rules };
	struct config c;
	char error[256];

	config_init(&c);
	if (config_parse(&c, &how, "input", (const char *)data, size, error, sizeof(error)) == 0)
		(void)rules_check(&rules, error, sizeof(error));
	rules_deinit(&rules);
	return 0;
}
