/* SPDX-License-Identifier: MIT */
/* Names and words of what the driver numbers, and the decoding of its events. */
#include "tests/unit/cudbgshim/cudbgshim_fake.h"

static bool has_full_stop(const char *text)
{
	return text[strlen(text) - 1] == '.';
}

/* Every result has both, in a form that can be put into a sentence. */
static void results_have_names_and_words(void)
{
	for (uint32_t i = 0; i < CUDBGABI_RESULT_COUNT; i++) {
		const char *words = cudbgshim_result_words(i), *hint = cudbgshim_result_hint(i);

		CU_ASSERT_PTR_NOT_NULL_FATAL(cudbgshim_result_name(i));
		CU_ASSERT_PTR_NOT_NULL_FATAL(words);
		TEST_ROW_EQ(i, strncmp(cudbgshim_result_name(i), "CUDBG_", 6), 0);
		TEST_ROW_EQ(i, has_full_stop(words), false);
		TEST_ROW_EQ(i, hint && has_full_stop(hint), false);
	}
	TEST_STR(cudbgshim_result_name(39), "CUDBG_ERROR_NO_DEVICE_AVAILABLE");
	CU_ASSERT_PTR_NULL(cudbgshim_result_name(48));
	CU_ASSERT_PTR_NULL(cudbgshim_result_words(UINT32_MAX));
	CU_ASSERT_PTR_NULL(cudbgshim_result_hint(UINT32_MAX));
}

/* What stands in a failed attach most often says what to do. */
static void common_failures_have_hints(void)
{
	static const uint32_t results[] = { 5, 10, 11, 19, 20, 23, 24, 28, 32, 37, 39, 40, 46 };

	for (size_t i = 0; i < TEST_COUNT(results); i++)
		TEST_ROW_EQ(i, cudbgshim_result_hint(results[i]) != NULL, true);
}

static void the_rest_has_names(void)
{
	TEST_STR(cudbgshim_event_name(CUDBGSHIM_EVENT_ATTACH_COMPLETE),
		 "CUDBG_EVENT_ATTACH_COMPLETE");
	CU_ASSERT_PTR_NULL(cudbgshim_event_name(19));
	TEST_STR(cudbgshim_slot_name(0), "initialize");
	TEST_STR(cudbgshim_slot_name(163), "writeRpcRegisters");
	CU_ASSERT_PTR_NULL(cudbgshim_slot_name(164));
}

/* ------------------------------------------------------------------ events ------------------- */

