/* SPDX-License-Identifier: MIT */
#ifndef CUDBGSHIM_INTERNAL_H
#define CUDBGSHIM_INTERNAL_H

/**
 * @file internal.h
 * The session, and the one way into the vendor's table.
 */

#include <stdatomic.h>
#include <string.h>

#include "cudbg_abi.h"
#include "cudbgshim.h"

struct cudbgshim {
	const struct cudbgshim_sys *sys;
	struct cudbgshim_trace trace;
	void *library;
	cudbgabi_any_fn *const *table;
	struct cudbgshim_version version;
	struct cudbgshim_call last;
	uint64_t began_ns;
	bool over;
};

/** @return -errno for a CUDBGResult, 0 for success. */
int table_error(uint32_t result);

/** @return the number of calls that the driver has and we know; 0 for a release that is too old. */
uint32_t table_count_slots(uint32_t major, uint32_t minor);

/**
 * Begin a call: check that it may be made, set cudbgshim_last(), and show it to the trace.
 * @return 0, -ENOSYS, -ESHUTDOWN.
 */
int table_enter(struct cudbgshim *s, uint32_t slot);
/**
 * End a call that was made.
 * @return 0 or -errno for @p result.
 */
int table_leave(struct cudbgshim *s, uint32_t result);

/** Drop notifications from now on: their receiver is no more. */
void event_forget_notify(void);

/** Calls a slot by the vendor's name with the vendor's arguments; its value is 0 or -errno. */
#define CALL(s, vendor_name, ...)                                                                  \
	({                                                                                         \
		int call_r_ = table_enter(s, SLOT_##vendor_name);                                  \
		if (!call_r_)                                                                      \
			call_r_ = table_leave(                                                     \
				s,                                                                 \
				((cudbgabi_##vendor_name##_fn *)(s)->table[SLOT_##vendor_name])(   \
					__VA_ARGS__));                                             \
		call_r_;                                                                           \
	})

/** Does the driver have the call with the vendor's name? */
#define HAS(s, vendor_name) cudbgshim_has_slot(s, SLOT_##vendor_name)

/** A struct cudbgshim_place as the arguments of a call. */
#define WARP_ARGS(at) (at)->dev, (at)->sm, (at)->warp
#define LANE_ARGS(at) WARP_ARGS(at), (at)->lane

/** Was the last call made, and was this its result? */
static inline bool last_result_is(const struct cudbgshim *s, uint32_t result)
{
	return s->last.called && s->last.result == result;
}

/** Returns from a function, and stores @p value only when the call succeeded. */
#define RETURN_VALUE(r, ret, value)                                                                \
	do {                                                                                       \
		int return_r_ = (r);                                                               \
		if (!return_r_)                                                                    \
			*(ret) = (value);                                                          \
		return return_r_;                                                                  \
	} while (0)

/** @return the vendor's triple as ours. */
static inline struct cudbgshim_dim3 dim3_of(struct cudbgabi_dim3 dim)
{
	return (struct cudbgshim_dim3){ dim.x, dim.y, dim.z };
}

/** @return a mask of the lowest @p n bits, up to all 64. */
static inline uint64_t low_bits(uint32_t n)
{
	return n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
}

#endif /* CUDBGSHIM_INTERNAL_H */
