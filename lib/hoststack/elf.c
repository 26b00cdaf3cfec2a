/* SPDX-License-Identifier: MIT */
#include "hoststack/elf.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define PHDRS_MAX   64
#define DYNAMIC_MAX 256
#define CHAIN_MAX   4096
#define NAME_MAX_   64

/* Read the program headers, and in them the bias and PT_DYNAMIC. */
static int read_headers(struct hoststack_memory *m, uint64_t base, uint64_t *ret_bias, uint64_t *ret_dynamic)
{
	Elf64_Phdr ph[PHDRS_MAX];
	Elf64_Ehdr eh;
	bool has_bias = false;
	int r = hoststack_read(m, base, &eh, sizeof(eh));

	if (r < 0)
		return r == -EFAULT ? -ENOENT : r;
	if (memcmp(eh.e_ident, ELFMAG, SELFMAG) || eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_phnum > PHDRS_MAX ||
	    eh.e_phentsize != sizeof(ph[0]))
		return -ENOENT;
	r = hoststack_read(m, base + eh.e_phoff, ph, eh.e_phnum * sizeof(ph[0]));
	*ret_dynamic = 0;
	for (size_t i = 0; r == 0 && i < eh.e_phnum; i++) {
		if (ph[i].p_type == PT_LOAD && ph[i].p_offset == 0) {
			*ret_bias = base - ph[i].p_vaddr;
			has_bias = true;
		}
		if (ph[i].p_type == PT_DYNAMIC)
			*ret_dynamic = ph[i].p_vaddr;
	}
	if (r < 0)
		return r == -EFAULT ? -ENOENT : r;
	return has_bias && *ret_dynamic ? 0 : -ENOENT;
}

int hoststack_elf_open(struct hoststack_memory *m, uint64_t base, struct hoststack_elf *ret)
{
	struct hoststack_elf e = { 0 };
	uint64_t dynamic;
	int r = read_headers(m, base, &e.bias, &dynamic);

	for (size_t i = 0; r == 0 && i < DYNAMIC_MAX; i++) {
		Elf64_Dyn d;
		uint64_t at;

		r = hoststack_read(m, e.bias + dynamic + i * sizeof(d), &d, sizeof(d));
		if (r < 0 || d.d_tag == DT_NULL)
			break;
		/* glibc has added the bias to these in place, musl has not. */
		at = d.d_un.d_ptr < e.bias ? d.d_un.d_ptr + e.bias : d.d_un.d_ptr;
		if (d.d_tag == DT_SYMTAB)
			e.symbols = at;
		else if (d.d_tag == DT_STRTAB)
			e.strings = at;
		else if (d.d_tag == DT_GNU_HASH)
			e.gnu_hash = at;
		else if (d.d_tag == DT_HASH)
			e.hash = at;
		else if (d.d_tag == DT_SONAME)
			e.soname = d.d_un.d_val;
	}
	if (r == -EFAULT || (r == 0 && (!e.symbols || !e.strings || (!e.gnu_hash && !e.hash))))
		return -ENOENT;
	if (r == 0)
		*ret = e;
	return r;
}

/* @return 1: the symbol of that index is a variable of that name; 0; -errno. */
static int is_symbol(struct hoststack_memory *m, const struct hoststack_elf *e, uint32_t index, const char *name,
		     Elf64_Sym *ret)
{
	char text[NAME_MAX_];
	size_t size = strlen(name) + 1;
	int r = hoststack_read(m, e->symbols + (uint64_t)index * sizeof(*ret), ret, sizeof(*ret));

	if (r < 0 || ELF64_ST_TYPE(ret->st_info) != STT_OBJECT || ret->st_shndx == SHN_UNDEF || size > sizeof(text))
		return r;
	r = hoststack_read(m, e->strings + ret->st_name, text, size);
	return r < 0 ? r : memcmp(text, name, size) == 0;
}

static int find_gnu(struct hoststack_memory *m, const struct hoststack_elf *e, const char *name, Elf64_Sym *ret)
{
	uint32_t head[4], hash = 5381, index, chained;
	uint64_t word, buckets, chains;
	int r = hoststack_read(m, e->gnu_hash, head, sizeof(head));

	for (const char *c = name; *c; c++)
		hash = hash * 33 + (uint8_t)*c;
	if (r == 0 && (!head[0] || !head[2]))
		return -ENOENT;
	if (r == 0)
		r = hoststack_read_u64(m, e->gnu_hash + sizeof(head) + UINT64_C(8) * (hash / 64 % head[2]), &word);
	if (r < 0)
		return r;
	if (!(word >> hash % 64 & 1) || !(word >> (hash >> head[3] % 32) % 64 & 1))
		return -ENOENT;
	buckets = e->gnu_hash + sizeof(head) + UINT64_C(8) * head[2];
	chains = buckets + UINT64_C(4) * head[0];
	r = hoststack_read(m, buckets + UINT64_C(4) * (hash % head[0]), &index, sizeof(index));
	if (r == 0 && index < head[1])
		return -ENOENT;
	for (size_t i = 0; r == 0 && i < CHAIN_MAX; i++, index++) {
		r = hoststack_read(m, chains + UINT64_C(4) * (index - head[1]), &chained, sizeof(chained));
		if (r == 0 && (chained | 1) == (hash | 1)) {
			r = is_symbol(m, e, index, name, ret);
			if (r != 0)
				return r < 0 ? r : 0;
		}
		if (r == 0 && chained & 1)
			break;
	}
	return r < 0 ? r : -ENOENT;
}

static int find_sysv(struct hoststack_memory *m, const struct hoststack_elf *e, const char *name, Elf64_Sym *ret)
{
	uint32_t head[2], hash = 0, index;
	int r = hoststack_read(m, e->hash, head, sizeof(head));

	for (const char *c = name; *c; c++) {
		hash = (hash << 4) + (uint8_t)*c;
		hash = (hash ^ (hash >> 24 & 0xf0)) & 0xfffffff;
	}
	if (r == 0 && !head[0])
		return -ENOENT;
	if (r == 0)
		r = hoststack_read(m, e->hash + sizeof(head) + UINT64_C(4) * (hash % head[0]), &index, sizeof(index));
	for (size_t i = 0; r == 0 && index && index < head[1] && i < CHAIN_MAX; i++) {
		r = is_symbol(m, e, index, name, ret);
		if (r != 0)
			return r < 0 ? r : 0;
		r = hoststack_read(m, e->hash + sizeof(head) + UINT64_C(4) * ((uint64_t)head[0] + index), &index,
				   sizeof(index));
	}
	return r < 0 ? r : -ENOENT;
}

int hoststack_elf_find(struct hoststack_memory *m, const struct hoststack_elf *e, const char *name,
		       uint64_t *ret_address, uint64_t *ret_size)
{
	Elf64_Sym s;
	int r = e->gnu_hash ? find_gnu(m, e, name, &s) : find_sysv(m, e, name, &s);

	if (r < 0)
		return r == -EFAULT ? -ENOENT : r;
	*ret_address = e->bias + s.st_value;
	if (ret_size)
		*ret_size = s.st_size;
	return 0;
}

int hoststack_elf_is_named(struct hoststack_memory *m, const struct hoststack_elf *e, const char *prefix)
{
	char text[NAME_MAX_];
	size_t size = strlen(prefix);
	int r;

	if (!e->soname || size > sizeof(text))
		return 0;
	r = hoststack_read(m, e->strings + e->soname, text, size);
	return r == -EFAULT ? 0 : r < 0 ? r : memcmp(text, prefix, size) == 0;
}
