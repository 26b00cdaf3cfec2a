/* SPDX-License-Identifier: MIT */
#include <elf.h>

#include "base/elf_view.h"
#include "cudbgshim_target.h"
#include "pagelib.h"
#include "testlib.h"

#define BASE   UINT64_C(0x7f0000000000)
#define FILE_SIZE 0x4000u
#define MEMORY_SIZE 0x8000u

/* A library of one segment, as the loader leaves it in memory. */
struct library {
	bool gnu, sysv;
	bool relocated;	    /* glibc adds the load address to the dynamic section. */
	uint64_t link_base; /* p_vaddr of the segment. */
	unsigned n_buckets;
	const char *names[40];
	uint32_t sizes[40];
	uint8_t types[40];
	size_t n;
	uint8_t bytes[MEMORY_SIZE];
	uint64_t readable; /* Bytes that can be read; MEMORY_SIZE by default. */
};

static struct library lib;

static int read_library(void *ctx, uint64_t addr, void *buf, size_t size)
{
	const struct library *l = ctx;

	if (addr < BASE || addr - BASE > l->readable || size > l->readable - (addr - BASE))
		return -EFAULT;
	memcpy(buf, l->bytes + (addr - BASE), size);
	return 0;
}

static const struct cudbgshim_memory memory = { .read = read_library, .ctx = &lib };

static void add(const char *name, uint32_t size, uint8_t type)
{
	lib.names[lib.n] = name;
	lib.sizes[lib.n] = size;
	lib.types[lib.n++] = type;
}

static uint32_t gnu_hash(const char *s)
{
	uint32_t h = 5381;

	while (*s)
		h = h * 33 + (uint8_t)*s++;
	return h;
}

static uint32_t sysv_hash(const char *s)
{
	uint32_t h = 0;

	while (*s) {
		h = (h << 4) + (uint8_t)*s++;
		h ^= (h & 0xf0000000u) >> 24;
		h &= 0x0fffffffu;
	}
	return h;
}

enum { POS_PHDR = 0x40, POS_DYNAMIC = 0x200, POS_SYMTAB = 0x400, POS_STRTAB = 0x1000, POS_GNU = 0x2000,
       POS_SYSV = 0x3000, POS_DATA = 0x5000 };

static void put_string(size_t *at, const char *s)
{
	memcpy(lib.bytes + POS_STRTAB + *at, s, strlen(s) + 1);
	*at += strlen(s) + 1;
}

/* GNU hash wants the symbols in the order of their buckets. */
static void sort_by_bucket(void)
{
	for (size_t i = 0; i < lib.n; i++)
		for (size_t j = i + 1; j < lib.n; j++)
			if (gnu_hash(lib.names[j]) % lib.n_buckets < gnu_hash(lib.names[i]) % lib.n_buckets) {
				const char *name = lib.names[i];
				uint32_t size = lib.sizes[i];
				uint8_t type = lib.types[i];

				lib.names[i] = lib.names[j];
				lib.sizes[i] = lib.sizes[j];
				lib.types[i] = lib.types[j];
				lib.names[j] = name;
				lib.sizes[j] = size;
				lib.types[j] = type;
			}
}

static void put_symbols(void)
{
	Elf64_Sym *syms = (Elf64_Sym *)(void *)(lib.bytes + POS_SYMTAB);
	size_t at = 1;

	for (size_t i = 0; i < lib.n; i++) {
		syms[i + 1] = (Elf64_Sym){ .st_name = (uint32_t)at,
					   .st_info = ELF64_ST_INFO(STB_GLOBAL, lib.types[i]),
					   .st_shndx = 5,
					   .st_value = lib.link_base + POS_DATA + i * 0x10,
					   .st_size = lib.sizes[i] };
		put_string(&at, lib.names[i]);
	}
}

static void put_gnu(void)
{
	uint32_t *h = (uint32_t *)(void *)(lib.bytes + POS_GNU), *buckets = h + 6, *chain = buckets + lib.n_buckets;

	h[0] = lib.n_buckets;
	h[1] = 1; /* first symbol */
	h[2] = 1; /* words of the filter */
	h[4] = h[5] = UINT32_MAX;
	for (size_t i = 0; i < lib.n; i++) {
		uint32_t hash = gnu_hash(lib.names[i]), b = hash % lib.n_buckets;
		bool last = i + 1 == lib.n || gnu_hash(lib.names[i + 1]) % lib.n_buckets != b;

		if (!buckets[b])
			buckets[b] = (uint32_t)i + 1;
		chain[i] = (hash & ~1u) | last;
	}
}

