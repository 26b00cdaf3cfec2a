/* SPDX-License-Identifier: MIT */
/* What each command sends and what it makes of the answer. */
#include "tests/unit/kfdtrap/kfdtrap_fake.h"

#include <fcntl.h>
#include <unistd.h>

/* Members of the union beyond those a command uses must be zero. */
static void got_op(uint32_t op)
{
	TEST_EQ(fake.n_calls, 1);
	TEST_EQ(fake.got.pid, FAKE_PID);
	TEST_EQ(fake.got.op, op);
}

static void answer_info(struct kfdabi_dbg_args *args)
{
	struct kfdabi_runtime_info info = { 0x123456789abc, 1, 1 };

	memcpy((void *)(uintptr_t)args->enable.rinfo_ptr, &info, sizeof(info));
	args->enable.rinfo_size = sizeof(info);
}

static void enable_sends_mask_and_fd(void)
{
	auto_kfdtrap struct kfdtrap *kt = fake_kfdtrap();
	struct kfdtrap_runtime_info info = { 0 };

	fake = (typeof(fake)){ .answer = answer_info };
	TEST_EQ(kfdtrap_enable(kt, KFDTRAP_EC_MASK(KFDTRAP_EC_PROCESS_RUNTIME), 11, &info), 0);
	got_op(KFDABI_DBG_ENABLE);
	TEST_EQ(fake.got.enable.exception_mask, UINT64_C(0x800000000000));
	TEST_EQ(fake.got.enable.rinfo_size, 16);
	TEST_EQ(fake.got.enable.dbg_fd, 11);
	TEST_EQ(info.r_debug, 0x123456789abc);
	TEST_EQ(info.state, KFDTRAP_RUNTIME_ENABLED);
	TEST_EQ(info.ttmp_setup, 1);
}

/* ENABLE fails with EFAULT and leaves the session on: a DISABLE must follow. */
static void enable_disables_after_fault(void)
{
	auto_kfdtrap struct kfdtrap *kt = fake_kfdtrap();
	struct kfdtrap_runtime_info info = { .state = 77 };

	fake = (typeof(fake)){ .ret = -1, .err = EFAULT };
	TEST_EQ(kfdtrap_enable(kt, 0, 11, &info), -EFAULT);
	TEST_EQ(fake.n_calls, 2);
	TEST_EQ(fake.got.op, KFDABI_DBG_DISABLE);
	TEST_EQ(info.state, 77);
}

#define FAKE_TID (FAKE_PID + 1)

static struct {
	int query_errno; /* 0: there is an event, so there is a session */
	int enable_errno;
	unsigned queries, enables, disables;
} other;

static int attach_ioctl(int fd, unsigned long req, void *arg)
{
	struct kfdabi_dbg_args *args = arg;

	/* What ends a session never names a thread: its number may be another process's by then. */
	TEST_EQ(args->pid, args->op == KFDABI_DBG_ENABLE ? FAKE_TID : FAKE_PID);
	if (args->op == KFDABI_DBG_QUERY_DEBUG_EVENT) {
		other.queries++;
		errno = other.query_errno;
		return other.query_errno ? -1 : 0;
	}
	if (args->op == KFDABI_DBG_DISABLE) {
		other.disables++;
		return 0;
	}
	TEST_EQ(args->op, KFDABI_DBG_ENABLE);
	other.enables++;
	errno = other.enable_errno;
	if (errno)
		return -1;
	answer_info(args);
	return 0;
}

