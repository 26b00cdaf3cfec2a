/* SPDX-License-Identifier: MIT */
#include "hoststack/native/module.h"

#include <dwarf.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/reader.h"

#define SEGMENTS_MAX 64
#define NOTES_MAX    4096
#define ENTRIES_MAX  (UINT64_C(1) << 24)
#define ENTRY_MAX    65536
/* One entry of the table that is sorted: function and entry, both from the table's beginning. */
#define TABLE_HEAD   12
#define TABLE_ITEM   8

/* ------------------------------------------------------------------ headers ------------------ */

void native_build_id(const uint8_t *notes, size_t size, char *ret)
{
	struct reader r;

	*ret = '\0';
	reader_init(&r, notes, size);
	while (reader_left(&r)) {
		const uint32_t name_size = reader_u32(&r), value_size = reader_u32(&r), type = reader_u32(&r);
		const char *name = reader_bytes(&r, name_size);
		const uint8_t *value;

		reader_skip(&r, -name_size & 3);
		value = reader_bytes(&r, value_size);
		if (!value)
			return;
		if (type == NT_GNU_BUILD_ID && name_size == 4 && !memcmp(name, "GNU", 4) &&
		    value_size <= NATIVE_BUILD_ID_MAX) {
			for (size_t i = 0; i < value_size; i++)
				sprintf(ret + 2 * i, "%02x", value[i]);
			return;
		}
		reader_skip(&r, -value_size & 3);
	}
}

static void take_load(struct native_module *module, const Elf64_Phdr *p)
{
	const uint64_t begin = module->bias + p->p_vaddr, end = begin + p->p_memsz;

	if (end < begin)
		return;
	if (module->begin == module->end || begin < module->begin)
		module->begin = begin;
	if (end > module->end)
		module->end = end;
	if (p->p_flags & PF_X && module->n_code < NATIVE_CODE_MAX) {
		module->code[module->n_code].begin = begin;
		module->code[module->n_code++].end = end;
	}
}

/* @return 0, what hoststack_read() returns. */
static int take_table(struct hoststack_memory *m, struct native_module *module, const Elf64_Phdr *p)
{
	uint8_t head[TABLE_HEAD];
	int r;

	if (p->p_memsz < TABLE_HEAD)
		return 0;
	r = hoststack_read(m, module->bias + p->p_vaddr, head, sizeof(head));
	if (r < 0 || head[0] != 1 || head[2] != DW_EH_PE_udata4 || head[3] != (DW_EH_PE_datarel | DW_EH_PE_sdata4) ||
	    (head[1] & 0x0f) != DW_EH_PE_sdata4)
		return r;
	module->table = module->bias + p->p_vaddr;
	module->n_entries = hoststack_number(head, 8, 4);
	if (module->n_entries > (p->p_memsz - TABLE_HEAD) / TABLE_ITEM)
		module->n_entries = (p->p_memsz - TABLE_HEAD) / TABLE_ITEM;
	return 0;
}

static int take_notes(struct hoststack_memory *m, struct native_module *module, const Elf64_Phdr *p)
{
	uint8_t notes[NOTES_MAX];
	const size_t size = p->p_memsz < sizeof(notes) ? p->p_memsz : sizeof(notes);
	int r = hoststack_read(m, module->bias + p->p_vaddr, notes, size);

	if (r == 0 && !module->build_id[0])
		native_build_id(notes, size, module->build_id);
	return r;
}

static int take_segments(struct hoststack_memory *m, struct native_module *module, const Elf64_Phdr *ph, size_t n)
{
	bool has_bias = false;
	int r = 0;

	for (size_t i = 0; i < n && !has_bias; i++)
		if (ph[i].p_type == PT_LOAD && ph[i].p_offset == 0) {
			module->bias = module->base - ph[i].p_vaddr;
			has_bias = true;
		}
	if (!has_bias)
		return 0;
	for (size_t i = 0; i < n && !hoststack_is_over(r); i++) {
		if (ph[i].p_type == PT_LOAD)
			take_load(module, &ph[i]);
		else if (ph[i].p_type == PT_GNU_EH_FRAME)
			r = take_table(m, module, &ph[i]);
		else if (ph[i].p_type == PT_NOTE)
			r = take_notes(m, module, &ph[i]);
	}
	module->is_elf = true;
	return hoststack_is_over(r) ? r : 0;
}

