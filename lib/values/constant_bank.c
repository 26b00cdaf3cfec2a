/* SPDX-License-Identifier: MIT */
#include "values/constant_bank.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define SYMBOLS_MAX (1u << 20)
/* A linked file has one for all kernels; bank 0 has a section for each kernel. */
#define SECTION ".nv.constant3"

static bool is_in_bank(const struct elf_view *v, size_t section)
{
	Elf64_Shdr s;

	if (!section || section >= v->n_sections)
		return false;
	s = elf_view_section(v, section);
	return !strcmp(elf_view_section_name(v, &s), SECTION);
}

/* What is found so far. */
struct found {
	bool is_found, several;
	uint64_t value;
};

static void find_in(const struct elf_view *v, const Elf64_Shdr *table, const char *name, struct found *f)
{
	Elf64_Shdr strings;
	size_t size;
	const uint8_t *bytes = elf_view_bytes(v, table, &size);
	Elf64_Sym s;

	if (!bytes || table->sh_link >= v->n_sections)
		return;
	strings = elf_view_section(v, table->sh_link);
	for (size_t i = 0; i < size / sizeof(s) && i < SYMBOLS_MAX; i++) {
		const char *found;

		memcpy(&s, bytes + i * sizeof(s), sizeof(s));
		if (ELF64_ST_TYPE(s.st_info) != STT_OBJECT || !is_in_bank(v, s.st_shndx))
			continue;
		found = elf_view_string(v, &strings, s.st_name);
		if (!found || strcmp(found, name))
			continue;
		f->several |= f->is_found && f->value != s.st_value;
		f->is_found = true;
		f->value = s.st_value;
	}
}

int values_constant_find(const struct elf_view *cubin, const char *name, uint64_t *ret)
{
	struct found f = { 0 };

	for (size_t i = 1; i < cubin->n_sections; i++) {
		Elf64_Shdr s = elf_view_section(cubin, i);

		if (s.sh_type == SHT_SYMTAB)
			find_in(cubin, &s, name, &f);
	}
	if (!f.is_found)
		return -ENOENT;
	if (f.several)
		return -ENOTUNIQ;
	*ret = f.value;
	return 0;
}