static void put_sysv(void)
{
	uint32_t *h = (uint32_t *)(void *)(lib.bytes + POS_SYSV), *buckets = h + 2, *chain = buckets + lib.n_buckets;

	h[0] = lib.n_buckets;
	h[1] = (uint32_t)lib.n + 1;
	for (size_t i = 0; i < lib.n; i++) {
		uint32_t b = sysv_hash(lib.names[i]) % lib.n_buckets;

		chain[i + 1] = buckets[b];
		buckets[b] = (uint32_t)i + 1;
	}
}

static void put_dynamic(void)
{
	Elf64_Dyn *d = (Elf64_Dyn *)(void *)(lib.bytes + POS_DYNAMIC);
	uint64_t at = lib.relocated ? BASE : lib.link_base;

	*d++ = (Elf64_Dyn){ DT_SYMTAB, { at + POS_SYMTAB } };
	*d++ = (Elf64_Dyn){ DT_STRTAB, { at + POS_STRTAB } };
	*d++ = (Elf64_Dyn){ DT_STRSZ, { 0x1000 } };
	*d++ = (Elf64_Dyn){ DT_SYMENT, { sizeof(Elf64_Sym) } };
	if (lib.sysv)
		*d++ = (Elf64_Dyn){ DT_HASH, { at + POS_SYSV } };
	if (lib.gnu)
		*d++ = (Elf64_Dyn){ DT_GNU_HASH, { at + POS_GNU } };
}

static void build(void)
{
	Elf64_Ehdr *e = (Elf64_Ehdr *)(void *)lib.bytes;
	Elf64_Phdr *p = (Elf64_Phdr *)(void *)(lib.bytes + POS_PHDR);

	memset(lib.bytes, 0, sizeof(lib.bytes));
	lib.readable = MEMORY_SIZE;
	*e = (Elf64_Ehdr){ .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB },
			   .e_type = ET_DYN, .e_machine = elf_own_machine(), .e_phoff = POS_PHDR,
			   .e_phentsize = sizeof(*p), .e_phnum = 3 };
	p[0] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_vaddr = lib.link_base, .p_filesz = FILE_SIZE,
			     .p_memsz = FILE_SIZE };
	p[1] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_vaddr = lib.link_base + FILE_SIZE,
			     .p_memsz = MEMORY_SIZE - FILE_SIZE };
	p[2] = (Elf64_Phdr){ .p_type = PT_DYNAMIC, .p_vaddr = lib.link_base + POS_DYNAMIC,
			     .p_memsz = 16 * sizeof(Elf64_Dyn) };
	sort_by_bucket();
	put_symbols();
	if (lib.gnu)
		put_gnu();
	if (lib.sysv)
		put_sysv();
	put_dynamic();
}

static void standard(bool gnu, bool sysv)
{
	lib = (struct library){ .gnu = gnu, .sysv = sysv, .n_buckets = 3 };
	add("cuInit", 100, STT_FUNC);
	add("cudbgIpcFlag", 4, STT_OBJECT);
	add("cudbgReportedDriverInternalErrorCode", 8, STT_OBJECT);
	add("cudbgApiAttach", 60, STT_FUNC);
	add("cudbgApiDetach", 60, STT_FUNC);
	add("cudbgUseExternalDebugger", 4, STT_OBJECT);
}

static uint64_t address_of(const char *name)
{
	for (size_t i = 0; i < lib.n; i++)
		if (!strcmp(lib.names[i], name))
			return BASE + POS_DATA + i * 0x10;
	return 0;
}

/* Both hash tables, alone and together, relocated or not, linked at 0 or elsewhere. */
static void symbols_are_found(void)
{
	static const struct { bool gnu, sysv, relocated; uint64_t link_base; } rows[] = {
		{ true, false, false, 0 }, { false, true, false, 0 }, { true, true, true, 0 },
		{ true, true, false, 0x10000 }, { false, true, true, 0x10000 },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct cudbgshim_symbols s;

		standard(rows[i].gnu, rows[i].sysv);
		lib.relocated = rows[i].relocated;
		lib.link_base = rows[i].link_base;
		build();
		TEST_ROW_EQ(i, cudbgshim_symbols_read(&memory, BASE, &s, NULL), 0);
		for (enum cudbgshim_symbol n = 0; n < CUDBGSHIM_SYM_COUNT; n++)
			TEST_ROW_EQ(i, s.addr[n], address_of(cudbgshim_symbol_name(n)));
	}
}

