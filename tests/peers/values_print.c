/* SPDX-License-Identifier: MIT */
/*
 * Print the variables of a program's file as lib/values shows them, one a line: name, type, value,
 * with tabs between.  With a second argument, evaluate the expressions of that file's lines instead, and
 * with a third the parts of what they mean, parts of these, and so on: expression, type, value.
 * usage: values_print FILE [EXPRESSIONS [parts]]
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/elf_view.h"
#include "symbols/debug_info.h"
#include "values/expression/expression.h"
#include "values/expression/parts.h"
#include "values/text/value.h"

static uint8_t *bytes;
static size_t size;

/* Find the bytes of an address; those of .bss are 0. */
static int read_memory(void *context, enum values_space space, uint64_t address, void *ret, size_t n)
{
	struct elf_view *v = context;

	for (size_t i = 1; i < v->n_sections; i++) {
		Elf64_Shdr s = elf_view_section(v, i);

		if (!(s.sh_flags & SHF_ALLOC) || address < s.sh_addr || address - s.sh_addr > s.sh_size ||
		    n > s.sh_size - (address - s.sh_addr))
			continue;
		if (s.sh_type == SHT_NOBITS)
			memset(ret, 0, n);
		else
			memcpy(ret, bytes + s.sh_offset + (address - s.sh_addr), n);
		return 0;
	}
	return -EFAULT;
}

static bool address_of(Dwarf_Die *die, uint64_t *ret)
{
	Dwarf_Attribute a, address;
	Dwarf_Op *op;
	size_t n;

	if (!dwarf_attr(die, DW_AT_location, &a) || dwarf_getlocation(&a, &op, &n) < 0 || n != 1)
		return false;
	if (op->atom == DW_OP_addrx && dwarf_getlocation_attr(&a, op, &address) == 0)
		return dwarf_formaddr(&address, ret) == 0;
	if (op->atom != DW_OP_addr)
		return false;
	*ret = op->number;
	return true;
}

static struct debug_info *info;
static struct values_types *types;
static Dwarf *dw;
static struct elf_view view;

static void print_variable(Dwarf_Die *die)
{
	struct values_data data = { .lack = VALUES_UNREADABLE };
	struct values_node node;
	struct values_type *t;
	struct values_call call;
	auto_out struct out o = { 0 };
	uint64_t address;
	uint8_t *value;
	Dwarf_Die own;

	if (dwarf_tag(die) != DW_TAG_variable || !address_of(die, &address) ||
	    !debug_info_die(info, dwarf_dieoffset(die), &own))
		return;
	t = values_type_of(types, &own);
	values_call_init(&call, read_memory, &view);
	call.nodes_left = 100000;
	call.levels = 20;
	data.size = values_type_size(t);
	value = calloc(1, data.size + 1);
	data.bytes = value;
	if (!value || read_memory(&view, VALUES_SPACE_GENERIC, address, value, data.size) < 0)
		exit(1);
	out_fmt(&o, "%s\t", debug_info_string(info, &own, DW_AT_name));
	values_type_print(t, &o);
	out_char(&o, '\t');
	if (values_node_init(&node, "v", t, &data, &call) < 0)
		exit(1);
	values_node_print(&node, &o);
	printf("%s\n", o.data);
	values_node_deinit(&node);
	free(value);
}

/* Find a DIE of a unit's first level by its name; a variable or a type. */
static bool find(const char *name, bool is_variable, Dwarf_Die *ret)
{
	Dwarf_Off at = 0, next;
	size_t header;
	Dwarf_Die cu;

	for (; dwarf_nextcu(dw, at, &next, &header, NULL, NULL, NULL) == 0; at = next) {
		if (!dwarf_offdie(dw, at + header, &cu) || dwarf_child(&cu, ret) != 0)
			continue;
		do {
			const char *own = dwarf_diename(ret);

			if (own && !strcmp(own, name) && (dwarf_tag(ret) == DW_TAG_variable) == is_variable)
				return true;
		} while (dwarf_siblingof(ret, ret) == 0);
	}
	return false;
}

