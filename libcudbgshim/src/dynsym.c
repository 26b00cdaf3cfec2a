/* SPDX-License-Identifier: MIT */
/*
 * Reads the dynamic symbol table of a mapped ELF file; everything in it is the debuggee's to forge.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/elf_view.h"
#include "base/page.h"
#include "cudbgshim_target.h"
#include "cudbg_abi.h"

/*
 * These limits are far above any real driver: libcuda 550 has 9 program headers, 35 tags, 500
 * symbols.
 */
#define PHDRS_MAX   64u
#define TAGS_MAX    256u
#define SYMBOLS_MAX (UINT32_C(1) << 20)
#define STEPS_MAX   4096u

static const struct {
	const char *name;
	uint32_t size;
} known[CUDBGSHIM_SYM_COUNT] = {
#define VARIABLE(NAME, symbol, size, optional) [CUDBGSHIM_SYM_##NAME] = { #symbol, size },
	CUDBGABI_VARIABLES(VARIABLE)
#define FUNCTION(NAME, symbol, optional) [CUDBGSHIM_SYM_##NAME] = { #symbol, 0 },
	CUDBGABI_FUNCTIONS(FUNCTION)
};

const char *cudbgshim_symbol_name(enum cudbgshim_symbol symbol)
{
	return known[symbol].name;
}

uint32_t cudbgshim_symbol_size(enum cudbgshim_symbol symbol)
{
	return known[symbol].size;
}

/* An ELF image as it lies in the debuggee. */
struct image {
	const struct cudbgshim_memory *memory;
	struct cudbgshim_symbols_error *err;
	uint64_t base;	     /* Address of file offset 0. */
	uint64_t bias;	     /* Address of virtual address 0. */
	uint64_t low, high;  /* Lowest and highest address that its segments span. */
	uint64_t dynamic;
	uint64_t dynamic_size;
	uint64_t symtab, strtab, strtab_size, hash, gnu_hash;
};

static int refuse(struct image *m, int code, const char *what, uint64_t where)
{
	*m->err = (struct cudbgshim_symbols_error){ .what = what, .where = where,
						    .symbol = CUDBGSHIM_SYM_COUNT };
	return code;
}

static int get(struct image *m, const char *what, uint64_t addr, void *buf, size_t size)
{
	int rc;

	if (addr < m->low || addr > m->high || size > m->high - addr)
		return refuse(m, -EBADMSG, what, addr);
	rc = m->memory->read(m->memory->ctx, addr, buf, size);
	return rc < 0 ? refuse(m, rc, what, addr) : 0;
}

static int read_header(struct image *m, Elf64_Ehdr *ret)
{
	Elf64_Ehdr e;
	int rc;

	m->low = m->base;
	m->high = m->base + sizeof(e) + PHDRS_MAX * sizeof(Elf64_Phdr);
	if (m->high < m->base)
		return refuse(m, -EBADMSG, "the load address is too high", m->base);
	rc = get(m, "ELF header", m->base, &e, sizeof(e));
	if (rc < 0)
		return rc;
	if (memcmp(e.e_ident, ELFMAG, SELFMAG) || e.e_ident[EI_CLASS] != ELFCLASS64 ||
	    e.e_ident[EI_DATA] != ELFDATA2LSB)
		return refuse(m, -ENOEXEC, "no 64-bit ELF file of this machine's byte order", m->base);
	if (e.e_machine != elf_own_machine())
		return refuse(m, -ENOEXEC, "an ELF file of another kind of processor", m->base);
	if (e.e_type != ET_DYN || e.e_phentsize != sizeof(Elf64_Phdr) || !e.e_phnum ||
	    e.e_phnum > PHDRS_MAX)
		return refuse(m, -EBADMSG, "ELF header: no shared library", m->base);
	/*
	 * The linker puts the program headers behind the ELF header, and the loader relies on it.
	 */
	if (e.e_phoff > 4096)
		return refuse(m, -EBADMSG, "ELF header: program headers far away", m->base);
	*ret = e;
	return 0;
}

static int add_segment(struct image *m, const Elf64_Phdr *p, uint64_t *low, uint64_t *high)
{
	if (p->p_vaddr + p->p_memsz < p->p_vaddr)
		return refuse(m, -EBADMSG, "program header: segment wraps around", m->base);
	if (p->p_vaddr < *low)
		*low = page_down(p->p_vaddr); /* Where the loader begins to map it. */
	if (p->p_vaddr + p->p_memsz > *high)
		*high = p->p_vaddr + p->p_memsz;
	return 0;
}

