/* SPDX-License-Identifier: MIT */
/*
 * What a program writes for the simulated GPU to do: packets, kernel descriptors, copy commands,
 * arguments of copy kernels, all out of the same bytes.
 */
#include <string.h>

#include "fuzzlib.h"
#include "sim/kfd/packet/aql.h"
#include "sim/kfd/packet/copy_kernel.h"
#include "sim/kfd/packet/sdma.h"

static void check(bool holds)
{
	if (!holds)
		__builtin_trap();
}

static void look_at_packets(const uint8_t *data, size_t size)
{
	int64_t values[AQL_SIGNALS] = { 0 };
	struct aql_packet packet;
	struct aql_kernel kernel;

	for (size_t at = 0; at < size; at += AQL_PACKET_SIZE) {
		check(!aql_kernel_parse(data + at, size - at, &kernel) == (size - at >= AQL_KERNEL_SIZE));
		if (aql_packet_parse(data + at, size - at, &packet))
			continue;
		check(size - at >= AQL_PACKET_SIZE && packet.dimensions <= 3);
		/* Barriers of HSA are open once all their signals are zero. */
		if (packet.kind != AQL_BARRIER_VALUE)
			check(aql_barrier_is_open(&packet, values));
		else
			aql_barrier_is_open(&packet, (const int64_t[AQL_SIGNALS]){ packet.value });
	}
}

/* Commands follow each other, and each is as long as it says. */
static void look_at_commands(const uint8_t *data, size_t size)
{
	struct sdma_command c;

	for (uint64_t at = 0; at < size; at += c.length) {
		if (sdma_command_parse(data + at, size - at, &c))
			break;
		check(c.length >= 4 && c.length % 4 == 0);
		check(c.kind == SDMA_NOTHING || c.length <= size - at);
		if (c.kind == SDMA_COPY || c.kind == SDMA_FILL)
			check(c.size && c.size <= UINT64_C(1) << 30);
		if (c.kind == SDMA_WAIT)
			sdma_wait_is_over(&c, (uint32_t)c.value);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct copy_kernel k;
	uint32_t threads = 0;

	look_at_packets(data, size);
	look_at_commands(data, size);
	if (size >= sizeof(threads))
		memcpy(&threads, data + size - sizeof(threads), sizeof(threads));
	if (!copy_kernel_parse(data, size, threads, &k))
		check(size >= COPY_KERNEL_ARGUMENTS);
	return 0;
}
