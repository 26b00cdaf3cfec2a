/* SPDX-License-Identifier: MIT */
#ifndef CUDBGSHIM_INTERNAL_H
#define CUDBGSHIM_INTERNAL_H

/** @file internal.h  The session, and the one way into the vendor's table. */

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

/** -errno for a CUDBGResult, 0 for success. */
int table_error(uint32_t result);

/** Calls that the driver has and we know; 0 for a release that nobody supports. */
uint32_t table_count_slots(uint32_t major, uint32_t minor);

/**
 * May this call be made?  Sets cudbgshim_last() and shows the call to the trace.
 * @return 0, -ENOSYS, -ESHUTDOWN.
 */
int table_enter(struct cudbgshim *s, uint32_t slot);
/** @return 0 or -errno for @p result. */
int table_leave(struct cudbgshim *s, uint32_t result);

/** Whoever was to be notified is no more. */
void event_forget_notify(void);

/** Slot numbers by the vendor's names, for CALL(). */
enum {
#define SLOT_OF(nr, NAME, vendor_name, args) slot_##vendor_name = nr,
	CUDBGABI_SLOTS(SLOT_OF)
#undef SLOT_OF
};

/** Call a slot by the vendor's name with the vendor's arguments: 0 or -errno. */
#define CALL(s, vendor_name, ...)                                                                  \
	({                                                                                         \
		int call_r_ = table_enter(s, slot_##vendor_name);                                  \
		if (!call_r_)                                                                      \
			call_r_ = table_leave(                                                     \
				s,                                                                 \
				((cudbgabi_##vendor_name##_fn *)(s)->table[slot_##vendor_name])(   \
					__VA_ARGS__));                                             \
		call_r_;                                                                           \
	})

#define HAS(s, vendor_name) cudbgshim_has_slot(s, slot_##vendor_name)

/** A struct cudbgshim_place as arguments. */
#define WARP_ARGS(at) (at)->dev, (at)->sm, (at)->warp
#define LANE_ARGS(at) WARP_ARGS(at), (at)->lane

static inline bool last_result_is(const struct cudbgshim *s, uint32_t result)
{
	return s->last.called && s->last.result == result;
}

/** Use @p value only when the call succeeded. */
#define RETURN_VALUE(r, ret, value)                                                                \
	do {                                                                                       \
		int return_r_ = (r);                                                               \
		if (!return_r_)                                                                    \
			*(ret) = (value);                                                          \
		return return_r_;                                                                  \
	} while (0)

static inline struct cudbgshim_dim3 dim3_of(struct cudbgabi_dim3 dim)
{
	return (struct cudbgshim_dim3){ dim.x, dim.y, dim.z };
}

/** The lowest @p n bits; n may be the width of the mask. */
static inline uint64_t low_bits(uint32_t n)
{
	return n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
}

#endif /* CUDBGSHIM_INTERNAL_H */
