/* SPDX-License-Identifier: MIT */
#include "corefile/elf_read.h"

#include <errno.h>
#include <string.h>

#include "base/reader.h"
#include "corefile/compress.h"

/* This bounds the time that a file costs whose names all point to the same long string. */
#define STRING_MAX 4096

static int refuse(struct corefile_problem *error, uint64_t at, const char *why)
{
	corefile_problem_set(error, COREFILE_NO_SECTION, at, "%s", why);
	return -ENOEXEC;
}

static int check_ident(const uint8_t *data, size_t size, struct corefile_problem *error)
{
	if (corefile_is_gzip(data, size))
		return refuse(error, 0, "compressed with gzip: expand it with gunzip first");
	if (corefile_is_zstd(data, size))
		return refuse(error, 0, "compressed with zstd: expand it with unzstd first");
	if (size < SELFMAG || memcmp(data, ELFMAG, SELFMAG))
		return refuse(error, 0, "not an ELF file");
	if (size < sizeof(Elf64_Ehdr))
		return refuse(error, size, "the file ends inside the ELF header");
	if (data[EI_CLASS] != ELFCLASS64 || data[EI_DATA] != ELFDATA2LSB)
		return refuse(error, EI_CLASS, "not a 64-bit little-endian ELF file");
	return 0;
}

/* Counts that do not fit into the 16 bits of the header are in section 0. */
static void count_sections(struct corefile_elf *e, uint32_t n, uint32_t names)
{
	uint64_t fit = (e->size - e->sections_at) / sizeof(Elf64_Shdr);
	Elf64_Shdr first;

	corefile_elf_section(e, 0, &first);
	if (n == 0)
		n = first.sh_size > UINT32_MAX ? UINT32_MAX : (uint32_t)first.sh_size;
	e->n_promised = n;
	e->n_sections = n < fit ? n : (uint32_t)fit;
	e->names = names == SHN_XINDEX ? first.sh_link : names;
}

/* A file without program headers, or with headers of another size, is taken to have none. */
static void count_segments(struct corefile_elf *e)
{
	struct reader r;
	uint32_t entry, n;
	uint64_t fit;

	reader_init(&r, e->data, e->size);
	reader_seek(&r, offsetof(Elf64_Ehdr, e_phoff));
	e->segments_at = reader_u64(&r);
	reader_seek(&r, offsetof(Elf64_Ehdr, e_phentsize));
	entry = reader_u16(&r);
	n = reader_u16(&r);
	if (n == PN_XNUM && e->sections_at && e->sections_at < e->size &&
	    e->size - e->sections_at >= sizeof(Elf64_Shdr)) {
		reader_seek(&r, e->sections_at + offsetof(Elf64_Shdr, sh_info));
		n = reader_u32(&r);
	}
	if (!e->segments_at || entry != sizeof(Elf64_Phdr))
		return;
	fit = e->segments_at < e->size ? (e->size - e->segments_at) / sizeof(Elf64_Phdr) : 0;
	e->n_segments_promised = n;
	e->n_segments = n < fit ? n : (uint32_t)fit;
}

int corefile_elf_open(const void *data, size_t size, struct corefile_elf *ret,
		      struct corefile_problem *error)
{
	struct corefile_elf e = { .data = data, .size = size };
	uint32_t n, names, entry;
	struct reader r;
	int ok = check_ident(data, size, error);

	if (ok < 0)
		return ok;
	e.osabi = e.data[EI_OSABI];
	e.abi_version = e.data[EI_ABIVERSION];
	reader_init(&r, data, size);
	reader_seek(&r, offsetof(Elf64_Ehdr, e_type));
	e.type = reader_u16(&r);
	e.machine = reader_u16(&r);
	reader_seek(&r, offsetof(Elf64_Ehdr, e_shoff));
	e.sections_at = reader_u64(&r);
	reader_seek(&r, offsetof(Elf64_Ehdr, e_shentsize));
	entry = reader_u16(&r);
	n = reader_u16(&r);
	names = reader_u16(&r);
	count_segments(&e);
	if (e.sections_at == 0) {
		*ret = e;
		return 0;
	}
	if (entry != sizeof(Elf64_Shdr))
		return refuse(error, offsetof(Elf64_Ehdr, e_shentsize), "odd section header size");
	if (e.sections_at > size || size - e.sections_at < sizeof(Elf64_Shdr))
		return refuse(error, size, "cut short: the section table is behind the end");
	count_sections(&e, n, names);
	*ret = e;
	return 0;
}

void corefile_elf_section(const struct corefile_elf *e, uint32_t i, Elf64_Shdr *ret)
{
	struct reader r;

	reader_init(&r, e->data, e->size);
	reader_seek(&r, e->sections_at + (uint64_t)i * sizeof(Elf64_Shdr));
	ret->sh_name = reader_u32(&r);
	ret->sh_type = reader_u32(&r);
	ret->sh_flags = reader_u64(&r);
	ret->sh_addr = reader_u64(&r);
	ret->sh_offset = reader_u64(&r);
	ret->sh_size = reader_u64(&r);
	ret->sh_link = reader_u32(&r);
	ret->sh_info = reader_u32(&r);
	ret->sh_addralign = reader_u64(&r);
	ret->sh_entsize = reader_u64(&r);
}

void corefile_elf_segment(const struct corefile_elf *e, uint32_t i, Elf64_Phdr *ret)
{
	struct reader r;

	reader_init(&r, e->data, e->size);
	reader_seek(&r, e->segments_at + (uint64_t)i * sizeof(Elf64_Phdr));
	ret->p_type = reader_u32(&r);
	ret->p_flags = reader_u32(&r);
	ret->p_offset = reader_u64(&r);
	ret->p_vaddr = reader_u64(&r);
	ret->p_paddr = reader_u64(&r);
	ret->p_filesz = reader_u64(&r);
	ret->p_memsz = reader_u64(&r);
	ret->p_align = reader_u64(&r);
}

const void *corefile_elf_bytes(const struct corefile_elf *e, const Elf64_Shdr *section,
			       size_t *ret_size)
{
	uint64_t left;

	if (section->sh_type == SHT_NOBITS || section->sh_offset >= e->size)
		return NULL;
	left = e->size - section->sh_offset;
	*ret_size = section->sh_size < left ? (size_t)section->sh_size : (size_t)left;
	return e->data + section->sh_offset;
}

const char *corefile_elf_string(const struct corefile_elf *e, const Elf64_Shdr *table,
				uint64_t offset)
{
	size_t size;
	const char *s = corefile_elf_bytes(e, table, &size);

	if (!s || offset >= size)
		return NULL;
	size -= offset;
	return memchr(s + offset, '\0', size < STRING_MAX ? size : STRING_MAX) ? s + offset : NULL;
}