/* The loader maps whole pages, and what is before the first segment comes with a large one. */
static void first_segment_begins_within_a_page(void)
{
	Elf64_Phdr *first = (Elf64_Phdr *)(void *)(lib.bytes + POS_PHDR);
	struct cudbgshim_symbols s;

	standard(true, false);
	build();
	first->p_vaddr += 0x1000;
	first->p_memsz -= 0x1000;
	page_of_test = 0x10000;
	TEST_EQ(cudbgshim_symbols_read(&memory, BASE, &s, NULL), 0);
	page_of_test = 0;
	TEST_EQ(s.addr[CUDBGSHIM_SYM_API_ATTACH], address_of("cudbgApiAttach"));
}

/* Another size, another kind, or outside of the library: the error names the symbol. */
static void wrong_symbols_are_named(void)
{
	static const struct { const char *name; uint32_t size; uint8_t type; enum cudbgshim_symbol want; } rows[] = {
		{ "cudbgSessionId", 8, STT_OBJECT, CUDBGSHIM_SYM_SESSION_ID },
		{ "cudbgSessionId", 4, STT_FUNC, CUDBGSHIM_SYM_SESSION_ID },
		{ "cudbgApiInit", 4, STT_OBJECT, CUDBGSHIM_SYM_API_INIT },
		{ "cudbgApiInit", 4, STT_GNU_IFUNC, CUDBGSHIM_SYM_API_INIT },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct cudbgshim_symbols s = { { 0 } };
		struct cudbgshim_symbols_error err = { 0 };

		standard(true, false);
		add(rows[i].name, rows[i].size, rows[i].type);
		build();
		TEST_ROW_EQ(i, cudbgshim_symbols_read(&memory, BASE, &s, &err), -EPROTO);
		TEST_ROW_EQ(i, err.symbol, rows[i].want);
		TEST_ROW_EQ(i, err.size, rows[i].size);
		TEST_ROW_EQ(i, s.addr[CUDBGSHIM_SYM_IPC_FLAG], 0);
	}
}

static int after(void (*damage)(void), const char **ret_what)
{
	struct cudbgshim_symbols s;
	struct cudbgshim_symbols_error err = { .what = "" };
	int rc;

	build();
	damage();
	rc = cudbgshim_symbols_read(&memory, BASE, &s, &err);
	*ret_what = err.what;
	return rc;
}

static void no_magic(void) { lib.bytes[1] = 'e'; }
/* Of the two that the agent runs on, the one that this machine is not. */
static void other_machine(void)
{
	((Elf64_Ehdr *)(void *)lib.bytes)->e_machine = elf_own_machine() == EM_AARCH64 ? EM_X86_64 : EM_AARCH64;
}
static void no_phdr(void) { ((Elf64_Ehdr *)(void *)lib.bytes)->e_phnum = 0; }
static void huge_segment(void) { ((Elf64_Phdr *)(void *)(lib.bytes + POS_PHDR))->p_memsz = UINT64_MAX; }
static void no_symtab(void) { ((Elf64_Dyn *)(void *)(lib.bytes + POS_DYNAMIC))->d_tag = DT_NULL; }
static void no_hash(void) { ((Elf64_Dyn *)(void *)(lib.bytes + POS_DYNAMIC))[4].d_tag = DT_NULL; }
static void no_buckets(void) { memset(lib.bytes + POS_GNU, 0, 4); }
static void no_ends(void)
{
	for (size_t i = 0; i < 0x400; i++)
		lib.bytes[POS_GNU + 24 + 4 * lib.n_buckets + 4 * i] &= 0xfe;
}
static void unreadable(void) { lib.readable = 0x100; }

