/* SPDX-License-Identifier: MIT */
/* What a process wrote where its kernels' arguments lead. */
#include <stdlib.h>
#include <string.h>

#include "fuzzlib.h"
#include "waits/collective/rccl.h"

static void check_comm(const uint8_t *data, size_t size)
{
	struct waits_rccl_comm comm;
	uint64_t address = 0;

	if (size >= 48)
		memcpy(&address, data + 40, sizeof(address));
	if (waits_rccl_comm_read(data, size, address - 80, &comm) < 0)
		return;
	if (comm.ranks > WAITS_RCCL_RANKS_MAX || comm.rank >= comm.ranks ||
	    comm.next >= comm.ranks || comm.previous >= comm.ranks)
		__builtin_trap();
	if (waits_rccl_comm_read(data, size, address - 81, &comm) == 0)
		__builtin_trap();
}

/* What a rank receives is of another one, by one of its connections, in waves that a workgroup has. */
static void check_receive(const uint8_t *data, size_t size)
{
	const struct waits_rccl_comm comm = { .rank = 2, .ranks = 4, .previous = 1, .next = 3 };
	struct waits_rccl_channel channel = { .previous = 1, .next = 3 };
	struct waits_rccl_connection connection;
	struct waits_rccl_receive receive;

	if (waits_rccl_channel_read(data, size, comm.ranks, &channel) == 0 &&
	    (!channel.peers || !channel.order || channel.previous >= comm.ranks || channel.next >= comm.ranks))
		__builtin_trap();
	for (unsigned int i = 0; i < 2 * WAITS_RCCL_LAYOUTS; i++) {
		if (waits_rccl_receive_read(i / 2, data, size, i % 2, &comm, &channel, &receive) < 0)
			continue;
		if (receive.from >= comm.ranks || receive.from == comm.rank ||
		    receive.connection > 2 || !receive.waves || receive.waves > 8)
			__builtin_trap();
	}
	if (waits_rccl_connection_read(data, size, &connection) == 0 && !connection.arrived)
		__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Of exactly this size, so that a read beyond it is seen. */
	uint8_t *copy = malloc(size ? size : 1);
	char *name = calloc(1, size + 1);
	struct waits_rccl_launch launch;
	uint64_t number;

	if (copy && name && size) {
		memcpy(copy, data, size);
		memcpy(name, data, size);
		if (waits_rccl_launch_read(copy, size, &launch) == 0 &&
		    (!launch.n || launch.n > WAITS_RCCL_CHANNELS_MAX))
			__builtin_trap();
		check_comm(copy, size);
		check_receive(copy, size);
		(void)waits_rccl_work_read(copy, size, &number);
		(void)waits_rccl_is_kernel(name);
	}
	free(copy);
	free(name);
	return 0;
}
