/* SPDX-License-Identifier: MIT */
#include <dwarf.h>
#include <ftw.h>
#include <inttypes.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "symbols/aql.h"
#include "symbols/image.h"
#include "testlib.h"

#define DATA "tests/data/codeobj/"

static const char *const fixtures[] = { "spin-gfx90a", "spin-gfx1030-z", "shapes-gfx90a" };

DEFINE_AUTO(struct symbols_image *, symbols_image_destroy);

static struct symbols_location location;

/* A copy of exactly the file's size, in front of an unmapped page. */
static struct symbols_image *open_image(const char *dir, const char *name)
{
	struct symbols_image *image = NULL;
	auto_free char *data = NULL;
	char path[512];
	size_t size;

	snprintf(path, sizeof(path), "%s/%s.co", dir, name);
	TEST_EQ_FATAL(fd_read_file(path, SYMBOLS_IMAGE_BYTES_MAX, &data, &size), 0);
	TEST_EQ_FATAL(symbols_image_create(test_tail_dup(data, size), size, &image), 0);
	return image;
}

static void chomp(char *line)
{
	line[strcspn(line, "\n")] = '\0';
}

/* Column 0 and line 0 are how LLVM says "unknown". */
static void compare_frame(uint64_t address, const struct symbols_frame *f, const char *function,
			  const char *position)
{
	char ours[4096];

	TEST_ROW_STR(address, f->function ? f->function : "??", function);
	snprintf(ours, sizeof(ours), "%s:%u:%u", f->file ? f->file : "??", f->line, f->column);
	TEST_ROW_STR(address, ours, position);
}

/* @return addresses compared. */
static size_t compare_image(struct symbols_image *image, const char *dir, const char *name)
{
	char path[512], line[4096], position[4096];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.expect", dir, name);
	f = fopen(path, "r");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	while (fgets(line, sizeof(line), f)) {
		uint64_t address = strtoull(line, NULL, 16);
		size_t frames = 0;

		symbols_image_locate(image, address, &location);
		while (fgets(line, sizeof(line), f) && line[0] != '\n' &&
		       fgets(position, sizeof(position), f)) {
			chomp(line);
			chomp(position);
			if (frames < location.n_frames)
				compare_frame(address, &location.frames[frames], line, position);
			frames++;
		}
		TEST_ROW_EQ(address, location.n_frames, frames);
		for (size_t i = 0; i < location.n_frames; i++)
			TEST_ROW_EQ(address, location.frames[i].inlined, i + 1 < frames);
		CU_ASSERT_TRUE(location.has_offset);
		CU_ASSERT_FALSE(location.cut);
		n++;
	}
	fclose(f);
	return n;
}

static size_t compare_with_peer(const char *dir, const char *name)
{
	auto_call(symbols_image_destroyp) struct symbols_image *image = open_image(dir, name);

	return compare_image(image, dir, name);
}

