/* SPDX-License-Identifier: MIT */
/*
 * What the process that parses agentd.conf is told, and what is taken of its answer.
 *
 * The input is a configuration, a NUL, and changes of what the parser says of it: an offset of four bytes
 * and a byte to xor there, each.  The whole input is read as a question and as an answer as well.
 */
#include "agentd/rules/config/parsed.h"
#include "base/out.h"
#include "fuzzlib.h"

#include <stdlib.h>
#include <string.h>

#define CHANGE_BYTES 5

/* What was taken is what the agent goes on with. */
static void read_answer(const char *data, size_t size)
{
	struct rules rules = { 0 };
	struct config_dump dump = { 0 };
	static char error[CONFIG_ERROR_SIZE];
	struct config c;

	config_init(&c);
	if (parsed_read_answer(data, size, &c, &rules, &dump, error, sizeof(error)) == 0) {
		for (size_t i = 0; i < rules.n; i++)
			if (!rules_is_sound(&rules.list[i]))
				abort();
#define HAS_END(name, size)                     \
	if (!memchr(c.name, '\0', sizeof(c.name))) \
		abort();
		CONFIG_TEXTS(HAS_END)
#undef HAS_END
	}
	config_dump_deinit(&dump);
	rules_deinit(&rules);
}

static void read_question(const char *data, size_t size)
{
	struct config_files files = { 0 };
	static struct parsed_question q;

	(void)parsed_read_question(data, size, &q, &files);
	config_files_deinit(&files);
}

static void read_changed(const char *text, size_t text_size, const uint8_t *changes, size_t n)
{
	struct rules rules = { 0 };
	struct config_dump dump = { 0 };
	const struct config_reading how = { .rules = &rules, .dump = &dump };
	static struct parsed_answer a;
	auto_out struct out told;

	out_init(&told, 0);
	config_init(&a.config);
	a.status = config_parse(&a.config, &how, "input", text, text_size, a.error, sizeof(a.error));
	parsed_tell(&told, &a, &rules, &dump);
	for (; n >= CHANGE_BYTES; n -= CHANGE_BYTES, changes += CHANGE_BYTES) {
		uint32_t at;

		memcpy(&at, changes, sizeof(at));
		told.data[at % told.size] ^= (char)changes[4];
	}
	read_answer(told.data, told.size);
	config_dump_deinit(&dump);
	rules_deinit(&rules);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = memchr(data, '\0', size);
	size_t text_size = end ? (size_t)(end - data) : size;

	read_question((const char *)data, size);
	read_answer((const char *)data, size);
	read_changed((const char *)data, text_size, end ? end + 1 : data, end ? size - text_size - 1 : 0);
	return 0;
}
