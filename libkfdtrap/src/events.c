/* SPDX-License-Identifier: MIT */
/* Commands that ask what happened. */
#include "internal.h"

#include <errno.h>

int kfdtrap_query_debug_event(struct kfdtrap *kt, uint64_t clear, struct kfdtrap_event *ret_event)
{
	static const int errnos[] = { EAGAIN, 0 };
	struct kfdabi_dbg_args args = { .query_event.exception_mask = clear };
	int r = trap_call(kt, KFDABI_DBG_QUERY_DEBUG_EVENT, &args, errnos);

	if (r == -EAGAIN)
		return 0;
	if (r < 0)
		return r;
	*ret_event = (struct kfdtrap_event){
		.exceptions = args.query_event.exception_mask,
		.gpu_id = args.query_event.gpu_id,
		.queue_id = args.query_event.queue_id,
	};
	return 1;
}

int kfdtrap_query_exception_info(struct kfdtrap *kt, uint32_t code, uint32_t source_id, bool clear,
				 void *buf, size_t size, size_t *ret_size)
{
	static const int errnos[] = { ENODATA, 0 };
	char nothing = 0;
	/* The kernel refuses a null pointer even when there is nothing to copy. */
	struct kfdabi_dbg_args args = {
		.query_info = {
			.info_ptr = buf ? trap_ptr(buf) : trap_ptr(&nothing),
			.info_size = (uint32_t)size,
			.source_id = source_id,
			.exception_code = code,
			.clear_exception = clear,
		},
	};
	int r;

	if (size > UINT32_MAX || (!buf && size))
		return -EINVAL;
	r = trap_call(kt, KFDABI_DBG_QUERY_EXCEPTION_INFO, &args, errnos);
	if (r < 0)
		return r;
	if (ret_size)
		*ret_size = args.query_info.info_size;
	return 0;
}

int kfdtrap_query_runtime_info(struct kfdtrap *kt, bool clear,
			       struct kfdtrap_runtime_info *ret_info)
{
	struct kfdabi_runtime_info info = { 0 };
	size_t size = 0;
	int r;

	r = kfdtrap_query_exception_info(kt, KFDTRAP_EC_PROCESS_RUNTIME, 0, clear, &info,
					 sizeof(info), &size);
	if (r < 0)
		return r;
	if (size < sizeof(info))
		return -EPROTO;
	*ret_info = (struct kfdtrap_runtime_info){
		.r_debug = info.r_debug,
		.state = info.runtime_state,
		.ttmp_setup = info.ttmp_setup,
	};
	return 0;
}

int kfdtrap_query_memory_violation(struct kfdtrap *kt, uint32_t gpu_id, bool clear,
				   struct kfdtrap_memory_violation *ret_violation)
{
	struct kfdabi_memory_exception_data data = { 0 };
	size_t size = 0;
	int r;

	r = kfdtrap_query_exception_info(kt, KFDTRAP_EC_DEVICE_MEMORY_VIOLATION, gpu_id, clear,
					 &data, sizeof(data), &size);
	if (r < 0)
		return r;
	if (size < sizeof(data))
		return 0;
	*ret_violation = (struct kfdtrap_memory_violation){
		.not_present = data.not_present,
		.read_only = data.read_only,
		.no_execute = data.no_execute,
		.imprecise = data.imprecise,
		.va = data.va,
		.gpu_id = data.gpu_id,
		.error_type = data.error_type,
	};
	return 1;
}