static void damage_is_refused(void)
{
	static const struct { void (*damage)(void); int want; const char *what; } rows[] = {
		{ no_magic, -ENOEXEC, "no 64-bit ELF file of this machine's byte order" },
		{ other_machine, -ENOEXEC, "an ELF file of another kind of processor" },
		{ no_phdr, -EBADMSG, "ELF header: no shared library" },
		{ huge_segment, -EBADMSG, "program headers: beyond the address space" },
		{ no_symtab, -EBADMSG, "dynamic section: no symbol table" },
		{ no_hash, -EBADMSG, "dynamic section: no hash table" },
		{ no_buckets, -EBADMSG, "GNU hash table: impossible sizes" },
		{ no_ends, -EBADMSG, "GNU hash table" },
		{ unreadable, -EFAULT, "dynamic section" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		const char *what;

		standard(true, false);
		TEST_ROW_EQ(i, after(rows[i].damage, &what), rows[i].want);
		TEST_ROW_EQ(i, strncmp(what, rows[i].what, strlen(rows[i].what)), 0);
	}
}

static void endless_sysv_chain(void)
{
	uint32_t *h = (uint32_t *)(void *)(lib.bytes + POS_SYSV);

	for (size_t i = 0; i < lib.n_buckets + lib.n + 1; i++)
		h[2 + i] = 1; /* symbol 1 follows symbol 1 */
}

static void endless_chain_ends(void)
{
	const char *what;

	standard(false, true);
	TEST_EQ(after(endless_sysv_chain, &what), -EBADMSG);
	TEST_STR(what, "hash table: chain out of its range");
}

static const char maps_text[] =
	"55d000000000-55d000001000 r--p 00000000 fe:00 12                         /usr/bin/app\n"
	"7f0000000000-7f0000001000 r--p 00000000 fe:00 77 /opt/compat/libcuda.so.550.163.01\n"
	"7f0000001000-7f0000009000 r-xp 00001000 fe:00 77 /opt/compat/libcuda.so.550.163.01\n"
	"7f0000009000-7f000000a000 rw-p 00000000 00:00 0 \n"
	"7f0100000000-7f0100001000 r--p 00000000 fe:00 78 /usr/lib/libcudart.so.12\n"
	"7f0200000000-7f0200001000 r--p 00000000 fe:00 79 /usr/lib/libcuda.so.x\n"
	"7f0300000000-7f0300001000 r--p 00000000 fe:00 80 /usr/lib/with space/libcuda.so.1 (deleted)\n"
	"not a line\n"
	"7f0400000000-7f0400001000 rw-p 00000000 00:00 0 [stack]";

static void libraries_are_found(void)
{
	struct cudbgshim_library l;
	struct cudbgshim_map m;
	const char *text = test_tail_dup(maps_text, sizeof(maps_text) - 1);
	size_t size = sizeof(maps_text) - 1;

	TEST_EQ_FATAL(cudbgshim_find_libcuda(text, size, 0, &l), 0);
	TEST_STR(l.path, "/opt/compat/libcuda.so.550.163.01");
	TEST_EQ(l.base, 0x7f0000000000);
	TEST_EQ(l.end, 0x7f0000009000);
	TEST_EQ_FATAL(cudbgshim_find_libcuda(text, size, 1, &l), 0);
	TEST_STR(l.path, "/usr/lib/with space/libcuda.so.1");
	TEST_EQ(cudbgshim_find_libcuda(text, size, 2, &l), -ENOENT);
	TEST_EQ_FATAL(cudbgshim_maps_find(text, size, 0x7f0400000fff, &m), 1);
	TEST_EQ(m.name_size, 7);
	TEST_EQ(m.flags, CUDBGSHIM_MAP_READ | CUDBGSHIM_MAP_WRITE);
	TEST_EQ(cudbgshim_maps_find(text, size, 0x7f0400001000, &m), 0);
}

/* Random damage anywhere: an answer, and addresses only inside of the library. */
static void damage_anywhere_is_survived(void)
{
	for (int round = 0; round < 20000; round++) {
		struct cudbgshim_symbols s;

		standard(round & 1, !(round & 1));
		build();
		for (int i = 0; i < 3; i++)
			lib.bytes[test_random() % (POS_SYSV + 0x100)] = (uint8_t)test_random();
		if (cudbgshim_symbols_read(&memory, BASE, &s, NULL) == 0)
			for (enum cudbgshim_symbol n = 0; n < CUDBGSHIM_SYM_COUNT; n++)
				CU_ASSERT_TRUE_FATAL(!s.addr[n] || s.addr[n] >= BASE);
	}
}

TEST_SUITE(cudbgshim_dynsym, TEST(symbols_are_found), TEST(first_segment_begins_within_a_page),
	   TEST(wrong_symbols_are_named), TEST(damage_is_refused), TEST(endless_chain_ends),
	   TEST(libraries_are_found), TEST(damage_anywhere_is_survived));
