/* SPDX-License-Identifier: MIT */
/* Snapshots against a kernel whose records have another size, or whose queues multiply. */
#include "tests/unit/kfdtrap/kfdtrap_fake.h"

/* What exists in the kernel, and how large its records are. */
static struct {
	uint32_t real_size;
	uint32_t n;	/* Records that exist. */
	uint32_t growth; /* Added after every call. */
	uint64_t latched[4096];
	int n_calls;
	uint64_t got_clear;
	uint32_t got_entry_size;
	uint32_t got_n;
} kernel;

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* A record as the kernel has it: every byte behind the known fields is 0xee. */
static void kernel_record(uint32_t op, uint32_t i, unsigned char *record)
{
	memset(record, 0xee, 256);
	if (op == KFDABI_DBG_GET_QUEUE_SNAPSHOT) {
		struct kfdabi_queue_entry entry = {
			.exception_status = kernel.latched[i],
			.ring_base_address = 0x10000 + i,
			.ctx_save_restore_address = 0x7f0000000000 + i,
			.queue_id = i,
			.gpu_id = 51,
			.ring_size = 4096,
			.queue_type = KFDABI_QUEUE_TYPE_COMPUTE_AQL,
			.ctx_save_restore_area_size = 8192,
		};
		memcpy(record, &entry, sizeof(entry));
	} else {
		struct kfdabi_device_entry entry = {
			.exception_status = kernel.latched[i],
			.gpu_id = 100 + i,
			.debug_prop = 0x5d6,
			.capability2 = KFDTRAP_CAP2_LDS_OUT_OF_RANGE,
		};
		memcpy(record, &entry, sizeof(entry));
	}
}

static int kernel_ioctl(int fd, unsigned long req, void *arg)
{
	struct kfdabi_dbg_args *args = arg;
	uint32_t stride = args->queue_snapshot.entry_size;
	char *buf = (char *)(uintptr_t)args->queue_snapshot.snapshot_buf_ptr;
	unsigned char record[256];

	kernel.n_calls++;
	kernel.got_clear = args->queue_snapshot.exception_mask;
	kernel.got_entry_size = stride;
	kernel.got_n = args->queue_snapshot.num_queues;
	if (stride == 0 || (args->op == KFDABI_DBG_GET_DEVICE_SNAPSHOT && !buf)) {
		args->queue_snapshot.num_queues = 0;
		errno = EINVAL;
		return -1;
	}
	for (uint32_t i = 0; i < smaller(kernel.n, kernel.got_n); i++) {
		kernel_record(args->op, i, record);
		memcpy(buf + (size_t)i * stride, record, smaller(stride, kernel.real_size));
		kernel.latched[i] &= ~kernel.got_clear;
	}
	args->queue_snapshot.num_queues = kernel.n;
	args->queue_snapshot.entry_size = smaller(stride, kernel.real_size);
	kernel.n += kernel.growth;
	return 0;
}

static const struct kfdtrap_sys kernel_sys = { .ioctl = kernel_ioctl };

static struct kfdtrap *kernel_kfdtrap(uint32_t real_size, uint32_t n, uint32_t growth)
{
	struct kfdtrap *kt = NULL;

	memset(&kernel, 0, sizeof(kernel));
	kernel.real_size = real_size;
	kernel.n = n;
	kernel.growth = growth;
	for (size_t i = 0; i < TEST_COUNT(kernel.latched); i++)
		kernel.latched[i] = 0x40000000;
	TEST_EQ_FATAL(kfdtrap_create(FAKE_FD, FAKE_PID, &kernel_sys, &kt), 0);
	return kt;
}

