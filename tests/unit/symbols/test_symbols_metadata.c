/* SPDX-License-Identifier: MIT */
#include "symbols/metadata/metadata.h"
#include "symbols/metadata/msgpack.h"
#include "testlib.h"

/* One item of every kind, with the bytes behind it that it takes. */
static void reads_every_kind(void)
{
	static const struct {
		const char *bytes;
		size_t size;
		enum msgpack_kind kind;
		uint64_t number;
		size_t n;
	} rows[] = {
		{ "\x00", 1, MSGPACK_UINT, 0, 0 },
		{ "\x7f", 1, MSGPACK_UINT, 127, 0 },
		{ "\xff", 1, MSGPACK_INT, UINT64_MAX, 0 },
		{ "\xe0", 1, MSGPACK_INT, (uint64_t)-32, 0 },
		{ "\xc0", 1, MSGPACK_NIL, 0, 0 },
		{ "\xc2", 1, MSGPACK_BOOL, 0, 0 },
		{ "\xc3", 1, MSGPACK_BOOL, 1, 0 },
		{ "\xcc\xff", 2, MSGPACK_UINT, 255, 0 },
		{ "\xcd\x12\x34", 3, MSGPACK_UINT, 0x1234, 0 },
		{ "\xce\x12\x34\x56\x78", 5, MSGPACK_UINT, 0x12345678, 0 },
		{ "\xcf\x12\x34\x56\x78\x9a\xbc\xde\xf0", 9, MSGPACK_UINT, 0x123456789abcdef0, 0 },
		{ "\xd0\x7f", 2, MSGPACK_UINT, 127, 0 },
		{ "\xd0\x80", 2, MSGPACK_INT, (uint64_t)-128, 0 },
		{ "\xd1\xff\xfe", 3, MSGPACK_INT, (uint64_t)-2, 0 },
		{ "\xd2\x80\x00\x00\x00", 5, MSGPACK_INT, (uint64_t)INT32_MIN, 0 },
		{ "\xd3\x80\x00\x00\x00\x00\x00\x00\x00", 9, MSGPACK_INT, UINT64_C(1) << 63, 0 },
		{ "\xca\x00\x00\x00\x00", 5, MSGPACK_FLOAT, 0, 0 },
		{ "\xcb\x00\x00\x00\x00\x00\x00\x00\x00", 9, MSGPACK_FLOAT, 0, 0 },
		{ "\xa0", 1, MSGPACK_STRING, 0, 0 },
		{ "\xa3xyz", 4, MSGPACK_STRING, 0, 3 },
		{ "\xd9\x03xyz", 5, MSGPACK_STRING, 0, 3 },
		{ "\xda\x00\x03xyz", 6, MSGPACK_STRING, 0, 3 },
		{ "\xdb\x00\x00\x00\x03xyz", 8, MSGPACK_STRING, 0, 3 },
		{ "\xc4\x02xy", 4, MSGPACK_BINARY, 0, 2 },
		{ "\xc5\x00\x02xy", 5, MSGPACK_BINARY, 0, 2 },
		{ "\xc6\x00\x00\x00\x02xy", 7, MSGPACK_BINARY, 0, 2 },
		{ "\xc7\x02Txy", 5, MSGPACK_EXTENSION, 0, 3 },
		{ "\xd4Tx", 3, MSGPACK_EXTENSION, 0, 2 },
		{ "\xd8Txxxxxxxxxxxxxxxx", 18, MSGPACK_EXTENSION, 0, 17 },
		{ "\x92\x01\x02", 3, MSGPACK_ARRAY, 0, 2 },
		{ "\xdc\x00\x02\x01\x02", 5, MSGPACK_ARRAY, 0, 2 },
		{ "\xdd\x00\x00\x00\x02\x01\x02", 7, MSGPACK_ARRAY, 0, 2 },
		{ "\x81\x01\x92\x02\x03", 5, MSGPACK_MAP, 0, 1 },
		{ "\xde\x00\x01\x01\x02", 5, MSGPACK_MAP, 0, 1 },
		{ "\xdf\x00\x00\x00\x01\x01\x02", 7, MSGPACK_MAP, 0, 1 },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct msgpack_item item;
		struct reader m;

		reader_init(&m, test_tail_dup(rows[i].bytes, rows[i].size), rows[i].size);
		TEST_ROW_EQ(i, msgpack_next(&m, &item), true);
		TEST_ROW_EQ(i, item.kind, rows[i].kind);
		TEST_ROW_EQ(i, item.number, rows[i].number);
		TEST_ROW_EQ(i, item.n, rows[i].n);
		msgpack_skip_inside(&m, &item);
		TEST_ROW_EQ(i, m.bad, false);
		TEST_ROW_EQ(i, msgpack_next(&m, &item), false);
		TEST_ROW_EQ(i, m.bad, false);

		/* One byte less is an error, now or when the inside is skipped. */
		reader_init(&m, test_tail_dup(rows[i].bytes, rows[i].size), rows[i].size - 1);
		if (rows[i].size > 1 && msgpack_next(&m, &item))
			msgpack_skip_inside(&m, &item);
		TEST_ROW_EQ(i, m.bad, rows[i].size > 1);
	}
}