/* Bytes as on the wire: each field gets its own offset as value, so that a shift shows. */
static void *event_bytes(uint32_t kind)
{
	uint8_t bytes[92];

	for (uint32_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	memcpy(bytes, &kind, sizeof(kind));
	memcpy(bytes + 4, &(uint32_t){ 3 }, 4);
	return test_tail_dup(bytes, sizeof(bytes));
}

static uint64_t at_offset(uint32_t offset, size_t size)
{
	uint64_t value = 0;

	for (size_t i = 0; i < size; i++)
		value |= (uint64_t)(offset + i) << (8 * i);
	return value;
}

#define WORD(offset) at_offset(offset, 4)
#define LONG(offset) at_offset(offset, 8)

static struct cudbgshim_event decode(uint32_t kind)
{
	struct cudbgshim_event e;

	TEST_EQ_FATAL(cudbgshim_event_decode(event_bytes(kind), 92, &e), 0);
	TEST_EQ(e.kind, kind);
	return e;
}

static void images_are_decoded(void)
{
	struct cudbgshim_event e = decode(CUDBGSHIM_EVENT_ELF_IMAGE_LOADED);

	TEST_EQ(e.dev, 3);
	TEST_EQ(e.tid, CUDBGSHIM_NO_TID);
	TEST_EQ(e.context, LONG(8));
	TEST_EQ(e.module, LONG(16));
	TEST_EQ(e.image.size, LONG(24));
	TEST_EQ(e.image.handle, LONG(32));
	TEST_EQ(e.image.properties, WORD(40));
	e = decode(CUDBGSHIM_EVENT_ELF_IMAGE_UNLOADED);
	TEST_EQ(e.image.handle, LONG(32));
	TEST_EQ(e.image.properties, 0);
}

static void kernels_are_decoded(void)
{
	struct cudbgshim_event e = decode(CUDBGSHIM_EVENT_KERNEL_READY);

	TEST_EQ(e.dev, 3);
	TEST_EQ(e.tid, WORD(8));
	TEST_EQ(e.kernel.grid, LONG(12));
	TEST_EQ(e.context, LONG(20));
	TEST_EQ(e.module, LONG(28));
	TEST_EQ(e.kernel.function, LONG(36));
	TEST_EQ(e.kernel.entry, LONG(44));
	TEST_EQ(e.kernel.grid_dim.x, WORD(52));
	TEST_EQ(e.kernel.grid_dim.z, WORD(60));
	TEST_EQ(e.kernel.block_dim.x, WORD(64));
	TEST_EQ(e.kernel.type, WORD(76));
	TEST_EQ(e.kernel.parent, LONG(80));
	TEST_EQ(e.kernel.origin, WORD(88));
	e = decode(CUDBGSHIM_EVENT_KERNEL_FINISHED);
	TEST_EQ(e.tid, WORD(8));
	TEST_EQ(e.context, LONG(12));
	TEST_EQ(e.module, LONG(20));
	TEST_EQ(e.kernel.function, LONG(28));
	TEST_EQ(e.kernel.entry, LONG(36));
	TEST_EQ(e.kernel.grid, LONG(44));
	TEST_EQ(e.kernel.grid_dim.x, 0);
}

static void contexts_and_the_rest_are_decoded(void)
{
	struct cudbgshim_event e;

	for (uint32_t kind = CUDBGSHIM_EVENT_CTX_PUSH; kind <= CUDBGSHIM_EVENT_CTX_DESTROY;
	     kind++) {
		e = decode(kind);
		TEST_ROW_EQ(kind, e.dev, 3);
		TEST_ROW_EQ(kind, e.tid, WORD(8));
		TEST_ROW_EQ(kind, e.context, LONG(12));
	}
	e = decode(CUDBGSHIM_EVENT_INTERNAL_ERROR);
	TEST_EQ(e.internal_error, 3);
	TEST_EQ(e.dev, 0);
	e = decode(CUDBGSHIM_EVENT_FUNCTIONS_LOADED);
	TEST_EQ(e.n_functions, WORD(8));
	TEST_EQ(e.context, LONG(12));
	TEST_EQ(e.module, LONG(20));
	e = decode(CUDBGSHIM_EVENT_ALL_DEVICES_SUSPENDED);
	TEST_EQ(e.stop.broken_devices, 3 | LONG(4) >> 32 << 32);
	TEST_EQ(e.stop.faulted_devices, LONG(12));
	e = decode(CUDBGSHIM_EVENT_SINGLE_STEP_COMPLETE);
	TEST_EQ(e.stop.sm, WORD(8));
	TEST_EQ(e.context, LONG(12));
	TEST_EQ(e.stop.warps_before, LONG(20));
	TEST_EQ(e.stop.warps_after, LONG(28));
	TEST_EQ(e.stop.broken_devices, LONG(36));
	TEST_EQ(e.stop.faulted_devices, LONG(44));
	e = decode(CUDBGSHIM_EVENT_CUDA_LOGS_RULESET_CHANGED);
	TEST_EQ(e.log_ruleset, 3);
	e = decode(CUDBGSHIM_EVENT_ATTACH_COMPLETE);
	TEST_EQ(e.context, 0);
	e = decode(1234);
	TEST_EQ(e.dev, 0);
	TEST_EQ(e.context, 0);
}

static void impossible_events_are_refused(void)
{
	struct cudbgshim_event e = { .kind = 77 };
	uint8_t *bytes = event_bytes(CUDBGSHIM_EVENT_CTX_CREATE);

	TEST_EQ(cudbgshim_event_decode(bytes + 1, 91, &e), -EINVAL);
	bytes[4] = 64;
	TEST_EQ(cudbgshim_event_decode(bytes, 92, &e), -EPROTO);
	TEST_EQ(e.kind, 77);
	bytes[4] = 63;
	TEST_EQ(cudbgshim_event_decode(bytes, 92, &e), 0);
}

TEST_SUITE(cudbgshim_names, TEST(results_have_names_and_words), TEST(common_failures_have_hints),
	   TEST(the_rest_has_names), TEST(images_are_decoded), TEST(kernels_are_decoded),
	   TEST(contexts_and_the_rest_are_decoded), TEST(impossible_events_are_refused));
