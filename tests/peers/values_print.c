/* SPDX-License-Identifier: MIT */
/*
 * Print the variables of a program's file as lib/values shows them, one a line: name, type, value,
 * with tabs between.  usage: values_print FILE
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
	Dwarf_Attribute a;
	Dwarf_Op *op;
	size_t n;

	if (!dwarf_attr(die, DW_AT_location, &a) || dwarf_getlocation(&a, &op, &n) < 0 || n != 1 ||
	    op->atom != DW_OP_addr)
		return false;
	*ret = op->number;
	return true;
}

static void print_variable(struct values_types *types, struct debug_info *d, Dwarf_Die *die,
			   struct elf_view *v)
{
	struct values_data data = { .lack = VALUES_UNREADABLE };
	struct values_node node;
	struct values_type *t;
	struct values_call call;
	auto_out struct out o = { 0 };
	uint64_t address;
	Dwarf_Die own;

	if (!address_of(die, &address) || !debug_info_die(d, dwarf_dieoffset(die), &own))
		return;
	t = values_type_of(types, &own);
	values_call_init(&call, read_memory, v);
	call.nodes_left = 100000;
	data.size = values_type_size(t);
	data.bytes = calloc(1, data.size + 1);
	if (read_memory(v, VALUES_SPACE_GENERIC, address, (void *)data.bytes, data.size) < 0)
		exit(1);
	out_fmt(&o, "%s\t", debug_info_string(d, &own, DW_AT_name));
	values_type_print(t, &o);
	out_char(&o, '\t');
	if (values_node_init(&node, "v", t, &data, &call) < 0)
		exit(1);
	values_node_print(&node, &o);
	printf("%s\n", o.data);
	values_node_deinit(&node);
	free((void *)data.bytes);
}

int main(int argc, char **argv)
{
	int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	struct symbols_image *image;
	struct values_types *types;
	struct debug_info *d;
	struct elf_view v;
	struct stat st;
	Dwarf_Off at = 0, next;
	size_t header;
	Dwarf *dw;

	if (fd < 0 || fstat(fd, &st) < 0)
		return 2;
	size = (size_t)st.st_size;
	bytes = malloc(size);
	if (!bytes || read(fd, bytes, size) != st.st_size || elf_view_init(&v, bytes, size) < 0 ||
	    symbols_image_create(bytes, size, &image) < 0)
		return 1;
	d = symbols_image_debug_info(image);
	dw = dwarf_begin(fd, DWARF_C_READ);
	if (!d || !dw || values_types_create(d, &types) < 0)
		return 1;
	for (; dwarf_nextcu(dw, at, &next, &header, NULL, NULL, NULL) == 0; at = next) {
		Dwarf_Die cu, die;

		if (!dwarf_offdie(dw, at + header, &cu) || dwarf_child(&cu, &die) != 0)
			continue;
		do {
			if (dwarf_tag(&die) == DW_TAG_variable)
				print_variable(types, d, &die, &v);
		} while (dwarf_siblingof(&die, &die) == 0);
	}
	values_types_destroy(types);
	symbols_image_destroy(image);
	dwarf_end(dw);
	free(bytes);
	close(fd);
	return 0;
}
