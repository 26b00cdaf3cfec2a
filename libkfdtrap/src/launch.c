/* SPDX-License-Identifier: MIT */
/* Commands that change how waves are launched and run. */
#include "internal.h"

#include <errno.h>

int kfdtrap_set_wave_launch_override(struct kfdtrap *kt, uint32_t mode, uint32_t enable,
				     uint32_t request, uint32_t *ret_previous,
				     uint32_t *ret_supported)
{
	struct kfdabi_dbg_args args = {
		.launch_override = {
			.override_mode = mode,
			.enable_mask = enable,
			.support_request_mask = request,
		},
	};
	int r = trap_call(kt, KFDABI_DBG_SET_WAVE_LAUNCH_OVERRIDE, &args, trap_errnos_hardware);

	if (ret_supported && (r >= 0 || r == -EACCES))
		*ret_supported = args.launch_override.support_request_mask;
	if (r < 0)
		return r;
	if (ret_previous)
		*ret_previous = args.launch_override.enable_mask;
	return 0;
}

int kfdtrap_set_wave_launch_mode(struct kfdtrap *kt, uint32_t mode)
{
	struct kfdabi_dbg_args args = { .launch_mode.launch_mode = mode };
	int r = trap_call(kt, KFDABI_DBG_SET_WAVE_LAUNCH_MODE, &args, trap_errnos_hardware);

	return r < 0 ? r : 0;
}

int kfdtrap_set_flags(struct kfdtrap *kt, uint32_t flags, uint32_t *ret_previous)
{
	struct kfdabi_dbg_args args = { .set_flags.flags = flags };
	int r = trap_call(kt, KFDABI_DBG_SET_FLAGS, &args, trap_errnos_hardware);

	if (ret_previous && (r >= 0 || r == -EACCES))
		*ret_previous = args.set_flags.flags;
	return r < 0 ? r : 0;
}
