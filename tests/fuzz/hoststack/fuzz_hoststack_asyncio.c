/* SPDX-License-Identifier: MIT */
/* Memory of a process of Python 3.14 or 3.15, by the first byte: tasks, coroutines, names, sets, the table. */
#include <errno.h>
#include <string.h>

#include "fuzzlib.h"
#include "hoststack/asyncio.h"

#define BASE UINT64_C(0x10000)

struct image {
	const uint8_t *data;
	size_t size;
};

static int read_image(void *ctx, const struct hoststack_piece *pieces, size_t n)
{
	const struct image *i = ctx;

	for (size_t k = 0; k < n; k++) {
		const uint64_t at = pieces[k].address - BASE;

		memset(pieces[k].buf, 0, pieces[k].size);
		if (at >= i->size)
			return -EFAULT;
		memcpy(pieces[k].buf, i->data + at, pieces[k].size < i->size - at ? pieces[k].size : i->size - at);
	}
	return 0;
}

static bool no(void *ctx, uint64_t tid)
{
	return false;
}

/* As in Debian's 3.14.10, but for the types, which are in the image. */
static const struct hoststack_python python = {
	.layout = { .minor = 14, .has_table = true, .thread_size = 0x80, .frame_size = 0x58, .frame_previous = 8,
		    .frame_at = 56, .frame_owner = 74, .frame_stack = 64, .code_size = 208, .code_file = 112,
		    .code_name = 120, .code_qualname = 128, .code_lines = 136, .code_first_line = 68,
		    .code_instructions = 208, .object_size = 16, .object_type = 8, .str_state = 32, .str_length = 16,
		    .str_ascii = 40, .str_compact = 56, .bytes_length = 16, .bytes_data = 32, .generator_frame = 72,
		    .generator_state = 67, .type_flags = 168, .long_tag = 16, .long_digits = 24, .set_table = 40,
		    .set_mask = 32 },
	.str_type = BASE + 0x800, .code_type = BASE + 0x900, .bytes_type = BASE + 0xa00,
};

static void check(const struct hoststack_tasks *t)
{
	if (t->n > HOSTSTACK_TASKS_MAX || t->is_certain)
		__builtin_trap();
	for (size_t i = 0; i < t->n; i++)
		if (t->list[i].n > HOSTSTACK_AWAITS_MAX || t->list[i].n_waiters > HOSTSTACK_WAITERS_MAX ||
		    (!t->list[i].name && !t->list[i].is_cut))
			__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct image image = { data, size };
	struct hoststack_memory m = { .read = read_image, .ctx = &image, .bytes_left = 1 << 20 };
	struct hoststack_python p = python;
	struct hoststack_reader r = { .memory = &m, .python = &p, .watch = { no, no, NULL } };
	const struct hoststack_thread thread = { .state = BASE };
	struct hoststack_asyncio a = { .task_name = 0x88, .task_coroutine = 0x80, .task_node = 0x98,
				       .task_waiters = 0x60, .task_has_set = 0x6d, .thread_running = 8,
				       .thread_tasks = 16 };
	struct hoststack_tasks tasks;

	if (size && data[0] & 1)
		p.layout.minor = 15;
	if (size && data[0] & 2) {
		p.layout.free_threaded = true;
		p.layout.frame_tlbc = 72;
		p.layout.code_tlbc = 200;
	}
	(void)hoststack_asyncio_find(&m, &p, BASE, &a);
	if (hoststack_tasks_read(&r, &a, &thread, &tasks) == 0)
		check(&tasks);
	hoststack_tasks_free(&tasks);
	hoststack_reader_deinit(&r);
	return 0;
}