/* An ENABLE would take the session from who has it, whatever it answers. */
static void attach_asks_before_it_enables(void)
{
	static const struct kfdtrap_sys sys = { .ioctl = attach_ioctl };
	static const struct {
		int query_errno, enable_errno, want;
		unsigned enables, disables;
	} rows[] = { { 0, 0, -EALREADY, 0, 0 },
		     { EAGAIN, 0, -EALREADY, 0, 0 },
		     { ESRCH, 0, -ESRCH, 0, 0 },
		     { EINVAL, 0, 0, 1, 0 },
		     { EPERM, 0, 0, 1, 0 },
		     /* It has begun since: taken from who has it, so it is ended. */
		     { EINVAL, EALREADY, -EAGAIN, 1, 1 },
		     { EPERM, EALREADY, -EAGAIN, 1, 1 },
		     /* Nobody took anything. */
		     { EINVAL, EPERM, -EPERM, 1, 0 } };

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct kfdtrap_runtime_info info = { .state = 77 };
		auto_kfdtrap struct kfdtrap *kt = NULL;

		other = (typeof(other)){ .query_errno = rows[i].query_errno,
					 .enable_errno = rows[i].enable_errno };
		TEST_EQ_FATAL(kfdtrap_create(FAKE_FD, FAKE_PID, &sys, &kt), 0);
		kfdtrap_enable_by(kt, FAKE_TID);
		TEST_ROW_EQ(i, kfdtrap_attach(kt, 4, 11, &info), rows[i].want);
		TEST_ROW_EQ(i, other.queries, 1);
		TEST_ROW_EQ(i, other.enables, rows[i].enables);
		TEST_ROW_EQ(i, other.disables, rows[i].disables);
		TEST_ROW_EQ(i, info.state, rows[i].want ? 77 : KFDTRAP_RUNTIME_ENABLED);
	}
}

static void answer_short_info(struct kfdabi_dbg_args *args)
{
	if (args->op == KFDABI_DBG_ENABLE)
		args->enable.rinfo_size = 8;
}

static void enable_refuses_short_runtime_info(void)
{
	auto_kfdtrap struct kfdtrap *kt = fake_kfdtrap();
	struct kfdtrap_runtime_info info = { .state = 77 };

	fake = (typeof(fake)){ .answer = answer_short_info };
	TEST_EQ(kfdtrap_enable(kt, 0, 11, &info), -EPROTO);
	TEST_EQ(fake.got.op, KFDABI_DBG_DISABLE);
	TEST_EQ(info.state, 77);
}

static void steering_commands_send_their_arguments(void)
{
	auto_kfdtrap struct kfdtrap *kt = fake_kfdtrap();

	fake = (typeof(fake)){ 0 };
	TEST_EQ(kfdtrap_disable(kt), 0);
	got_op(KFDABI_DBG_DISABLE);

	fake = (typeof(fake)){ 0 };
	TEST_EQ(kfdtrap_send_runtime_event(kt, 0x12345678a, 9, KFDTRAP_ID_NONE), 0);
	got_op(KFDABI_DBG_SEND_RUNTIME_EVENT);
	TEST_EQ(fake.got.send_runtime_event.exception_mask, 0x12345678a);
	TEST_EQ(fake.got.send_runtime_event.gpu_id, 9);
	TEST_EQ(fake.got.send_runtime_event.queue_id, UINT32_C(0xffffffff));

	fake = (typeof(fake)){ 0 };
	TEST_EQ(kfdtrap_set_exceptions_enabled(kt, KFDTRAP_EC_MASK_ALL), 0);
	got_op(KFDABI_DBG_SET_EXCEPTIONS_ENABLED);
	TEST_EQ(fake.got.set_exceptions_enabled.exception_mask, UINT64_C(0x1800fe07f803f));

	fake = (typeof(fake)){ 0 };
	TEST_EQ(kfdtrap_set_wave_launch_mode(kt, KFDTRAP_LAUNCH_DEBUG), 0);
	got_op(KFDABI_DBG_SET_WAVE_LAUNCH_MODE);
	TEST_EQ(fake.got.launch_mode.launch_mode, 3);
}

static void answer_override(struct kfdabi_dbg_args *args)
{
	args->launch_override.enable_mask = 0x80;
	args->launch_override.support_request_mask = 0xc00001ff;
}

