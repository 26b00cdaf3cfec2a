/* SPDX-License-Identifier: MIT */
/* Expressions, register maps and call frames as bytes: what becomes of each in a made-up wave. */
#include <stdio.h>

#include "values/evaluate.h"
#include "testlib.h"
#include "tests/values/state_names.h"

/* Register n of a file has n in its lowest byte, the file above it, and the lane on top. */
static int read_register(void *context, uint32_t lane, enum values_file file, uint32_t number,
			 uint32_t *ret)
{
	bool by_lane = file == VALUES_FILE_VECTOR || file == VALUES_FILE_REGISTER;

	*ret = (by_lane ? lane << 24 : 0) | (uint32_t)file << 16 | number;
	if (file == VALUES_FILE_SCALAR && number == 33)
		*ret = 0x1c00;
	if (file == VALUES_FILE_REGISTER && (number == 4 || number == 44))
		*ret = 0x44;
	return number == 99 ? -EIO : 0;
}

/* The lowest bytes of an address tell it, and the space is on top. */
static int read_memory(void *context, uint32_t lane, enum values_space space, uint64_t address,
		       void *ret, size_t size)
{
	uint8_t *to = ret;

	for (size_t i = 0; i < size; i++)
		to[i] = i % 4 == 3 ? (uint8_t)space : (uint8_t)(address >> i % 4 * 8);
	return address == 0xbad ? -EIO : 0;
}

static int find_type(void *context, uint64_t offset, struct values_base_type *ret)
{
	*ret = (struct values_base_type){ .size = 1, .is_signed = offset == 0x2b };
	return offset == 0x2b || offset == 0x2c ? 0 : -ENOENT;
}

struct row {
	const char *name, *expression; /* Hexadecimal. */
	size_t size;
	enum values_state state;
	const char *bytes; /* "--": unknown. */
	const char *place;
	bool marked, wave32, flat, cuda;
	uint64_t class;
};

#define TAIL "311618" /* lit1, swap, xderef */
#define V2   "821400" /* 2562 */
#define S2   "22"

/* AMD's own way to name 8 bytes into the frame of s33, in private memory. */
#define LLVM_FRAME "9041369f940416940416259f94041005e902389f9404e904"

