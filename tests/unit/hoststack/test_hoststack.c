/* SPDX-License-Identifier: MIT */
/* Stacks of Python from memory that the test makes: tables, strings, lists, and what counts as a proof. */
#include "hoststack/layout.h"
#include "hoststack/line_table.h"
#include "hoststack/stack.h"
#include "hoststack/string.h"
#include "tests/unit/hoststack/image.h"
#include "testlib.h"

#define BASE UINT64_C(0x10000)
#define SIZE 0x8000

/* A process whose memory is this; a hook may change it between two reads. */
struct process {
	uint8_t bytes[SIZE];
	uint64_t reads;
	void (*between)(struct process *p);
	bool rests, rested;
};

static int read_bytes(void *ctx, const struct hoststack_piece *pieces, size_t n)
{
	struct process *p = ctx;

	if (image_read(p->bytes, SIZE, BASE, pieces, n) < 0)
		return -EFAULT;
	p->reads++;
	if (p->between)
		p->between(p);
	return 0;
}

static struct hoststack_memory memory_of(struct process *p)
{
	return (struct hoststack_memory){ .read = read_bytes, .ctx = p, .bytes_left = 1 << 26 };
}

static void put(struct process *p, size_t at, uint64_t value, size_t width)
{
	memcpy(p->bytes + at, &value, width);
}

static void put_str(struct process *p, size_t at, const char *text)
{
	put(p, at + 16, strlen(text), 8);
	put(p, at + 32, 1 << 2 | 1 << 5 | 1 << 6, 4);
	memcpy(p->bytes + at + 48, text, strlen(text));
}

/*
 * 3.11: thread state at 0x1000, cframe at 0x1200, data stack at 0x2000 with frames at 0x2018 and below it 0x2080, code
 * objects of a() at 0x4000 and b() at 0x4400.
 */
static void put_code(struct process *p, size_t at, const char *name)
{
	put(p, at + 16, 8, 8);
	put(p, at + 72, 10, 4);
	put(p, at + 112, BASE + at + 0x200, 8);
	put(p, at + 128, BASE + at + 0x280, 8);
	put(p, at + 136, BASE + at + 0x300, 8);
	put_str(p, at + 0x200, "f.py");
	put_str(p, at + 0x280, name);
	put(p, at + 0x300 + 16, 3, 8);
	memcpy(p->bytes + at + 0x300 + 32, "\xef\x04\x00", 3); /* Eight units: line + 2. */
}

static void put_frame(struct process *p, size_t at, size_t code, size_t previous)
{
	put(p, at + 32, BASE + code, 8);
	put(p, at + 48, previous ? BASE + previous : 0, 8);
	put(p, at + 56, BASE + code + 184 + 4, 8);
}

static struct process *make(void)
{
	struct process *p = calloc(1, sizeof(*p));

	put(p, 0x1000 + 56, BASE + 0x1200, 8);
	put(p, 0x1000 + 152, 77, 8);
	put(p, 0x1000 + 296, BASE + 0x2000, 8);
	put(p, 0x1200 + 8, BASE + 0x2018, 8);
	put(p, 0x2000 + 8, 0x1000, 8);
	put_frame(p, 0x2018, 0x4000, 0x2080);
	put_frame(p, 0x2080, 0x4400, 0);
	put_code(p, 0x4000, "a");
	put_code(p, 0x4400, "b");
	return p;
}

static bool rests(void *ctx, uint64_t tid)
{
	return ((struct process *)ctx)->rests;
}

static bool rested(void *ctx, uint64_t tid)
{
	return ((struct process *)ctx)->rested;
}

static const struct hoststack_thread thread = { .state = BASE + 0x1000, .tid = 5, .pthread = 77 };

static int read_stack(struct process *p, struct hoststack_reader *r, struct hoststack_memory *m,
		      struct hoststack_python *python, struct hoststack_stack *s)
{
	*m = memory_of(p);
	*python = (struct hoststack_python){ .layout = *hoststack_layout_row(11) };
	*r = (struct hoststack_reader){ .memory = m, .python = python, .watch = { rests, rested, p } };
	return hoststack_stack_read(r, &thread, s);
}

