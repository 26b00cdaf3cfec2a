/* SPDX-License-Identifier: MIT */
/* What a process wrote where the arguments of NCCL's kernels lead. */
#include <stdlib.h>
#include <string.h>

#include "fuzzlib.h"
#include "waits/collective/nccl.h"

static void check_launch(const uint8_t *data, size_t size)
{
	struct waits_nccl_launch launch;
	uint64_t left;

	if (waits_nccl_launch_read(data, size, &launch) < 0)
		return;
	if (!launch.comm || !launch.channels)
		__builtin_trap();
	left = launch.channels;
	for (uint32_t block = 0; block < 2 * WAITS_NCCL_CHANNELS_MAX; block++) {
		uint32_t channel = waits_nccl_channel_of(launch.channels, block);

		if (channel > WAITS_NCCL_CHANNELS_MAX)
			__builtin_trap();
		if (channel == WAITS_NCCL_CHANNELS_MAX)
			continue;
		/* Each block has a channel of its own. */
		if (!(left >> channel & 1))
			__builtin_trap();
		left &= ~(UINT64_C(1) << channel);
	}
	if (left)
		__builtin_trap();
}

/* Wherever it may lie: by what it says of its channels. */
static void check_comm(const uint8_t *data, size_t size)
{
	struct waits_rccl_comm comm;
	uint64_t address = 0;
	uint32_t layouts;

	for (size_t at = 48; at + 8 <= size && at <= 64; at += 8) {
		memcpy(&address, data + at, sizeof(address));
		for (uint64_t first = 64; first <= 96; first += 16) {
			if (waits_nccl_comm_read(data, size, address - first, &comm, &layouts) < 0)
				continue;
			if (!layouts || layouts >> WAITS_NCCL_LAYOUTS || !comm.ranks ||
			    comm.ranks > WAITS_RCCL_RANKS_MAX || comm.rank >= comm.ranks)
				__builtin_trap();
		}
	}
}

/* Where slots lie, what is in them, and that each flag fits one of them at most. */
static void check_slots(const uint8_t *data, size_t size)
{
	for (unsigned int i = 0; i <= WAITS_NCCL_NO_PROTOCOL; i++) {
		const enum waits_nccl_protocol protocol = (enum waits_nccl_protocol)i;
		unsigned int came = 0;
		uint64_t taken;

		for (unsigned int layout = 0; layout < WAITS_NCCL_LAYOUTS; layout++) {
			uint32_t bytes = waits_nccl_slot_bytes(layout, data, size, protocol);

			if (bytes && (i > WAITS_NCCL_LL128 || bytes < 128 || bytes % 8 || bytes > 1u << 28))
				__builtin_trap();
		}
		if (waits_nccl_flag_at(data, size, protocol) % WAITS_NCCL_FLAG)
			__builtin_trap();
		if (i > WAITS_NCCL_LL128 || size < WAITS_NCCL_FLAG + sizeof(taken))
			continue;
		memcpy(&taken, data + size - sizeof(taken), sizeof(taken));
		for (uint32_t slot = 0; slot < WAITS_NCCL_SLOTS; slot++)
			came += waits_nccl_slot_read(data, protocol, slot, taken) == WAITS_NCCL_SLOT_CAME;
		if (came > 1)
			__builtin_trap();
	}
}

static void check_function(const char *name)
{
	struct waits_nccl_function f;

	if (waits_nccl_function_read(name, &f) < 0) {
		if (waits_nccl_is_kernel(name))
			__builtin_trap();
		return;
	}
	if (f.protocol > WAITS_NCCL_NO_PROTOCOL || f.is_kernel != waits_nccl_is_kernel(name))
		__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Of exactly this size, so that a read beyond it is seen. */
	uint8_t *copy = malloc(size ? size : 1);
	char *name = calloc(1, size + 1);
	struct waits_rccl_connection connection;

	if (copy && name && size) {
		memcpy(copy, data, size);
		memcpy(name, data, size);
		check_launch(copy, size);
		check_comm(copy, size);
		for (unsigned int i = 0; i < WAITS_NCCL_LAYOUTS; i++)
			if (waits_nccl_connection_read(i, copy, size, &connection) == 0 && !connection.arrived)
				__builtin_trap();
		check_slots(copy, size);
		check_function(name);
	}
	free(copy);
	free(name);
	return 0;
}