static const struct row rows[] = {
	{ "stack of buffer scratch", "9110" TAIL, 4, VALUES_OK, "80000001", "private 0x80" },
	{ "the same in wave32", "9110" TAIL, 4, VALUES_OK, "f0000001", "private 0xf0", .wave32 = true },
	{ "stack of flat scratch", "9110" TAIL, 4, VALUES_OK, "101c0001", "private 0x1c10", .flat = true },
	{ "stack without a tail", "9110", 4, VALUES_OK, "80000001", "private 0x80" },
	{ "its address or its content", "9110" TAIL "9f", 4, VALUES_UNAVAILABLE, "--------", NULL },
	{ "vector register", "90821493", 4, VALUES_UNAVAILABLE, "--------", NULL },
	{ "vector register, whole", "908214", 4, VALUES_OK, "02000105", "v2" },
	{ "too small for its type", "908214", 8, VALUES_PARTIAL, "02000105--------", "v2" },
	{ "of the other wave size", "908214", 4, VALUES_UNAVAILABLE, "--------", "?", .wave32 = true },
	{ "vector register of wave32", "90820c", 4, VALUES_OK, "02000105", "v2", .wave32 = true },
	{ "content behind a tail", "92821400" TAIL, 4, VALUES_OK, "02000105", "v2" },
	{ "an offset from it", "92821404" TAIL, 4, VALUES_UNAVAILABLE, "--------", NULL },
	{ "a stack pointer's content", "924100" TAIL, 4, VALUES_UNAVAILABLE, "--------", NULL },
	{ "an address in a register", "92821400", 4, VALUES_UNAVAILABLE, "--------", NULL },
	{ "a number from a register", "92821400" "0807" "22", 4, VALUES_UNAVAILABLE, "--------", NULL },
	{ "a number without a value", "0807", 4, VALUES_UNAVAILABLE, "--------", NULL },
	{ "AMD's number without a value", "0807", 4, VALUES_OK, "07000000", "global 0x7", .marked = true },
	{ "an offset from an address", "a101" "2304", 4, VALUES_OK, "04120000", "global 0x1204" },
	{ "converted", "92821400a82ba82c" TAIL "9f", 4, VALUES_OK, "02000000", "constant" },
	{ "converted to nothing known", "92821400a811" TAIL "9f", 4, VALUES_UNAVAILABLE, "--------", NULL },
	{ "constant", "1179" TAIL "9f", 8, VALUES_OK, "f9ffffffffffffff", "constant" },
	{ "constant without a value", "1179" TAIL, 8, VALUES_UNAVAILABLE, "----------------", NULL },
	{ "negative byte", "09f0a82b9f", 4, VALUES_OK, "f0ffffff", "constant" },
	{ "shared memory", "a101321618", 4, VALUES_OK, "00020002", "shared 0x200" },
	{ "global memory", "a101", 4, VALUES_OK, "00120000", "global 0x1200" },
	{ "no such address", "a109", 4, VALUES_UNAVAILABLE, "--------", NULL },
	{ "pieces", "9022930490239304", 8, VALUES_OK, "0200000003000000", "s2:s3" },
	{ "a lost piece", "93049022" "9304", 8, VALUES_PARTIAL, "--------02000000", "-:s2" },
	{ "bits", "90229d04009024" "9d0400", 1, VALUES_OK, "42", "s2:s4" },
	{ "bits of a register", "90219d0800", 1, VALUES_OK, "01", "s1" },
	{ "implicit value", "9e03010203", 3, VALUES_OK, "010203", "constant" },
	{ "short implicit value", "9e03010203", 4, VALUES_PARTIAL, "010203--", "constant" },
	{ "64-bit exec", "9011", 8, VALUES_OK, "0000040001000400", "exec" },
	{ "unreadable memory", "03ad0b000000000000", 4, VALUES_OK, "ad1b0000", "global 0x1bad" },
	{ "arithmetic", "08079f", 1, VALUES_OK, "07", "constant" },
	{ "division", "0907311c1f0802" "1b9f", 4, VALUES_OK, "fdffffff", "constant" },
	{ "division by zero", "0807301b9f", 4, VALUES_UNAVAILABLE, "--------", NULL },
	{ "wide shifts", "0807" "0841" "24" "9f", 4, VALUES_OK, "00000000", "constant" },
	{ "loop that ends", "35311c1228faff9f", 1, VALUES_OK, "00", "constant" },
	{ "loop without end", "2ffdff", 4, VALUES_UNAVAILABLE, "--------", NULL },
	{ "empty stack", "22", 4, VALUES_UNAVAILABLE, "--------", NULL },
	{ "cut short", "03ad0b", 4, VALUES_UNAVAILABLE, "--------", NULL },
	{ "call", "98000000", 4, VALUES_UNAVAILABLE, "--------", NULL },
	{ "entry value", "a301509f", 4, VALUES_UNAVAILABLE, "--------", NULL },
	{ "nothing", "", 4, VALUES_OPTIMISED_OUT, "--------", "-" },

	{ "AMD's stack", LLVM_FRAME, 4, VALUES_OK, "78000001", "private 0x78", .marked = true },
	{ "AMD's stack, unmarked", LLVM_FRAME, 4, VALUES_OK, "78000001", "private 0x78" },
	{ "AMD's shared memory", "08203" "3e902", 4, VALUES_OK, "20000002", "shared 0x20", .marked = true },
	{ "AMD's lane of a row", "908214e903341ee904", 4, VALUES_OK, "02000105", "v2", .marked = true },
	{ "AMD's first lane", "908214", 4, VALUES_OK, "02000100", "v2", .marked = true },
	{ "AMD's offset", "9024e90502", 2, VALUES_OK, "0000", "s4", .marked = true },
	{ "AMD's bit offset", "902431e906", 1, VALUES_OK, "02", "s4", .marked = true },
	{ "AMD's undefined", "e908", 4, VALUES_OPTIMISED_OUT, "--------", "-", .marked = true },
	{ "AMD's entry register", "e90722", 4, VALUES_NOT_SAVED, "--------", "-", .marked = true },
	{ "AMD's based address", "35e909" "2404", 4, VALUES_OK, "08000001", "private 0x8", .marked = true },
	{ "AMD's pieces in pieces", "90249302e90a9302" "90259302", 4, VALUES_OK, "04000500", "s4:s5", .marked = true },
	{ "AMD's extension", "9024e90b2002", 8, VALUES_OK, "0400000004000000", "s4:s4", .marked = true },
	{ "AMD's selection", "908114908214" "08" "02" "e90c2002", 8, VALUES_OK, "0100010002000101", "v1:v2",
	  .marked = true },
	{ "AMD's older numbers", "0820" "33" "e1", 4, VALUES_OK, "20000002", "shared 0x20", .marked = true },
	{ "older numbers, unmarked", "082033e1", 4, VALUES_UNAVAILABLE, "--------", NULL },
	{ "overlay has no number yet", "e90d", 4, VALUES_UNAVAILABLE, "--------", NULL, .marked = true },

	{ "CUDA's local memory", "91709696969696969623" "04", 4, VALUES_OK, "f4ffff01", "private 0xfffff4",
	  .cuda = true, .class = 6 },
	{ "CUDA's shared memory", "030004000000000000", 4, VALUES_OK, "00040002", "shared 0x400", .cuda = true, .class = 8 },
	{ "CUDA's parameter", "031002000000000000", 4, VALUES_OK, "10020004", "parameter 0x210", .cuda = true, .class = 7 },
	{ "CUDA's constant", "031000000000000000", 4, VALUES_OK, "10000003", "constant 0x10", .cuda = true, .class = 4 },
	{ "no such class", "031000000000000000", 4, VALUES_UNAVAILABLE, "--------", NULL, .cuda = true, .class = 9 },
	{ "physical register", "90b2a401", 4, VALUES_OK, "02000705", "R2", .cuda = true },
	{ "AMD's operation in CUDA", "e908", 4, VALUES_UNAVAILABLE, "--------", NULL, .cuda = true },
};

