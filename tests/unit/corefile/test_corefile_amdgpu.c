/* SPDX-License-Identifier: MIT */
/* AMDGPU cores: random ones come back as they were, damaged ones as far as they make sense. */
#include <elf.h>

#include "corefile/amdgpu/read.h"
#include "corefile/amdgpu/write.h"
#include "testlib.h"

DEFINE_AUTO(struct amdcore_image *, amdcore_image_destroy);

#define SEGMENTS_MAX 12u
#define NOTES_MAX    4u

/* A model with what it points to. */
struct population {
	struct amdcore core;
	struct amdcore_segment segments[SEGMENTS_MAX];
	struct amdcore_note notes[NOTES_MAX];
	uint8_t runtime[AMDCORE_RUNTIME_SIZE + 16], memory[1 << 16], notes_data[256];
	uint8_t devices[8 * (AMDCORE_DEVICE_SIZE + 16)], queues[8 * (AMDCORE_QUEUE_SIZE + 16)];
};

static void fill(void *p, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((uint8_t *)p)[i] = (uint8_t)test_random();
}

static void fill_table(struct amdcore_table *t, void *data, uint32_t n, uint32_t today)
{
	static const int32_t steps[] = { 0, 0, 8, 16, -8 };

	*t = (struct amdcore_table){ .data = data, .n = n };
	t->entry_size = (uint32_t)((int32_t)today + steps[test_random() % TEST_COUNT(steps)]);
	fill(data, (size_t)n * t->entry_size);
}

static void fill_segments(struct population *p)
{
	uint64_t address = 0x7f0000000000;

	for (uint32_t i = 0; i < p->core.n_segments; i++) {
		uint64_t size = test_random() % 3 ? 4096 * (1 + test_random() % 3) : test_random() % 9000;

		address += 4096 * (test_random() % 3) + (test_random() % 4 ? 0 : test_random() % 4096);
		p->segments[i] = (struct amdcore_segment){
			.address = address,
			.flags = PF_R | (uint32_t)(test_random() % 4),
			.size = size,
			.bytes = { .data = p->memory + test_random() % 4096, .size = size },
		};
		address += size;
	}
}

static void populate(struct population *p)
{
	fill(p->memory, sizeof(p->memory));
	fill(p->notes_data, sizeof(p->notes_data));
	p->core = (struct amdcore){ .unified = test_random() % 2,
				    .kfd_major = 1,
				    .kfd_minor = (uint32_t)(test_random() % 30),
				    .notes = p->notes,
				    .segments = p->segments };
	if (p->core.unified)
		p->core.machine = test_random() % 2 ? EM_X86_64 : EM_AARCH64;
	fill_table(&p->core.runtime, p->runtime, 1, AMDCORE_RUNTIME_SIZE);
	fill_table(&p->core.devices, p->devices, (uint32_t)(test_random() % 9), AMDCORE_DEVICE_SIZE);
	fill_table(&p->core.queues, p->queues, (uint32_t)(test_random() % 9), AMDCORE_QUEUE_SIZE);
	p->core.n_segments = (uint32_t)(test_random() % (SEGMENTS_MAX + 1));
	fill_segments(p);
	p->core.n_notes = p->core.unified ? (uint32_t)(test_random() % (NOTES_MAX + 1)) : 0;
	for (uint32_t i = 0; i < p->core.n_notes; i++)
		p->notes[i] = (struct amdcore_note){ .name = i % 2 ? "CORE" : "LINUX",
						     .type = (uint32_t)(test_random() % 10),
						     .desc = p->notes_data,
						     .size = (uint32_t)(test_random() % 100) };
}

struct file {
	uint8_t *data;
	size_t size;
};

static struct file write_core(const struct amdcore *c)
{
	auto_call(amdcore_image_destroyp) struct amdcore_image *image = NULL;
	struct file f;

	TEST_EQ_FATAL(amdcore_image_create(c, &image), 0);
	f.size = (size_t)amdcore_image_size(image);
	f.data = malloc(f.size);
	TEST_EQ_FATAL(amdcore_image_read(image, NULL, 0, f.data, f.size, NULL), f.size);
	return f;
}

static void compare_table(const struct amdcore_table *got, const struct amdcore_table *want)
{
	TEST_EQ(got->n, want->n);
	TEST_EQ(got->entry_size, want->entry_size);
	if (got->n == want->n && got->entry_size == want->entry_size && got->n)
		TEST_EQ(memcmp(got->data, want->data, (size_t)got->n * got->entry_size), 0);
}