#define READ_STACK(p)                       \
	struct hoststack_reader r;              \
	struct hoststack_memory m;              \
	struct hoststack_python python;         \
	struct hoststack_stack s;               \
	TEST_EQ(read_stack(p, &r, &m, &python, &s), 0)

static void frames_have_names(void)
{
	auto_free struct process *p = make();

	p->rests = p->rested = true;
	READ_STACK(p);
	TEST_EQ_FATAL(s.n, 2);
	CU_ASSERT_STRING_EQUAL(s.places[0].function, "a");
	CU_ASSERT_STRING_EQUAL(s.places[1].function, "b");
	CU_ASSERT_STRING_EQUAL(s.places[1].file, "f.py");
	TEST_EQ(s.places[0].line, 12);
	TEST_EQ(s.proof, HOSTSTACK_NOT_SCHEDULED);
	TEST_EQ(s.is_cut, false);
	hoststack_reader_deinit(&r);
}

static void a_thread_that_ran_is_not_certain(void)
{
	auto_free struct process *p = make();

	p->rests = true;
	READ_STACK(p);
	TEST_EQ(s.proof, HOSTSTACK_TWO_READINGS);
	hoststack_reader_deinit(&r);
}

/* The thread calls from another place each time: no reading equals the one before, nor is any torn. */
static void moves(struct process *p)
{
	put(p, 0x2018 + 56, BASE + 0x4000 + 184 + 2 * (p->reads % 7), 8);
}

static void one_reading_is_told_as_one(void)
{
	auto_free struct process *p = make();

	p->between = moves;
	READ_STACK(p);
	CU_ASSERT(s.proof == HOSTSTACK_ONE_READING || s.proof == HOSTSTACK_TWO_READINGS);
	hoststack_reader_deinit(&r);
}

/* The caller is a frame outside of the data stack that is another one each time: two moments in one stack. */
static void wanders(struct process *p)
{
	size_t at = 0x5000 + 0x80 * (p->reads % 97);

	put_frame(p, at, 0x4400, 0);
	put(p, 0x2018 + 48, BASE + at, 8);
}

static void frames_of_two_moments_are_torn(void)
{
	auto_free struct process *p = make();

	p->between = wanders;
	READ_STACK(p);
	TEST_EQ(s.proof, HOSTSTACK_TORN);
	hoststack_reader_deinit(&r);
}

