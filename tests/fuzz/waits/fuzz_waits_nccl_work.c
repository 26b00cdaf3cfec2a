/* SPDX-License-Identifier: MIT */
/* What blocks of NCCL's kernels keep in their shared memory, as a process may have written it. */
#include <stdlib.h>
#include <string.h>

#include "fuzzlib.h"
#include "waits/collective/nccl_work.h"

static const struct waits_rccl_comm comm = { 3, 8, 2, 4 };

static void check_pair(const uint8_t *data, size_t size, const struct waits_nccl_block *block, enum waits_nccl_age age)
{
	struct waits_nccl_pair pair;

	for (uint32_t channel = 0; channel < WAITS_NCCL_CHANNELS_MAX; channel += 7)
		for (uint32_t i = 0; i <= block->works; i++)
			for (uint32_t warps = 0; warps <= WAITS_NCCL_WARPS_MAX + 1; warps++) {
				if (waits_nccl_pair_read(data, size, age, &comm, block, channel, i, warps, &pair) < 0)
					continue;
				if (pair.from >= comm.ranks || pair.from == comm.rank || pair.warp >= warps ||
				    i >= block->works || pair.protocol > WAITS_NCCL_SIMPLE)
					__builtin_trap();
			}
}

static void check_channel(const uint8_t *data, size_t size, enum waits_nccl_age age)
{
	struct waits_nccl_tree tree;
	uint64_t peers;
	uint32_t place;

	if (waits_nccl_place_read(data, size, age, comm.ranks, &place) == 0 && place >= comm.ranks)
		__builtin_trap();
	if (waits_nccl_peers_read(data, size, &peers) == 0 && (!peers || peers % 8))
		__builtin_trap();
	if (waits_nccl_tree_read(data, size, age, &comm, &tree) < 0)
		return;
	if (tree.up != WAITS_NCCL_NOBODY && (tree.up >= comm.ranks || tree.up == comm.rank))
		__builtin_trap();
	for (uint32_t i = 0; i < WAITS_NCCL_TREE_ARITY; i++)
		if (tree.down[i] != WAITS_NCCL_NOBODY &&
		    (tree.down[i] >= comm.ranks || tree.down[i] == comm.rank || tree.down[i] == tree.up))
			__builtin_trap();
}

/* Of whichever communicator, channel and release it may be. */
static void check_block(const uint8_t *data, size_t size)
{
	static const uint32_t peers_at[] = { 112, 128, 144 };
	uint8_t bytes[WAITS_NCCL_COMM] = { 0 };
	struct waits_nccl_launch launch = { 0 };
	struct waits_nccl_block block;
	uint32_t channel;
	uint64_t peers;

	if (size < WAITS_NCCL_SHARED)
		return;
	memcpy(&launch.comm, data, 8);
	memcpy(&launch.channels, data + 8, 8);
	memcpy(&channel, data + 32, 4);
	memcpy(bytes, data + 48, sizeof(bytes));
	for (unsigned int layout = 0; layout < WAITS_NCCL_LAYOUTS; layout++)
		for (size_t i = 0; i < sizeof(peers_at) / sizeof(peers_at[0]); i++) {
			memcpy(&peers, data + peers_at[i], 8);
			if (waits_nccl_block_read(layout, data, size, bytes, &launch, channel, peers, &block) < 0)
				continue;
			if (!waits_nccl_has_work(layout) || !block.works || block.works > WAITS_NCCL_WORKS_MAX ||
			    (uint64_t)block.works * block.bytes > WAITS_NCCL_WORK_BYTES_MAX)
				__builtin_trap();
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Of exactly this size, so that a read beyond it is seen. */
	uint8_t *copy = malloc(size ? size : 1);

	if (copy && size) {
		const struct waits_nccl_block block = { true, true, 1 + data[0] % WAITS_NCCL_WORKS_MAX, 48 };

		memcpy(copy, data, size);
		check_block(copy, size);
		for (unsigned int age = WAITS_NCCL_EARLY; age <= WAITS_NCCL_LATE; age++) {
			check_channel(copy, size, (enum waits_nccl_age)age);
			check_pair(copy, size, &block, (enum waits_nccl_age)age);
		}
		if (waits_nccl_work_warps(copy, size) > WAITS_NCCL_WARPS_MAX)
			__builtin_trap();
	}
	free(copy);
	return 0;
}