static int read_segments(struct image *m)
{
	uint64_t low = UINT64_MAX, high = 0;
	Elf64_Ehdr e;
	int rc = read_header(m, &e);

	if (rc < 0)
		return rc;
	m->high += e.e_phoff;
	for (uint16_t i = 0; i < e.e_phnum; i++) {
		Elf64_Phdr p;

		rc = get(m, "program header", m->base + e.e_phoff + i * sizeof(p), &p, sizeof(p));
		if (rc == 0 && p.p_type == PT_LOAD)
			rc = add_segment(m, &p, &low, &high);
		if (rc < 0)
			return rc;
		if (p.p_type == PT_DYNAMIC) {
			m->dynamic = p.p_vaddr;
			m->dynamic_size = p.p_memsz;
		}
	}
	if (low >= high || !m->dynamic_size)
		return refuse(m, -EBADMSG, "program headers: no segment or no dynamic section",
			      m->base);
	m->bias = m->base - low;
	if (m->base + (high - low) < m->base)
		return refuse(m, -EBADMSG, "program headers: beyond the address space", m->base);
	m->low = m->base;
	m->high = m->base + (high - low);
	m->dynamic += m->bias;
	return 0;
}

/* The loader may have replaced a virtual address by the real one already (glibc does). */
static uint64_t relocated(const struct image *m, uint64_t value)
{
	return value >= m->low && value < m->high ? value : m->bias + value;
}

static int read_tags(struct image *m)
{
	uint64_t n = m->dynamic_size / sizeof(Elf64_Dyn), entry_size = sizeof(Elf64_Sym);

	for (uint64_t i = 0; i < n && i < TAGS_MAX; i++) {
		Elf64_Dyn d;
		int rc = get(m, "dynamic section", m->dynamic + i * sizeof(d), &d, sizeof(d));

		if (rc < 0)
			return rc;
		if (d.d_tag == DT_NULL)
			break;
		if (d.d_tag == DT_SYMTAB)
			m->symtab = relocated(m, d.d_un.d_ptr);
		else if (d.d_tag == DT_STRTAB)
			m->strtab = relocated(m, d.d_un.d_ptr);
		else if (d.d_tag == DT_STRSZ)
			m->strtab_size = d.d_un.d_val;
		else if (d.d_tag == DT_SYMENT)
			entry_size = d.d_un.d_val;
		else if (d.d_tag == DT_HASH)
			m->hash = relocated(m, d.d_un.d_ptr);
		else if (d.d_tag == DT_GNU_HASH)
			m->gnu_hash = relocated(m, d.d_un.d_ptr);
	}
	if (!m->symtab || !m->strtab || entry_size != sizeof(Elf64_Sym))
		return refuse(m, -EBADMSG, "dynamic section: no symbol table", m->dynamic);
	if (!m->hash && !m->gnu_hash)
		return refuse(m, -EBADMSG, "dynamic section: no hash table", m->dynamic);
	return 0;
}

/*
 * Does a symbol have this name?
 * @return 1 and the symbol if it does, 0, -errno.
 */
static int is_named(struct image *m, uint32_t index, const char *name, Elf64_Sym *ret)
{
	size_t size = strlen(name) + 1;
	char text[64];
	Elf64_Sym sym;
	int rc;

	if (index >= SYMBOLS_MAX)
		return refuse(m, -EBADMSG, "hash table: symbol number too large", m->symtab);
	rc = get(m, "symbol table", m->symtab + index * sizeof(sym), &sym, sizeof(sym));
	if (rc < 0)
		return rc;
	if (sym.st_shndx == SHN_UNDEF || sym.st_name > m->strtab_size ||
	    size > m->strtab_size - sym.st_name)
		return 0;
	rc = get(m, "string table", m->strtab + sym.st_name, text, size);
	if (rc < 0 || memcmp(text, name, size))
		return rc;
	*ret = sym;
	return 1;
}

static uint32_t gnu_hash_of(const char *name)
{
	uint32_t h = 5381;

	for (const unsigned char *p = (const unsigned char *)name; *p; p++)
		h = h * 33 + *p;
	return h;
}

static uint32_t sysv_hash_of(const char *name)
{
	uint32_t h = 0;

	for (const unsigned char *p = (const unsigned char *)name; *p; p++) {
		uint32_t top;

		h = (h << 4) + *p;
		top = h & UINT32_C(0xf0000000);
		h = (h ^ top >> 24) & ~top;
	}
	return h;
}