/* Every instruction of the shipped objects, against what LLVM said when they were made. */
static void locates_as_recorded(void)
{
	for (size_t i = 0; i < TEST_COUNT(fixtures); i++)
		CU_ASSERT_TRUE(compare_with_peer(DATA, fixtures[i]) > 50);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

/* The same with whatever compiler and symbolizer this machine has. */
static void locates_as_installed_llvm(void)
{
	char dir[] = "/tmp/gpu-agent-codeobj-XXXXXX", command[256];
	int status;

	if (system("command -v clang ld.lld llvm-nm llvm-symbolizer >/dev/null") != 0) {
		test_skip("clang, ld.lld, llvm-nm or llvm-symbolizer is not installed");
		return;
	}
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	snprintf(command, sizeof(command), "timeout 60 " DATA "make-fixtures %s >%s/log 2>&1", dir,
		 dir);
	status = system(command);
	if (status != 0)
		test_skip("this clang and lld cannot make code objects: " DATA "make-fixtures");
	for (size_t i = 0; status == 0 && i < TEST_COUNT(fixtures); i++)
		CU_ASSERT_TRUE(compare_with_peer(dir, fixtures[i]) > 50);
	nftw(dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static void knows_which_functions_are_kernels(void)
{
	auto_call(symbols_image_destroyp) struct symbols_image *image = open_image(DATA, "spin-gfx90a");
	struct symbols_symbol symbol, again;

	TEST_EQ_FATAL(symbols_image_kernel_of(image, "scale", &symbol), 0);
	TEST_STR(symbol.raw, "scale.kd");
	TEST_STR(symbol.name, "scale");
	TEST_EQ_FATAL(symbols_image_kernel(image, symbol.address, &again), 0);
	TEST_EQ(symbols_image_kernel_of(image, "outside", &symbol), -ENOENT);
	TEST_EQ(symbols_image_kernel_of(image, "scal", &symbol), -ENOENT);
	TEST_EQ(symbols_image_kernel_of(image, "", &symbol), -ENOENT);
	TEST_EQ(symbols_image_debug_state(image), 0);
}

static void knows_its_facts(void)
{
	static const uint8_t id_start[] = { 0x92, 0x8a, 0xce, 0x4c };
	auto_call(symbols_image_destroyp) struct symbols_image *spin = open_image(DATA, fixtures[0]);
	auto_call(symbols_image_destroyp) struct symbols_image *z = open_image(DATA, fixtures[1]);
	const struct symbols_image_facts *f = symbols_image_facts(spin);
	uint64_t start, end;

	TEST_EQ(f->machine, 224);
	TEST_EQ(f->osabi, 64);
	TEST_EQ(f->abi_version, 2);
	TEST_EQ(f->flags & 0xff, 0x3f);
	TEST_EQ(f->build_id_size, 20);
	TEST_EQ(memcmp(f->build_id, id_start, sizeof(id_start)), 0);
	TEST_EQ(f->n_symbols, 5);
	TEST_EQ(f->has_dwarf, true);
	TEST_EQ(symbols_image_facts(z)->flags & 0xff, 0x36);
	TEST_EQ(symbols_image_facts(z)->build_id_size, 0);
	symbols_image_range(spin, &start, &end);
	TEST_EQ(start, 0);
	CU_ASSERT_TRUE(symbols_image_bytes(spin) > 7000);
}

/* From the descriptor's address to its names, its entry, and what the compiler noted. */
static void names_kernels(void)
{
	static const struct {
		const char *fixture, *name, *raw;
	} rows[] = {
		{ "spin-gfx90a", "scale", "scale.kd" },
		{ "spin-gfx90a", "spin", "spin.kd" },
		{ "spin-gfx1030-z", "scale", "scale.kd" },
		{ "shapes-gfx90a", "void app::shape<int>(app::vec<int>, int)",
		  "_ZN3app5shapeIiEEvNS_3vecIT_EEi.kd" },
		{ "shapes-gfx90a", "void app::shape<unsigned long>(app::vec<unsigned long>, int)",
		  "_ZN3app5shapeImEEvNS_3vecIT_EEi.kd" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_call(symbols_image_destroyp) struct symbols_image *image =
			open_image(DATA, rows[i].fixture);
		struct symbols_symbol s;
		struct symbols_kernel k;
		uint64_t at = 0, end, start;

		symbols_image_range(image, &start, &end);
		while (at < end && (symbols_image_kernel(image, at, &s) < 0 || strcmp(s.raw, rows[i].raw)))
			at += 64;
		CU_ASSERT_TRUE_FATAL(at < end);
		TEST_ROW_EQ(i, s.address, at);
		TEST_ROW_EQ(i, s.size, 64);
		TEST_ROW_STR(i, s.name, rows[i].name);
		TEST_ROW_EQ(i, symbols_image_kernel(image, at + 1, &s), -ENOENT);
		TEST_ROW_EQ(i, symbols_image_metadata(image, at, &k), 0);
		TEST_ROW_EQ(i, k.symbol_size, strlen(rows[i].raw));
		TEST_ROW_EQ(i, k.name_size, strlen(rows[i].raw) - 3);
		TEST_ROW_EQ(i, k.wavefront_size, strstr(rows[i].fixture, "1030") ? 32 : 64);
		CU_ASSERT_TRUE(k.vgprs > 0 && k.vgprs < 512);
		CU_ASSERT_TRUE(k.sgprs > 0 && k.sgprs < 128);
	}
}

static void reads_metadata(void)
{
	auto_call(symbols_image_destroyp) struct symbols_image *image = open_image(DATA, fixtures[0]);
	struct symbols_symbol s;
	struct symbols_kernel k;
	uint64_t at = 0;

	while (at < 0x1000 && (symbols_image_kernel(image, at, &s) < 0 || strcmp(s.name, "scale")))
		at += 64;
	TEST_EQ_FATAL(symbols_image_metadata(image, at, &k), 0);
	TEST_EQ(k.group_segment_bytes, 256);
	TEST_EQ(k.kernarg_segment_bytes, 12);
	TEST_EQ(k.agprs, UINT32_MAX); /* LLVM 14 does not write it */
	TEST_EQ(symbols_image_metadata(image, at + 1, &k), -ENOENT);
}

static void finds_functions(void)
{
	auto_call(symbols_image_destroyp) struct symbols_image *image = open_image(DATA, fixtures[2]);
	struct symbols_symbol s;
	uint64_t at = 0x1c00;

	TEST_EQ_FATAL(symbols_image_function(image, at, &s), 0);
	TEST_EQ(s.address, at);
	TEST_STR(s.raw, "_ZN3app5shapeIiEEvNS_3vecIT_EEi");
	TEST_STR(s.name, "void app::shape<int>(app::vec<int>, int)");
	TEST_EQ(symbols_image_function(image, s.address + s.size - 1, &s), 0);
	TEST_EQ(symbols_image_function(image, s.address + s.size, &s), -ENOENT);
	TEST_EQ(symbols_image_function(image, 0, &s), -ENOENT);
}

/* Without debug information a frame has the symbol's name and nothing else. */
static void falls_back_to_symbols(void)
{
	auto_free char *data = NULL;
	auto_call(symbols_image_destroyp) struct symbols_image *image = NULL;
	size_t size;
	char *p;

	TEST_EQ_FATAL(fd_read_file(DATA "shapes-gfx90a.co", 1 << 20, &data, &size), 0);
	p = memmem(data, size, ".debug_info", 11);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	p[1] = 'x';
	TEST_EQ_FATAL(symbols_image_create(data, size, &image), 0);
	TEST_EQ(symbols_image_facts(image)->has_dwarf, false);
	TEST_EQ(symbols_image_has_lines(image), false);
	symbols_image_locate(image, 0x1c08, &location);
	TEST_EQ_FATAL(location.n_frames, 1);
	TEST_STR(location.frames[0].function, "void app::shape<int>(app::vec<int>, int)");
	TEST_STR(location.frames[0].raw, "_ZN3app5shapeIiEEvNS_3vecIT_EEi");
	CU_ASSERT_PTR_NULL(location.frames[0].file);
	TEST_EQ(location.frames[0].line, 0);
	TEST_EQ(location.has_offset, true);
	TEST_EQ(location.offset, 8);
	symbols_image_locate(image, 0x10, &location);
	TEST_EQ(location.n_frames, 0);
	TEST_EQ(location.has_offset, false);
}

/* Any prefix of a file is either refused or usable; a broken section table only loses symbols. */
static void survives_cut_files(void)
{
	auto_free char *data = NULL;
	size_t size, accepted = 0;

	TEST_EQ_FATAL(fd_read_file(DATA "spin-gfx90a.co", 1 << 20, &data, &size), 0);
	for (size_t n = 0; n < size; n += 61) {
		struct symbols_image *image;

		if (symbols_image_create(test_tail_dup(data, n), n, &image) < 0)
			continue;
		accepted++;
		TEST_ROW_EQ(n, symbols_image_facts(image)->n_symbols, 0);
		symbols_image_locate(image, 0x1900, &location);
		TEST_ROW_EQ(n, location.n_frames, 0);
		symbols_image_destroy(image);
	}
	CU_ASSERT_TRUE(accepted > 10);
}

static void refuses_other_files(void)
{
	static const struct {
		size_t at;
		char value;
	} rows[] = { { 0, 'E' }, { 4, 1 }, { 5, 2 }, { 6, 0 }, { 18, 3 }, { 33, 127 }, { 54, 1 } };
	auto_free char *data = NULL;
	struct symbols_image *image;
	size_t size;

	TEST_EQ_FATAL(fd_read_file(DATA "spin-gfx90a.co", 1 << 20, &data, &size), 0);
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		char saved = data[rows[i].at];

		data[rows[i].at] = rows[i].value;
		TEST_ROW_EQ(i, symbols_image_create(data, size, &image), -ENOEXEC);
		data[rows[i].at] = saved;
	}
	TEST_EQ(symbols_image_create(data, SYMBOLS_IMAGE_BYTES_MAX + 1, &image), -EFBIG);
	TEST_EQ(symbols_image_create("", 0, &image), -ENOEXEC);
}

/* libdw would open the file that such a section names. */
static void opens_no_other_file(void)
{
	auto_free char *data = NULL;
	auto_call(symbols_image_destroyp) struct symbols_image *image = NULL;
	size_t size;
	char *p;

	TEST_EQ_FATAL(fd_read_file(DATA "shapes-gfx90a.co", 1 << 20, &data, &size), 0);
	p = memmem(data, size, ".debug_str_offsets", 18);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	strcpy(p, ".gnu_debugaltlink");
	TEST_EQ_FATAL(symbols_image_create(data, size, &image), 0);
	TEST_EQ(symbols_image_facts(image)->has_dwarf, false);
}

/* A compressed section that claims to be huge: no debug information, all else as ever. */
static void refuses_to_expand_bombs(void)
{
	auto_free char *data = NULL;
	auto_call(symbols_image_destroyp) struct symbols_image *image = NULL;
	uint64_t huge = UINT64_C(1) << 40;
	size_t size;

	TEST_EQ_FATAL(fd_read_file(DATA "spin-gfx1030-z.co", 1 << 20, &data, &size), 0);
	memcpy(data + 0xce8 + 8, &huge, sizeof(huge)); /* ch_size of .debug_info */
	TEST_EQ_FATAL(symbols_image_create(data, size, &image), 0);
	TEST_EQ(symbols_image_facts(image)->n_symbols, 5);
	symbols_image_locate(image, 0x1c00, &location);
	for (size_t i = 0; i < location.n_frames; i++)
		CU_ASSERT_PTR_NULL(location.frames[i].file);
}

/* What a unit says of its extent may be nothing, its first function, or a list that ends too early. */
static void locates_functions_that_their_unit_leaves_out(void)
{
	static const struct {
		const char *fixture, *from;
		size_t size, at; /* of what, which byte */
		char to;
	} rows[] = {
		{ "shapes-gfx90a", "\x11\x01\x55\x23", 4, 2, DW_AT_start_scope }, /* was DW_AT_ranges */
		{ "shapes-gfx90a", "\xa8\x01\x03\x04\xbc\x01", 6, 2, DW_RLE_end_of_list },
		{ "spin-gfx90a", "\x48\x03\x00\x00", 4, 1, 0 }, /* DW_AT_high_pc: a length */
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_free char *data = NULL;
		auto_call(symbols_image_destroyp) struct symbols_image *image = NULL;
		char path[512], *p;
		size_t size;

		snprintf(path, sizeof(path), DATA "%s.co", rows[i].fixture);
		TEST_EQ_FATAL(fd_read_file(path, 1 << 20, &data, &size), 0);
		p = memmem(data, size, rows[i].from, rows[i].size);
		CU_ASSERT_PTR_NOT_NULL_FATAL(p);
		CU_ASSERT_PTR_NULL(memmem(p + 1, size - (size_t)(p + 1 - data), rows[i].from, rows[i].size));
		p[rows[i].at] = rows[i].to;
		TEST_EQ_FATAL(symbols_image_create(data, size, &image), 0);
		TEST_ROW_EQ(i, symbols_image_has_lines(image), true);
		CU_ASSERT_TRUE(compare_image(image, DATA, rows[i].fixture) > 50);
		TEST_ROW_EQ(i, symbols_image_debug_state(image), 0);
	}
}

TEST_SUITE(symbols_image, TEST(locates_as_recorded), TEST(locates_as_installed_llvm),
	   TEST(knows_which_functions_are_kernels), TEST(knows_its_facts), TEST(names_kernels),
	   TEST(reads_metadata), TEST(finds_functions), TEST(falls_back_to_symbols),
	   TEST(survives_cut_files), TEST(refuses_other_files), TEST(opens_no_other_file),
	   TEST(refuses_to_expand_bombs), TEST(locates_functions_that_their_unit_leaves_out));