static size_t from_hex(const char *hex, uint8_t *to)
{
	size_t n = 0;
	unsigned byte;

	for (; sscanf(hex + n * 2, "%2x", &byte) == 1; n++)
		to[n] = (uint8_t)byte;
	return n;
}

static void to_hex(const uint8_t *data, const uint8_t *known, size_t n, char *to)
{
	*to = '\0';
	for (size_t i = 0; i < n; i++)
		snprintf(to + i * 2, 3, known[i] ? "%02x" : "--", data[i]);
}

static void expressions_mean_what_the_compilers_mean(void)
{
	static const uint64_t addresses[] = { 0x100, 0x200 };
	static const uint8_t amd_base[] = { 0x90, 0x41 }, cuda_base[] = { 0x9c };
	static struct values_place p;
	static struct values_frame f;

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		const struct row *r = &rows[i];
		struct values_machine m = { .read_register = read_register, .read_memory = read_memory,
					    .lanes = r->wave32 ? 32 : 64, .stack_counts_waves = !r->flat };
		struct values_scene s = { .frame = &f, .is_marked = r->marked, .address_class = r->class,
					  .addresses = (const uint8_t *)addresses, .n_addresses = 2,
					  .find_type = find_type };
		auto_out struct out place = { 0 };
		uint8_t data[64], known[64];
		struct values_bytes b;
		char hex[129];
		uint8_t *x;
		size_t n;

		f = (struct values_frame){ .machine = &m, .lane = 5, .is_cuda = r->cuda, .has_cfa = true,
					   .cfa = 0x1000000, .load_bias = r->cuda ? 0 : 0x1000 };
		s.frame_base = r->cuda ? (struct values_operations){ cuda_base, 1 } :
					 (struct values_operations){ amd_base, 2 };
		n = from_hex(r->expression, data);
		x = test_tail_dup(data, n);
		values_evaluate(&s, (struct values_operations){ x, n }, &p);
		values_place_read(&p, &f, r->size, data, known, &b);
		to_hex(data, known, r->size, hex);
		values_place_print(&p, &f, &place);
		if (strcmp(hex, r->bytes) || b.state != r->state)
			fprintf(stderr, "  %s: %s\n", r->name, b.reason ? b.reason : "");
		TEST_ROW_STR(i, state_name(b.state), state_name(r->state));
		TEST_ROW_STR(i, hex, r->bytes);
		if (r->place)
			TEST_ROW_STR(i, place.data, r->place);
		CU_ASSERT(b.state != VALUES_UNAVAILABLE || b.reason);
	}
}

/* ------------------------------------------------------------------ registers of PTX --------- */

struct words {
	uint8_t data[1024];
	size_t n;
};

static void add_u32(struct words *w, uint32_t v)
{
	memcpy(w->data + w->n, &v, 4);
	w->n += 4;
}

static void add_text(struct words *w, const char *s)
{
	memcpy(w->data + w->n, s, strlen(s) + 1);
	w->n += strlen(s) + 1;
}