static void what_makes_no_sense_is_no_frame(void)
{
	static const struct {
		size_t at;
		uint64_t value;
		size_t n;
	} rows[] = {
		{ 0x2080 + 48, BASE + 0x2018, 2 },    /* A circle. */
		{ 0x2080 + 32, 0x10, 1 },	      /* No code object. */
		{ 0x2080 + 56, BASE, 1 },	      /* Not an instruction of its own. */
		{ 0x4400 + 128, BASE + SIZE - 8, 1 }, /* No name. */
		{ 0x4400 + 136, UINT64_MAX, 1 },      /* No lines. */
		{ 0x4400 + 16, UINT64_MAX / 2, 1 },   /* So long is no function. */
		{ 0x4400 + 0x280 + 16, UINT64_MAX, 1 },
		{ 0x4400 + 0x280 + 32, 7 << 2, 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		auto_free struct process *p = make();

		p->rests = p->rested = true;
		put(p, rows[i].at, rows[i].value, 8);
		READ_STACK(p);
		TEST_EQ(s.n, rows[i].n);
		TEST_EQ(s.proof, HOSTSTACK_TORN);
		CU_ASSERT(s.is_cut);
		hoststack_reader_deinit(&r);
	}
}

static void lines_of_three_formats(void)
{
	static const uint8_t increments[] = { 4, 1, 6, 0xfe, 2, 3 };
	static const uint8_t ranges[] = { 4, 1, 0, 5, 6, 0x80, 2, 1 };
	static const uint8_t entries[] = { 0x80 | 11 << 3 | 1, 0, 0, 0x80 | 13 << 3, 5, 0x80 | 14 << 3, 4, 0, 1, 1,
					   0x80 | 15 << 3, 0x80, 0 };

	TEST_EQ(hoststack_line(8, increments, sizeof(increments), 3, 10), 10);
	TEST_EQ(hoststack_line(8, increments, sizeof(increments), 4, 10), 11);
	TEST_EQ(hoststack_line(9, increments, sizeof(increments), 10, 10), 9);
	TEST_EQ(hoststack_line(9, increments, sizeof(increments), 500, 10), 12);
	TEST_EQ(hoststack_line(10, ranges, sizeof(ranges), 0, 10), 11);
	TEST_EQ(hoststack_line(10, ranges, sizeof(ranges), 6, 10), 0);
	TEST_EQ(hoststack_line(10, ranges, sizeof(ranges), 10, 10), 17);
	TEST_EQ(hoststack_line(11, entries, sizeof(entries), 0, 10), 11);
	TEST_EQ(hoststack_line(11, entries, sizeof(entries), 4, 10), 9);
	TEST_EQ(hoststack_line(12, entries, sizeof(entries), 6, 10), 11);
	TEST_EQ(hoststack_line(13, entries, sizeof(entries), 8, 10), 0);
	TEST_EQ(hoststack_line(13, entries, sizeof(entries), 10, 10), 11);
	TEST_EQ(hoststack_line(13, entries, sizeof(entries), -2, 10), 10);
	/* Cut anywhere it ends. */
	for (size_t n = 0; n < sizeof(entries); n++)
		hoststack_line(11, entries, n, 1000, 10);
}

static void characters_become_utf8(void)
{
	static const uint8_t latin[] = { 'm', 0xe4, 0 };
	static const uint16_t wide[] = { 0x20ac, 0xdc80, 0xd800 };
	static const uint32_t full[] = { 0x1f600, 0x110000 };
	auto_free char *a = hoststack_utf8(latin, 3, 1), *b = hoststack_utf8((const uint8_t *)wide, 3, 2),
		       *c = hoststack_utf8((const uint8_t *)full, 2, 4);

	CU_ASSERT_STRING_EQUAL(a, "m\xc3\xa4\xef\xbf\xbd");
	CU_ASSERT_STRING_EQUAL(b, "\xe2\x82\xac\\x80\xef\xbf\xbd");
	CU_ASSERT_STRING_EQUAL(c, "\xf0\x9f\x98\x80\xef\xbf\xbd");
}

static void tables_are_checked(void)
{
	uint8_t table[HOSTSTACK_TABLE_MAX] = "xdebugpy";
	struct hoststack_layout l;
	uint64_t version = 0x030d12f0;

	memcpy(table + 8, &version, 8);
	CU_ASSERT(hoststack_layout_is_table(table, sizeof(table)));
	TEST_EQ(hoststack_layout_read(table, sizeof(table), &l), -EBADMSG);
	memset(table + 24, 0xff, sizeof(table) - 24);
	TEST_EQ(hoststack_layout_read(table, sizeof(table), &l), -EBADMSG);
	TEST_EQ(hoststack_layout_table_size(0x030d12f0), 584);
	TEST_EQ(hoststack_layout_table_size(0x030e0af0), 760);
	TEST_EQ(hoststack_layout_table_size(0x030f02f0), 888);
	/* A pre-release, and the future. */
	TEST_EQ(hoststack_layout_table_size(0x030f00b1), 0);
	TEST_EQ(hoststack_layout_table_size(0x031000f0), 0);
	version = 0x031000f0;
	memcpy(table + 8, &version, 8);
	TEST_EQ(hoststack_layout_read(table, sizeof(table), &l), -ENOTSUP);
}

/* PyASCIIObject.state of "x" in each build, compiled with the headers of 3.13.5, 3.14.10 and 3.15.2. */
static void state_of_a_string_is_where_its_build_has_it(void)
{
	static const struct {
		uint8_t minor;
		bool free_threaded;
		uint32_t state;
	} builds[] = { { 12, false, 0x64 }, { 13, false, 0x64 }, { 13, true, 0x64 },  { 14, false, 0x64 },
		       { 14, true, 0x1900 }, { 15, false, 0x64 }, { 15, true, 0x1900 } };
	auto_free struct process *p = make();
	struct hoststack_memory m = memory_of(p);

	put(p, 0x6000 + 16, 1, 8);
	put(p, 0x6000 + 56, 'x', 1);
	for (size_t i = 0; i < ARRAY_SIZE(builds); i++) {
		struct hoststack_layout l = { .minor = builds[i].minor, .free_threaded = builds[i].free_threaded,
					      .object_type = 24, .str_length = 16, .str_state = 48, .str_ascii = 56,
					      .str_compact = 72 };
		auto_free char *text = NULL;

		put(p, 0x6000 + 48, builds[i].state, 4);
		TEST_EQ(hoststack_string(&m, &l, BASE + 0x6000, 0, &text), 0);
		CU_ASSERT_STRING_EQUAL(text, "x");
		/* The bits of the other kind of build make no sense. */
		put(p, 0x6000 + 48, builds[i].state ^ 0x1964, 4);
		TEST_EQ(hoststack_string(&m, &l, BASE + 0x6000, 0, &text), -EBADMSG);
	}
}

/* A free-threaded interpreter has a lock where it was asked for one, and only then somebody holds it. */
static void lock_of_a_free_threaded_interpreter(void)
{
	auto_free struct process *p = make();
	struct hoststack_memory m = memory_of(p);
	struct hoststack_python python = {
		.runtime = BASE,
		.layout = { .minor = 14, .has_table = true, .free_threaded = true, .interpreters = 40, .interp_next = 8,
			    .interp_id = 16, .interp_threads = 24, .gil = 32, .lock_holder = 16, .lock_locked = 24,
			    .thread_size = 64, .thread_next = 8, .thread_interp = 16, .thread_id = 24,
			    .thread_native_id = 32 },
	};

	put(p, 40, BASE + 0x6000, 8);
	put(p, 0x6000 + 24, BASE + 0x1000, 8);
	put(p, 0x6000 + 32, BASE + 0x6800, 8);
	put(p, 0x1000 + 8, 0, 8);
	put(p, 0x1000 + 16, BASE + 0x6000, 8);
	put(p, 0x6800 + 16, BASE + 0x1000, 8);
	put(p, 0x6800 + 24, 1, 4);
	for (uint32_t enabled = 0; enabled < 2; enabled++) {
		struct hoststack_threads t;

		put(p, 0x6800, enabled, 4);
		TEST_EQ(hoststack_threads_list(&m, &python, &t), 0);
		TEST_EQ(t.n, 1);
		TEST_EQ(t.has_lock, enabled);
		TEST_EQ(t.holder, enabled ? BASE + 0x1000 : 0);
		hoststack_threads_free(&t);
	}
	/* Where the lock's members make no sense, nobody is said to hold it. */
	python.layout.lock_holder = python.layout.lock_locked = 0;
	struct hoststack_threads t;

	TEST_EQ(hoststack_threads_list(&m, &python, &t), 0);
	CU_ASSERT(!t.has_lock && !t.holder);
	hoststack_threads_free(&t);
}

static void reading_ends_with_its_bytes(void)
{
	auto_free struct process *p = make();
	struct hoststack_memory m = memory_of(p);
	uint64_t v;

	m.bytes_left = 15;
	TEST_EQ(hoststack_read_u64(&m, BASE, &v), 0);
	TEST_EQ(hoststack_read_u64(&m, BASE, &v), -EDQUOT);
	m.bytes_left = 100;
	m.deadline_ns = 1;
	TEST_EQ(hoststack_read_u64(&m, BASE, &v), -ETIME);
	TEST_EQ(hoststack_read(&m, UINT64_MAX - 3, &v, 8), -EFAULT);
}

TEST_SUITE(hoststack, TEST(frames_have_names), TEST(a_thread_that_ran_is_not_certain), TEST(one_reading_is_told_as_one),
	   TEST(frames_of_two_moments_are_torn), TEST(what_makes_no_sense_is_no_frame), TEST(lines_of_three_formats),
	   TEST(characters_become_utf8), TEST(tables_are_checked),
	   TEST(state_of_a_string_is_where_its_build_has_it), TEST(lock_of_a_free_threaded_interpreter),
	   TEST(reading_ends_with_its_bytes));
