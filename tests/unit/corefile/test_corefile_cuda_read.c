/* SPDX-License-Identifier: MIT */
/* Cores that are damaged, odd, or older and newer than we know. */
#include "corefile/cuda/layout.h"
#include "corefile/cuda/read.h"
#include "tests/unit/corefile/cudacore_population.h"
#include "testlib.h"

/* A small core to spoil, and what it should say. */
static struct population_file small_file(struct cudacore *want, enum cudacore_layout layout)
{
	static const struct population most = { 1, 3, 2, 2, 4 };

	do {
		cudacore_deinit(want);
		population_fill(want, &most);
	} while (want->n[CUDACORE_FRAMES] == 0 || want->n_memory == 0 ||
		 want->n[CUDACORE_LANES] > 80 || want->n[CUDACORE_SMS] < 2);
	return population_write(want, &(struct cudacore_write_options){ .layout = layout });
}

static Elf64_Shdr *sections(const struct population_file *f, uint32_t *ret_n)
{
	Elf64_Ehdr *header = (void *)f->data;

	*ret_n = header->e_shnum;
	return (void *)(f->data + header->e_shoff);
}

static Elf64_Shdr *find_section(const struct population_file *f, uint32_t type)
{
	uint32_t n;
	Elf64_Shdr *s = sections(f, &n);

	for (uint32_t i = 0; i < n; i++)
		if (s[i].sh_type == type)
			return &s[i];
	CU_ASSERT_TRUE_FATAL(false);
	return NULL;
}

static uint64_t touch_row(const struct cudacore *c, unsigned table, const char *row)
{
	uint64_t sum = 0;

	for (const struct cuda_field *f = cuda_tables[table].fields; f->count; f++)
		if (f->kind == CUDA_STRING)
			sum += strlen(*(const char *const *)(const void *)(row + f->member));
	for (unsigned k = 0; k < CUDA_BLOB_COUNT; k++) {
		const struct corefile_blob *b = (const void *)(row + cuda_blobs[k].member);

		for (uint64_t at = 0; cuda_blobs[k].parent == table && at < b->size; at++)
			sum += ((const uint8_t *)b->data)[at];
	}
	for (unsigned k = 0; k < CUDACORE_TABLE_COUNT; k++) {
		const struct cudacore_range *r = (const void *)(row + cuda_tables[k].children);

		if (cuda_tables[k].parent == table)
			CU_ASSERT_TRUE(r->n <= c->n[k] && r->first <= c->n[k] - r->n);
	}
	return sum;
}

/* Walk over everything that a reader hands out: ASan and the guard page see what is wrong. */
static uint64_t touch(const struct cudacore *c)
{
	uint64_t sum = 0;

	for (unsigned t = 0; t < CUDACORE_TABLE_COUNT; t++)
		for (uint32_t i = 0; i < c->n[t]; i++)
			sum += touch_row(c, t, cuda_row(c, t, i));
	for (uint32_t i = 0; i < c->n[CUDACORE_LANES]; i++)
		sum += cudacore_lane_exception(c, i);
	for (uint32_t i = 0; i < c->n_memory; i++) {
		uint8_t buf[64];

		sum += cudacore_read_memory(c, c->memory[i].address, buf, sizeof(buf));
	}
	(void)cudacore_check(c, NULL);
	return sum;
}

/* @return whether something was read; never more than there is. */
static bool read_some(const uint8_t *data, size_t size, const struct cudacore *want)
{
	struct corefile_problem error = { .text = "" };
	struct cudacore c;

	if (cudacore_read(data, size, &c, &error) < 0) {
		CU_ASSERT_TRUE(error.text[0]);
		return false;
	}
	if (want)
		CU_ASSERT_TRUE(c.n[CUDACORE_LANES] <= want->n[CUDACORE_LANES]);
	touch(&c);
	cudacore_deinit(&c);
	return true;
}

/* The section table lies last, so a shorter file has none, or half of one. */
static void truncated_file(void)
{
	struct cudacore want = { 0 };
	struct population_file f = small_file(&want, CUDACORE_LAYOUT_DEFAULT);
	uint64_t table = ((Elf64_Ehdr *)(void *)f.data)->e_shoff;

	for (size_t size = 0; size < f.size; size += 64) {
		uint8_t *data = test_tail_dup(f.data + 0, size);
		bool got = read_some(data, size, &want);

		CU_ASSERT_TRUE(!got || size > table);
	}
	free(f.data);
	cudacore_deinit(&want);
}

