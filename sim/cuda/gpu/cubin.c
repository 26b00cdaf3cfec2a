/* SPDX-License-Identifier: MIT */
/*
 * A cubin is an ELF file with one .text.KERNEL section per kernel, each starting at 0.  Loading
 * gives every section an address; the relocated image is the file with these addresses filled in:
 * section headers, symbols, and the 64-bit relocations of the debug sections.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define R_CUDA_64      2
#define STO_CUDA_ENTRY 0x10
#define SHT_CUDA_INFO  SHT_LOPROC
/*
 * Attributes in that section: format, code, then a value of 16 bits, which is a size where the
 * format says so.
 */
#define INFO_SIZED     4
#define INFO_REGCOUNT  0x2f /* Its value: symbol, registers. */
#define INFO_PARAMS    0x0a /* Its value: symbol, then place and bytes of 16 bits each. */
#define SECTIONS_MAX   4096
#define DATA_MAX       (UINT64_C(64) << 20)
#define CODE_ALIGNMENT 256
#define DATA_ALIGNMENT 4096 /* Device memory comes in pages. */

struct cubin {
	uint8_t *image; /* The relocated copy: read first, then changed. */
	size_t size;
	Elf64_Ehdr head;
	Elf64_Shdr *sections;
};

static uint64_t align(uint64_t n, uint64_t to)
{
	return (n + to - 1) & ~(to - 1);
}

/* Whether a range lies inside the file. */
static bool inside(const struct cubin *c, uint64_t offset, uint64_t size)
{
	return offset <= c->size && size <= c->size - offset;
}

/* Read the section headers, and check that all contents lie inside. */
static int sections_read(struct cubin *c)
{
	size_t n;

	if (c->size < sizeof(c->head))
		return -EBADMSG;
	memcpy(&c->head, c->image, sizeof(c->head));
	n = c->head.e_shnum;
	if (memcmp(c->head.e_ident, ELFMAG, SELFMAG) || c->head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    c->head.e_ident[EI_DATA] != ELFDATA2LSB || c->head.e_shentsize != sizeof(Elf64_Shdr) ||
	    !n || n > SECTIONS_MAX || !inside(c, c->head.e_shoff, n * sizeof(Elf64_Shdr)))
		return -EBADMSG;
	c->sections = malloc(n * sizeof(Elf64_Shdr));
	if (!c->sections)
		return -ENOMEM;
	memcpy(c->sections, c->image + c->head.e_shoff, n * sizeof(Elf64_Shdr));
	for (size_t i = 0; i < n; i++)
		if (c->sections[i].sh_type != SHT_NOBITS &&
		    !inside(c, c->sections[i].sh_offset, c->sections[i].sh_size))
			return -EBADMSG;
	return 0;
}

/* Whether a section has instructions. */
static bool is_code(const struct cubin *c, size_t i)
{
	return i < c->head.e_shnum && c->sections[i].sh_type == SHT_PROGBITS &&
	       c->sections[i].sh_flags & SHF_EXECINSTR;
}

/* A string of a table; NULL if it does not end inside. */
static const char *string_at(const struct cubin *c, const Elf64_Shdr *strings, uint64_t offset)
{
	const char *s = (const char *)c->image + strings->sh_offset;

	if (strings->sh_type == SHT_NOBITS || offset >= strings->sh_size ||
	    !memchr(s + offset, 0, strings->sh_size - offset))
		return NULL;
	return s + offset;
}

/* The name of a section; "" when it has none. */
static const char *section_name(const struct cubin *c, const Elf64_Shdr *s)
{
	const char *name = c->head.e_shstrndx < c->head.e_shnum ?
				   string_at(c, &c->sections[c->head.e_shstrndx], s->sh_name) :
				   NULL;

	return name ? name : "";
}

/* Whether a section has variables of device memory, or the bank of constant memory for them. */
static bool is_data(const struct cubin *c, const Elf64_Shdr *s, bool *ret_constant)
{
	const char *name = section_name(c, s);

	*ret_constant = !strcmp(name, ".nv.constant3");
	return s->sh_size && s->sh_size <= DATA_MAX &&
	       (*ret_constant || !strcmp(name, ".nv.global") || !strcmp(name, ".nv.global.init"));
}

/* Make the memory of a section, filled as the file says. */
static int data_add(struct cubin *c, struct sim_module *m, const Elf64_Shdr *s, bool constant, uint64_t address)
{
	uint64_t size = align(s->sh_size, DATA_ALIGNMENT);
	struct sim_data *d = calloc(1, sizeof(*d) + size);

	if (!d)
		return -ENOMEM;
	d->constant = constant;
	d->address = address;
	d->size = constant ? s->sh_size : size;
	if (s->sh_type != SHT_NOBITS)
		memcpy(d->bytes, c->image + s->sh_offset, s->sh_size);
	d->next = m->data;
	m->data = d;
	return 0;
}

