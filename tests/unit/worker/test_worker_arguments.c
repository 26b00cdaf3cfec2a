/* SPDX-License-Identifier: MIT */
/* Arguments of dispatches: what was copied in the stop, what is read afterwards, and what is too late. */
#include "agentd/worker/snapshot/arguments.h"
#include "base/fd.h"
#include "testlib.h"

#define OBJECT	  "tests/data/codeobj/spin-gfx90a.co"
#define BIAS	  UINT64_C(0x7f0000000000)
#define KERNARG	  UINT64_C(0x5000)
#define READ_AT	  UINT64_C(0x6000)
#define QUEUE	  3u
#define DISPATCH  17u
#define GROUPS_MAX 10u

static char *object;
static size_t object_size;

/* Memory of the target. */
static struct {
	uint8_t kernarg[12]; /* of scale(int *data, int n) */
	size_t kernarg_size;
	uint64_t read_index;
	bool has_index;
} memory;

static ssize_t read_memory(const void *source, uint64_t address, void *buf, size_t size)
{
	if (address == KERNARG && memory.kernarg_size) {
		size = size < memory.kernarg_size ? size : memory.kernarg_size;
		memcpy(buf, memory.kernarg, size);
		return (ssize_t)size;
	}
	if (address == READ_AT && memory.has_index && size == sizeof(memory.read_index)) {
		memcpy(buf, &memory.read_index, size);
		return (ssize_t)size;
	}
	return -EFAULT;
}

static int fake_list(struct target *t, struct rpc_arena *a, struct code_list *ret)
{
	ret->objects = rpc_arena_array(a, 1, sizeof(*ret->objects));
	ret->objects[0] = (struct code_object){ .uri = "0", .bias = BIAS };
	ret->n_objects = 1;
	return 0;
}

static int fake_stat(struct target *t, const struct code_object *o, struct code_stat *ret)
{
	*ret = (struct code_stat){ .size = object_size };
	return 0;
}

static ssize_t fake_read(struct target *t, const struct code_object *o, uint64_t offset, void *buf, size_t size)
{
	size = object_size - (size_t)offset < size ? object_size - (size_t)offset : size;
	memcpy(buf, object + offset, size);
	return (ssize_t)size;
}

static const struct target_ops fake_ops = { .code_list = fake_list, .code_stat = fake_stat, .code_read = fake_read };

struct scene {
	struct target target;
	struct rpc_arena arena;
	struct code_set set;
	struct rpc_queue queue;
	struct wave wave[GROUPS_MAX];
	struct group group[GROUPS_MAX];
	struct rpc_group told[GROUPS_MAX];
	struct target_arguments copy;
	struct target_waves waves;
	struct arguments_missing missing;
};

/* @param n  Groups, each of a dispatch of its own. */
static void scene_init(struct scene *s, size_t n)
{
	static const uint8_t kernarg[12] = { 0, 0x20, 0, 0, 0x10, 0, 0, 0, 0x60, 0xff, 0xff, 0xff };
	struct code_symbol kernel;

	memcpy(memory.kernarg, kernarg, sizeof(kernarg));
	memory.kernarg_size = sizeof(kernarg);
	memory.read_index = DISPATCH;
	memory.has_index = true;
	*s = (struct scene){ .target = { .ops = &fake_ops, .memory = { .fd = -1, .read = read_memory } } };
	TEST_EQ_FATAL(fd_read_file(OBJECT, 1 << 20, &object, &object_size), 0);
	rpc_arena_init(&s->arena, 0);
	TEST_EQ_FATAL(code_set_init(&s->set, &s->target, &s->arena, 60000), 0);
	TEST_EQ_FATAL(code_kernel_around(&s->set, BIAS + 0x1a00, &kernel), 0);
	TEST_STR(kernel.name, "scale");
	s->queue = (struct rpc_queue){ .queue_id = QUEUE, .has_read_pointer = true, .read_pointer = READ_AT };
	for (size_t i = 0; i < n; i++) {
		s->wave[i] = (struct wave){ .queue_id = QUEUE, .has_dispatch = true, .dispatch = DISPATCH + i,
					    .kernel_handle = kernel.address, .arguments = KERNARG };
		s->group[i] = (struct group){ .representative = (uint32_t)i };
		s->told[i] = (struct rpc_group){ .has_kernel = true, .kernel = { .name = "scale" } };
	}
	s->waves = (struct target_waves){ .waves = s->wave, .n_waves = n };
}

static void look(struct scene *s, size_t n, bool all)
{
	const struct arguments_from from = { &s->waves, &s->queue, 1, all };

	TEST_EQ(arguments_fill(&s->set, &from, s->group, s->told, n, &s->missing), 0);
}

static void scene_deinit(struct scene *s)
{
	code_set_deinit(&s->set);
	symbols_cache_destroy(s->target.code_cache);
	rpc_arena_deinit(&s->arena);
	free(object);
	object = NULL;
}

