/* SPDX-License-Identifier: MIT */
/* Names of the kernel's numbers. */
#include "internal.h"

#include <stdio.h>

#define NAME(code) [KFDTRAP_EC_##code] = #code

static const char *const exception_names[KFDTRAP_EC_COUNT] = {
	NAME(QUEUE_WAVE_ABORT),
	NAME(QUEUE_WAVE_TRAP),
	NAME(QUEUE_WAVE_MATH_ERROR),
	NAME(QUEUE_WAVE_ILLEGAL_INSTRUCTION),
	NAME(QUEUE_WAVE_MEMORY_VIOLATION),
	NAME(QUEUE_WAVE_APERTURE_VIOLATION),
	NAME(QUEUE_PACKET_DISPATCH_DIM_INVALID),
	NAME(QUEUE_PACKET_DISPATCH_GROUP_SEGMENT_SIZE_INVALID),
	NAME(QUEUE_PACKET_DISPATCH_CODE_INVALID),
	NAME(QUEUE_PACKET_RESERVED),
	NAME(QUEUE_PACKET_UNSUPPORTED),
	NAME(QUEUE_PACKET_DISPATCH_WORK_GROUP_SIZE_INVALID),
	NAME(QUEUE_PACKET_DISPATCH_REGISTER_INVALID),
	NAME(QUEUE_PACKET_VENDOR_UNSUPPORTED),
	NAME(QUEUE_PREEMPTION_ERROR),
	NAME(QUEUE_NEW),
	NAME(DEVICE_QUEUE_DELETE),
	NAME(DEVICE_MEMORY_VIOLATION),
	NAME(DEVICE_RAS_ERROR),
	NAME(DEVICE_FATAL_HALT),
	NAME(DEVICE_NEW),
	NAME(PROCESS_RUNTIME),
	NAME(PROCESS_DEVICE_REMOVE),
};

const char *kfdtrap_exception_name(uint32_t code)
{
	return code < KFDTRAP_EC_COUNT ? exception_names[code] : NULL;
}

enum kfdtrap_source kfdtrap_exceptions_source(uint64_t exceptions)
{
	if (exceptions & KFDTRAP_EC_MASK_QUEUE)
		return KFDTRAP_SOURCE_QUEUE;
	if (exceptions & KFDTRAP_EC_MASK_DEVICE)
		return KFDTRAP_SOURCE_DEVICE;
	if (exceptions & KFDTRAP_EC_MASK_PROCESS)
		return KFDTRAP_SOURCE_PROCESS;
	return KFDTRAP_SOURCE_NONE;
}

/*
 * The number is major * 10000 + minor * 100 + stepping in decimal, but the name spells the last two
 * in hexadecimal.
 */
void kfdtrap_gfx_name(uint32_t gfx_target_version, char *buf, size_t size)
{
	snprintf(buf, size, "gfx%u%x%x", gfx_target_version / 10000,
		 gfx_target_version / 100 % 100, gfx_target_version % 100);
}
