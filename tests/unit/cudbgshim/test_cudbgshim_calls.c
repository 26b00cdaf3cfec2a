/* SPDX-License-Identifier: MIT */
/* Which slot serves a call with which driver, and what becomes of its answers. */
#include "tests/unit/cudbgshim/cudbgshim_fake.h"

static const struct cudbgshim_place place = { 1, 2, 3, 4 };
static const struct cudbgshim_place *const at = &place;

/* ------------------------------------------------------------------ one slot per release ----- */

/* A function under test: calls the wrapper with some arguments. */
#define CASE(name, ...)                                                                            \
	static int name##_case(struct cudbgshim *s)                                                \
	{                                                                                          \
		return cudbgshim_##name(s, __VA_ARGS__);                                           \
	}
#define CASE0(name)                                                                                \
	static int name##_case(struct cudbgshim *s)                                                \
	{                                                                                          \
		return cudbgshim_##name(s);                                                        \
	}

static uint32_t u32[4];
static uint64_t u64[4];
static char text[32];
static bool flag;
static struct cudbgshim_dim3 dim;
static struct cudbgshim_grid grid;
static struct cudbgshim_region region;
static struct cudbgshim_resources resources;
static uint32_t convergence[2][CUDBGSHIM_CONVERGENCE_WORDS];
static struct cudbgshim_event event;
static struct cudbgshim_layout layout;

static void on_notify(void *user, uint32_t tid)
{
}

CASE0(initialize)
CASE0(finalize)
CASE(suspend_device, 1)
CASE(resume_device, 1)
CASE0(clear_attach_state)
CASE0(initialize_attach_stub)
CASE(request_cleanup_on_detach, 2)
CASE(get_capabilities, u32)
CASE(set_notify, on_notify, NULL)
CASE(get_next_event, CUDBGSHIM_QUEUE_SYNC, &event)
CASE0(acknowledge_sync_events)
CASE(get_n_devices, u32)
CASE(read_exception_sms, 1, 60, u64)
CASE(read_sm_exception, 1, 2, u32, u64, &flag)
CASE(get_grid, 1, 7, &grid)
CASE(get_grid_status, 1, 7, u32)
CASE(read_valid_warps, 1, 2, u64)
CASE(read_broken_warps, 1, 2, u64)
CASE(get_block_dim, at, &dim)
CASE(read_pc, at, u64)
CASE(get_hit_breakpoint, at, u64)
CASE(read_resources, at, &resources)
CASE(read_convergence, 1, 2, 0x801, convergence)
CASE(get_barrier, at, u32, text, sizeof(text))
CASE(read_registers, at, 0, 3, u32, &u32[3])
CASE(read_uniform_registers, at, 0, 4, u32)
CASE(read_predicates, at, 4, u32)
CASE(read_uniform_predicates, at, 4, u32)
CASE(read_cc, at, u32)
CASE(get_const_bank, at, 7, 0, u64, u32)
CASE(get_managed_regions, 0, &region, 1, u32)
CASE(get_elf_image, 1, 9, true, text, sizeof(text))

static int global_case(struct cudbgshim *s)
{
	return cudbgshim_read_memory(s, CUDBGSHIM_SPACE_GLOBAL, NULL, 0, text, sizeof(text));
}

static int pinned_case(struct cudbgshim *s)
{
	return cudbgshim_read_memory(s, CUDBGSHIM_SPACE_PINNED, NULL, 0, text, sizeof(text));
}

#define MEMORY(name, space)                                                                        \
	static int name##_case(struct cudbgshim *s)                                                \
	{                                                                                          \
		return cudbgshim_read_memory(s, CUDBGSHIM_SPACE_##space, at, 0, text,              \
					     sizeof(text));                                        \
	}
MEMORY(shared, SHARED)
MEMORY(local, LOCAL)
MEMORY(param, PARAM)
MEMORY(generic, GENERIC)
MEMORY(code, CODE)