static void compare_segments(const struct amdcore *got, const struct amdcore *want)
{
	TEST_EQ_FATAL(got->n_segments, want->n_segments);
	for (uint32_t i = 0; i < got->n_segments; i++) {
		const struct amdcore_segment *g = &got->segments[i], *w = &want->segments[i];

		TEST_ROW_EQ(i, g->address, w->address);
		TEST_ROW_EQ(i, g->flags, w->flags);
		TEST_ROW_EQ(i, g->size, w->size);
		TEST_ROW_EQ(i, g->bytes.size, w->size);
		if (g->bytes.size == w->size && w->size)
			TEST_ROW_EQ(i, memcmp(g->bytes.data, w->bytes.data, w->size), 0);
	}
}

static void compare(const struct amdcore *got, const struct amdcore *want)
{
	TEST_EQ(got->problems.total, 0);
	TEST_EQ(got->unified, want->unified);
	TEST_EQ(got->machine, want->machine);
	TEST_EQ(got->kfd_major, want->kfd_major);
	TEST_EQ(got->kfd_minor, want->kfd_minor);
	compare_table(&got->runtime, &want->runtime);
	compare_table(&got->devices, &want->devices);
	compare_table(&got->queues, &want->queues);
	compare_segments(got, want);
	TEST_EQ_FATAL(got->n_notes, want->n_notes);
	for (uint32_t i = 0; i < got->n_notes; i++) {
		TEST_ROW_STR(i, got->notes[i].name, want->notes[i].name);
		TEST_ROW_EQ(i, got->notes[i].type, want->notes[i].type);
		TEST_ROW_EQ(i, got->notes[i].size, want->notes[i].size);
		TEST_ROW_EQ(i, memcmp(got->notes[i].desc, want->notes[i].desc, got->notes[i].size), 0);
	}
}

static void random_cores_come_back(void)
{
	static struct population p;

	for (unsigned round = 0; round < 400; round++) {
		struct amdcore got;
		struct file f;
		uint8_t *data;

		populate(&p);
		f = write_core(&p.core);
		data = test_tail_dup(f.data, f.size);
		CU_ASSERT_TRUE(amdcore_is(data, f.size));
		TEST_EQ_FATAL(amdcore_read(data, f.size, &got, NULL), 0);
		compare(&got, &p.core);
		amdcore_deinit(&got);
		free(f.data);
	}
}

/* Any piece of the file is what the whole file has there. */
static void pieces_are_those_of_the_whole(void)
{
	static struct population p;
	uint8_t buf[10000];

	for (unsigned round = 0; round < 50; round++) {
		auto_call(amdcore_image_destroyp) struct amdcore_image *image = NULL;
		struct file f;

		populate(&p);
		f = write_core(&p.core);
		TEST_EQ_FATAL(amdcore_image_create(&p.core, &image), 0);
		for (unsigned i = 0; i < 50; i++) {
			size_t at = (size_t)(test_random() % f.size), n = 1 + test_random() % sizeof(buf);
			size_t want = f.size - at < n ? f.size - at : n;

			TEST_EQ_FATAL(amdcore_image_read(image, NULL, at, buf, n, NULL), want);
			TEST_EQ(memcmp(buf, f.data + at, want), 0);
		}
		TEST_EQ(amdcore_image_read(image, NULL, f.size, buf, 1, NULL), 0);
		free(f.data);
	}
}

/* Everything that a reader hands out is touched: ASan and the guard page see what is wrong. */
static unsigned touch(const struct amdcore *c)
{
	unsigned sum = 0;
	struct amdcore_runtime runtime;
	struct amdcore_device device;
	struct amdcore_queue queue;
	uint8_t buf[64];

	amdcore_get_runtime(c, &runtime);
	for (uint32_t i = 0; i < c->devices.n && c->devices.entry_size; i++) {
		amdcore_get_device(c, i, &device);
		sum += device.gpu_id;
	}
	for (uint32_t i = 0; i < c->queues.n && c->queues.entry_size; i++) {
		amdcore_get_queue(c, i, &queue);
		sum += queue.queue_id;
	}
	for (uint32_t i = 0; i < c->n_segments; i++)
		sum += (unsigned)amdcore_read_memory(
			c, c->segments[i].address + c->segments[i].bytes.size / 2, buf, sizeof(buf));
	for (uint32_t i = 0; i < c->n_notes; i++)
		for (uint32_t k = 0; k < c->notes[i].size; k++)
			sum += ((const uint8_t *)c->notes[i].desc)[k];
	return sum;
}

