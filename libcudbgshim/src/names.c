/* SPDX-License-Identifier: MIT */
/*
 * What our side makes of results: errno, plain words, hints; names of results, events and slots.
 */
#include "internal.h"

#include <errno.h>

#include "base/cleanup.h"

struct result {
	const char *name;
	int error;
	const char *words, *hint;
};

#define RESULT(code, ...) [CUDBGABI_##code] = { "CUDBG_" #code, __VA_ARGS__ }

static const struct result results[CUDBGABI_RESULT_COUNT] = {
	RESULT(SUCCESS, 0, "done"),
	RESULT(ERROR_UNKNOWN, EIO, "the debug engine failed and does not say why"),
	RESULT(ERROR_BUFFER_TOO_SMALL, ENOBUFS, "the answer does not fit into the buffer"),
	RESULT(ERROR_UNKNOWN_FUNCTION, ENOENT, "no device function at this address"),
	RESULT(ERROR_INVALID_ARGS, EINVAL, "an argument makes no sense to the debug engine"),
	RESULT(ERROR_UNINITIALIZED, EAGAIN, "the debug engine is not initialised yet",
	       "the CUDA driver of the process may still be starting; try again"),
	RESULT(ERROR_INVALID_COORDINATES, ENXIO, "no block or thread with these coordinates"),
	RESULT(ERROR_INVALID_MEMORY_SEGMENT, EFAULT, "no memory segment of this kind"),
	RESULT(ERROR_INVALID_MEMORY_ACCESS, EFAULT, "the memory cannot be accessed in this way"),
	RESULT(ERROR_MEMORY_MAPPING_FAILED, ENOMEM, "device memory could not be mapped"),
	RESULT(ERROR_INTERNAL, EIO, "internal error of the driver or of its debug engine",
	       "check that libcudadebugger.so.1 of the same driver version is installed, "
	       "also inside the container"),
	RESULT(ERROR_INVALID_DEVICE, ENXIO, "no such GPU, or a GPU that cannot be debugged",
	       "limit the process to supported GPUs with CUDA_VISIBLE_DEVICES"),
	RESULT(ERROR_INVALID_SM, ENXIO, "no such multiprocessor"),
	RESULT(ERROR_INVALID_WARP, ENXIO, "no warp is resident there"),
	RESULT(ERROR_INVALID_LANE, ENXIO, "no such lane in the warp"),
	RESULT(ERROR_SUSPENDED_DEVICE, EBUSY, "the GPU is suspended already"),
	RESULT(ERROR_RUNNING_DEVICE, EBUSY,
	       "the GPU is running; its state can be read only while suspended"),
	RESULT(ERROR_RESERVED_0, EIO, "reserved result"),
	RESULT(ERROR_INVALID_ADDRESS, EFAULT, "not a valid address"),
	RESULT(ERROR_INCOMPATIBLE_API, EPROTONOSUPPORT,
	       "the driver does not serve this version of the debugger API",
	       "use the libcuda.so.1 that belongs to the loaded kernel module"),
	RESULT(ERROR_INITIALIZATION_FAILURE, EIO, "the debug engine could not be started",
	       "another debugger or profiler may be inside the process, "
	       "or libcudadebugger.so.1 may be missing from its container"),
	RESULT(ERROR_INVALID_GRID, ENOENT, "no such grid"),
	RESULT(ERROR_NO_EVENT_AVAILABLE, EIO, "no event is waiting"),
	RESULT(ERROR_SOME_DEVICES_WATCHDOGGED, EACCES, "a watchdog guards some of the GPUs",
	       "GPUs that drive a display cannot be debugged; hide them with CUDA_VISIBLE_DEVICES"),
	RESULT(ERROR_ALL_DEVICES_WATCHDOGGED, EACCES, "a watchdog guards every GPU",
	       "stop the display server on a GPU, or use one that drives no display"),
	RESULT(ERROR_INVALID_ATTRIBUTE, EINVAL, "no such attribute"),
	RESULT(ERROR_ZERO_CALL_DEPTH, ENODATA, "the lane has no caller"),
	RESULT(ERROR_INVALID_CALL_LEVEL, ENODATA, "the call stack is not that deep"),
	RESULT(ERROR_COMMUNICATION_FAILURE, EPIPE,
	       "the debug engine inside the process does not answer",
	       "the process has died or its engine has; attach again if it still runs"),
	RESULT(ERROR_INVALID_CONTEXT, ENOENT, "no such context"),
	RESULT(ERROR_ADDRESS_NOT_IN_DEVICE_MEM, EFAULT, "the address is not in device memory"),
	RESULT(ERROR_MEMORY_UNMAPPING_FAILED, ENOMEM, "device memory could not be unmapped"),
	RESULT(ERROR_INCOMPATIBLE_DISPLAY_DRIVER, EPROTONOSUPPORT,
	       "the display driver is too old for this debugger",
	       "install the driver that belongs to the CUDA release"),
	RESULT(ERROR_INVALID_MODULE, ENOENT, "no such module"),
	RESULT(ERROR_LANE_NOT_IN_SYSCALL, ENODATA, "the lane is not inside a device system call"),
	RESULT(ERROR_MEMCHECK_NOT_ENABLED, ENODATA, "the memory checker is off"),
	RESULT(ERROR_INVALID_ENVVAR_ARGS, EINVAL,
	       "an environment variable of the driver has a bad value",
	       "look at the CUDA_ and CUDBG_ variables of the process"),
	RESULT(ERROR_OS_RESOURCES, ENOMEM, "the operating system refused a resource",
	       "check free space, TMPDIR and limits of the process"),
	RESULT(ERROR_FORK_FAILED, ENOMEM, "a helper process could not be started"),
	RESULT(ERROR_NO_DEVICE_AVAILABLE, ENODEV, "no CUDA device is available",
	       "check that the NVIDIA kernel module is loaded, that /dev/nvidia* exist here "
	       "and that the target sees a GPU"),
	RESULT(ERROR_ATTACH_NOT_POSSIBLE, EAGAIN, "the driver refuses to be attached to now",
	       "it may be busy: try again; "
	       "under MPS or with software preemption it is never possible"),
	RESULT(ERROR_WARP_RESUME_NOT_POSSIBLE, EBUSY, "the warp cannot be resumed on its own"),
	RESULT(ERROR_INVALID_WARP_MASK, EINVAL, "the mask names a warp that is not there"),
	RESULT(ERROR_AMBIGUOUS_MEMORY_ADDRESS, ENOTUNIQ, "the address exists on more than one GPU",
	       "name the device"),
	RESULT(ERROR_RECURSIVE_API_CALL, EDEADLK,
	       "the debugger API was called from its own callback"),
	RESULT(ERROR_MISSING_DATA, ENODATA, "the debug engine has no such data"),
	RESULT(ERROR_NOT_SUPPORTED, EOPNOTSUPP,
	       "this driver or its classic debug engine cannot do that",
	       "a newer driver can; unset CUDBG_USE_LEGACY_DEBUGGER if it is set"),
	RESULT(ERROR_BREAKPOINT_STATE_CONFLICT, EBUSY,
	       "the breakpoint is not in a state that allows this"),
};