/* Slots that can serve the call, newest first; the newest that the driver has is to be used. */
static const struct slot_case {
	int (*call)(struct cudbgshim *s);
	uint32_t slots[4];
	size_t n_slots;
	int answer; /* Of a driver that succeeds and writes nothing. */
} slot_cases[] = {
#define SLOTS(...) { __VA_ARGS__ }, sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t)
	{ initialize_case, SLOTS(0), 0 },
	{ finalize_case, SLOTS(1), 0 },
	{ suspend_device_case, SLOTS(2), 0 },
	{ resume_device_case, SLOTS(3), 0 },
	{ read_broken_warps_case, SLOTS(10), 0 },
	{ read_valid_warps_case, SLOTS(11), 0 },
	{ code_case, SLOTS(14), 0 },
	{ param_case, SLOTS(17), 0 },
	{ shared_case, SLOTS(18), 0 },
	{ local_case, SLOTS(19), 0 },
	{ read_pc_case, SLOTS(21), 0 },
	{ get_block_dim_case, SLOTS(30), 0 },
	{ get_n_devices_case, SLOTS(35), 0 },
	{ set_notify_case, SLOTS(147, 73, 44), 0 },
	{ pinned_case, SLOTS(58), 0 },
	{ clear_attach_state_case, SLOTS(76), 0 },
	{ acknowledge_sync_events_case, SLOTS(79), 0 },
	{ initialize_attach_stub_case, SLOTS(82), 0 },
	{ get_grid_case, SLOTS(137, 121, 86), 0 },
	{ get_grid_status_case, SLOTS(88), 0 },
	{ get_next_event_case, SLOTS(94), CUDBGSHIM_NO_EVENT },
	{ get_elf_image_case, SLOTS(95), 0 },
	{ read_registers_case, SLOTS(149, 98), 0 },
	{ generic_case, SLOTS(99), 0 },
	{ global_case, SLOTS(101), 0 },
	{ get_managed_regions_case, SLOTS(103), 0 },
	{ request_cleanup_on_detach_case, SLOTS(105), 0 },
	{ read_predicates_case, SLOTS(106), 0 },
	{ read_cc_case, SLOTS(109), 0 },
	{ read_exception_sms_case, SLOTS(113, 91), 0 },
	{ read_uniform_registers_case, SLOTS(115), 0 },
	{ read_uniform_predicates_case, SLOTS(118), 0 },
	{ get_const_bank_case, SLOTS(131, 128), 0 },
	{ get_capabilities_case, SLOTS(134), 0 },
	{ read_sm_exception_case, SLOTS(135), 0 },
	{ read_resources_case, SLOTS(141), 0 },
	{ read_convergence_case, SLOTS(142), 0 },
	{ get_barrier_case, SLOTS(148), 0 },
	{ get_hit_breakpoint_case, SLOTS(155), CUDBGSHIM_NONE },
};

static const uint32_t *newest(const struct slot_case *c, uint32_t n_slots)
{
	for (size_t i = 0; i < c->n_slots; i++)
		if (c->slots[i] < n_slots)
			return &c->slots[i];
	return NULL;
}

/* The table ends at an unmapped page: whoever reads past the driver's release, faults. */
static void newest_slot_of_each_release_is_called(void)
{
	for (size_t g = 0; g < n_fake_generations; g++) {
		const struct fake_generation *gen = &fake_generations[g];
		auto_shim struct cudbgshim *s =
			fake_open(gen->major, gen->minor, gen->revision, gen->n_slots);

		for (size_t i = 0; i < TEST_COUNT(slot_cases); i++) {
			const uint32_t *slot = newest(&slot_cases[i], gen->n_slots);
			long long row = (long long)(g * 1000 + i);

			fake.n_calls = 0;
			TEST_ROW_EQ(row, slot_cases[i].call(s),
				    slot ? slot_cases[i].answer : -ENOSYS);
			TEST_ROW_EQ(row, fake.n_calls, slot ? 1 : 0);
			TEST_ROW_EQ(row, cudbgshim_last(s)->called, slot != NULL);
			if (slot)
				TEST_ROW_EQ(row, fake.calls[0], *slot);
		}
	}
}