static int find_gnu(struct image *m, const char *name, Elf64_Sym *ret)
{
	struct {
		uint32_t n_buckets, first, n_bloom, shift;
	} head;
	uint32_t h = gnu_hash_of(name), index, value;
	uint64_t buckets, chain, bloom;
	int rc = get(m, "GNU hash table", m->gnu_hash, &head, sizeof(head));

	if (rc < 0)
		return rc;
	if (!head.n_buckets || !head.n_bloom || head.n_buckets > SYMBOLS_MAX ||
	    head.n_bloom > SYMBOLS_MAX)
		return refuse(m, -EBADMSG, "GNU hash table: impossible sizes", m->gnu_hash);
	bloom = m->gnu_hash + sizeof(head);
	buckets = bloom + UINT64_C(8) * head.n_bloom;
	chain = buckets + UINT64_C(4) * head.n_buckets;
	/* The bloom filter only saves time; without it a damaged one cannot hide a symbol. */
	rc = get(m, "GNU hash table", buckets + 4 * (h % head.n_buckets), &index, sizeof(index));
	if (rc < 0 || !index)
		return rc;
	if (index < head.first)
		return refuse(m, -EBADMSG, "GNU hash table: bucket below its first symbol",
			      buckets);
	for (unsigned steps = 0; steps < STEPS_MAX; steps++, index++) {
		rc = get(m, "GNU hash table", chain + UINT64_C(4) * (index - head.first), &value,
			 sizeof(value));
		if (rc == 0 && (value | 1) == (h | 1))
			rc = is_named(m, index, name, ret);
		if (rc != 0 || (value & 1))
			return rc;
	}
	return refuse(m, -EBADMSG, "GNU hash table: chain without an end", chain);
}

static int find_sysv(struct image *m, const char *name, Elf64_Sym *ret)
{
	struct {
		uint32_t n_buckets, n_chain;
	} head;
	uint64_t buckets = m->hash + sizeof(head);
	uint32_t index;
	int rc = get(m, "hash table", m->hash, &head, sizeof(head));

	if (rc < 0)
		return rc;
	if (!head.n_buckets || head.n_buckets > SYMBOLS_MAX || head.n_chain > SYMBOLS_MAX)
		return refuse(m, -EBADMSG, "hash table: impossible sizes", m->hash);
	rc = get(m, "hash table", buckets + 4 * (sysv_hash_of(name) % head.n_buckets), &index,
		 sizeof(index));
	for (unsigned steps = 0; rc == 0 && index != STN_UNDEF; steps++) {
		if (index >= head.n_chain || steps == STEPS_MAX)
			return refuse(m, -EBADMSG, "hash table: chain out of its range", m->hash);
		rc = is_named(m, index, name, ret);
		if (rc == 0)
			rc = get(m, "hash table", buckets + UINT64_C(4) * head.n_buckets +
				 UINT64_C(4) * index, &index, sizeof(index));
	}
	return rc;
}

static int check_symbol(struct image *m, enum cudbgshim_symbol symbol, const Elf64_Sym *sym)
{
	bool is_function = !known[symbol].size;
	uint64_t addr = m->bias + sym->st_value;
	uint64_t span = is_function ? 1 : known[symbol].size;
	const char *what = NULL;

	if (ELF64_ST_TYPE(sym->st_info) != (is_function ? STT_FUNC : STT_OBJECT))
		what = "symbol of another kind";
	else if (!is_function && sym->st_size != known[symbol].size)
		what = "variable of another size";
	else if (addr < m->low || addr >= m->high || span > m->high - addr)
		what = "symbol outside the library";
	if (!what)
		return 0;
	refuse(m, -EPROTO, what, addr);
	m->err->symbol = symbol;
	m->err->size = sym->st_size;
	return -EPROTO;
}

int cudbgshim_symbols_read(const struct cudbgshim_memory *memory, uint64_t base,
			   struct cudbgshim_symbols *ret_symbols,
			   struct cudbgshim_symbols_error *ret_err)
{
	struct cudbgshim_symbols_error ignored;
	struct image m = { .memory = memory, .err = ret_err ? ret_err : &ignored, .base = base };
	struct cudbgshim_symbols found = { { 0 } };
	int rc = read_segments(&m);

	if (rc == 0)
		rc = read_tags(&m);
	if (rc < 0)
		return rc;
	for (enum cudbgshim_symbol s = 0; s < CUDBGSHIM_SYM_COUNT; s++) {
		Elf64_Sym sym;

		rc = m.gnu_hash ? find_gnu(&m, known[s].name, &sym) :
				  find_sysv(&m, known[s].name, &sym);
		if (rc > 0) {
			rc = check_symbol(&m, s, &sym);
			found.addr[s] = m.bias + sym.st_value;
		}
		if (rc < 0)
			return rc;
	}
	*ret_symbols = found;
	return 0;
}
