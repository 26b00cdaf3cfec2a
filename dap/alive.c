/* SPDX-License-Identifier: MIT */
/*
 * Whether a person still uses the editor.  An editor goes on running when nobody looks at it any
 * more: a tab is closed, a lid is shut, and the process that speaks with us stays.  What it asks
 * for by itself, right after an event, is no sign of use, nor is a request that says `automatic`;
 * everything else that it asks for is.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "dap/adapter.h"

/* Nanoseconds after an event within which an editor asks again for what it shows. */
#define REACTION_NS UINT64_C(2000000000)

void dap_alive_event(struct dap_alive *a, const char *event, uint64_t now_ns)
{
	/* Output and progress are only shown: an editor asks for nothing after them. */
	if (strcmp(event, "output") != 0 && !str_starts_with(event, "progress"))
		a->event_ns = now_ns;
}

/* Whether an editor sends such a request by itself; watches are evaluated so. */
static bool is_reaction(const char *command, const char *context)
{
	static const char *const reactions[] = { "threads",	 "stackTrace",	"scopes",
						 "variables",	 "source",	"disassemble",
						 "exceptionInfo", "readMemory" };

	for (size_t i = 0; i < ARRAY_SIZE(reactions); i++)
		if (!strcmp(command, reactions[i]))
			return true;
	return !strcmp(command, "evaluate") && !strcmp(context, "watch");
}

void dap_alive_request(struct dap_alive *a, const char *command, const char *context,
		       uint64_t now_ns)
{
	if (is_reaction(command, context) && now_ns - a->event_ns < REACTION_NS)
		return;
	a->proof_ns = now_ns;
	a->left = false;
}

uint64_t dap_alive_end_ns(const struct dap_alive *a, uint32_t idle_ms)
{
	/*
	 * A user who waits for an exception asks for nothing until it comes: the time counts from
	 * the stop.
	 */
	uint64_t from_ns = a->proof_ns > a->stop_ns ? a->proof_ns : a->stop_ns;

	return idle_ms ? from_ns + idle_ms * UINT64_C(1000000) : UINT64_MAX;
}
