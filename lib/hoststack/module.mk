# Python frames of another process, from its memory.
archives += hoststack
hoststack_src := $(addprefix lib/hoststack/,code.c copy.c elf.c layout.c line_table.c memory.c python.c stack.c string.c threads.c walk.c)