/* A hole in the table is a call that the driver does not have; an older form serves. */
static void null_pointers_are_not_called(void)
{
	for (size_t i = 0; i < TEST_COUNT(slot_cases); i++) {
		const struct slot_case *c = &slot_cases[i];
		auto_shim struct cudbgshim *s = fake_open(13, 4, 193, 164);

		for (size_t k = 0; k < c->n_slots; k++) {
			fake.table[c->slots[k]] = NULL;
			fake.n_calls = 0;
			TEST_ROW_EQ(i, c->call(s), k + 1 < c->n_slots ? c->answer : -ENOSYS);
			if (k + 1 < c->n_slots)
				TEST_ROW_EQ(i, fake.calls[0], c->slots[k + 1]);
		}
	}
}

/* ------------------------------------------------------------------ results ------------------ */

/* Every result has its errno, name and words; the vendor's number stays beside it. */
static void results_become_errno(void)
{
	static const struct {
		uint32_t result;
		int error;
	} rows[] = {
		{ 0, 0 },
		{ 1, -EIO },
		{ 2, -ENOBUFS },
		{ 3, -ENOENT },
		{ 4, -EINVAL },
		{ 5, -EAGAIN },
		{ 6, -ENXIO },
		{ 7, -EFAULT },
		{ 8, -EFAULT },
		{ 9, -ENOMEM },
		{ 10, -EIO },
		{ 11, -ENXIO },
		{ 12, -ENXIO },
		{ 13, -ENXIO },
		{ 14, -ENXIO },
		{ 15, -EBUSY },
		{ 16, -EBUSY },
		{ 17, -EIO },
		{ 18, -EFAULT },
		{ 19, -EPROTONOSUPPORT },
		{ 20, -EIO },
		{ 21, -ENOENT },
		{ 22, -EIO },
		{ 23, -EACCES },
		{ 24, -EACCES },
		{ 25, -EINVAL },
		{ 26, -ENODATA },
		{ 27, -ENODATA },
		{ 29, -ENOENT },
		{ 30, -EFAULT },
		{ 31, -ENOMEM },
		{ 32, -EPROTONOSUPPORT },
		{ 33, -ENOENT },
		{ 34, -ENODATA },
		{ 35, -ENODATA },
		{ 36, -EINVAL },
		{ 37, -ENOMEM },
		{ 38, -ENOMEM },
		{ 39, -ENODEV },
		{ 40, -EAGAIN },
		{ 41, -EBUSY },
		{ 42, -EINVAL },
		{ 43, -ENOTUNIQ },
		{ 44, -EDEADLK },
		{ 45, -ENODATA },
		{ 46, -EOPNOTSUPP },
		{ 47, -EBUSY },
		{ 48, -EIO },
		{ 0xffffffff, -EIO },
	};
	auto_shim struct cudbgshim *s = fake_open(12, 4, 142, 133);

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		uint64_t pc = 77;

		fake.result = rows[i].result;
		fake.n_calls = 0;
		TEST_ROW_EQ(i, cudbgshim_read_pc(s, at, &pc), rows[i].error);
		TEST_ROW_EQ(i, pc, rows[i].error ? 77 : 0);
		TEST_ROW_EQ(i, cudbgshim_last(s)->called, true);
		TEST_ROW_EQ(i, cudbgshim_last(s)->result, rows[i].result);
		TEST_ROW_EQ(i, cudbgshim_last(s)->error, rows[i].error);
		TEST_ROW_STR(i, cudbgshim_last(s)->name, "readPC");
		TEST_ROW_EQ(i, cudbgshim_is_over(s), false);
	}
}

