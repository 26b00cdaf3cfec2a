/* SPDX-License-Identifier: MIT */
/* GPUs by index, queues by id, and the vendors' words. */
#include <errno.h>

#include "base/cleanup.h"
#include "base/out.h"
#include "ctl/document/gpu_names.h"
#include "ctl/document/queue_changes.h"
#include "ctl/document/vendor_words.h"
#include "testlib.h"

/* Ids as KFD makes them; that of the last one is also the index of another. */
static const struct rpc_device devices[] = {
	{ .gpu_id = 51187, .name = "AMD Instinct MI300X", .pci = "0000:03:00.0" },
	{ .gpu_id = 9, .name = "", .pci = "0000:43:00.0" },
	{ .gpu_id = 1, .name = "AMD Instinct MI300X", .pci = "0001:83:00.0" },
};

static void a_gpu_is_called_by_its_position(void)
{
	struct gpu_names g = { 0 };
	struct rpc_arena a;

	rpc_arena_init(&a, 0);
	gpu_names_set(&g, devices, TEST_COUNT(devices));
	TEST_STR(gpu_names_text(&g, &a, 51187), "0");
	TEST_STR(gpu_names_text(&g, &a, 1), "2");
	TEST_STR(gpu_names_text(&g, &a, 77), "id 77");
	TEST_STR(gpu_names_label(&g, &a, 51187), "GPU 0 (AMD Instinct MI300X)");
	TEST_STR(gpu_names_label(&g, &a, 9), "GPU 1");
	TEST_STR(gpu_names_label(&g, &a, 77), "GPU id 77");
	rpc_arena_deinit(&a);
}

static void devices_of_a_text_get_their_number(void)
{
	static const struct {
		const char *text, *want;
		size_t n;
	} rows[] = {
		{ "device 51187: lost", "GPU 0", 12 }, { "device 9", "GPU 1", 8 },  { "device 9.", "GPU 1", 8 },
		{ "device 77", "", 0 },		       { "device 9x", "", 0 },	    { "device 9.5", "", 0 },
		{ "device ", "", 0 },		       { "devices 9", "", 0 },	    { "device 99999999999", "", 0 },
		{ "device 9/x", "", 0 },
	};
	struct gpu_names g = { 0 };

	gpu_names_set(&g, devices, TEST_COUNT(devices));
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_out struct out o = { 0 };

		TEST_ROW_EQ(i, gpu_names_put(&g, &o, rows[i].text), rows[i].n);
		TEST_ROW_STR(i, o.data ? o.data : "", rows[i].want);
	}
}

static void an_index_comes_before_an_id(void)
{
	static const struct {
		const char *text;
		int r;
		uint32_t id;
	} rows[] = {
		{ "0", 0, 51187 },	      { "1", 0, 9 }, /* and not the one whose id is 1 */
		{ "2", 0, 1 },		      { "9", 0, 9 },
		{ "51187", 0, 51187 },	      { "0001:83:00.0", 0, 1 },
		{ "0000:03:00.0", 0, 51187 }, { "3", -ENODEV, 5 },
		{ "0000:03:00.1", -ENODEV, 5 }, { "", -EINVAL, 5 },
		{ "MI300X", -EINVAL, 5 },     { "-1", -EINVAL, 5 },
		{ "99999999999", -EINVAL, 5 },
	};
	struct gpu_names g = { 0 };

	gpu_names_set(&g, devices, TEST_COUNT(devices));
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		uint32_t id = 5;

		TEST_ROW_EQ(i, gpu_names_find(&g, rows[i].text, &id), rows[i].r);
		TEST_ROW_EQ(i, id, rows[i].id);
	}
}

static void too_many_gpus_have_no_index(void)
{
	static struct rpc_device many[GPU_NAMES_MAX + 1];
	struct gpu_names g = { 0 };

	for (uint32_t i = 0; i < TEST_COUNT(many); i++)
		many[i] = (struct rpc_device){ .gpu_id = 1000 + i };
	gpu_names_set(&g, many, TEST_COUNT(many));
	TEST_EQ(gpu_names_index(&g, 1000 + GPU_NAMES_MAX - 1), GPU_NAMES_MAX - 1);
	TEST_EQ(gpu_names_index(&g, 1000 + GPU_NAMES_MAX), -1);
}

