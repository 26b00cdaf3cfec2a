/* SPDX-License-Identifier: MIT */
#include "symbols/debug/relocate.h"

#include <stdbool.h>
#include <string.h>

#define R_CUDA_64 2 /* A whole address; the other types are parts of instructions and of banks. */

/* Limits for one file: no file that a compiler made and symbols_image_create() takes has more. */
#define SECTIONS_MAX 64u
#define ENTRIES_MAX  (1u << 22)

struct relocation {
	const uint8_t *entries, *symbols;
	uint8_t *target;
	uint64_t n, n_symbols, target_size;
	bool has_addend;
};

static bool is_inside(uint64_t address, const Elf64_Shdr *code)
{
	return address >= code->sh_addr && address - code->sh_addr <= code->sh_size;
}

static bool is_placed_code(const struct elf_view *v, size_t section, Elf64_Shdr *ret)
{
	if (!section || section >= v->n_sections)
		return false;
	*ret = elf_view_section(v, section);
	return ret->sh_type == SHT_PROGBITS && ret->sh_flags & SHF_EXECINSTR && ret->sh_addr;
}

static void apply(const struct elf_view *v, const struct relocation *r, const Elf64_Rela *e)
{
	uint64_t index = ELF64_R_SYM(e->r_info), value, offset;
	Elf64_Shdr code;
	Elf64_Sym s;

	if (ELF64_R_TYPE(e->r_info) != R_CUDA_64 || index >= r->n_symbols ||
	    r->target_size < sizeof(value) || e->r_offset > r->target_size - sizeof(value))
		return;
	memcpy(&s, r->symbols + index * sizeof(s), sizeof(s));
	memcpy(&value, r->target + e->r_offset, sizeof(value));
	if (!is_placed_code(v, s.st_shndx, &code) || is_inside(value, &code))
		return;
	/* The symbol's value may be an address already, or still an offset. */
	offset = is_inside(s.st_value, &code) ? s.st_value - code.sh_addr : s.st_value;
	offset += r->has_addend ? (uint64_t)e->r_addend : value;
	if (offset > code.sh_size)
		return;
	value = code.sh_addr + offset;
	memcpy(r->target + e->r_offset, &value, sizeof(value));
}

static bool overlap(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
	return a < b + b_size && b < a + a_size;
}

/*
 * Does nothing but the section itself lie in its bytes?  Only then everything that was found to be
 * sane stays so when it is written to.
 */
static bool lies_alone(const struct elf_view *v, size_t section)
{
	const Elf64_Ehdr *h = &v->header;
	Elf64_Shdr t = elf_view_section(v, section);

	if (overlap(t.sh_offset, t.sh_size, 0, sizeof(*h)) ||
	    overlap(t.sh_offset, t.sh_size, h->e_shoff, v->n_sections * sizeof(t)) ||
	    overlap(t.sh_offset, t.sh_size, h->e_phoff, v->n_segments * sizeof(Elf64_Phdr)))
		return false;
	for (size_t i = 1; i < v->n_sections; i++) {
		Elf64_Shdr s = elf_view_section(v, i);

		if (i != section && code_elf_section_data(v, &s) &&
		    overlap(t.sh_offset, t.sh_size, s.sh_offset, s.sh_size))
			return false;
	}
	return true;
}

static bool read_header(const struct elf_view *v, uint8_t *bytes, const Elf64_Shdr *s,
			struct relocation *ret)
{
	Elf64_Shdr target, symbols;

	if ((s->sh_type != SHT_RELA && s->sh_type != SHT_REL) || !s->sh_info ||
	    s->sh_info >= v->n_sections || s->sh_link >= v->n_sections)
		return false;
	target = elf_view_section(v, s->sh_info);
	symbols = elf_view_section(v, s->sh_link);
	if (target.sh_type != SHT_PROGBITS || target.sh_flags & SHF_COMPRESSED ||
	    strncmp(elf_view_section_name(v, &target), ".debug_", 7) ||
	    symbols.sh_type != SHT_SYMTAB)
		return false;
	ret->entries = code_elf_section_data(v, s);
	ret->symbols = code_elf_section_data(v, &symbols);
	if (!ret->entries || !ret->symbols || !code_elf_section_data(v, &target))
		return false;
	ret->has_addend = s->sh_type == SHT_RELA;
	ret->n = s->sh_size / (ret->has_addend ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel));
	ret->n_symbols = symbols.sh_size / sizeof(Elf64_Sym);
	ret->target = bytes + target.sh_offset;
	ret->target_size = target.sh_size;
	return true;
}

void relocate_debug_sections(const struct elf_view *v, uint8_t *bytes)
{
	uint64_t left = ENTRIES_MAX;
	unsigned n = 0;

	for (size_t i = 1; i < v->n_sections && left && n < SECTIONS_MAX; i++) {
		Elf64_Shdr s = elf_view_section(v, i);
		struct relocation r;
		size_t step;

		if (!read_header(v, bytes, &s, &r))
			continue;
		n++;
		if (!lies_alone(v, s.sh_info))
			continue;
		step = r.has_addend ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
		for (uint64_t k = 0; k < r.n && left; k++, left--) {
			Elf64_Rela e = { 0 };

			memcpy(&e, r.entries + k * step, step);
			apply(v, &r, &e);
		}
	}
}