/* Stride smaller than, equal to and larger than the kernel's record; the buffer ends at a page. */
static void raw_strides(void)
{
	static const uint32_t strides[] = { 1, 8, 40, 64, 65, 128, 200 };
	static const uint32_t real_sizes[] = { 64, 80 };

	for (size_t i = 0; i < TEST_COUNT(strides) * TEST_COUNT(real_sizes); i++) {
		uint32_t stride = strides[i / TEST_COUNT(real_sizes)];
		uint32_t real_size = real_sizes[i % TEST_COUNT(real_sizes)];
		auto_kfdtrap struct kfdtrap *kt = kernel_kfdtrap(real_size, 3, 0);
		unsigned char *buf = test_tail_alloc(2 * (size_t)stride), want[256];
		uint32_t entry_size = 77, valid = smaller(stride, real_size);
		size_t n = 77;

		memset(buf, 0x55, 2 * (size_t)stride);
		TEST_ROW_EQ(i, kfdtrap_get_queue_snapshot(kt, 0, buf, 2, stride, &n, &entry_size),
			    0);
		TEST_ROW_EQ(i, n, 3);
		TEST_ROW_EQ(i, entry_size, valid);
		TEST_ROW_EQ(i, kernel.got_entry_size, stride);
		for (uint32_t j = 0; j < 2; j++) {
			kernel_record(KFDABI_DBG_GET_QUEUE_SNAPSHOT, j, want);
			TEST_ROW_EQ(i, memcmp(buf + j * stride, want, valid), 0);
			for (uint32_t k = valid; k < stride; k++)
				TEST_ROW_EQ(i, buf[j * stride + k], 0x55);
		}
	}
}

static void counting_is_for_queues_only(void)
{
	auto_kfdtrap struct kfdtrap *kt = kernel_kfdtrap(64, 5, 0);
	struct kfdtrap_device device;
	size_t n = 77;

	TEST_EQ(kfdtrap_get_queue_snapshot(kt, 0, NULL, 0, 64, &n, NULL), 0);
	TEST_EQ(n, 5);
	TEST_EQ(kfdtrap_queue_snapshot(kt, 0, NULL, 0, &n), 0);
	TEST_EQ(n, 5);
	n = 77;
	TEST_EQ(kfdtrap_get_device_snapshot(kt, 0, &device, 0, 64, &n, NULL), 0);
	TEST_EQ(n, 5);
	n = 77;
	TEST_EQ(kfdtrap_device_snapshot(kt, 0, &device, 0, &n), 0);
	TEST_EQ(n, 5);
	n = 77;
	TEST_EQ(kfdtrap_get_queue_snapshot(kt, 0, NULL, 1, 64, &n, NULL), -EINVAL);
	TEST_EQ(kfdtrap_get_queue_snapshot(kt, 0, NULL, 0, 0, &n, NULL), -EINVAL);
	TEST_EQ(kfdtrap_get_device_snapshot(kt, 0, NULL, 0, 64, &n, NULL), -EINVAL);
	TEST_EQ(kfdtrap_get_device_snapshot(kt, 0, &device, 1, 0, &n, NULL), -EINVAL);
	TEST_EQ(kfdtrap_device_snapshot(kt, 0, NULL, 0, &n), -EINVAL);
	TEST_EQ(kfdtrap_get_queue_snapshot(kt, 0, &device, (size_t)UINT32_MAX + 1, 64, &n, NULL),
		-EINVAL);
	TEST_EQ(n, 77);
}

static void queues_are_decoded(void)
{
	static const uint32_t real_sizes[] = { 48, 64, 96 };

	for (size_t i = 0; i < TEST_COUNT(real_sizes); i++) {
		auto_kfdtrap struct kfdtrap *kt = kernel_kfdtrap(real_sizes[i], 2, 0);
		struct kfdtrap_queue *queues = test_tail_alloc(2 * sizeof(*queues));
		size_t n = 0;

		memset(queues, 0x55, 2 * sizeof(*queues));
		TEST_ROW_EQ(i, kfdtrap_queue_snapshot(kt, 0x40000000, queues, 2, &n), 0);
		TEST_ROW_EQ(i, n, 2);
		TEST_ROW_EQ(i, queues[1].queue_id, 1);
		TEST_ROW_EQ(i, queues[1].exceptions, 0x40000000);
		TEST_ROW_EQ(i, queues[1].ctx_save_restore_address, 0x7f0000000001);
		/* Beyond a short record: zero, not what was in the buffer. */
		TEST_ROW_EQ(i, queues[1].type, real_sizes[i] < 64 ? 0 : 2);
		TEST_ROW_EQ(i, queues[1].ctx_save_restore_area_size, real_sizes[i] < 64 ? 0 : 8192);
	}
}