static void add_entry(struct words *w, uint32_t part, const char *name, uint32_t place, uint32_t first,
		      uint32_t last)
{
	add_u32(w, part);
	add_text(w, name);
	add_u32(w, place);
	add_u32(w, first);
	add_u32(w, last);
}

/* Two functions have a %rd1; in one of them everything that can happen to it happens. */
static struct register_map *make_map(void)
{
	struct words w = { .n = 0 };
	struct register_map *m = NULL;

	add_text(&w, "other");
	add_u32(&w, 1);
	add_entry(&w, 0, "%rd1", 0x05000001, 0, 0xfff);
	add_text(&w, "_Z5scalePi");
	add_u32(&w, 9);
	add_entry(&w, 0, "%rd1", 0x05000006, 0x10, 0x1f0);
	add_entry(&w, 1, "%rd1", 0x05000007, 0x10, 0x80);
	add_entry(&w, 0, "%r1", 0x05000002, 0x00, 0x40);
	add_entry(&w, 0, "%r1", 0x05000003, 0x40, 0x80);
	add_entry(&w, 0, "%r2", 0x05000004, 0x00, 0x40);
	add_entry(&w, 0, "%r2", 0x0500002c, 0x00, 0x40);
	add_entry(&w, 0, "%rs1", 0x04000005, 0x00, 0x40);
	add_entry(&w, 0, "%r3", 0x07010008, 0x00, 0x40);
	add_entry(&w, 0, "%__cuda_sm_rem", 0x05000009, 0x00, 0x40);
	TEST_EQ_FATAL(register_map_create(test_tail_dup(w.data, w.n), w.n, &m), 0);
	return m;
}

static const struct {
	uint64_t name, offset;
	size_t size;
	enum values_state state;
	const char *bytes, *place;
} ptx_rows[] = {
	{ 0x25726431, 0x10, 8, VALUES_OK, "0600070507000705", "R6:R7" },
	{ 0x25726431, 0x80, 8, VALUES_OK, "0600070507000705", "R6:R7" }, /* Ends are inside. */
	{ 0x25726431, 0x90, 8, VALUES_UNAVAILABLE, "----------------", NULL }, /* Half of it. */
	{ 0x25726431, 0x00, 8, VALUES_UNAVAILABLE, "----------------", NULL },
	{ 0x257231, 0x30, 4, VALUES_OK, "02000705", "R2" },
	{ 0x257231, 0x40, 4, VALUES_UNAVAILABLE, "--------", NULL }, /* Two that differ. */
	{ 0x257232, 0x40, 4, VALUES_OK, "44000000", "R4" },	     /* Two that agree. */
	{ 0x257231, 0x30, 1, VALUES_OK, "02", "R2" },
	{ 0x25727331, 0x30, 2, VALUES_OK, "0705", "R2.H1" },
	{ 0x257233, 0x30, 4, VALUES_OK, "09000701", "private [R1+0x8]" },
	{ 0x257239, 0x30, 4, VALUES_UNAVAILABLE, "--------", NULL },
};

static void registers_of_ptx_are_where_the_map_says(void)
{
	struct values_machine m = { .read_register = read_register, .read_memory = read_memory, .lanes = 32 };
	struct register_map *map = make_map();
	static struct values_place p;
	static struct values_frame f;

	for (size_t i = 0; i < TEST_COUNT(ptx_rows); i++) {
		auto_out struct out place = { 0 };
		uint8_t data[8], known[8];
		struct values_bytes b;
		char hex[17];

		f = (struct values_frame){ .machine = &m, .lane = 5, .is_cuda = true, .registers = map,
					   .function = "_Z5scalePi(int*)", .function_start = 0x7000,
					   .pc = 0x7000 + ptx_rows[i].offset };
		p = (struct values_place){ .n = 1, .used = 1 };
		p.pieces[0] = (struct values_piece){ .kind = VALUES_PIECE_REGISTER, .bits = VALUES_REST,
						     .number = ptx_rows[i].name };
		values_place_read(&p, &f, ptx_rows[i].size, data, known, &b);
		to_hex(data, known, ptx_rows[i].size, hex);
		values_place_print(&p, &f, &place);
		TEST_ROW_STR(i, hex, ptx_rows[i].bytes);
		TEST_ROW_EQ(i, b.state, ptx_rows[i].state);
		if (ptx_rows[i].place)
			TEST_ROW_STR(i, place.data, ptx_rows[i].place);
	}
	register_map_destroy(map);
}