static void conditions_are_positive(void)
{
	auto_shim struct cudbgshim *s = fake_open(12, 4, 142, 133);

	fake.result = CUDBGABI_ERROR_SUSPENDED_DEVICE;
	TEST_EQ(cudbgshim_suspend_device(s, 0), CUDBGSHIM_ALREADY);
	TEST_EQ(cudbgshim_resume_device(s, 0), -EBUSY);
	fake.result = CUDBGABI_ERROR_RUNNING_DEVICE;
	TEST_EQ(cudbgshim_resume_device(s, 0), CUDBGSHIM_ALREADY);
	TEST_EQ(cudbgshim_suspend_device(s, 0), -EBUSY);
	fake.result = CUDBGABI_ERROR_SOME_DEVICES_WATCHDOGGED;
	TEST_EQ(cudbgshim_initialize(s), CUDBGSHIM_SOME_WATCHDOGGED);
	fake.result = CUDBGABI_ERROR_NO_EVENT_AVAILABLE;
	TEST_EQ(cudbgshim_get_next_event(s, CUDBGSHIM_QUEUE_SYNC, &event), CUDBGSHIM_NO_EVENT);
}

/* Nothing is called any more, not even to acknowledge or to finalize. */
static void expect_over(struct cudbgshim *s)
{
	CU_ASSERT_TRUE(cudbgshim_is_over(s));
	fake.result = CUDBGABI_SUCCESS;
	fake.n_calls = 0;
	for (size_t i = 0; i < TEST_COUNT(slot_cases); i++)
		TEST_ROW_EQ(i, slot_cases[i].call(s), -ESHUTDOWN);
	TEST_EQ(cudbgshim_suspend_all(s), -ESHUTDOWN);
	TEST_EQ(fake.n_calls, 0);
	CU_ASSERT_FALSE(cudbgshim_last(s)->called);
}

static void lost_engine_ends_the_session(void)
{
	auto_shim struct cudbgshim *s = fake_open(13, 4, 193, 164);

	fake.result = CUDBGABI_ERROR_COMMUNICATION_FAILURE;
	TEST_EQ(cudbgshim_read_pc(s, at, u64), -EPIPE);
	expect_over(s);
}

static uint32_t internal_error_event(uint32_t queue, struct cudbgabi_event *e)
{
	fake_call(94);
	*e = (struct cudbgabi_event){ .kind = CUDBGABI_EVENT_INTERNAL_ERROR, .internal_error = 10 };
	return 0;
}

static void internal_error_ends_the_session(void)
{
	auto_shim struct cudbgshim *s = fake_open(13, 4, 193, 164);

	FAKE_SLOT(getNextEvent, internal_error_event);
	TEST_EQ(cudbgshim_get_next_event(s, CUDBGSHIM_QUEUE_SYNC, &event), 0);
	TEST_EQ(event.kind, CUDBGSHIM_EVENT_INTERNAL_ERROR);
	TEST_EQ(event.internal_error, 10);
	expect_over(s);
}

/* ------------------------------------------------------------------ trace -------------------- */

static struct {
	uint32_t entered, n_entered, n_left;
	struct cudbgshim_call left;
} traced;

static void trace_enter(void *user, uint32_t slot, const char *name)
{
	CU_ASSERT_PTR_EQUAL(user, &traced);
	traced.entered = slot;
	traced.n_entered++;
}

static void trace_leave(void *user, const struct cudbgshim_call *call)
{
	traced.left = *call;
	traced.n_left++;
}

