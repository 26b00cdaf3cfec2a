/* SPDX-License-Identifier: MIT */
#include "agentd/rules/config/config.h"
#include "agentd/rules/config/dump.h"
#include "agentd/rules/engine/rules.h"
#include "base/out.h"
#include "fuzzlib.h"

#include <stdlib.h>
#include <string.h>

static void print(const struct config_dump *dump, const struct config *c)
{
	auto_out struct out text;

	out_init(&text, 0);
	config_dump_print(dump, c, &text);
	if (!out_error(&text) && memmem(text.data, text.size, "[agent]", 7) != text.data)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rules rules = { 0 };
	struct config_dump dump = { 0 };
	const struct config_reading how = { .rules = &rules, .dump = &dump };
	struct config c;
	char error[256];

	config_init(&c);
	if (config_parse(&c, &how, "input", (const char *)data, size, error, sizeof(error)) == 0)
		(void)rules_check(&rules, error, sizeof(error));
	print(&dump, &c);
	config_dump_deinit(&dump);
	rules_deinit(&rules);
	return 0;
}