static void files_cut_short_give_what_is_there(void)
{
	static struct population p;
	unsigned read = 0, sum = 0;

	for (unsigned round = 0; round < 8; round++) {
		struct file f;

		populate(&p);
		f = write_core(&p.core);
		for (size_t n = 0; n < f.size; n += 64) {
			auto_free uint8_t *data = malloc(n + 1);
			struct corefile_problem why = { 0 };
			struct amdcore got;
			int r;

			memcpy(data, f.data, n);
			r = amdcore_read(data, n, &got, &why);
			CU_ASSERT_TRUE(r == 0 || why.text[0]);
			if (r < 0)
				continue;
			CU_ASSERT_TRUE(got.problems.total > 0);
			sum += touch(&got);
			amdcore_deinit(&got);
			read++;
		}
		free(f.data);
	}
	CU_ASSERT_TRUE(read > 0 && sum > 0);
}

static void flipped_bits_do_no_harm(void)
{
	static struct population p;
	unsigned sum = 0;

	for (unsigned round = 0; round < 3000; round++) {
		struct amdcore got;
		struct file f;
		size_t front;

		if (round % 100 == 0)
			populate(&p);
		f = write_core(&p.core);
		front = f.size < 3000 ? f.size : 3000;
		for (unsigned i = 0; i < 3; i++)
			f.data[test_random() % front] ^= (uint8_t)(1 << test_random() % 8);
		(void)amdcore_is(f.data, f.size);
		if (amdcore_read(f.data, f.size, &got, NULL) == 0) {
			sum += touch(&got);
			amdcore_deinit(&got);
		}
		free(f.data);
	}
	CU_ASSERT_TRUE(sum > 0);
}

/* More segments than the header can count. */
static void many_segments_are_counted_elsewhere(void)
{
	enum { MANY = 70000 };
	auto_free struct amdcore_segment *segments = calloc(MANY, sizeof(*segments));
	static struct population p;
	struct amdcore got;
	struct file f;
	uint64_t word;

	populate(&p);
	for (uint32_t i = 0; i < MANY; i++)
		segments[i] = (struct amdcore_segment){ .address = (uint64_t)(i + 1) << 12,
							.size = 8,
							.flags = PF_R,
							.bytes = { .data = p.memory + i % 4096,
								   .size = 8 } };
	p.core.segments = segments;
	p.core.n_segments = MANY;
	f = write_core(&p.core);
	TEST_EQ(((Elf64_Ehdr *)(void *)f.data)->e_phnum, PN_XNUM);
	TEST_EQ_FATAL(amdcore_read(f.data, f.size, &got, NULL), 0);
	compare(&got, &p.core);
	TEST_EQ(amdcore_read_memory(&got, (uint64_t)MANY << 12, &word, sizeof(word)), sizeof(word));
	TEST_EQ(memcmp(&word, segments[MANY - 1].bytes.data, sizeof(word)), 0);
	amdcore_deinit(&got);
	free(f.data);
}

static ssize_t odd_pages_only(void *arg, uint64_t key, uint64_t offset, void *buf, size_t size)
{
	uint64_t at = key + offset;
	size_t n = 4096 - at % 4096;

	if (at / 4096 % 2 == 0)
		return -EFAULT;
	n = size < n ? size : n;
	memset(buf, 0x5a, n);
	return (ssize_t)n;
}

static void unreadable_pages_become_zeros(void)
{
	static struct population p;
	const struct corefile_source source = { .fetch = odd_pages_only };
	auto_call(amdcore_image_destroyp) struct amdcore_image *image = NULL;
	struct amdcore got;
	uint64_t lost = 0;
	uint8_t *data, byte;
	size_t size;

	populate(&p);
	p.core.n_segments = 1;
	p.segments[0] = (struct amdcore_segment){ .address = 0x10000, .size = 0x4000, .flags = PF_R,
						  .bytes = { .key = 0x10000, .size = 0x4000 } };
	TEST_EQ_FATAL(amdcore_image_create(&p.core, &image), 0);
	size = (size_t)amdcore_image_size(image);
	data = malloc(size);
	TEST_EQ(amdcore_image_read(image, &source, 0, data, size, &lost), size);
	TEST_EQ(lost, 0x2000);
	TEST_EQ_FATAL(amdcore_read(data, size, &got, NULL), 0);
	for (unsigned page = 0; page < 4; page++) {
		TEST_EQ(amdcore_read_memory(&got, 0x10000 + page * 0x1000, &byte, 1), 1);
		TEST_ROW_EQ(page, byte, page % 2 ? 0x5a : 0);
	}
	TEST_EQ(amdcore_read_memory(&got, 0x14000, &byte, 1), 0);
	TEST_EQ(amdcore_read_memory(&got, 0xffff, &byte, 1), 0);
	amdcore_deinit(&got);
	free(data);
}