static void trace_shows_each_call(void)
{
	struct cudbgshim_options options = { .sys = &fake_sys,
					     .trace = { trace_enter, trace_leave, &traced } };
	auto_shim struct cudbgshim *s = NULL;

	fake_release(12, 2, 134, 126);
	fake.result = CUDBGABI_ERROR_INVALID_WARP;
	TEST_EQ_FATAL(cudbgshim_create(&options, &s, NULL), 0);
	TEST_EQ(cudbgshim_read_pc(s, at, u64), -ENXIO);
	TEST_EQ(traced.entered, 21);
	TEST_EQ(traced.n_entered, 1);
	TEST_EQ(traced.n_left, 1);
	TEST_STR(traced.left.name, "readPC");
	TEST_EQ(traced.left.result, CUDBGABI_ERROR_INVALID_WARP);
	TEST_EQ(traced.left.took_ns, 1000);
	/* A call that the driver does not have is shown too, but never entered. */
	TEST_EQ(cudbgshim_get_capabilities(s, u32), -ENOSYS);
	TEST_EQ(traced.n_entered, 1);
	TEST_EQ(traced.n_left, 2);
	TEST_EQ(traced.left.called, false);
	TEST_STR(traced.left.name, "getSupportedDebuggerCapabilities");
}

/* ------------------------------------------------------------------ notification ------------- */

static void *registered, *registered_data;
static uint32_t notified_tid, n_notified;

static uint32_t register_31(cudbgabi_notify_31_fn *fn, void *data)
{
	registered = (void *)fn;
	registered_data = data;
	return fake_call(44);
}

static uint32_t register_41(cudbgabi_notify_41_fn *fn)
{
	registered = (void *)fn;
	return fake_call(73);
}

static uint32_t register_130(cudbgabi_notify_fn *fn, void *data)
{
	registered = (void *)fn;
	registered_data = data;
	return fake_call(147);
}

static void note(void *user, uint32_t tid)
{
	CU_ASSERT_PTR_EQUAL(user, &n_notified);
	notified_tid = tid;
	n_notified++;
}

static void notifications_reach_us_in_every_form(void)
{
	struct cudbgabi_notify_41 old = { .tid = 41 };
	struct cudbgabi_notify new = { .tid = 130 };
	auto_shim struct cudbgshim *s = fake_open(13, 0, 163, 148);

	FAKE_SLOT(setNotifyNewEventCallback31, register_31);
	FAKE_SLOT(setNotifyNewEventCallback41, register_41);
	FAKE_SLOT(setNotifyNewEventCallback, register_130);
	n_notified = 0;
	TEST_EQ(cudbgshim_set_notify(s, note, &n_notified), 0);
	((cudbgabi_notify_fn *)registered)(&new);
	TEST_EQ(notified_tid, 130);
	fake.table[147] = NULL;
	TEST_EQ(cudbgshim_set_notify(s, note, &n_notified), 0);
	((cudbgabi_notify_41_fn *)registered)(&old);
	TEST_EQ(notified_tid, 41);
	((cudbgabi_notify_41_fn *)registered)(NULL);
	TEST_EQ(notified_tid, CUDBGSHIM_NO_TID);
	fake.table[73] = NULL;
	TEST_EQ(cudbgshim_set_notify(s, note, &n_notified), 0);
	((cudbgabi_notify_31_fn *)registered)(registered_data);
	TEST_EQ(notified_tid, CUDBGSHIM_NO_TID);
	TEST_EQ(n_notified, 4);
	/* What comes late, after unregistering, is dropped. */
	fake.table[73] = NULL;
	void *late = registered;

	TEST_EQ(cudbgshim_set_notify(s, NULL, NULL), 0);
	CU_ASSERT_PTR_NULL(registered);
	((cudbgabi_notify_31_fn *)late)(NULL);
	TEST_EQ(n_notified, 4);
}

static void nobody_is_notified_after_the_end(void)
{
	struct cudbgshim *s = fake_open(13, 0, 163, 148);
	struct cudbgabi_notify data = { .tid = 130 };

	FAKE_SLOT(setNotifyNewEventCallback, register_130);
	n_notified = 0;
	TEST_EQ(cudbgshim_set_notify(s, note, &n_notified), 0);
	cudbgshim_destroy(s);
	((cudbgabi_notify_fn *)registered)(&data);
	/* Nor is anybody whose registration failed. */
	s = fake_open(13, 0, 163, 148);
	FAKE_SLOT(setNotifyNewEventCallback, register_130);
	fake.result = CUDBGABI_ERROR_INTERNAL;
	TEST_EQ(cudbgshim_set_notify(s, note, &n_notified), -EIO);
	((cudbgabi_notify_fn *)registered)(&data);
	cudbgshim_destroy(s);
	TEST_EQ(n_notified, 0);
}

