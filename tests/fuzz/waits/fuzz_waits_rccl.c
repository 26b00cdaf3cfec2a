/* SPDX-License-Identifier: MIT */
/* What a process wrote where its kernels' arguments lead. */
#include <stdlib.h>
#include <string.h>

#include "fuzzlib.h"
#include "waits/rccl.h"

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
		(void)waits_rccl_work_read(copy, size, &number);
		(void)waits_rccl_is_kernel(name);
	}
	free(copy);
	free(name);
	return 0;
}