static void words_go_both_ways(void)
{
	TEST_STR(vendor_word(RPC_VENDOR_NVIDIA, "waves"), "warps");
	TEST_STR(vendor_word(RPC_VENDOR_NVIDIA, "UNITS"), "SMs");
	TEST_STR(vendor_word(RPC_VENDOR_NVIDIA, "scratch"), "local");
	TEST_STR(vendor_word(RPC_VENDOR_NVIDIA, "kernel"), "kernel");
	TEST_STR(vendor_word(RPC_VENDOR_AMD, "waves"), "waves");
	TEST_STR(vendor_word_neutral("warps"), "waves");
	TEST_STR(vendor_word_neutral("shared"), "lds");
	TEST_STR(vendor_word_neutral("private"), "scratch");
	TEST_STR(vendor_word_neutral("waves"), "waves");
}

/* Whole words of a sentence are replaced, names that only contain one are not. */
static void sentences_have_the_vendors_words(void)
{
	static const struct {
		enum rpc_vendor vendor;
		const char *text, *want;
	} rows[] = {
		{ RPC_VENDOR_NVIDIA, "queue 0, unit 3 has no such wave now", "context 0, SM 3 has no such warp now" },
		{ RPC_VENDOR_NVIDIA, "dispatch 5 of queue 0: 8 waves  stopped.", "grid 5 of context 0: 8 warps  stopped." },
		{ RPC_VENDOR_NVIDIA, "at wave.cu:17 in wave_sum<lane> of /tmp/queue/x (wave)",
		  "at wave.cu:17 in wave_sum<lane> of /tmp/queue/x (wave)" },
		{ RPC_VENDOR_NVIDIA, "", "" },
		{ RPC_VENDOR_AMD, "queue 0, unit 3 has no such wave now", "queue 0, unit 3 has no such wave now" },
		{ 0, "the queues run again", "the queues run again" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_out struct out o = { 0 };

		vendor_sentence(&o, rows[i].vendor, rows[i].text);
		TEST_ROW_STR(i, o.data ? o.data : "", rows[i].want);
	}
}

/* Groups of a node name a thousand queues each time the page of watch is drawn: none of them looks at all. */
static void a_queue_is_found_by_halving(void)
{
	enum { QUEUES = 1000, HALVINGS = 10 };
	static struct rpc_queue_change queues[QUEUES + 1];
	const struct rpc_comparison cmp = { .queues = queues, .n_queues = QUEUES + 1 };
	auto_rpc_arena struct rpc_arena a;
	struct queue_changes c;
	size_t n, at;

	rpc_arena_init(&a, 0);
	/* In an order that is none, on two GPUs; the last one has the id of the first. */
	for (uint32_t i = 0; i < QUEUES; i++)
		queues[i] = (struct rpc_queue_change){ .gpu_id = 9 - i % 2, .queue_id = i * 7919 % QUEUES };
	queues[QUEUES] = queues[0];
	TEST_EQ_FATAL(queue_changes_init(&a, &cmp, &c), 0);
	for (uint32_t i = 0; i < QUEUES; i++) {
		at = queue_changes_find(&c, queues[i].gpu_id, queues[i].queue_id, &n);
		TEST_ROW_EQ(i, n, i ? 1 : 2);
		TEST_ROW_EQ(i, c.sorted[at], i);
		queue_changes_find(&c, queues[i].gpu_id ^ 1, queues[i].queue_id, &n);
		TEST_ROW_EQ(i, n, 0);
	}
	TEST_EQ(c.sorted[queue_changes_find(&c, queues[0].gpu_id, queues[0].queue_id, &n) + 1], QUEUES);
	TEST_EQ(c.looked <= 2 * QUEUES * (HALVINGS + 2) + HALVINGS + 3 + 1, true);
}

static void no_queue_is_found_in_none(void)
{
	const struct rpc_comparison cmp = { 0 };
	auto_rpc_arena struct rpc_arena a;
	struct queue_changes c;
	size_t n = 1;

	rpc_arena_init(&a, 0);
	TEST_EQ_FATAL(queue_changes_init(&a, &cmp, &c), 0);
	queue_changes_find(&c, 0, 0, &n);
	TEST_EQ(n, 0);
}

TEST_SUITE(ctl_names, TEST(a_gpu_is_called_by_its_position), TEST(an_index_comes_before_an_id),
	   TEST(devices_of_a_text_get_their_number),
	   TEST(too_many_gpus_have_no_index), TEST(words_go_both_ways),
	   TEST(sentences_have_the_vendors_words), TEST(no_queue_is_found_in_none),
	   TEST(a_queue_is_found_by_halving));
