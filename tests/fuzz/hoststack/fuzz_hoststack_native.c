/* SPDX-License-Identifier: MIT */
/* Memory of a process with a loaded file, its unwind table, its symbols and a stack. */
#include <errno.h>
#include <string.h>

#include "fuzzlib.h"
#include "hoststack/native/debug_link.h"
#include "hoststack/native/debug_symbols.h"
#include "hoststack/native/expression.h"
#include "hoststack/native/leaf.h"
#include "hoststack/native/recovery.h"

#define BASE UINT64_C(0x10000)
/* More than one search for a caller may read. */
#define BYTES (UINT64_C(4) << 20)

struct image {
	const uint8_t *data;
	size_t size;
};

static int read_image(void *ctx, const struct hoststack_piece *pieces, size_t n)
{
	const struct image *i = ctx;

	for (size_t k = 0; k < n; k++) {
		/* Small addresses lead somewhere, too, so that mutations reach far. */
		uint64_t at = pieces[k].address >= BASE ? pieces[k].address - BASE : pieces[k].address;

		memset(pieces[k].buf, 0, pieces[k].size);
		if (at >= i->size)
			return -EFAULT;
		memcpy(pieces[k].buf, i->data + at, pieces[k].size < i->size - at ? pieces[k].size : i->size - at);
	}
	return 0;
}

static void walk(const struct native_processor *p, struct hoststack_memory *m, uint64_t pc, uint64_t sp)
{
	struct native_module module = { .base = BASE, .processor = p, .name = "file" };
	struct native_unwinder u = { .processor = p, .modules = &module, .n_modules = 1, .stack = { .memory = m } };
	struct native_registers registers = { .known = 0 };
	struct native_walk w;
	uint64_t begin;

	native_registers_set(&registers, p->stack_pointer, sp);
	native_registers_set(&registers, p->instruction, pc);
	native_stack_copy_begin(&u.stack, sp);
	native_walk_begin(&w, pc);
	if (native_walk_on(&u, &w, &registers) == 0 && native_leaf_recover(&u, &w, &registers) == 0)
		native_recover(&u, &w, &registers);
	for (size_t i = 0; module.has_symbols && i < w.n; i++)
		native_symbols_name(&module.symbols, m, &module.elf, w.frames[i].pc, w.frames[i].function, &begin);
	native_symbols_free(&module.symbols);
	native_unwinder_deinit(&u);
}

/* A thread that stood still: all registers, and the file's bytes as the copy of its stack. */
static void walk_copy(const struct native_processor *p, struct hoststack_memory *m, const struct image *image,
		      uint64_t pc, uint64_t sp)
{
	struct native_module module = { .base = BASE, .processor = p, .name = "file" };
	struct native_unwinder u = { .processor = p, .modules = &module, .n_modules = 1, .stack = { .memory = m } };
	struct native_registers registers = { .known = 0 };
	struct native_walk w;

	for (unsigned i = 0; i < p->n_registers; i++)
		native_registers_set(&registers, i, sp + 8 * (uint64_t)i);
	native_registers_set(&registers, p->stack_pointer, sp);
	native_registers_set(&registers, p->instruction, pc);
	if (native_stack_copy_take(&u.stack, sp, image->data, image->size) == 0) {
		native_walk_begin(&w, pc);
		native_walk_on(&u, &w, &registers);
	}
	native_symbols_free(&module.symbols);
	native_unwinder_deinit(&u);
}

/* The bytes as one entry for a kind of functions and one for a function, and as an expression. */
static void read_pieces(struct hoststack_memory *m, const uint8_t *data, size_t size)
{
	const size_t half = size / 2;
	const struct native_entry common = { data, half, BASE }, function = { data + half, size - half, BASE + half };
	struct native_stack_copy stack = { .memory = m };
	struct native_registers registers = { .values = { 1, 2, 3, 4, 5, 6, BASE, BASE }, .known = 0xff };
	struct native_rules rules;
	char build_id[2 * NATIVE_BUILD_ID_MAX + 1];
	struct native_debug_link link;
	unsigned missing;
	uint64_t value;

	native_rules_read(&native_x86_64, &common, &function, BASE, &rules);
	native_rules_read(&native_aarch64, &common, &function, BASE, &rules);
	native_expression(data, size, &registers, &stack, &registers.values[0], &value, &missing);
	native_build_id(data, size, build_id);
	native_debug_link_parse(data, size, &link);
	native_stack_copy_free(&stack);
}

/* The bytes as a debug file. */
static void read_debug_file(struct hoststack_memory *m)
{
	struct native_symbols symbols = { 0 };
	struct native_debug_link link;
	struct hoststack_elf elf;
	uint64_t begin;

	native_debug_link_read(m, &link);
	if (native_debug_symbols_open(m, "00112233", &elf) == 0)
		for (uint64_t at = 0; at < 0x400; at += 0x80)
			native_symbols_name(&symbols, m, &elf, at, at, &begin);
	native_symbols_free(&symbols);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct image image = { data, size };
	struct hoststack_memory m = { .read = read_image, .ctx = &image, .bytes_left = BYTES };
	uint64_t registers[2] = { 0 };

	read_pieces(&m, data, size);
	read_debug_file(&m);
	/* The last bytes are the two registers. */
	if (size >= sizeof(registers))
		memcpy(registers, data + size - sizeof(registers), sizeof(registers));
	m.bytes_left = BYTES;
	walk(&native_x86_64, &m, BASE + (registers[0] & 0xffff), BASE + (registers[1] & 0xffff));
	m.bytes_left = BYTES;
	walk(&native_aarch64, &m, BASE + (registers[0] & 0xffff), BASE + (registers[1] & 0xffff));
	m.bytes_left = BYTES;
	walk_copy(&native_x86_64, &m, &image, BASE + (registers[0] & 0xffff), registers[1]);
	m.bytes_left = BYTES;
	walk_copy(&native_aarch64, &m, &image, BASE + (registers[0] & 0xffff), registers[1]);
	return 0;
}