/* The ROCm runtime writes alignments as shifts, flags of its own, and empty headers. */
static void oddities_of_the_runtime_are_accepted(void)
{
	static struct population p;
	struct amdcore got;
	struct file f;
	Elf64_Phdr *headers;

	do
		populate(&p);
	while (p.core.unified || p.core.n_segments < 3);
	f = write_core(&p.core);
	((Elf64_Ehdr *)(void *)f.data)->e_ident[EI_ABIVERSION] = 0;
	headers = (void *)(f.data + sizeof(Elf64_Ehdr));
	headers[0].p_align = 2;
	for (uint32_t i = 1; i <= p.core.n_segments; i++) {
		headers[i].p_align = 4;
		headers[i].p_flags = p.segments[i - 1].flags = 3;
	}
	headers[p.core.n_segments].p_type = PT_NULL;
	p.core.n_segments--;
	TEST_EQ_FATAL(amdcore_read(f.data, f.size, &got, NULL), 0);
	compare(&got, &p.core);
	amdcore_deinit(&got);
	free(f.data);
}

static void entries_are_packed_as_the_kernel_does(void)
{
	struct amdcore_device device;
	struct amdcore_queue queue;
	struct amdcore c = { .devices = { .n = 1, .entry_size = AMDCORE_DEVICE_SIZE },
			     .queues = { .n = 1, .entry_size = AMDCORE_QUEUE_SIZE } };
	uint8_t device_bytes[AMDCORE_DEVICE_SIZE], again[AMDCORE_DEVICE_SIZE];
	uint8_t queue_bytes[AMDCORE_QUEUE_SIZE], queue_again[AMDCORE_QUEUE_SIZE];

	fill(device_bytes, sizeof(device_bytes));
	fill(queue_bytes, sizeof(queue_bytes) - 4);
	memset(queue_bytes + 60, 0, 4);
	c.devices.data = device_bytes;
	c.queues.data = queue_bytes;
	amdcore_get_device(&c, 0, &device);
	amdcore_pack_device(again, &device);
	TEST_EQ(memcmp(again, device_bytes, sizeof(again)), 0);
	amdcore_get_queue(&c, 0, &queue);
	amdcore_pack_queue(queue_again, &queue);
	TEST_EQ(memcmp(queue_again, queue_bytes, sizeof(queue_again)), 0);
	/* An old kernel's shorter entry: what is missing is 0, what is there is not. */
	c.devices.entry_size = 112;
	amdcore_get_device(&c, 0, &device);
	TEST_EQ(device.debug_prop, 0);
	TEST_EQ(memcmp(&device.num_xcc, device_bytes + 108, 4), 0);
}

static void nonsense_is_refused(void)
{
	static struct population p;
	struct corefile_problem why;
	struct amdcore_image *image;
	struct amdcore got;
	struct file f;

	do
		populate(&p);
	while (p.core.unified);
	f = write_core(&p.core);
	/* The note's version lies behind its 12 bytes and its name. */
	f.data[((Elf64_Phdr *)(void *)(f.data + sizeof(Elf64_Ehdr)))->p_offset + 20] = 2;
	TEST_EQ(amdcore_read(f.data, f.size, &got, &why), -EBADMSG);
	TEST_STR(why.text, "the AMDGPU note has a version that is not known");
	((Elf64_Ehdr *)(void *)f.data)->e_machine = 190;
	TEST_EQ(amdcore_read(f.data, f.size, &got, &why), -ENOEXEC);
	CU_ASSERT_FALSE(amdcore_is(f.data, f.size));
	p.core.queues.entry_size = 60;
	TEST_EQ(amdcore_image_create(&p.core, &image), -EINVAL);
	free(f.data);
}

TEST_SUITE(corefile_amdgpu, TEST(random_cores_come_back), TEST(pieces_are_those_of_the_whole),
	   TEST(files_cut_short_give_what_is_there), TEST(flipped_bits_do_no_harm),
	   TEST(many_segments_are_counted_elsewhere), TEST(unreadable_pages_become_zeros),
	   TEST(oddities_of_the_runtime_are_accepted), TEST(entries_are_packed_as_the_kernel_does),
	   TEST(nonsense_is_refused));