/* 120 bytes up to 6.19, 128 from 7.0, more one day: the size decides, not the version. */
static void capability2_is_known_by_size(void)
{
	static const struct { uint32_t real_size; bool has; } rows[] = {
		{ 120, false }, { 124, true }, { 128, true }, { 160, true },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_kfdtrap struct kfdtrap *kt = kernel_kfdtrap(rows[i].real_size, 2, 0);
		struct kfdtrap_device *devices = test_tail_alloc(2 * sizeof(*devices));
		size_t n = 0;

		memset(devices, 0x55, 2 * sizeof(*devices));
		TEST_ROW_EQ(i, kfdtrap_device_snapshot(kt, 0, devices, 2, &n), 0);
		TEST_ROW_EQ(i, n, 2);
		TEST_ROW_EQ(i, devices[1].gpu_id, 101);
		TEST_ROW_EQ(i, devices[1].debug_prop, 0x5d6);
		TEST_ROW_EQ(i, devices[1].has_capability2, rows[i].has);
		TEST_ROW_EQ(i, devices[1].capability2, rows[i].has ? 2 : 0);
	}
}

/* 40 queues, first round has room for 16: the second must still report what the first cleared. */
static void growing_keeps_cleared_bits(void)
{
	auto_kfdtrap struct kfdtrap *kt = kernel_kfdtrap(64, 40, 0);
	auto_free struct kfdtrap_queue *queues = NULL;
	size_t n = 0;

	TEST_EQ(kfdtrap_queue_snapshot_alloc(kt, 0x40000000, &queues, &n), 0);
	TEST_EQ(kernel.n_calls, 2);
	TEST_EQ(kernel.got_n, 56);
	TEST_EQ_FATAL(n, 40);
	for (size_t i = 0; i < n; i++) {
		TEST_ROW_EQ(i, queues[i].queue_id, i);
		TEST_ROW_EQ(i, queues[i].exceptions, 0x40000000);
		TEST_ROW_EQ(i, kernel.latched[i], 0);
	}
}

static void growing_catches_up_or_gives_up(void)
{
	auto_kfdtrap struct kfdtrap *kt = kernel_kfdtrap(128, 20, 16);
	auto_free struct kfdtrap_device *devices = NULL;
	struct kfdtrap_queue *queues = NULL;
	auto_kfdtrap struct kfdtrap *runaway = NULL;
	size_t n = 0;

	TEST_EQ(kfdtrap_device_snapshot_alloc(kt, 1, &devices, &n), 0);
	TEST_EQ(n, 36);
	TEST_EQ(devices[35].gpu_id, 135);

	runaway = kernel_kfdtrap(64, 20, 17);
	n = 77;
	TEST_EQ(kfdtrap_queue_snapshot_alloc(runaway, 0, &queues, &n), -EAGAIN);
	CU_ASSERT(kernel.n_calls < 20);
	kernel.growth = 0;
	kernel.n = UINT32_MAX;
	TEST_EQ(kfdtrap_queue_snapshot_alloc(runaway, 0, &queues, &n), -EPROTO);
	CU_ASSERT_PTR_NULL(queues);
	TEST_EQ(n, 77);
}

static void empty_snapshot_is_a_pointer(void)
{
	auto_kfdtrap struct kfdtrap *kt = kernel_kfdtrap(64, 0, 0);
	auto_free struct kfdtrap_queue *queues = NULL;
	size_t n = 77;

	TEST_EQ(kfdtrap_queue_snapshot_alloc(kt, 0, &queues, &n), 0);
	TEST_EQ(n, 0);
	CU_ASSERT_PTR_NOT_NULL(queues);
}

TEST_SUITE(kfdtrap_snapshot, TEST(raw_strides), TEST(counting_is_for_queues_only),
	   TEST(queues_are_decoded), TEST(capability2_is_known_by_size),
	   TEST(growing_keeps_cleared_bits), TEST(growing_catches_up_or_gives_up),
	   TEST(empty_snapshot_is_a_pointer));