static void override_returns_previous_and_supported(void)
{
	auto_kfdtrap struct kfdtrap *kt = fake_kfdtrap();
	uint32_t previous = 77, supported = 77;

	fake = (typeof(fake)){ .answer = answer_override };
	TEST_EQ(kfdtrap_set_wave_launch_override(kt, KFDTRAP_OVERRIDE_REPLACE, 0x101,
						 KFDTRAP_TRAP_WAVE_END, &previous, &supported),
		0);
	got_op(KFDABI_DBG_SET_WAVE_LAUNCH_OVERRIDE);
	TEST_EQ(fake.got.launch_override.override_mode, 1);
	TEST_EQ(fake.got.launch_override.enable_mask, 0x101);
	TEST_EQ(fake.got.launch_override.support_request_mask, UINT32_C(0x80000000));
	TEST_EQ(previous, 0x80);
	TEST_EQ(supported, 0xc00001ff);
	TEST_EQ(kfdtrap_set_wave_launch_override(kt, 0, 0, 0, NULL, NULL), 0);
}

/* EACCES is the failure that carries an answer. */
static void refused_override_and_flags_say_what_holds(void)
{
	auto_kfdtrap struct kfdtrap *kt = fake_kfdtrap();
	uint32_t previous = 77, supported = 77, flags = 77;

	fake = (typeof(fake)){ .ret = -1, .err = EACCES };
	TEST_EQ(kfdtrap_set_wave_launch_override(kt, 0, 0, 1, &previous, &supported), -EACCES);
	TEST_EQ(previous, 77);
	TEST_EQ(supported, 0xaaaaaaaa);
	TEST_EQ(kfdtrap_set_flags(kt, 1, &flags), -EACCES);
	TEST_EQ(flags, 0xaaaaaaaa);
}

static void answer_flags(struct kfdabi_dbg_args *args)
{
	args->set_flags.flags = 4;
}

static void flags_return_previous(void)
{
	auto_kfdtrap struct kfdtrap *kt = fake_kfdtrap();
	uint32_t previous = 77;

	fake = (typeof(fake)){ .answer = answer_flags };
	TEST_EQ(kfdtrap_set_flags(kt, KFDTRAP_FLAG_SINGLE_MEM_OP, &previous), 0);
	got_op(KFDABI_DBG_SET_FLAGS);
	TEST_EQ(fake.got.set_flags.flags, 1);
	TEST_EQ(previous, 4);
	TEST_EQ(kfdtrap_set_flags(kt, 0, NULL), 0);
}

/* One of two queues vanished. */
static void answer_second_gone(struct kfdabi_dbg_args *args)
{
	uint64_t ptr = args->op == KFDABI_DBG_SUSPEND_QUEUES ? args->suspend.queue_array_ptr :
							       args->resume.queue_array_ptr;
	uint32_t *ids = (uint32_t *)(uintptr_t)ptr;

	TEST_EQ(ids[0], 3);
	TEST_EQ(ids[1], 9);
	ids[1] |= KFDABI_QUEUE_INVALID | KFDABI_QUEUE_ERROR;
}

static void suspend_reports_partial_success(void)
{
	auto_kfdtrap struct kfdtrap *kt = fake_kfdtrap();
	uint32_t *ids = test_tail_dup((uint32_t[]){ 3, 9 | KFDTRAP_QUEUE_HW_FAILED }, 8);
	uint32_t n = 77;

	fake = (typeof(fake)){ .ret = 1, .answer = answer_second_gone };
	TEST_EQ(kfdtrap_suspend_queues(kt, 0x3f, ids, 2, 5, &n), 0);
	got_op(KFDABI_DBG_SUSPEND_QUEUES);
	TEST_EQ(fake.got.suspend.exception_mask, 0x3f);
	TEST_EQ(fake.got.suspend.num_queues, 2);
	TEST_EQ(fake.got.suspend.grace_period, 5);
	TEST_EQ(n, 1);
	TEST_EQ(ids[0], 3);
	TEST_EQ(ids[1], 9 | KFDTRAP_QUEUE_GONE | KFDTRAP_QUEUE_HW_FAILED);
}

