/* SPDX-License-Identifier: MIT */
/* Commands that set and clear watch points. */
#include "internal.h"

#include <errno.h>

int kfdtrap_set_node_address_watch(struct kfdtrap *kt, uint32_t gpu_id, uint64_t address,
				   uint32_t mask, uint32_t mode, uint32_t *ret_id)
{
	struct kfdabi_dbg_args args = {
		.set_watch = {
			.address = address,
			.mode = mode,
			.mask = mask,
			.gpu_id = gpu_id,
			.id = KFDABI_WATCH_ID_NONE,
		},
	};
	int r;

	if (mode >= KFDTRAP_WATCH_COUNT)
		return -EINVAL;
	r = trap_call(kt, KFDABI_DBG_SET_NODE_ADDRESS_WATCH, &args, trap_errnos_hardware);
	if (r < 0)
		return r;
	if (args.set_watch.id >= KFDTRAP_WATCH_IDS)
		return -EIO;
	*ret_id = args.set_watch.id;
	return 0;
}

int kfdtrap_clear_node_address_watch(struct kfdtrap *kt, uint32_t gpu_id, uint32_t id)
{
	struct kfdabi_dbg_args args = { .clear_watch = { .gpu_id = gpu_id, .id = id } };
	int r;

	if (id >= KFDTRAP_WATCH_IDS)
		return -EINVAL;
	r = trap_call(kt, KFDABI_DBG_CLEAR_NODE_ADDRESS_WATCH, &args, trap_errnos_hardware);
	return r < 0 ? r : 0;
}