int table_error(uint32_t result)
{
	/* A code without a row is no success. */
	if (result != CUDBGABI_SUCCESS && (result >= ARRAY_SIZE(results) || !results[result].error))
		return -EIO;
	return -results[result].error;
}

const char *cudbgshim_result_name(uint32_t result)
{
	return result < ARRAY_SIZE(results) ? results[result].name : NULL;
}

const char *cudbgshim_result_words(uint32_t result)
{
	return result < ARRAY_SIZE(results) ? results[result].words : NULL;
}

const char *cudbgshim_result_hint(uint32_t result)
{
	return result < ARRAY_SIZE(results) ? results[result].hint : NULL;
}

#define EVENT(code) [CUDBGABI_EVENT_##code] = "CUDBG_EVENT_" #code

static const char *const events[CUDBGABI_EVENT_KIND_COUNT] = {
	EVENT(INVALID),
	EVENT(ELF_IMAGE_LOADED),
	EVENT(KERNEL_READY),
	EVENT(KERNEL_FINISHED),
	EVENT(INTERNAL_ERROR),
	EVENT(CTX_PUSH),
	EVENT(CTX_POP),
	EVENT(CTX_CREATE),
	EVENT(CTX_DESTROY),
	EVENT(TIMEOUT),
	EVENT(ATTACH_COMPLETE),
	EVENT(DETACH_COMPLETE),
	EVENT(ELF_IMAGE_UNLOADED),
	EVENT(FUNCTIONS_LOADED),
	EVENT(ALL_DEVICES_SUSPENDED),
	EVENT(CUDA_LOGS_AVAILABLE),
	EVENT(CUDA_LOGS_THRESHOLD_REACHED),
	EVENT(SINGLE_STEP_COMPLETE),
	EVENT(CUDA_LOGS_RULESET_CHANGED),
};

const char *cudbgshim_event_name(uint32_t kind)
{
	return kind < ARRAY_SIZE(events) ? events[kind] : NULL;
}

const char *cudbgshim_slot_name(uint32_t slot)
{
#define SLOT_NAME(nr, vendor_name, args) [nr] = #vendor_name,
	static const char *const names[SLOT_COUNT] = { CUDBGABI_SLOTS(SLOT_NAME) };
#undef SLOT_NAME

	return slot < ARRAY_SIZE(names) ? names[slot] : NULL;
}