static void resume_reports_partial_success(void)
{
	auto_kfdtrap struct kfdtrap *kt = fake_kfdtrap();
	uint32_t *ids = test_tail_dup((uint32_t[]){ 3, 9 | KFDTRAP_QUEUE_GONE }, 8);
	uint32_t n = 77;

	fake = (typeof(fake)){ .ret = 1, .answer = answer_second_gone };
	TEST_EQ(kfdtrap_resume_queues(kt, ids, 2, &n), 0);
	got_op(KFDABI_DBG_RESUME_QUEUES);
	TEST_EQ(fake.got.resume.num_queues, 2);
	TEST_EQ(n, 1);
	TEST_EQ(ids[1], 9 | KFDTRAP_QUEUE_GONE | KFDTRAP_QUEUE_HW_FAILED);
}

/* A null array means all; an empty list of ids must not become one. */
static void resume_all_only_when_asked(void)
{
	auto_kfdtrap struct kfdtrap *kt = fake_kfdtrap();
	uint32_t id = 0;

	fake = (typeof(fake)){ .ret = 4 };
	TEST_EQ(kfdtrap_resume_queues(kt, NULL, 0, NULL), 0);
	TEST_EQ(fake.got.resume.queue_array_ptr, 0);
	TEST_EQ(kfdtrap_resume_queues(kt, &id, 0, NULL), 0);
	CU_ASSERT_NOT_EQUAL(fake.got.resume.queue_array_ptr, 0);
	TEST_EQ(fake.got.resume.num_queues, 0);
	TEST_EQ(kfdtrap_suspend_queues(kt, 0, NULL, 0, 0, NULL), 0);
	CU_ASSERT_NOT_EQUAL(fake.got.suspend.queue_array_ptr, 0);
}

static void queue_lists_are_limited_before_the_kernel(void)
{
	auto_kfdtrap struct kfdtrap *kt = fake_kfdtrap();
	static uint32_t ids[KFDTRAP_QUEUES_MAX + 1];
	uint32_t n = 77;

	fake = (typeof(fake)){ .ret = 1 };
	TEST_EQ(kfdtrap_suspend_queues(kt, 0, ids, KFDTRAP_QUEUES_MAX + 1, 0, &n), -EINVAL);
	TEST_EQ(kfdtrap_resume_queues(kt, ids, KFDTRAP_QUEUES_MAX + 1, &n), -EINVAL);
	TEST_EQ(kfdtrap_suspend_queues(kt, 0, NULL, 1, 0, &n), -EINVAL);
	TEST_EQ(kfdtrap_resume_queues(kt, NULL, 1, &n), -EINVAL);
	TEST_EQ(fake.n_calls, 0);
	TEST_EQ(n, 77);
	TEST_EQ(kfdtrap_suspend_queues(kt, 0, ids, KFDTRAP_QUEUES_MAX, 0, &n), 0);
	TEST_EQ(n, 1);
}

static void answer_watch_2(struct kfdabi_dbg_args *args)
{
	args->set_watch.id = 2;
}

static void watch_points_send_and_return_ids(void)
{
	auto_kfdtrap struct kfdtrap *kt = fake_kfdtrap();
	uint32_t id = 77;

	fake = (typeof(fake)){ .answer = answer_watch_2 };
	TEST_EQ(kfdtrap_set_node_address_watch(kt, 51, 0x7f0012345000, 0xffffff80,
					       KFDTRAP_WATCH_ALL, &id),
		0);
	got_op(KFDABI_DBG_SET_NODE_ADDRESS_WATCH);
	TEST_EQ(fake.got.set_watch.address, 0x7f0012345000);
	TEST_EQ(fake.got.set_watch.mask, 0xffffff80);
	TEST_EQ(fake.got.set_watch.mode, 3);
	TEST_EQ(fake.got.set_watch.gpu_id, 51);
	TEST_EQ(id, 2);

	fake = (typeof(fake)){ 0 };
	TEST_EQ(kfdtrap_clear_node_address_watch(kt, 51, 3), 0);
	got_op(KFDABI_DBG_CLEAR_NODE_ADDRESS_WATCH);
	TEST_EQ(fake.got.clear_watch.gpu_id, 51);
	TEST_EQ(fake.got.clear_watch.id, 3);
}

