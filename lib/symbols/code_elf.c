/* SPDX-License-Identifier: MIT */
#include "symbols/code_elf.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

/* The <elf.h> of some supported systems lacks this. */
#ifndef EM_AMDGPU
#define EM_AMDGPU 224
#endif

#define SECTIONS_MAX 65536

static bool is_known_machine(uint16_t machine)
{
	static const uint16_t known[] = { EM_AMDGPU, EM_CUDA, EM_X86_64, EM_AARCH64 };

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (machine == known[i])
			return true;
	return false;
}

int code_elf_init(struct elf_view *v, const void *data, size_t size)
{
	struct elf_view e;
	int r = elf_view_init(&e, data, size);

	if (r < 0)
		return r;
	if (e.header.e_ident[EI_VERSION] != EV_CURRENT || !is_known_machine(e.header.e_machine))
		return -ENOEXEC;
	if (e.n_segments < e.n_segments_promised ||
	    (e.header.e_phnum && e.header.e_phentsize != sizeof(Elf64_Phdr)))
		return -ENOEXEC;
	if (e.n_sections < e.n_sections_promised || e.n_sections > SECTIONS_MAX) {
		e.n_sections = 0;
		e.names = (Elf64_Shdr){ 0 };
	}
	*v = e;
	return 0;
}

const uint8_t *code_elf_section_data(const struct elf_view *v, const Elf64_Shdr *s)
{
	size_t size;
	const uint8_t *data = elf_view_bytes(v, s, &size);

	return data && size == s->sh_size ? data : NULL;
}

bool code_elf_sections_are_sane(const struct elf_view *v)
{
	for (size_t i = 1; i < v->n_sections; i++) {
		Elf64_Shdr s = elf_view_section(v, i);

		if (s.sh_type != SHT_NOBITS && s.sh_type != SHT_NULL &&
		    !code_elf_section_data(v, &s))
			return false;
	}
	return v->n_sections > 0;
}

const uint8_t *code_elf_note(const struct elf_view *v, const char *owner, uint32_t type,
			     size_t *ret_size)
{
	for (size_t i = 0; i < v->n_segments; i++) {
		Elf64_Phdr p = elf_view_segment(v, i);
		const uint8_t *bytes;
		struct elf_note note;
		struct reader r;
		size_t size;

		bytes = elf_view_range(v, p.p_offset, p.p_filesz, &size);
		if (p.p_type != PT_NOTE || !bytes || size < p.p_filesz)
			continue;
		reader_init(&r, bytes, size);
		while (elf_note_next(&r, &note) > 0)
			if (note.type == type && !strcmp(note.name, owner)) {
				*ret_size = note.size;
				return note.desc;
			}
	}
	return NULL;
}