/* ------------------------------------------------------------------ answers ------------------ */

static uint32_t two_devices(uint32_t *n)
{
	*n = 2;
	return fake_call(35);
}

static uint32_t suspend_fails_first(uint32_t dev)
{
	fake_call(2);
	return dev == 0 ? CUDBGABI_ERROR_INVALID_DEVICE : CUDBGABI_ERROR_SUSPENDED_DEVICE;
}

/* One after the other, all of them, with drivers before 13.2; in one call since then. */
static void all_devices_are_suspended(void)
{
	auto_shim struct cudbgshim *old = fake_open(12, 4, 142, 133);

	FAKE_SLOT(getNumDevices, two_devices);
	FAKE_SLOT(suspendDevice, suspend_fails_first);
	TEST_EQ(cudbgshim_suspend_all(old), -ENXIO);
	TEST_EQ(fake.n_calls, 3);
	fake.n_calls = 0;
	TEST_EQ(cudbgshim_resume_all(old), 0);
	TEST_EQ(fake.n_calls, 3);
	TEST_EQ(fake.calls[2], 3);

	auto_shim struct cudbgshim *new = fake_open(13, 2, 170, 159);

	TEST_EQ(cudbgshim_suspend_all(new), 0);
	TEST_EQ(cudbgshim_resume_all(new), 0);
	TEST_EQ(fake.n_calls, 2);
	TEST_EQ(fake.calls[0], 157);
	TEST_EQ(fake.calls[1], 158);
	fake.result = CUDBGABI_ERROR_SUSPENDED_DEVICE;
	TEST_EQ(cudbgshim_suspend_all(new), 0);
	fake.result = CUDBGABI_ERROR_RUNNING_DEVICE;
	TEST_EQ(cudbgshim_resume_all(new), 0);
}

static uint32_t many_devices(uint32_t *n)
{
	*n = 65;
	return 0;
}

static uint32_t many_sms(uint32_t dev, uint32_t *n)
{
	*n = 257;
	return 0;
}

static uint32_t endless_name(uint32_t dev, char *buf, uint32_t size)
{
	memset(buf, 'x', size);
	return 0;
}

static void hostile_counts_and_texts_are_bounded(void)
{
	auto_shim struct cudbgshim *s = fake_open(12, 4, 142, 133);
	struct cudbgshim_device d = { .n_sms = 77 };
	uint32_t n = 77;

	FAKE_SLOT(getNumDevices, many_devices);
	TEST_EQ(cudbgshim_get_n_devices(s, &n), -EPROTO);
	TEST_EQ(n, 77);
	FAKE_SLOT(getDeviceName, endless_name);
	TEST_EQ(cudbgshim_get_device(s, 0, &d), 0);
	TEST_EQ(strlen(d.name), sizeof(d.name) - 1);
	FAKE_SLOT(getNumSMs, many_sms);
	d.n_sms = 77;
	TEST_EQ(cudbgshim_get_device(s, 0, &d), -EPROTO);
	TEST_EQ(d.n_sms, 77);
}

static uint32_t fill_grid(uint32_t dev, uint64_t grid_id, void *info, size_t size)
{
	struct cudbgabi_grid_info in = {
		.dev = dev,
		.grid_id = grid_id,
		.tid = 5,
		.function_entry = 0x700,
		.grid_dim = { 10, 20, 30 },
		.block_dim = { 32, 2, 1 },
		.parent_grid_id = 99,
		.cluster_dim = { 2, 1, 1 },
		.preferred_cluster_dim = { 4, 1, 1 },
	};

	memcpy(info, &in, size);
	return 0;
}

static uint32_t grid_55(uint32_t dev, uint64_t id, struct cudbgabi_grid_info *info)
{
	return fill_grid(dev, id, info, 88);
}