static void watch_points_out_of_range_stay_here(void)
{
	auto_kfdtrap struct kfdtrap *kt = fake_kfdtrap();
	uint32_t id = 77;

	fake = (typeof(fake)){ 0 };
	TEST_EQ(kfdtrap_clear_node_address_watch(kt, 51, KFDTRAP_WATCH_IDS), -EINVAL);
	TEST_EQ(kfdtrap_clear_node_address_watch(kt, 51, UINT32_MAX), -EINVAL);
	TEST_EQ(kfdtrap_set_node_address_watch(kt, 51, 0, 0, KFDTRAP_WATCH_COUNT, &id), -EINVAL);
	TEST_EQ(fake.n_calls, 0);
	/* No id in the answer although the command succeeded. */
	TEST_EQ(kfdtrap_set_node_address_watch(kt, 51, 0, 0, 0, &id), -EIO);
	TEST_EQ(id, 77);
}

static void answer_event(struct kfdabi_dbg_args *args)
{
	args->query_event.exception_mask = 0x40000002;
	args->query_event.gpu_id = 51;
	args->query_event.queue_id = 0;
}

static void query_returns_event_or_nothing(void)
{
	auto_kfdtrap struct kfdtrap *kt = fake_kfdtrap();
	struct kfdtrap_event event = { 0 };

	fake = (typeof(fake)){ .answer = answer_event };
	TEST_EQ(kfdtrap_query_debug_event(kt, 0x3f, &event), 1);
	got_op(KFDABI_DBG_QUERY_DEBUG_EVENT);
	TEST_EQ(fake.got.query_event.exception_mask, 0x3f);
	TEST_EQ(event.exceptions, 0x40000002);
	TEST_EQ(event.gpu_id, 51);
	TEST_EQ(event.queue_id, 0);
	TEST_EQ(kfdtrap_exceptions_source(event.exceptions), KFDTRAP_SOURCE_QUEUE);

	fake = (typeof(fake)){ .ret = -1, .err = EAGAIN };
	TEST_EQ(kfdtrap_query_debug_event(kt, 0, &event), 0);
	TEST_EQ(fake.n_calls, 1);
	TEST_EQ(event.gpu_id, 51);
}

static void answer_memory(struct kfdabi_dbg_args *args)
{
	struct kfdabi_memory_exception_data data = { 1, 0, 0, 1, 0x7f0000001000, 51, 2 };

	memcpy((void *)(uintptr_t)args->query_info.info_ptr, &data, sizeof(data));
	args->query_info.info_size = sizeof(data);
}

static void answer_no_details(struct kfdabi_dbg_args *args)
{
	args->query_info.info_size = 0;
}

/* Fixed kernels give 32 bytes, today's none. */
static void memory_violation_with_and_without_details(void)
{
	auto_kfdtrap struct kfdtrap *kt = fake_kfdtrap();
	struct kfdtrap_memory_violation violation = { .gpu_id = 77 };

	fake = (typeof(fake)){ .answer = answer_no_details };
	TEST_EQ(kfdtrap_query_memory_violation(kt, 51, false, &violation), 0);
	TEST_EQ(violation.gpu_id, 77);

	fake = (typeof(fake)){ .answer = answer_memory };
	TEST_EQ(kfdtrap_query_memory_violation(kt, 51, true, &violation), 1);
	got_op(KFDABI_DBG_QUERY_EXCEPTION_INFO);
	TEST_EQ(fake.got.query_info.exception_code, 33);
	TEST_EQ(fake.got.query_info.source_id, 51);
	TEST_EQ(fake.got.query_info.clear_exception, 1);
	TEST_EQ(fake.got.query_info.info_size, 32);
	TEST_EQ(violation.va, 0x7f0000001000);
	TEST_EQ(violation.not_present, 1);
	TEST_EQ(violation.imprecise, 1);
	TEST_EQ(violation.error_type, 2);
}

