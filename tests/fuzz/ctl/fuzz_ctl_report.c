/* SPDX-License-Identifier: MIT */
/* A document as it comes from a file, and the page that is made of it: nothing in it can become an element. */
#include <stdlib.h>
#include <string.h>

#include "base/out.h"
#include "ctl/report/report.h"
#include "fuzzlib.h"

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
		n++;
	return n;
}

static void check(const char *page)
{
	if (count(page, "<script") > 1 || count(page, "<script") != count(page, "</script>") ||
	    count(page, "<section") != count(page, "</section>") || count(page, "<svg") != count(page, "</svg>") ||
	    count(page, "<details>") != count(page, "</details>") || count(page, "<td") != count(page, "</td>"))
		abort();
	for (const unsigned char *c = (const unsigned char *)page; *c; c++)
		if (*c < ' ' && *c != '\n')
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_rpc_arena struct rpc_arena arena;
	struct report_input in = { 0 };
	struct agent_err err = { 0 };
	auto_out struct out page = { 0 };

	rpc_arena_init(&arena, (size_t)64 << 20);
	if (report_parse("input", (const char *)data, size, &arena, &in, &err) < 0) {
		if (!err.code || !err.message[0])
			abort();
	} else if (report_write(&arena, &page, &in) == 0) {
		check(page.data);
	}
	return 0;
}