/* @param data, n  What is to be told of scale(data, n); NULL: it is not known, for this reason. */
static void expect(const struct rpc_group *g, const char *data, const char *n, enum rpc_value_state why)
{
	const char *const values[] = { data, n }, *const names[] = { "data", "n" };

	TEST_EQ(g->has_arguments, true);
	TEST_EQ_FATAL(g->n_arguments, 2);
	for (size_t i = 0; i < 2; i++) {
		TEST_ROW_STR(i, g->arguments[i].name, names[i]);
		TEST_ROW_EQ(i, g->arguments[i].value != NULL, values[i] != NULL);
		if (values[i] && g->arguments[i].value)
			TEST_ROW_STR(i, g->arguments[i].value, values[i]);
		TEST_ROW_EQ(i, g->arguments[i].state, values[i] ? RPC_VALUE_STATE_OK : why);
	}
}

static void reads_memory_of_a_dispatch_that_lasts(void)
{
	struct scene s;

	scene_init(&s, 1);
	look(&s, 1, false);
	expect(&s.told[0], "0x1000002000", "-160", RPC_VALUE_STATE_OK);
	TEST_EQ(s.missing.n, 0);
	scene_deinit(&s);
}

/* The program may have written the arguments of another launch there. */
static void believes_no_memory_of_a_dispatch_that_is_over(void)
{
	for (int row = 0; row < 2; row++) {
		struct scene s;

		scene_init(&s, 1);
		memory.read_index = DISPATCH + 1;
		memory.has_index = row == 0;
		look(&s, 1, false);
		expect(&s.told[0], NULL, NULL, RPC_VALUE_STATE_UNAVAILABLE);
		TEST_EQ_FATAL(s.missing.n, 1);
		TEST_STR(s.missing.list[0], "arguments of scale: it had ended when they were read");
		scene_deinit(&s);
	}
}

static void prefers_what_the_stop_has_copied(void)
{
	static const uint8_t copied[] = { 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0 };
	struct scene s;

	scene_init(&s, 1);
	memory.read_index = DISPATCH + 1;
	s.copy = (struct target_arguments){ .queue_id = QUEUE, .dispatch = DISPATCH, .bytes = copied,
					    .size = sizeof(copied) };
	s.waves.arguments = &s.copy;
	s.waves.n_arguments = 1;
	look(&s, 1, false);
	expect(&s.told[0], "0x1", "2", RPC_VALUE_STATE_OK);
	scene_deinit(&s);
	/* Of another queue. */
	scene_init(&s, 1);
	s.copy.queue_id = QUEUE + 1;
	s.waves.arguments = &s.copy;
	s.waves.n_arguments = 1;
	look(&s, 1, false);
	expect(&s.told[0], "0x1000002000", "-160", RPC_VALUE_STATE_OK);
	scene_deinit(&s);
}

static void tells_what_cannot_be_read(void)
{
	struct scene s;

	scene_init(&s, 1);
	memory.kernarg_size = 0;
	look(&s, 1, false);
	expect(&s.told[0], NULL, NULL, RPC_VALUE_STATE_UNREADABLE);
	TEST_EQ_FATAL(s.missing.n, 1);
	TEST_STR(s.missing.list[0], "arguments of scale: their memory is not readable");
	scene_deinit(&s);
	/* Up to the end of a page. */
	scene_init(&s, 1);
	memory.kernarg_size = 10;
	look(&s, 1, false);
	expect(&s.told[0], "0x1000002000", NULL, RPC_VALUE_STATE_UNREADABLE);
	scene_deinit(&s);
	/* A device that has no other place for them, and a stop that did not get so far. */
	scene_init(&s, 1);
	s.wave[0].arguments = 0;
	look(&s, 1, false);
	expect(&s.told[0], NULL, NULL, RPC_VALUE_STATE_UNAVAILABLE);
	TEST_EQ_FATAL(s.missing.n, 1);
	TEST_STR(s.missing.list[0], "arguments of scale: they were not copied during the stop");
	scene_deinit(&s);
}

static void looks_at_a_few_dispatches_each_once(void)
{
	struct scene s;
	size_t n = 0;

	scene_init(&s, GROUPS_MAX);
	/* The second group is of the first one's dispatch. */
	s.wave[1].dispatch = DISPATCH;
	look(&s, GROUPS_MAX, false);
	for (size_t i = 0; i < GROUPS_MAX; i++)
		n += s.told[i].has_arguments;
	TEST_EQ(n, 9);
	TEST_EQ(s.told[9].has_arguments, false);
	CU_ASSERT_PTR_EQUAL(s.told[0].arguments, s.told[1].arguments);
	TEST_EQ(s.missing.n, 0);
	look(&s, GROUPS_MAX, true);
	TEST_EQ(s.told[9].has_arguments, true);
	scene_deinit(&s);
}

TEST_SUITE(worker_arguments, TEST(reads_memory_of_a_dispatch_that_lasts),
	   TEST(believes_no_memory_of_a_dispatch_that_is_over), TEST(prefers_what_the_stop_has_copied),
	   TEST(tells_what_cannot_be_read), TEST(looks_at_a_few_dispatches_each_once));