/*
 * Give variables their memory, behind the code.  Sections of device memory get its addresses; symbols of
 * constant memory stay offsets in the bank.
 */
static int data_assign(struct cubin *c, struct sim_module *m, uint64_t *at)
{
	bool constant;
	int r = 0;

	for (size_t i = 1; i < c->head.e_shnum && !r; i++) {
		Elf64_Shdr *s = &c->sections[i];

		if (!is_data(c, s, &constant))
			continue;
		*at = align(*at, DATA_ALIGNMENT);
		r = data_add(c, m, s, constant, *at);
		if (!constant)
			s->sh_addr = *at;
		*at += align(s->sh_size, DATA_ALIGNMENT);
	}
	return r;
}

/* Give sections with code their addresses.  @return the first address behind them. */
static uint64_t addresses_assign(struct cubin *c, uint64_t base)
{
	for (size_t i = 0; i < c->head.e_shnum; i++) {
		if (!is_code(c, i))
			continue;
		c->sections[i].sh_addr = base;
		base += align(c->sections[i].sh_size, CODE_ALIGNMENT);
	}
	return base;
}

/* Add a function, whose code must lie inside its section. */
static int function_add(struct cubin *c, struct sim_module *m, const Elf64_Sym *s, uint32_t symbol,
			const char *name)
{
	const Elf64_Shdr *text = &c->sections[s->st_shndx];
	struct sim_function *f;

	if (s->st_value > text->sh_size || s->st_size > text->sh_size - s->st_value)
		return -EBADMSG;
	f = realloc(m->functions, (m->n_functions + 1) * sizeof(*f));
	if (!f)
		return -ENOMEM;
	m->functions = f;
	f += m->n_functions;
	*f = (struct sim_function){
		.name = strdup(name),
		.address = text->sh_addr + s->st_value,
		.size = s->st_size,
		.file_offset = text->sh_offset + s->st_value,
		.section = s->st_shndx,
		.symbol = symbol,
		.entry = s->st_other & STO_CUDA_ENTRY,
	};
	if (!f->name)
		return -ENOMEM;
	m->n_functions++;
	return 0;
}

/* Make functions of symbols, and write their addresses into the image. */
static int symbols_read(struct cubin *c, const Elf64_Shdr *table, struct sim_module *m)
{
	int r = 0;

	if (table->sh_link >= c->head.e_shnum)
		return -EBADMSG;
	for (uint64_t at = 0; !r && table->sh_size - at >= sizeof(Elf64_Sym);
	     at += sizeof(Elf64_Sym)) {
		uint8_t *place = c->image + table->sh_offset + at;
		const char *name;
		Elf64_Sym s;

		memcpy(&s, place, sizeof(s));
		if (!s.st_shndx || s.st_shndx >= c->head.e_shnum)
			continue;
		name = string_at(c, &c->sections[table->sh_link], s.st_name);
		if (is_code(c, s.st_shndx) && ELF64_ST_TYPE(s.st_info) == STT_FUNC && name)
			r = function_add(c, m, &s, (uint32_t)(at / sizeof(s)), name);
		s.st_value += c->sections[s.st_shndx].sh_addr;
		memcpy(place, &s, sizeof(s));
	}
	return r;
}

/* Note how many registers the function of a symbol uses. */
static void set_registers(struct sim_module *m, uint32_t symbol, uint32_t n)
{
	for (size_t i = 0; i < m->n_functions; i++)
		if (m->functions[i].symbol == symbol)
			m->functions[i].registers = n;
}

/* Note where the function that is in a section has its parameters. */
static void set_params(struct sim_module *m, uint32_t section, uint32_t packed)
{
	for (size_t i = 0; i < m->n_functions; i++)
		if (m->functions[i].section == section && m->functions[i].entry) {
			m->functions[i].params_at = packed & 0xffff;
			m->functions[i].params_size = packed >> 16;
		}
}