static void answer_runtime(struct kfdabi_dbg_args *args)
{
	struct kfdabi_runtime_info info = { 0x5000, 2, 0 };

	memcpy((void *)(uintptr_t)args->query_info.info_ptr, &info, sizeof(info));
	args->query_info.info_size = sizeof(info);
}

static void runtime_info_is_decoded(void)
{
	auto_kfdtrap struct kfdtrap *kt = fake_kfdtrap();
	struct kfdtrap_runtime_info info = { .state = 77 };

	fake = (typeof(fake)){ .answer = answer_no_details };
	TEST_EQ(kfdtrap_query_runtime_info(kt, false, &info), -EPROTO);
	TEST_EQ(info.state, 77);
	fake = (typeof(fake)){ .answer = answer_runtime };
	TEST_EQ(kfdtrap_query_runtime_info(kt, true, &info), 0);
	TEST_EQ(fake.got.query_info.exception_code, 48);
	TEST_EQ(info.r_debug, 0x5000);
	TEST_EQ(info.state, KFDTRAP_RUNTIME_ENABLED_BUSY);
}

/* The kernel wants a pointer even when there is nothing to copy. */
static void exception_info_without_buffer(void)
{
	auto_kfdtrap struct kfdtrap *kt = fake_kfdtrap();
	size_t size = 77;

	fake = (typeof(fake)){ 0 };
	TEST_EQ(kfdtrap_query_exception_info(kt, 2, 0, true, NULL, 0, &size), 0);
	CU_ASSERT_NOT_EQUAL(fake.got.query_info.info_ptr, 0);
	TEST_EQ(size, 0);
	TEST_EQ(kfdtrap_query_exception_info(kt, 2, 0, true, NULL, 0, NULL), 0);
	TEST_EQ(kfdtrap_query_exception_info(kt, 2, 0, true, NULL, 16, &size), -EINVAL);
	TEST_EQ(kfdtrap_query_exception_info(kt, 2, 0, true, &size, SIZE_MAX, &size), -EINVAL);
	TEST_EQ(fake.n_calls, 2);
}

/* Each round must send the original argument, not what a failed one left behind. */
static void interrupted_commands_are_repeated(void)
{
	auto_kfdtrap struct kfdtrap *kt = fake_kfdtrap();

	fake = (typeof(fake)){ .interrupts = 3 };
	TEST_EQ(kfdtrap_set_exceptions_enabled(kt, 0x123), 0);
	TEST_EQ(fake.n_calls, 4);
	TEST_EQ(fake.got.set_exceptions_enabled.exception_mask, 0x123);
	fake = (typeof(fake)){ .interrupts = 1 << 20 };
	TEST_EQ(kfdtrap_disable(kt), -EINTR);
	CU_ASSERT(fake.n_calls < 10000);
}

static struct { int err; uint32_t nr; } version;

static int version_ioctl(int fd, unsigned long req, void *arg)
{
	struct kfdabi_get_version_args *args = arg;

	TEST_EQ(fd, FAKE_FD);
	TEST_EQ(req, KFDABI_IOC_GET_VERSION);
	*args = (struct kfdabi_get_version_args){ 1, 17 };
	errno = version.err;
	return version.err ? -1 : 0;
}

static void version_needs_no_session(void)
{
	static const struct kfdtrap_sys sys = { .ioctl = version_ioctl };
	static const struct { int err, want; } rows[] = {
		{ EBADF, -EBADF }, { ENOTTY, -ENOTTY }, { EFAULT, -EFAULT },
		{ EINTR, -EINTR }, { EPERM, -EIO },	{ EIO, -EIO },
	};
	uint32_t major = 77, minor = 77;

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		version.err = rows[i].err;
		TEST_ROW_EQ(i, kfdtrap_get_version(FAKE_FD, &sys, &major, &minor), rows[i].want);
		TEST_ROW_EQ(i, major, 77);
		TEST_ROW_EQ(i, minor, 77);
	}
	version.err = 0;
	TEST_EQ(kfdtrap_get_version(FAKE_FD, &sys, &major, &minor), 0);
	TEST_EQ(major, 1);
	TEST_EQ(minor, 17);
}

