# Code objects: where they are, what they are called, which source line an address came from.
archives += symbols
symbols_src := $(addprefix lib/symbols/,memory.c uri.c code_list.c aql.c code_elf.c \
	metadata/msgpack.c metadata/metadata.c metadata/nv_info.c demangle.c \
	location.c image.c cache.c \
	$(addprefix debug/,pieces.c budget.c debug_info.c debug_scopes.c debug_lines.c debug_children.c \
	line_table.c line_source.c relocate.c die.c die_type.c))
symbols_cflags := $(call pkg_cflags,libdw libelf)
# For foo_ldlibs of whatever uses this module.  libiberty is a static library everywhere.
symbols_ldlibs := $(call pkg_libs,libdw libelf) -liberty
