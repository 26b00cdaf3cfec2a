# Code objects: where they are, what they are called, which source line an address came from.
archives += symbols
symbols_src := $(addprefix symbols/,memory.c uri.c code_list.c aql.c)