/* Read the attributes of functions: how many registers they use, and their parameters. */
static void info_read(const struct cubin *c, const Elf64_Shdr *info, struct sim_module *m)
{
	const uint8_t *bytes = c->image + info->sh_offset;
	uint64_t at = 0;

	while (info->sh_size - at >= 4) {
		uint32_t value[2];
		uint16_t size;

		memcpy(&size, bytes + at + 2, sizeof(size));
		if (bytes[at] != INFO_SIZED)
			size = 0;
		if (size > info->sh_size - at - 4)
			return;
		if (size == sizeof(value) && bytes[at + 1] == INFO_REGCOUNT) {
			memcpy(value, bytes + at + 4, sizeof(value));
			set_registers(m, value[0], value[1]);
		}
		/* A section that is about one function has the number of its code in sh_info. */
		if (size == sizeof(value) && bytes[at + 1] == INFO_PARAMS) {
			memcpy(value, bytes + at + 4, sizeof(value));
			set_params(m, info->sh_info, value[1]);
		}
		at += 4 + size;
	}
}

/* Apply a relocation of 64 bits; others are left alone. */
static int relocate_one(struct cubin *c, const Elf64_Shdr *rel, const Elf64_Rela *e)
{
	const Elf64_Shdr *to = &c->sections[rel->sh_info], *symbols = &c->sections[rel->sh_link];
	uint64_t index = ELF64_R_SYM(e->r_info), value;
	Elf64_Sym s;

	if (ELF64_R_TYPE(e->r_info) != R_CUDA_64)
		return 0;
	if (index >= symbols->sh_size / sizeof(s) || to->sh_size < 8 ||
	    e->r_offset > to->sh_size - 8)
		return -EBADMSG;
	memcpy(&s, c->image + symbols->sh_offset + index * sizeof(s), sizeof(s));
	memcpy(&value, c->image + to->sh_offset + e->r_offset, sizeof(value));
	value = s.st_value + (rel->sh_type == SHT_RELA ? (uint64_t)e->r_addend : value);
	memcpy(c->image + to->sh_offset + e->r_offset, &value, sizeof(value));
	return 0;
}

/* Apply the relocations of a section, unless it is code. */
static int relocate(struct cubin *c, const Elf64_Shdr *rel)
{
	size_t step = rel->sh_type == SHT_RELA ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
	int r = 0;

	if (rel->sh_info >= c->head.e_shnum || rel->sh_link >= c->head.e_shnum ||
	    c->sections[rel->sh_info].sh_type == SHT_NOBITS ||
	    c->sections[rel->sh_link].sh_type != SHT_SYMTAB)
		return -EBADMSG;
	if (is_code(c, rel->sh_info))
		return 0; /* Instructions are not executed here. */
	for (uint64_t at = 0; !r && rel->sh_size - at >= step; at += step) {
		Elf64_Rela e = { 0 };

		memcpy(&e, c->image + rel->sh_offset + at, step);
		r = relocate_one(c, rel, &e);
	}
	return r;
}

/* Read and relocate the image; functions must be known before their attributes. */
static int image_process(struct cubin *c, uint64_t base, struct sim_module *m, uint64_t *ret_end)
{
	int r = sections_read(c);

	if (r)
		return r;
	*ret_end = addresses_assign(c, base);
	r = data_assign(c, m, ret_end);
	memcpy(c->image + c->head.e_shoff, c->sections, c->head.e_shnum * sizeof(Elf64_Shdr));
	for (size_t i = 0; i < c->head.e_shnum && !r; i++)
		if (c->sections[i].sh_type == SHT_SYMTAB)
			r = symbols_read(c, &c->sections[i], m);
	for (size_t i = 0; i < c->head.e_shnum && !r; i++)
		if (c->sections[i].sh_type == SHT_CUDA_INFO)
			info_read(c, &c->sections[i], m);
	for (size_t i = 0; i < c->head.e_shnum && !r; i++)
		if (c->sections[i].sh_type == SHT_RELA || c->sections[i].sh_type == SHT_REL)
			r = relocate(c, &c->sections[i]);
	return r;
}

int cubin_load(const uint8_t *image, size_t size, uint64_t base, struct sim_module *m,
	       uint64_t *ret_end)
{
	struct cubin c = { .size = size };
	int r;

	m->image = malloc(size + 1);
	m->relocated = malloc(size + 1);
	if (!m->image || !m->relocated)
		return -ENOMEM;
	memcpy(m->image, image, size);
	memcpy(m->relocated, image, size);
	m->size = size;
	c.image = m->relocated;
	r = image_process(&c, base, m, ret_end);
	free(c.sections);
	return r;
}

void cubin_unload(struct sim_module *m)
{
	for (size_t i = 0; i < m->n_functions; i++)
		free(m->functions[i].name);
	free(m->functions);
	while (m->data) {
		struct sim_data *d = m->data;

		m->data = d->next;
		free(d);
	}
	free(m->image);
	free(m->relocated);
}