/* Without a table the real system call is made: /dev/null is no KFD. */
static void real_calls_reach_the_kernel(void)
{
	auto_close int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	auto_kfdtrap struct kfdtrap *kt = NULL;
	uint32_t major, minor;

	TEST_EQ(kfdtrap_get_version(fd, NULL, &major, &minor), -ENOTTY);
	TEST_EQ(kfdtrap_create(fd, 1, NULL, &kt), 0);
	TEST_EQ(kfdtrap_disable(kt), -ENOTTY);
}

static void create_checks_its_arguments(void)
{
	struct kfdtrap *kt = NULL;

	TEST_EQ(kfdtrap_create(-1, 1, NULL, &kt), -EBADF);
	TEST_EQ(kfdtrap_create(3, 0, NULL, &kt), -EINVAL);
	CU_ASSERT_PTR_NULL(kt);
	kfdtrap_destroy(NULL);
}

static void names_cover_exactly_the_known_codes(void)
{
	uint64_t named = 0;
	char gfx[16];

	for (uint32_t code = 1; code < 64; code++)
		if (kfdtrap_exception_name(code))
			named |= KFDTRAP_EC_MASK(code);
	TEST_EQ(named, KFDTRAP_EC_MASK_ALL);
	CU_ASSERT_PTR_NULL(kfdtrap_exception_name(0));
	CU_ASSERT_PTR_NULL(kfdtrap_exception_name(UINT32_MAX));
	TEST_STR(kfdtrap_exception_name(2), "QUEUE_WAVE_TRAP");
	TEST_STR(kfdtrap_exception_name(49), "PROCESS_DEVICE_REMOVE");
	TEST_EQ(kfdtrap_exceptions_source(0), KFDTRAP_SOURCE_NONE);
	TEST_EQ(kfdtrap_exceptions_source(UINT64_C(1) << 32), KFDTRAP_SOURCE_DEVICE);
	TEST_EQ(kfdtrap_exceptions_source(UINT64_C(1) << 47), KFDTRAP_SOURCE_PROCESS);
	kfdtrap_gfx_name(90402, gfx, sizeof(gfx));
	TEST_STR(gfx, "gfx942");
	kfdtrap_gfx_name(90010, gfx, sizeof(gfx));
	TEST_STR(gfx, "gfx90a");
	kfdtrap_gfx_name(110000, gfx, sizeof(gfx));
	TEST_STR(gfx, "gfx1100");
	kfdtrap_gfx_name(UINT32_MAX, gfx, sizeof(gfx));
}

TEST_SUITE(kfdtrap_commands, TEST(enable_sends_mask_and_fd), TEST(enable_disables_after_fault),
	   TEST(attach_asks_before_it_enables), TEST(enable_refuses_short_runtime_info),
	   TEST(steering_commands_send_their_arguments),
	   TEST(override_returns_previous_and_supported),
	   TEST(refused_override_and_flags_say_what_holds), TEST(flags_return_previous),
	   TEST(suspend_reports_partial_success), TEST(resume_reports_partial_success),
	   TEST(resume_all_only_when_asked), TEST(queue_lists_are_limited_before_the_kernel),
	   TEST(watch_points_send_and_return_ids), TEST(watch_points_out_of_range_stay_here),
	   TEST(query_returns_event_or_nothing), TEST(memory_violation_with_and_without_details),
	   TEST(runtime_info_is_decoded), TEST(exception_info_without_buffer),
	   TEST(interrupted_commands_are_repeated), TEST(version_needs_no_session),
	   TEST(real_calls_reach_the_kernel), TEST(create_checks_its_arguments),
	   TEST(names_cover_exactly_the_known_codes));
