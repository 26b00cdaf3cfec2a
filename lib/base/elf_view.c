/* SPDX-License-Identifier: MIT */
#include "base/elf_view.h"

#include <errno.h>
#include <string.h>

/*
 * Most bytes of a string.  A million names may share one endless string, which must not be walked a
 * million times.
 */
#define STRING_MAX 16384

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "headers are copied as they are");

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

/* @return how many headers of that size fit between an offset and the end of the file. */
static uint64_t room_for(const struct elf_view *v, uint64_t offset, size_t size)
{
	return offset && offset < v->size ? (v->size - offset) / size : 0;
}

static uint32_t at_most(uint64_t v, uint64_t max)
{
	return (uint32_t)(v < max ? v : max);
}

/* Count segments and sections.  Section 0 holds the numbers that do not fit into the header. */
static void count(struct elf_view *v)
{
	const Elf64_Ehdr *h = &v->header;
	uint64_t sections = room_for(v, h->e_shoff, sizeof(Elf64_Shdr));
	uint64_t segments = room_for(v, h->e_phoff, sizeof(Elf64_Phdr)), n = h->e_shnum;
	Elf64_Shdr first = { 0 };
	uint32_t names = h->e_shstrndx;

	if (sections)
		first = elf_view_section(v, 0);
	if (h->e_phoff && h->e_phentsize == sizeof(Elf64_Phdr)) {
		v->n_segments_promised = h->e_phnum == PN_XNUM && sections ? first.sh_info :
									       h->e_phnum;
		v->n_segments = at_most(v->n_segments_promised, segments);
	}
	if (!sections || h->e_shentsize != sizeof(Elf64_Shdr))
		return;
	v->n_sections_promised = at_most(n ? n : first.sh_size, UINT32_MAX);
	v->n_sections = at_most(v->n_sections_promised, sections);
	if (names == SHN_XINDEX)
		names = first.sh_link;
	if (names && names < v->n_sections)
		v->names = elf_view_section(v, names);
}

int elf_view_init(struct elf_view *ret, const void *data, size_t size)
{
	struct elf_view v = { .data = data, .size = size };
	const Elf64_Ehdr *h = &v.header;

	if (size < sizeof(*h))
		return -ENOEXEC;
	memcpy(&v.header, data, sizeof(*h));
	if (memcmp(h->e_ident, ELFMAG, SELFMAG) || h->e_ident[EI_CLASS] != ELFCLASS64 ||
	    h->e_ident[EI_DATA] != ELFDATA2LSB)
		return -ENOEXEC;
	count(&v);
	*ret = v;
	return 0;
}

const uint8_t *elf_view_range(const struct elf_view *v, uint64_t offset, uint64_t size,
			      size_t *ret_size)
{
	if (offset > v->size)
		return NULL;
	*ret_size = size < v->size - offset ? (size_t)size : (size_t)(v->size - offset);
	return v->data + offset;
}

const uint8_t *elf_view_bytes(const struct elf_view *v, const Elf64_Shdr *s, size_t *ret_size)
{
	if (s->sh_type == SHT_NOBITS || s->sh_type == SHT_NULL)
		return NULL;
	return elf_view_range(v, s->sh_offset, s->sh_size, ret_size);
}

const char *elf_view_string(const struct elf_view *v, const Elf64_Shdr *table, uint64_t at)
{
	size_t size;
	const uint8_t *s = elf_view_bytes(v, table, &size);

	if (!s || at >= size)
		return NULL;
	size -= at;
	return memchr(s + at, '\0', size < STRING_MAX ? size : STRING_MAX) ? (const char *)s + at :
									     NULL;
}

const char *elf_view_section_name(const struct elf_view *v, const Elf64_Shdr *s)
{
	const char *name = elf_view_string(v, &v->names, s->sh_name);

	return name ? name : "";
}

/* The last note may end without padding. */
static void skip_to_4(struct reader *r)
{
	size_t n = (4 - r->pos % 4) % 4;

	reader_skip(r, n < reader_left(r) ? n : reader_left(r));
}

int elf_note_next(struct reader *r, struct elf_note *ret)
{
	struct elf_note n = { .name = "" };
	uint32_t name_size;

	if (reader_left(r) == 0)
		return 0;
	name_size = reader_u32(r);
	n.size = reader_u32(r);
	n.type = reader_u32(r);
	if (name_size)
		n.name = reader_bytes(r, name_size);
	skip_to_4(r);
	n.desc_at = r->pos;
	n.desc = reader_bytes(r, n.size);
	skip_to_4(r);
	if (reader_is_bad(r) || (name_size && n.name[name_size - 1]))
		return -EBADMSG;
	*ret = n;
	return 1;
}

uint64_t elf_auxv_find(const void *auxv, size_t size, uint64_t type)
{
	Elf64_auxv_t entry;

	for (size_t at = 0; at + sizeof(entry) <= size; at += sizeof(entry)) {
		memcpy(&entry, (const char *)auxv + at, sizeof(entry));
		if (entry.a_type == type)
			return entry.a_un.a_val;
	}
	return 0;
}

/* The compiler says it.  The linker's __ehdr_start is where the header was: patchelf may put a page in front of it. */
uint16_t elf_own_machine(void)
{
#if defined(__x86_64__)
	return EM_X86_64;
#elif defined(__aarch64__)
	return EM_AARCH64;
#else
#error "which e_machine have programs of this processor?"
#endif
}