/* The same file with its table in front: everything up to the cut is still found. */
static void truncated_behind_its_table(void)
{
	struct cudacore want = { 0 };
	struct population_file f = small_file(&want, CUDACORE_LAYOUT_DEFAULT);
	Elf64_Ehdr *header = (void *)f.data;
	size_t table = header->e_shnum * sizeof(Elf64_Shdr);
	uint8_t *moved = malloc(f.size + table);
	Elf64_Shdr *s = (void *)(moved + sizeof(*header));
	unsigned partial = 0;

	memcpy(moved, f.data, sizeof(*header));
	memcpy(s, f.data + header->e_shoff, table);
	memcpy(moved + sizeof(*header) + table, f.data + sizeof(*header), f.size - sizeof(*header));
	((Elf64_Ehdr *)(void *)moved)->e_shoff = sizeof(*header);
	for (uint32_t i = 0; i < header->e_shnum; i++)
		s[i].sh_offset += table;
	for (size_t size = 0; size < f.size; size += 64)
		partial += read_some(test_tail_dup(moved, size), size, &want);
	CU_ASSERT_TRUE(partial > 3);
	free(moved);
	free(f.data);
	cudacore_deinit(&want);
}

/* Single bits anywhere, then several bytes of the section table. */
static void flipped_bits(void)
{
	struct cudacore want = { 0 };
	struct population_file f = small_file(&want, CUDACORE_LAYOUT_DEFAULT);
	uint64_t table = ((Elf64_Ehdr *)(void *)f.data)->e_shoff;
	uint8_t *data = test_tail_dup(f.data, f.size);

	for (unsigned i = 0; i < 4000; i++) {
		size_t at = i & 1 ? test_random() % f.size
				  : table + test_random() % (f.size - table);
		uint8_t old = data[at];

		data[at] ^= (uint8_t)(1u << test_random() % 8);
		read_some(data, f.size, NULL);
		data[at] = old;
	}
	for (unsigned i = 0; i < 1000; i++) {
		memcpy(data, f.data, f.size);
		for (unsigned k = 0; k < 8; k++)
			data[table + test_random() % (f.size - table)] = (uint8_t)test_random();
		read_some(data, f.size, NULL);
	}
	free(f.data);
	cudacore_deinit(&want);
}

/* Records that a later driver has made larger: what we know is found, the rest is stepped over. */
static void larger_records(void)
{
	struct cudacore want = { 0 }, got;
	struct population_file f = small_file(&want, CUDACORE_LAYOUT_R615);
	uint32_t n;
	Elf64_Shdr *s = sections(&f, &n);
	size_t size = f.size;
	uint8_t *data = malloc(f.size * 3), *tail;

	memcpy(data, f.data, f.size);
	for (uint32_t i = 0; i < n; i++) {
		Elf64_Shdr *section = (Elf64_Shdr *)(void *)(data + ((uint8_t *)&s[i] - f.data));

		if (section->sh_entsize <= 4)
			continue;
		for (uint64_t at = 0; at < section->sh_size; at += section->sh_entsize) {
			memcpy(data + size + at / section->sh_entsize * (section->sh_entsize + 16),
			       data + section->sh_offset + at, section->sh_entsize);
			memset(data + size + at / section->sh_entsize * (section->sh_entsize + 16) +
				       section->sh_entsize, 0xee, 16);
		}
		section->sh_size += section->sh_size / section->sh_entsize * 16;
		section->sh_entsize += 16;
		section->sh_offset = size;
		size += section->sh_size;
	}
	tail = test_tail_dup(data, size);
	TEST_EQ_FATAL(cudacore_read(tail, size, &got, NULL), 0);
	TEST_EQ(got.problems.total, 0);
	population_compare(&got, &want, CUDACORE_LAYOUT_R615);
	cudacore_deinit(&got);
	cudacore_deinit(&want);
	free(data);
	free(f.data);
}

/* Sections in reverse order: children come before their parents. */
static void children_before_parents(void)
{
	struct cudacore want = { 0 }, got;
	struct population_file f = small_file(&want, CUDACORE_LAYOUT_DEFAULT);
	uint32_t n;
	Elf64_Shdr *s = sections(&f, &n);

	for (uint32_t i = 1; i < n; i++)
		if (s[i].sh_link)
			s[i].sh_link = n - s[i].sh_link;
	for (uint32_t i = 1; i < n - i; i++) {
		Elf64_Shdr swap = s[i];

		s[i] = s[n - i];
		s[n - i] = swap;
	}
	((Elf64_Ehdr *)(void *)f.data)->e_shstrndx = 1;
	TEST_EQ_FATAL(cudacore_read(f.data, f.size, &got, NULL), 0);
	TEST_EQ(got.problems.total, 0);
	population_compare(&got, &want, CUDACORE_LAYOUT_R575);
	cudacore_deinit(&got);
	cudacore_deinit(&want);
	free(f.data);
}