static uint32_t grid_120(uint32_t dev, uint64_t id, struct cudbgabi_grid_info *info)
{
	return fill_grid(dev, id, info, 100);
}

static uint32_t grid_127(uint32_t dev, uint64_t id, struct cudbgabi_grid_info *info)
{
	return fill_grid(dev, id, info, 112);
}

static void grids_look_the_same_from_every_slot(void)
{
	static const struct {
		uint32_t major, minor, n_slots, cluster, preferred, parent;
	} rows[] = {
		{ 11, 8, 121, 0, 0, 99 },
		{ 12, 4, 133, 2, 0, 99 },
		{ 12, 7, 141, 2, 4, 99 },
		{ 13, 4, 164, 2, 4, 0 },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_shim struct cudbgshim *s =
			fake_open(rows[i].major, rows[i].minor, 1, rows[i].n_slots);
		struct cudbgshim_grid g = { 0 };

		FAKE_SLOT(getGridInfo55, grid_55);
		if (rows[i].n_slots > 121)
			FAKE_SLOT(getGridInfo120, grid_120);
		if (rows[i].n_slots > 137)
			FAKE_SLOT(getGridInfo, grid_127);
		TEST_ROW_EQ(i, cudbgshim_get_grid(s, 3, 0x1234567890, &g), 0);
		TEST_ROW_EQ(i, g.id, 0x1234567890);
		TEST_ROW_EQ(i, g.dev, 3);
		TEST_ROW_EQ(i, g.entry, 0x700);
		TEST_ROW_EQ(i, g.grid_dim.z, 30);
		TEST_ROW_EQ(i, g.block_dim.y, 2);
		TEST_ROW_EQ(i, g.cluster_dim.x, rows[i].cluster);
		TEST_ROW_EQ(i, g.preferred_cluster_dim.x, rows[i].preferred);
		TEST_ROW_EQ(i, g.parent, rows[i].parent);
	}
}

static uint32_t depth_is_3(uint32_t dev, uint32_t sm, uint32_t wp, uint32_t ln, uint32_t *depth)
{
	*depth = 3;
	return fake_call(67);
}

static uint32_t level_address(uint32_t dev, uint32_t sm, uint32_t wp, uint32_t ln, uint32_t level,
			      uint64_t *ra)
{
	*ra = 0x100 + level;
	return fake_call(69);
}

static uint32_t whole_stack(uint32_t dev, uint32_t sm, uint32_t wp, uint32_t ln,
			    uint64_t *addresses, uint32_t n, uint32_t *depth,
			    uint32_t *syscall_depth)
{
	for (uint32_t i = 0; i < n && i < 3; i++)
		addresses[i] = 0x100 + i;
	*depth = 3;
	*syscall_depth = 0;
	return fake_call(133);
}

static void call_stacks_are_bounded_by_the_buffer(void)
{
	for (uint32_t n_slots = 133; n_slots <= 136; n_slots += 3) {
		auto_shim struct cudbgshim *s = fake_open(12, n_slots == 133 ? 4 : 5, 1, n_slots);
		uint64_t *room = test_tail_alloc(2 * sizeof(*room));
		uint32_t depth = 0, syscall_depth = 77;

		FAKE_SLOT(readCallDepth, depth_is_3);
		FAKE_SLOT(readVirtualReturnAddress, level_address);
		if (n_slots > 133)
			FAKE_SLOT(readAllVirtualReturnAddresses, whole_stack);
		TEST_EQ(cudbgshim_read_call_stack(s, at, room, 2, &depth, &syscall_depth), 0);
		TEST_EQ(depth, 3);
		TEST_EQ(syscall_depth, 0);
		TEST_EQ(room[0], 0x100);
		TEST_EQ(room[1], 0x101);
	}
}