static void broken_maps_are_refused(void)
{
	struct words w = { .n = 0 };
	struct register_map *m = NULL;

	add_text(&w, "f");
	add_u32(&w, 0x10000000);
	add_entry(&w, 0, "%r1", 0x05000002, 0, 16);
	TEST_EQ(register_map_create(test_tail_dup(w.data, w.n), w.n, &m), -EBADMSG);
	w.data[2] = 1;
	w.data[5] = 0;
	TEST_EQ(register_map_create(test_tail_dup(w.data, w.n - 1), w.n - 1, &m), -EBADMSG);
	TEST_EQ_FATAL(register_map_create(test_tail_dup(w.data, w.n), w.n, &m), 0);
	register_map_destroy(m);
}

/* ------------------------------------------------------------------ call frames -------------- */

/* As ptxas writes them: 64-bit lengths, and numbers with the kind of register on top. */
static struct call_frame_table *make_frames(void)
{
	/* version 3, "", 4, -4, R20; def_cfa R1 0, undefined R2 */
	static const char cie[] = "ffffffff" "1900000000000000" "ffffffffffffffff"
				  "0300047c948080280c818080280007828080280000";
	/*
	 * 0x7000, 0x200 bytes: at 0x20 def_cfa_offset 32, R3 at -8 (offset_extended 2), R4 in R3; at 0x40
	 * R3 restored
	 */
	static const char fde[] = "ffffffff" "3000000000000000" "0000000000000000"
				  "0070000000000000" "0002000000000000"
				  "48" "0e20" "058380802802" "0984808028838080" "28" "48" "068380802800";
	struct call_frame_table *t = NULL;
	uint8_t data[256];
	size_t n = from_hex(cie, data), m;

	data[4] = (uint8_t)(n - 12);
	m = from_hex(fde, data + n);
	data[n + 4] = (uint8_t)(m - 12);
	TEST_EQ_FATAL(call_frame_create(test_tail_dup(data, n + m), n + m, &t), 0);
	return t;
}

static void callers_have_the_registers_that_callees_saved(void)
{
	struct values_machine m = { .read_register = read_register, .read_memory = read_memory, .lanes = 32 };
	struct call_frame_table *t = make_frames();
	static struct values_frame inner, outer;
	uint32_t v;

	inner = (struct values_frame){ .machine = &m, .lane = 5, .is_cuda = true, .pc = 0x7020 };
	values_frame_unwind(&inner, t);
	CU_ASSERT_FATAL(inner.has_cfa);
	TEST_EQ(inner.cfa, 0x05070001 + 32);
	outer = (struct values_frame){ .machine = &m, .lane = 5, .is_cuda = true, .pc = 0x7100, .callee = &inner };
	TEST_EQ(values_frame_register(&outer, VALUES_FILE_REGISTER, 2, &v), -ENODATA);
	TEST_EQ(values_frame_register(&outer, VALUES_FILE_REGISTER, 3, &v), 0);
	TEST_EQ(v, 0x01070019); /* Private memory at the frame's address - 8. */
	TEST_EQ(values_frame_register(&outer, VALUES_FILE_REGISTER, 4, &v), 0);
	TEST_EQ(v, 0x05070003);
	TEST_EQ(values_frame_register(&outer, VALUES_FILE_REGISTER, 1, &v), 0);
	TEST_EQ(v, 0x05070021);
	TEST_EQ(values_frame_register(&outer, VALUES_FILE_REGISTER, 255, &v), 0);
	TEST_EQ(v, 0);
	TEST_EQ(values_frame_register(&outer, VALUES_FILE_UNIFORM, 1, &v), -ENODATA);
	inner.pc = 0x7040;
	values_frame_unwind(&inner, t);
	TEST_EQ(values_frame_register(&outer, VALUES_FILE_REGISTER, 3, &v), 0);
	TEST_EQ(v, 0x05070003);
	inner.pc = 0x7200;
	values_frame_unwind(&inner, t);
	CU_ASSERT(!inner.has_cfa);
	TEST_EQ(values_frame_register(&outer, VALUES_FILE_REGISTER, 3, &v), -ENXIO);
	call_frame_destroy(t);
}

TEST_SUITE(values_place, TEST(expressions_mean_what_the_compilers_mean),
	   TEST(registers_of_ptx_are_where_the_map_says), TEST(broken_maps_are_refused),
	   TEST(callers_have_the_registers_that_callees_saved));