static int find_variable(void *context, const char *name, struct values_result *ret)
{
	Dwarf_Die die, own;

	if (!find(name, true, &die) || !address_of(&die, &ret->address) ||
	    !debug_info_die(info, dwarf_dieoffset(&die), &own))
		return -ENOENT;
	ret->type = values_type_of(types, &own);
	ret->has_address = true;
	ret->space = VALUES_SPACE_GENERIC;
	return 0;
}

static struct values_type *find_type(void *context, const char *name)
{
	Dwarf_Die die;

	return find(name, false, &die) ? values_type_at(types, dwarf_dieoffset(&die)) : NULL;
}

/* Parts are shown down to this level, and of an array only so many. */
#define LEVELS	 5u
#define ELEMENTS 3u

static void print_result(const struct values_expression *e, struct values_result *v, struct values_call *call)
{
	auto_out struct out o = { 0 };
	struct values_node node;

	if (values_result_node(values_expression_format(e), v, call, &node) < 0)
		exit(1);
	values_type_print(v->type, &o);
	out_char(&o, '\t');
	values_node_print(&node, &o);
	printf("%s\n", o.data);
	values_node_deinit(&node);
}

static void evaluate(const char *text, unsigned levels);

static void evaluate_parts(const struct values_expression *e, struct values_type *t, unsigned levels)
{
	uint64_t n = values_parts_count(t);

	for (uint64_t i = 0; i < n && (i < ELEMENTS || values_type_strip(t)->kind != VALUES_TYPE_ARRAY); i++) {
		auto_out struct out text = { 0 };

		if (values_part_print_expression(e, t, i, &text))
			evaluate(text.data, levels);
	}
}

/* @param levels  0: the expression itself is wanted, and no parts. */
static void evaluate(const char *text, unsigned levels)
{
	static const struct values_names names = { .variable = find_variable, .type = find_type };
	struct values_expression *e = NULL;
	struct values_error error;
	struct values_result v = { 0 };
	struct values_call call;
	int r = values_expression_parse(text, &e, &error);

	values_call_init(&call, read_memory, &view);
	call.nodes_left = 100000;
	call.levels = 20;
	if (r == 0)
		r = values_expression_evaluate(e, types, &names, &call, &v, &error);
	if (r < 0 && !levels)
		printf("error\t%u: %s\n", error.column, error.text);
	if (r == 0 && levels)
		printf("%s\t", text);
	if (r == 0)
		print_result(e, &v, &call);
	if (r == 0 && levels && levels < LEVELS)
		evaluate_parts(e, v.type, levels + 1);
	values_result_deinit(&v);
	values_expression_destroy(e);
}

static void print_all(void)
{
	Dwarf_Off at = 0, next;
	size_t header;

	for (; dwarf_nextcu(dw, at, &next, &header, NULL, NULL, NULL) == 0; at = next) {
		Dwarf_Die cu, die;

		if (!dwarf_offdie(dw, at + header, &cu) || dwarf_child(&cu, &die) != 0)
			continue;
		do
			print_variable(&die);
		while (dwarf_siblingof(&die, &die) == 0);
	}
}

static int evaluate_lines(const char *path, unsigned levels)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;

	if (!f)
		return 1;
	while (getline(&line, &room, f) > 0) {
		line[strcspn(line, "\n")] = '\0';
		evaluate(line, levels);
	}
	free(line);
	return fclose(f);
}

int main(int argc, char **argv)
{
	int fd = argc > 1 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	struct symbols_image *image;
	struct stat st;
	int r = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		return 2;
	size = (size_t)st.st_size;
	bytes = malloc(size);
	if (!bytes || read(fd, bytes, size) != st.st_size || elf_view_init(&view, bytes, size) < 0 ||
	    symbols_image_create(bytes, size, &image) < 0)
		return 1;
	info = symbols_image_debug_info(image);
	dw = dwarf_begin(fd, DWARF_C_READ);
	if (!info || !dw || values_types_create(info, &types) < 0)
		return 1;
	if (argc >= 3)
		r = evaluate_lines(argv[2], argc == 4);
	else
		print_all();
	values_types_destroy(types);
	symbols_image_destroy(image);
	dwarf_end(dw);
	free(bytes);
	close(fd);
	return r;
}
