/* SPDX-License-Identifier: MIT */
#ifndef CUDBGSHIM_FAKE_H
#define CUDBGSHIM_FAKE_H

/**
 * @file cudbgshim_fake.h
 * A CUDA driver of any release, without a library: its table ends at an unmapped page.
 *
 * Every slot records that it was called and answers fake.result.  A test that wants more puts its
 * own function into the slot with FAKE_SLOT().
 */

#include "libcudbgshim/include/cudbgshim.h"
#include "libcudbgshim/src/cudbg_abi.h"
#include "tests/lib/testlib.h"

#define FAKE_MAX_CALLS 64u

extern struct fake_driver {
	uint32_t major, minor, revision; /* What it says it is. */
	uint32_t n_slots;
	uint32_t version_result, table_result, result;
	bool has_no_api, has_no_version, has_no_table;
	cudbgabi_any_fn **table;
	uint32_t asked[3]; /* Of cudbgGetAPI. */
	uint32_t n_asked_version, n_asked_table;
	uint32_t n_calls, calls[FAKE_MAX_CALLS]; /* Slots in order. */
	/* Variables of the image. */
	uint32_t client_pid, client_revision, session;
	char injection_path[CUDBGABI_INJECTION_PATH_SIZE];
	uint64_t now_ns;
} fake;

extern const struct cudbgshim_sys fake_sys;

/** A driver of a release, all slots filled. */
void fake_release(uint32_t major, uint32_t minor, uint32_t revision, uint32_t n_slots);
/** The same, and a session on it. */
struct cudbgshim *fake_open(uint32_t major, uint32_t minor, uint32_t revision, uint32_t n_slots);
/** Record a call from a test's own slot function. */
uint32_t fake_call(uint32_t slot);

#define FAKE_SLOT(vendor_name, fn)                                                                 \
	do {                                                                                       \
		cudbgabi_##vendor_name##_fn *typed_ = (fn);                                        \
		fake.table[SLOT_##vendor_name] = (cudbgabi_any_fn *)typed_;                        \
	} while (0)

/** Releases that the tests walk through. */
struct fake_generation {
	uint32_t major, minor, revision, n_slots;
};
extern const struct fake_generation fake_generations[];
extern const size_t n_fake_generations;

DEFINE_AUTO(struct cudbgshim *, cudbgshim_destroy);
#define auto_shim auto_call(cudbgshim_destroyp)

#endif /* CUDBGSHIM_FAKE_H */
