/* SPDX-License-Identifier: MIT */
#include "hoststack/native/debug_symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "hoststack/native/module.h"

#define SECTIONS_MAX 4096
#define NOTES_MAX    4096

/* @return 1, 0, what hoststack_read() returns. */
static int is_of_build(struct hoststack_memory *m, const Elf64_Shdr *s, const char *build_id)
{
	char found[2 * NATIVE_BUILD_ID_MAX + 1];
	uint8_t notes[NOTES_MAX];
	const size_t size = s->sh_size < sizeof(notes) ? s->sh_size : sizeof(notes);
	int r = hoststack_read(m, s->sh_offset, notes, size);

	if (r < 0)
		return hoststack_is_over(r) ? r : 0;
	native_build_id(notes, size, found);
	return found[0] && !strcmp(found, build_id);
}

static int check_build(struct hoststack_memory *m, const Elf64_Shdr *sections, size_t n, const char *build_id)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		if (sections[i].sh_type == SHT_NOTE)
			r = is_of_build(m, &sections[i], build_id);
	return r == 0 ? -ENOENT : r < 0 ? r : 0;
}

static int find_symbols(const Elf64_Shdr *sections, size_t n, struct hoststack_elf *ret)
{
	for (size_t i = 0; i < n; i++) {
		const Elf64_Shdr *s = &sections[i];

		if (s->sh_type != SHT_SYMTAB || s->sh_entsize != sizeof(Elf64_Sym) || s->sh_link >= n ||
		    sections[s->sh_link].sh_type != SHT_STRTAB || s->sh_size / sizeof(Elf64_Sym) > UINT32_MAX)
			continue;
		*ret = (struct hoststack_elf){
			.symbols = s->sh_offset, .strings = sections[s->sh_link].sh_offset,
			.n_symbols = (uint32_t)(s->sh_size / sizeof(Elf64_Sym)),
		};
		return ret->n_symbols ? 0 : -ENOENT;
	}
	return -ENOENT;
}

int native_sections_read(struct hoststack_memory *m, Elf64_Ehdr *ret_header, Elf64_Shdr **ret)
{
	auto_free Elf64_Shdr *sections = NULL;
	Elf64_Ehdr eh;
	int r = hoststack_read(m, 0, &eh, sizeof(eh));

	if (r == 0 && (memcmp(eh.e_ident, ELFMAG, SELFMAG) || eh.e_ident[EI_CLASS] != ELFCLASS64 ||
		       eh.e_ident[EI_DATA] != ELFDATA2LSB || eh.e_shentsize != sizeof(*sections) ||
		       eh.e_shnum > SECTIONS_MAX))
		return -ENOENT;
	if (r == 0) {
		sections = calloc(eh.e_shnum + 1U, sizeof(*sections));
		if (!sections)
			return -ENOMEM;
		r = hoststack_read(m, eh.e_shoff, sections, eh.e_shnum * sizeof(*sections));
	}
	if (r < 0)
		return r == -EFAULT ? -ENOENT : r;
	*ret_header = eh;
	*ret = TAKE_PTR(sections);
	return 0;
}

int native_debug_symbols_open(struct hoststack_memory *m, const char *build_id, struct hoststack_elf *ret)
{
	auto_free Elf64_Shdr *sections = NULL;
	Elf64_Ehdr eh;
	int r = native_sections_read(m, &eh, &sections);

	if (r == 0 && build_id)
		r = check_build(m, sections, eh.e_shnum, build_id);
	if (r == 0)
		r = find_symbols(sections, eh.e_shnum, ret);
	return r == -EFAULT ? -ENOENT : r;
}
