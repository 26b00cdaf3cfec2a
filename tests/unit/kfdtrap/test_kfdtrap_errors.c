/* SPDX-License-Identifier: MIT */
/* Every command with every errno: documented ones come back, others as -EIO, nothing is written. */
#include "tests/unit/kfdtrap/kfdtrap_fake.h"

/* Out parameters of all commands; filled with a pattern before each call. */
static struct {
	struct kfdtrap_runtime_info info;
	struct kfdtrap_event event;
	struct kfdtrap_memory_violation violation;
	uint32_t a, b;
	uint32_t ids[2];
	size_t n;
	void *pointer;
} out;

static struct kfdtrap_queue queues[2];
static struct kfdtrap_device devices[2];

static int do_enable(struct kfdtrap *kt)
{
	return kfdtrap_enable(kt, 1, 5, &out.info);
}

static int do_send(struct kfdtrap *kt)
{
	return kfdtrap_send_runtime_event(kt, 1, 1, 1);
}

static int do_exceptions(struct kfdtrap *kt)
{
	return kfdtrap_set_exceptions_enabled(kt, 1);
}

static int do_override(struct kfdtrap *kt)
{
	return kfdtrap_set_wave_launch_override(kt, 0, 0, 0, &out.a, NULL);
}

static int do_mode(struct kfdtrap *kt)
{
	return kfdtrap_set_wave_launch_mode(kt, 0);
}

static int do_suspend(struct kfdtrap *kt)
{
	return kfdtrap_suspend_queues(kt, 0, out.ids, 2, 0, &out.a);
}

static int do_resume(struct kfdtrap *kt)
{
	return kfdtrap_resume_queues(kt, out.ids, 2, &out.a);
}

static int do_set_watch(struct kfdtrap *kt)
{
	return kfdtrap_set_node_address_watch(kt, 1, 0, 0, 0, &out.a);
}

static int do_clear_watch(struct kfdtrap *kt)
{
	return kfdtrap_clear_node_address_watch(kt, 1, 0);
}

static int do_flags(struct kfdtrap *kt)
{
	return kfdtrap_set_flags(kt, 0, NULL);
}

static int do_query(struct kfdtrap *kt)
{
	return kfdtrap_query_debug_event(kt, 0, &out.event);
}

static int do_info(struct kfdtrap *kt)
{
	char buf[16];

	return kfdtrap_query_exception_info(kt, 1, 0, false, buf, sizeof(buf), &out.n);
}

static int do_runtime_info(struct kfdtrap *kt)
{
	return kfdtrap_query_runtime_info(kt, false, &out.info);
}

static int do_violation(struct kfdtrap *kt)
{
	return kfdtrap_query_memory_violation(kt, 1, false, &out.violation);
}

static int do_queue_raw(struct kfdtrap *kt)
{
	return kfdtrap_get_queue_snapshot(kt, 0, queues, 2, 64, &out.n, &out.a);
}

static int do_device_raw(struct kfdtrap *kt)
{
	return kfdtrap_get_device_snapshot(kt, 0, devices, 1, 64, &out.n, &out.a);
}

static int do_queues(struct kfdtrap *kt)
{
	return kfdtrap_queue_snapshot(kt, 0, queues, 2, &out.n);
}

static int do_devices(struct kfdtrap *kt)
{
	return kfdtrap_device_snapshot(kt, 0, devices, 2, &out.n);
}

static int do_queues_alloc(struct kfdtrap *kt)
{
	return kfdtrap_queue_snapshot_alloc(kt, 0, (struct kfdtrap_queue **)&out.pointer, &out.n);
}

static int do_devices_alloc(struct kfdtrap *kt)
{
	return kfdtrap_device_snapshot_alloc(kt, 0, (struct kfdtrap_device **)&out.pointer, &out.n);
}

static const struct {
	const char *name;
	int (*run)(struct kfdtrap *kt);
	int more[4]; /* Documented beyond the common ones. */
} commands[] = {
	{ "enable", do_enable, { EALREADY, ENODEV } },
	{ "disable", kfdtrap_disable, { 0 } },
	{ "send_runtime_event", do_send, { ENODEV } },
	{ "set_exceptions_enabled", do_exceptions, { 0 } },
	{ "set_wave_launch_override", do_override, { EACCES, ENODEV, ETIME } },
	{ "set_wave_launch_mode", do_mode, { EACCES, ENODEV, ETIME } },
	{ "suspend_queues", do_suspend, { EACCES, ENODEV, ETIME } },
	{ "resume_queues", do_resume, { EACCES, ENODEV, ETIME } },
	{ "set_node_address_watch", do_set_watch, { EACCES, ENODEV, ETIME } },
	{ "clear_node_address_watch", do_clear_watch, { EACCES, ENODEV, ETIME } },
	{ "set_flags", do_flags, { EACCES, ENODEV, ETIME } },
	{ "query_debug_event", do_query, { 0 } },
	{ "query_exception_info", do_info, { ENODATA } },
	{ "query_runtime_info", do_runtime_info, { ENODATA } },
	{ "query_memory_violation", do_violation, { ENODATA } },
	{ "get_queue_snapshot", do_queue_raw, { 0 } },
	{ "get_device_snapshot", do_device_raw, { 0 } },
	{ "queue_snapshot", do_queues, { 0 } },
	{ "device_snapshot", do_devices, { 0 } },
	{ "queue_snapshot_alloc", do_queues_alloc, { 0 } },
	{ "device_snapshot_alloc", do_devices_alloc, { 0 } },
};

static bool is_documented(size_t command, int err)
{
	static const int common[] = {
		EBADF, ENOTTY, EOPNOTSUPP, ESRCH, EPERM, EINVAL, EBUSY, EFAULT, ENOMEM, EINTR, EIO,
	};

	if (err == 0)
		return false;
	for (size_t i = 0; i < TEST_COUNT(common); i++)
		if (common[i] == err)
			return true;
	for (size_t i = 0; i < TEST_COUNT(commands[command].more); i++)
		if (commands[command].more[i] == err)
			return true;
	return false;
}

static void check(size_t i, int err)
{
	auto_kfdtrap struct kfdtrap *kt = fake_kfdtrap();
	bool is_idle = commands[i].run == do_query && err == EAGAIN;
	int want = is_idle ? 0 : is_documented(i, err) ? -err : -EIO;
	typeof(out) before;
	int got;

	memset(&out, 0x77, sizeof(out));
	before = out;
	fake = (typeof(fake)){ .ret = -1, .err = err };
	got = commands[i].run(kt);
	if (got != want || memcmp(&before, &out, sizeof(out)))
		fprintf(stderr, "%s, errno %d (%s)\n", commands[i].name, err, strerror(err));
	TEST_ROW_EQ(i, got, want);
	TEST_ROW_EQ(i, memcmp(&before, &out, sizeof(out)), 0);
}

static void every_errno_of_every_command(void)
{
	for (size_t i = 0; i < TEST_COUNT(commands); i++)
		for (int err = 1; err <= 133; err++)
			check(i, err);
}

/* A broken seam that forgets errno must not look like success. */
static void failure_without_errno_is_a_failure(void)
{
	for (size_t i = 0; i < TEST_COUNT(commands); i++)
		check(i, 0);
}

TEST_SUITE(kfdtrap_errors, TEST(every_errno_of_every_command),
	   TEST(failure_without_errno_is_a_failure));
