/* SPDX-License-Identifier: MIT */
#include "symbols/elf_view.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

/* The <elf.h> of some supported systems lacks this. */
#ifndef EM_AMDGPU
#define EM_AMDGPU 224
#endif

#define SECTIONS_MAX 65536
/*
 * Most bytes of a name.  A million symbols may share one endless name, which must not be walked a
 * million times.
 */
#define STRING_MAX 16384

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "headers are copied as they are");

static bool is_inside(const struct elf_view *v, uint64_t offset, uint64_t size)
{
	return offset <= v->size && size <= v->size - offset;
}

static bool is_known_machine(uint16_t machine)
{
	static const uint16_t known[] = { EM_AMDGPU, EM_CUDA, EM_X86_64, EM_AARCH64 };

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (machine == known[i])
			return true;
	return false;
}

Elf64_Phdr elf_view_segment(const struct elf_view *v, size_t i)
{
	Elf64_Phdr p;

	memcpy(&p, v->data + v->header.e_phoff + i * sizeof(p), sizeof(p));
	return p;
}

Elf64_Shdr elf_view_section(const struct elf_view *v, size_t i)
{
	Elf64_Shdr s;

	memcpy(&s, v->data + v->header.e_shoff + i * sizeof(s), sizeof(s));
	return s;
}

/* Find the section table.  Section 0 holds the numbers that do not fit into the header. */
static void find_sections(struct elf_view *v)
{
	const Elf64_Ehdr *h = &v->header;
	size_t n = h->e_shnum, names = h->e_shstrndx;
	Elf64_Shdr first;

	if (!h->e_shoff || h->e_shentsize != sizeof(first) ||
	    !is_inside(v, h->e_shoff, sizeof(first)))
		return;
	first = elf_view_section(v, 0);
	if (!n && first.sh_size <= SECTIONS_MAX)
		n = (size_t)first.sh_size;
	if (names == SHN_XINDEX)
		names = first.sh_link;
	if (n > SECTIONS_MAX || !is_inside(v, h->e_shoff, n * sizeof(first)))
		return;
	v->n_sections = n;
	if (names && names < n)
		v->names = elf_view_section(v, names);
}

int elf_view_init(struct elf_view *v, const void *data, size_t size)
{
	struct elf_view e = { .data = data, .size = size };
	Elf64_Ehdr *h = &e.header;

	if (size < sizeof(*h))
		return -ENOEXEC;
	memcpy(h, data, sizeof(*h));
	if (memcmp(h->e_ident, ELFMAG, SELFMAG) || h->e_ident[EI_CLASS] != ELFCLASS64 ||
	    h->e_ident[EI_DATA] != ELFDATA2LSB || h->e_ident[EI_VERSION] != EV_CURRENT ||
	    !is_known_machine(h->e_machine))
		return -ENOEXEC;
	if (h->e_phnum) {
		if (h->e_phentsize != sizeof(Elf64_Phdr) ||
		    !is_inside(&e, h->e_phoff, h->e_phnum * sizeof(Elf64_Phdr)))
			return -ENOEXEC;
		e.n_segments = h->e_phnum;
	}
	find_sections(&e);
	*v = e;
	return 0;
}

const uint8_t *elf_view_section_data(const struct elf_view *v, const Elf64_Shdr *s)
{
	if (s->sh_type == SHT_NOBITS || s->sh_type == SHT_NULL ||
	    !is_inside(v, s->sh_offset, s->sh_size))
		return NULL;
	return v->data + s->sh_offset;
}

bool elf_view_sections_are_sane(const struct elf_view *v)
{
	for (size_t i = 1; i < v->n_sections; i++) {
		Elf64_Shdr s = elf_view_section(v, i);

		if (s.sh_type != SHT_NOBITS && s.sh_type != SHT_NULL &&
		    !elf_view_section_data(v, &s))
			return false;
	}
	return v->n_sections > 0;
}

const char *elf_view_string(const struct elf_view *v, const Elf64_Shdr *table, uint64_t at)
{
	const uint8_t *data = elf_view_section_data(v, table);
	size_t left;

	if (!data || at >= table->sh_size)
		return "";
	left = (size_t)(table->sh_size - at);
	if (!memchr(data + at, '\0', left < STRING_MAX ? left : STRING_MAX))
		return "";
	return (const char *)data + at;
}

const char *elf_view_section_name(const struct elf_view *v, const Elf64_Shdr *s)
{
	return elf_view_string(v, &v->names, s->sh_name);
}

static size_t padded(uint32_t size)
{
	return ((size_t)size + 3) & ~(size_t)3;
}

/*
 * Find the description of the first note of that owner and type.
 * @param bytes  One note segment.
 * @return NULL when there is none.
 */
static const uint8_t *elf_note_find(const uint8_t *bytes, size_t size, const char *owner, uint32_t type,
				    size_t *ret_size)
{
	size_t owner_size = strlen(owner) + 1;

	while (size >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr n;
		const uint8_t *name = bytes + sizeof(n);
		size_t left = size - sizeof(n);

		memcpy(&n, bytes, sizeof(n));
		if (padded(n.n_namesz) > left || n.n_descsz > left - padded(n.n_namesz))
			return NULL;
		if (n.n_type == type && n.n_namesz == owner_size &&
		    !memcmp(name, owner, owner_size)) {
			*ret_size = n.n_descsz;
			return name + padded(n.n_namesz);
		}
		left -= padded(n.n_namesz);
		if (padded(n.n_descsz) >= left)
			return NULL;
		left -= padded(n.n_descsz);
		bytes += size - left;
		size = left;
	}
	return NULL;
}

const uint8_t *elf_view_note(const struct elf_view *v, const char *owner, uint32_t type,
			     size_t *ret_size)
{
	for (size_t i = 0; i < v->n_segments; i++) {
		Elf64_Phdr p = elf_view_segment(v, i);
		const uint8_t *found;

		if (p.p_type != PT_NOTE || !is_inside(v, p.p_offset, p.p_filesz))
			continue;
		found = elf_note_find(v->data + p.p_offset, (size_t)p.p_filesz, owner, type,
				      ret_size);
		if (found)
			return found;
	}
	return NULL;
}