#define TYPE(n) (UINT32_C(0x80000000) + (n))

/* Every way in which a table can be wrong, and what is said about it. */
static void wrong_link(Elf64_Shdr *s, uint32_t n) { s->sh_link = n + 7; }
static void link_to_itself(Elf64_Shdr *s, uint32_t n) { s->sh_link = 9999; }
static void wrong_row(Elf64_Shdr *s, uint32_t n) { s->sh_info = 1234; }
static void small_records(Elf64_Shdr *s, uint32_t n) { s->sh_entsize = 4; }
static void no_record_size(Elf64_Shdr *s, uint32_t n) { s->sh_entsize = 0; }
static void half_record(Elf64_Shdr *s, uint32_t n) { s->sh_size -= 3; }
static void behind_the_end(Elf64_Shdr *s, uint32_t n) { s->sh_offset = UINT64_MAX - 10; }
static void beyond_the_end(Elf64_Shdr *s, uint32_t n) { s->sh_size = UINT64_MAX; }

static void problems_are_named(void)
{
	static const struct {
		uint32_t type;
		void (*spoil)(Elf64_Shdr *s, uint32_t n);
		const char *text; /* Part of it. */
	} rows[] = {
		{ TYPE(15), wrong_link, "no row" },
		{ TYPE(15), link_to_itself, "no row" },
		{ TYPE(11), wrong_row, "no row 1234 in section" },
		{ TYPE(5), wrong_row, "no row 1234 in section" },
		{ TYPE(12), small_records, ".cudbg.gridtbl: records of 4 bytes, 104 is the least" },
		{ TYPE(15), no_record_size, ".cudbg.lntbl: records of 0 bytes, 48 is the least" },
		{ TYPE(15), half_record, ".cudbg.lntbl: half a record at the end" },
		{ TYPE(7), behind_the_end, "0 of its 100 bytes lie in the file" },
		{ TYPE(7), beyond_the_end, "of its 18446744073709551615 bytes lie in the file" },
		{ TYPE(13), beyond_the_end, "of its 18446744073709551615 bytes lie in the file" },
		{ SHT_STRTAB, small_records, "no problem" },
		{ SHT_STRTAB, behind_the_end, ": no string at 0x" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct cudacore want = { 0 }, got;
		struct population_file f = small_file(&want, CUDACORE_LAYOUT_DEFAULT);
		bool named = !strcmp(rows[i].text, "no problem");
		uint32_t n;

		(void)sections(&f, &n);
		rows[i].spoil(find_section(&f, rows[i].type), n);
		TEST_EQ_FATAL(cudacore_read(f.data, f.size, &got, NULL), 0);
		TEST_ROW_EQ(i, got.problems.total == 0, named);
		for (size_t k = 0; k < got.problems.n; k++)
			named |= strstr(got.problems.list[k].text, rows[i].text) != NULL;
		TEST_ROW_EQ(i, named, true);
		if (!named && got.problems.n)
			TEST_ROW_STR(i, got.problems.list[0].text, rows[i].text);
		touch(&got);
		cudacore_deinit(&got);
		cudacore_deinit(&want);
		free(f.data);
	}
}

/* Of two sections for the same lane the later one counts. */
static void later_of_two_wins(void)
{
	struct cudacore want = { 0 }, got;
	struct population_file f = small_file(&want, CUDACORE_LAYOUT_DEFAULT);
	uint32_t n;
	Elf64_Shdr *s = sections(&f, &n), *first = find_section(&f, TYPE(5)), *last = NULL;

	for (uint32_t i = 0; i < n; i++)
		if (s[i].sh_type == TYPE(5) && s[i].sh_size)
			last = &s[i];
	CU_ASSERT_PTR_NOT_EQUAL_FATAL(first, last);
	CU_ASSERT_PTR_NOT_NULL_FATAL(last);
	last->sh_link = first->sh_link;
	last->sh_info = first->sh_info;
	TEST_EQ_FATAL(cudacore_read(f.data, f.size, &got, NULL), 0);
	TEST_EQ_FATAL(got.problems.total, 1);
	TEST_EQ(got.problems.list[0].section, first - s);
	CU_ASSERT_PTR_EQUAL(got.lanes[0].registers.data, f.data + last->sh_offset);
	cudacore_deinit(&got);
	cudacore_deinit(&want);
	free(f.data);
}

/* A million lanes that share the same few bytes would need a thousand times the file. */
static void overlapping_tables_are_bounded(void)
{
	struct cudacore want = { 0 }, got;
	struct population_file f = small_file(&want, CUDACORE_LAYOUT_DEFAULT);
	uint32_t n, spoiled = 0;
	Elf64_Shdr *s = sections(&f, &n);

	for (uint32_t i = 0; i < n; i++)
		if (s[i].sh_type == TYPE(8)) {
			s[i].sh_offset = 0;
			s[i].sh_size = f.size;
			spoiled++;
		}
	CU_ASSERT_TRUE(spoiled > 1);
	TEST_EQ_FATAL(cudacore_read(f.data, f.size, &got, NULL), 0);
	CU_ASSERT_TRUE(got.n[CUDACORE_FRAMES] <= f.size / 24);
	CU_ASSERT_TRUE(got.problems.total >= spoiled - 1);
	cudacore_deinit(&got);
	cudacore_deinit(&want);
	free(f.data);
}

/* More problems than are kept are counted all the same. */
static void many_problems(void)
{
	struct cudacore want = { 0 }, got;
	struct population_file f = small_file(&want, CUDACORE_LAYOUT_DEFAULT);
	uint32_t n, spoiled = 0;
	Elf64_Shdr *s = sections(&f, &n);

	for (uint32_t i = 0; i < n; i++)
		if (s[i].sh_type > TYPE(0) && s[i].sh_link) {
			s[i].sh_info = 70000;
			spoiled++;
		}
	TEST_EQ_FATAL(cudacore_read(f.data, f.size, &got, NULL), 0);
	TEST_EQ(got.problems.total, spoiled);
	TEST_EQ(got.problems.n, spoiled < COREFILE_PROBLEMS_MAX ? spoiled : COREFILE_PROBLEMS_MAX);
	cudacore_deinit(&got);
	cudacore_deinit(&want);
	free(f.data);
}

static void set_header(struct population_file *f, size_t at, uint64_t value, size_t size)
{
	memcpy(f->data + at, &value, size);
}

static void foreign_files_are_refused(void)
{
	static const struct {
		size_t at, size;
		uint64_t value;
		int want;
		bool is;
		const char *text;
	} rows[] = {
		{ 0, 4, 0x088b1f, -ENOEXEC, false,
		  "compressed with gzip: expand it with gunzip first" },
		{ 0, 4, 0x21212121, -ENOEXEC, false, "not an ELF file" },
		{ EI_CLASS, 1, 1, -ENOEXEC, false, "not a 64-bit little-endian ELF file" },
		{ EI_DATA, 1, 2, -ENOEXEC, false, "not a 64-bit little-endian ELF file" },
		{ 16, 2, ET_EXEC, -ENOEXEC, false, "not a CUDA core: ELF type 2, machine 190, " },
		{ 18, 2, EM_X86_64, -ENOEXEC, false, "not a CUDA core: ELF type 4, machine 62, " },
		{ 40, 8, 0, -ENOEXEC, true,
		  "not a CUDA core: ELF type 4, machine 190, 0 sections" },
		{ 40, 8, UINT64_MAX - 63, -ENOEXEC, false,
		  "cut short: the section table is behind the end" },
		{ 58, 2, 40, -ENOEXEC, false, "odd section header size" },
		{ 60, 2, 1, -EBADMSG, true, "no device table that can be read" },
		{ EI_OSABI, 2, 0x841, 0, true, "" },
		{ EI_OSABI, 2, 0x940, 0, true, "unknown ABI 0x40, version 9" },
		{ 62, 2, 3, 0, true, "no section .strtab" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct corefile_problem error = { .text = "" };
		struct cudacore want = { 0 }, got = { 0 };
		struct population_file f = small_file(&want, CUDACORE_LAYOUT_DEFAULT);
		const char *text = error.text;

		set_header(&f, rows[i].at, rows[i].value, rows[i].size);
		TEST_ROW_EQ(i, cudacore_read(f.data, f.size, &got, &error), rows[i].want);
		if (got.problems.n)
			text = got.problems.list[0].text;
		TEST_ROW_EQ(i, strncmp(text, rows[i].text, strlen(rows[i].text)), 0);
		TEST_ROW_EQ(i, cudacore_is(f.data, f.size), rows[i].is);
		cudacore_deinit(&got);
		cudacore_deinit(&want);
		free(f.data);
	}
	CU_ASSERT_FALSE(cudacore_is("", 0));
}

TEST_SUITE(corefile_cuda_read, TEST(truncated_file), TEST(truncated_behind_its_table),
	   TEST(flipped_bits), TEST(larger_records), TEST(children_before_parents),
	   TEST(problems_are_named), TEST(later_of_two_wins), TEST(overlapping_tables_are_bounded),
	   TEST(many_problems), TEST(foreign_files_are_refused));