/* Ten thousand arrays inside each other, and counts that promise more than there is. */
static void survives_nesting_and_lies(void)
{
	struct msgpack_item item;
	struct reader m;
	char deep[10001];

	memset(deep, 0x91, sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = 0;
	reader_init(&m, deep, sizeof(deep));
	TEST_EQ(msgpack_next(&m, &item), true);
	msgpack_skip_inside(&m, &item);
	TEST_EQ(m.bad, false);
	TEST_EQ(m.pos == m.size, true);
	reader_init(&m, "\xdd\xff\xff\xff\xff\x01", 6);
	TEST_EQ(msgpack_next(&m, &item), false);
	TEST_EQ(m.bad, true);
	reader_init(&m, "\xc1", 1);
	TEST_EQ(msgpack_next(&m, &item), false);
	TEST_EQ(m.bad, true);
}

static int stop_at_once(void *arg, const struct symbols_kernel *k)
{
	++*(int *)arg;
	return 42;
}

static const char note[] =
	"\x83\xae"
	"amdhsa.version\x92\x01\x02\xa1"
	"x\x81\xa1y\xc0\xae"
	"amdhsa.kernels\x92"
	"\x84\xa5.name\xa1"
	"a\xa7.symbol\xa4"
	"a.kd\xa5.args\x91\x81\xa5.name\xa1"
	"p\xab.vgpr_count\x10"
	"\x83\xa7.symbol\xa4"
	"b.kd\xab.sgpr_count\xff\xaf.wavefront_size\xd9\x01"
	"3";

static void finds_kernels(void)
{
	struct symbols_kernel k;
	int calls = 0;

	TEST_EQ_FATAL(symbols_metadata_find(note, sizeof(note) - 1, "a.kd", &k), 0);
	TEST_EQ(k.name_size, 1);
	TEST_EQ(k.name[0], 'a');
	TEST_EQ(k.vgprs, 16);
	TEST_EQ(k.sgprs, UINT32_MAX);
	/* Numbers of a wrong kind count as not said. */
	TEST_EQ_FATAL(symbols_metadata_find(note, sizeof(note) - 1, "b.kd", &k), 0);
	TEST_EQ(k.name_size, 0);
	TEST_EQ(k.sgprs, UINT32_MAX);
	TEST_EQ(k.wavefront_size, UINT32_MAX);
	TEST_EQ(symbols_metadata_find(note, sizeof(note) - 1, "c.kd", &k), -ENOENT);
	TEST_EQ(symbols_metadata_each(note, sizeof(note) - 1, stop_at_once, &calls), 42);
	TEST_EQ(calls, 1);
}

static int note_argument(void *arg, const struct symbols_argument *a)
{
	char *text = arg;
	size_t n = strlen(text);

	snprintf(text + n, 512 - n, "%.*s %.*s %.*s %d %d+%d;", (int)a->type_size, a->type, (int)a->name_size,
		 a->name, (int)a->value_kind_size, a->value_kind, a->kind, (int)a->offset, (int)a->size);
	return a->kind == SYMBOLS_ARGUMENT_HIDDEN ? 5 : 0;
}

static const char with_arguments[] =
	"\x81\xae"
	"amdhsa.kernels\x91\x82\xa7.symbol\xa4"
	"a.kd\xa5.args\x96"
	"\x85\xa5.name\xa4" "data\xaa.type_name\xa4" "int*\xa7.offset\x00\xa5.size\x08\xab.value_kind\xad" "global_buffer"
	"\x84\xa7.offset\x08\xa5.size\x04\xab.value_kind\xa8" "by_value\xa9.is_const\xc3"
	"\x83\xa7.offset\x0c\xa5.size\x04\xab.value_kind\xb6" "dynamic_shared_pointer"
	/* Numbers of a wrong kind, or that are too large, and a kind of tomorrow. */
	"\x83\xa7.offset\xff\xa5.size\xcf\x00\x00\x00\x01\x00\x00\x00\x00\xab.value_kind\xa6" "future"
	"\x80"
	"\x83\xa7.offset\x10\xa5.size\x08\xab.value_kind\xb6" "hidden_global_offset_x";

static void lists_arguments(void)
{
	const char *bytes = test_tail_dup(with_arguments, sizeof(with_arguments) - 1);
	struct symbols_kernel k;
	char text[512] = "";

	TEST_EQ_FATAL(symbols_metadata_find(bytes, sizeof(with_arguments) - 1, "a.kd", &k), 0);
	TEST_EQ(k.n_arguments, 6);
	TEST_EQ(symbols_metadata_arguments(&k, note_argument, text), 5);
	TEST_STR(text, "int* data global_buffer 1 0+8;  by_value 0 8+4;  dynamic_shared_pointer 2 12+4;"
		       "  future 5 -1+-1;   5 -1+-1;  hidden_global_offset_x 4 16+8;");
	/* A kernel without arguments. */
	TEST_EQ_FATAL(symbols_metadata_find(note, sizeof(note) - 1, "b.kd", &k), 0);
	TEST_EQ(symbols_metadata_arguments(&k, note_argument, text), 0);
	/* What is no map. */
	k.n_arguments = 1;
	k.arguments = (const uint8_t *)"\x01";
	k.arguments_size = 1;
	TEST_EQ(symbols_metadata_arguments(&k, note_argument, text), -EBADMSG);
	k.n_arguments = 2;
	k.arguments = (const uint8_t *)"\x80";
	TEST_EQ(symbols_metadata_arguments(&k, note_argument, text), -EBADMSG);
}

static void refuses_broken_notes(void)
{
	struct symbols_kernel k;

	for (size_t n = 0; n + 1 < sizeof(note); n++)
		TEST_ROW_EQ(n, symbols_metadata_find(test_tail_dup(note, n), n, "c.kd", &k),
			    -EBADMSG);
	TEST_EQ(symbols_metadata_find("\x90", 1, "c.kd", &k), -EBADMSG);
	TEST_EQ(symbols_metadata_find("\x80", 1, "c.kd", &k), -ENOENT);
}

TEST_SUITE(symbols_metadata, TEST(reads_every_kind), TEST(survives_nesting_and_lies),
	   TEST(finds_kernels), TEST(lists_arguments), TEST(refuses_broken_notes));