/* There are a quarter of a million of them. */
static void a_lane_that_was_not_called_takes_one_call(void)
{
	for (uint32_t n_slots = 133; n_slots <= 136; n_slots += 3) {
		auto_shim struct cudbgshim *s = fake_open(12, n_slots == 133 ? 4 : 5, 1, n_slots);
		uint32_t depth = 77, syscall_depth = 77;

		fake.n_calls = 0;
		TEST_EQ(cudbgshim_read_call_stack(s, at, u64, 2, &depth, &syscall_depth), 0);
		TEST_EQ(fake.n_calls, 1);
		TEST_EQ(depth, 0);
		TEST_EQ(syscall_depth, 0);
	}
}

static uint32_t some_registers(uint32_t dev, uint32_t sm, uint32_t wp, uint32_t ln, uint32_t index,
			       uint32_t n, uint32_t *regs, uint32_t *n_read)
{
	*n_read = n - 1;
	return 0;
}

static void short_register_reads_are_told(void)
{
	auto_shim struct cudbgshim *s = fake_open(13, 2, 170, 159);
	uint32_t n = 0;

	FAKE_SLOT(readRegisterRange, some_registers);
	memset(u32, 0xff, sizeof(u32));
	TEST_EQ(cudbgshim_read_registers(s, at, 0, 4, u32, &n), 0);
	TEST_EQ(n, 3);
	TEST_EQ(u32[3], 0);
}

/* A driver that fails leaves buffers alone; so nobody sees what was there before. */
static void buffers_are_zeroed_first(void)
{
	auto_shim struct cudbgshim *s = fake_open(13, 4, 193, 164);
	char buf[16];

	fake.result = CUDBGABI_ERROR_INVALID_ADDRESS;
	memset(buf, 'x', sizeof(buf));
	TEST_EQ(cudbgshim_read_memory(s, CUDBGSHIM_SPACE_GLOBAL, NULL, 0, buf, sizeof(buf)),
		-EFAULT);
	TEST_EQ(buf[15], 0);
	memset(buf, 'x', sizeof(buf));
	TEST_EQ(cudbgshim_get_barrier(s, at, u32, buf, sizeof(buf)), -EFAULT);
	TEST_EQ(buf[0], 0);
	memset(buf, 'x', sizeof(buf));
	TEST_EQ(cudbgshim_get_elf_image(s, 0, 1, true, buf, sizeof(buf)), -EFAULT);
	TEST_EQ(buf[0], 0);
}

static void what_a_call_cannot_do_is_refused_here(void)
{
	auto_shim struct cudbgshim *s = fake_open(11, 8, 132, 121);

	TEST_EQ(cudbgshim_read_memory(s, CUDBGSHIM_SPACE_SHARED, NULL, 0, text, 1), -EINVAL);
	TEST_EQ(cudbgshim_read_memory(s, CUDBGSHIM_SPACE_COUNT, at, 0, text, 1), -EINVAL);
	TEST_EQ(cudbgshim_read_exception_sms(s, 0, 257, u64), -EINVAL);
	TEST_EQ(cudbgshim_get_layout(s, 0, &layout), -ENOSYS);
	TEST_EQ(fake.n_calls, 0);
}

TEST_SUITE(cudbgshim_calls, TEST(newest_slot_of_each_release_is_called),
	   TEST(null_pointers_are_not_called), TEST(results_become_errno),
	   TEST(conditions_are_positive), TEST(lost_engine_ends_the_session),
	   TEST(internal_error_ends_the_session), TEST(trace_shows_each_call),
	   TEST(notifications_reach_us_in_every_form), TEST(nobody_is_notified_after_the_end),
	   TEST(all_devices_are_suspended), TEST(hostile_counts_and_texts_are_bounded),
	   TEST(grids_look_the_same_from_every_slot), TEST(call_stacks_are_bounded_by_the_buffer),
	   TEST(a_lane_that_was_not_called_takes_one_call), TEST(short_register_reads_are_told),
	   TEST(buffers_are_zeroed_first), TEST(what_a_call_cannot_do_is_refused_here));