int native_module_open(struct hoststack_memory *m, struct native_module *module)
{
	Elf64_Phdr ph[SEGMENTS_MAX];
	Elf64_Ehdr eh;
	int r;

	if (module->is_open)
		return 0;
	module->is_open = true;
	r = hoststack_read(m, module->base, &eh, sizeof(eh));
	if (r < 0)
		return hoststack_is_over(r) ? r : 0;
	if (memcmp(eh.e_ident, ELFMAG, SELFMAG) || eh.e_ident[EI_CLASS] != ELFCLASS64 ||
	    eh.e_machine != module->processor->elf || eh.e_phnum > SEGMENTS_MAX || eh.e_phentsize != sizeof(ph[0]))
		return 0;
	r = hoststack_read(m, module->base + eh.e_phoff, ph, eh.e_phnum * sizeof(ph[0]));
	if (r == 0)
		r = take_segments(m, module, ph, eh.e_phnum);
	if (r == 0 && module->is_elf) {
		r = hoststack_elf_open(m, module->base, &module->elf);
		module->has_symbols = r == 0;
	}
	return hoststack_is_over(r) ? r : 0;
}

bool native_module_has_code(const struct native_module *module, uint64_t pc)
{
	for (size_t i = 0; i < module->n_code; i++)
		if (pc >= module->code[i].begin && pc < module->code[i].end)
			return true;
	return false;
}

/* ------------------------------------------------------------------ unwind table ------------- */

static uint64_t relative(const struct native_module *module, const uint8_t *item, size_t offset)
{
	return module->table + (uint64_t)(int64_t)(int32_t)hoststack_number(item, offset, 4);
}

/* The last function that begins at or before an instruction.  @return 0, -ENOENT, what hoststack_read() returns. */
static int search(struct hoststack_memory *m, const struct native_module *module, uint64_t pc, uint64_t *ret)
{
	uint64_t low = 0, high = module->n_entries;
	uint8_t item[TABLE_ITEM];

	*ret = 0;
	while (low < high) {
		const uint64_t middle = low + (high - low) / 2;
		int r = hoststack_read(m, module->table + TABLE_HEAD + middle * TABLE_ITEM, item, sizeof(item));

		if (r < 0)
			return r;
		if (relative(module, item, 0) <= pc) {
			*ret = relative(module, item, 4);
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return *ret ? 0 : -ENOENT;
}

/*
 * Read an entry without its length.
 * @param bytes  malloc'ed; grows behind @p used.
 */
static int read_entry(struct hoststack_memory *m, const struct native_module *module, uint64_t address,
		      uint8_t **bytes, size_t used, struct native_entry *ret)
{
	uint32_t size;
	uint8_t *grown;
	int r;

	if (address < module->begin || address >= module->end)
		return -EBADMSG;
	r = hoststack_read(m, address, &size, sizeof(size));
	if (r < 0)
		return r;
	if (size < 4 || size > ENTRY_MAX || size > module->end - address)
		return -EBADMSG;
	grown = realloc(*bytes, used + size);
	if (!grown)
		return -ENOMEM;
	*bytes = grown;
	*ret = (struct native_entry){ grown + used, size, address + 4 };
	return hoststack_read(m, address + 4, grown + used, size);
}

int native_module_find_rules(struct hoststack_memory *m, const struct native_module *module, uint64_t pc,
			     struct native_rules *ret, uint8_t **ret_bytes)
{
	auto_free uint8_t *bytes = NULL;
	struct native_entry function, common;
	uint64_t address, distance;
	int r;

	*ret_bytes = NULL;
	if (!module->n_entries)
		return -ENOENT;
	r = search(m, module, pc, &address);
	if (r == 0)
		r = read_entry(m, module, address, &bytes, 0, &function);
	if (r < 0)
		return r;
	/* The common entry lies before it: the distance is from the number itself. */
	distance = hoststack_number(function.bytes, 0, 4);
	if (!distance)
		return -EBADMSG;
	r = read_entry(m, module, function.address - distance, &bytes, function.size, &common);
	function.bytes = bytes;
	if (r == 0)
		r = native_rules_read(module->processor, &common, &function, pc, ret);
	if (r == 0) {
		*ret_bytes = bytes;
		bytes = NULL;
	}
	return r;
}
