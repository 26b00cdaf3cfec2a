/* SPDX-License-Identifier: MIT */
/* The words for the ways in which a hook ends; both sides of the link use them. */
#include "agentd/hook.h"

const char *hook_end_name(uint32_t end)
{
	static const char *const names[HOOK_END_COUNT] = {
		[HOOK_END_EXIT] = "exit",	  [HOOK_END_SIGNAL] = "signal",
		[HOOK_END_TIMEOUT] = "timeout",	  [HOOK_END_REFUSED] = "refused",
		[HOOK_END_FAILED] = "failed",	  [HOOK_END_STOPPED] = "stopped",
	};

	return end < HOOK_END_COUNT ? names[end] : "unknown";
}
