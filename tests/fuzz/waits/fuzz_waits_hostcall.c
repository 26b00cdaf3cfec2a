/* SPDX-License-Identifier: MIT */
/* A buffer by which waves call the host, with its packets behind it: all of it is what the target wrote. */
#include <stdbool.h>

#include "fuzzlib.h"
#include "waits/rocm/hostcall.h"

#define AT UINT64_C(0x7f6000000000)

static void check(bool good)
{
	if (!good)
		__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t marks[WAITS_HOSTCALL_PACKETS_MAX];
	struct waits_hostcall b;
	struct waits_calls c;
	uint32_t open = 0;

	if (waits_hostcall_read(data, size, AT, &b) < 0)
		return 0;
	check(size >= WAITS_HOSTCALL_BYTES && b.packets && b.packets <= WAITS_HOSTCALL_PACKETS_MAX);
	check(b.at > AT && b.at - AT < 8192 && b.doorbell);
	check(b.layout == WAITS_HOSTCALL_PHASES || (b.layout == WAITS_HOSTCALL_STACKS && b.packets <= b.mask + 1));
	check(waits_hostcall_again(&b) <= (size_t)WAITS_HOSTCALL_PACKET_BYTES * b.packets);
	if (waits_hostcall_calls(&b, data + WAITS_HOSTCALL_BYTES, size - WAITS_HOSTCALL_BYTES, marks, &c) < 0)
		return 0;
	check(c.free + c.ready + c.taken + c.answered == b.packets && c.lanes <= UINT64_C(64) * b.packets);
	for (int i = 0; i < WAITS_SERVICE_COUNT; i++)
		open += c.services[i];
	check(open == c.ready + c.taken);
	check(b.layout == WAITS_HOSTCALL_STACKS || (!c.taken && !c.answered));
	return 0;
}
