/* SPDX-License-Identifier: MIT */
/* Bytes of a debugger event. */
#include "cudbgshim.h"
#include "fuzzlib.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cudbgshim_event e;

	if (cudbgshim_event_decode(data, size, &e) < 0)
		return 0;
	if (e.dev >= CUDBGSHIM_MAX_DEVICES)
		__builtin_trap();
	if (e.kind >= CUDBGSHIM_EVENT_COUNT && (cudbgshim_event_name(e.kind) || e.context))
		__builtin_trap();
	return 0;
}
