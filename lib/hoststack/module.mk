# Frames of another process, from its memory: Python's, and those of native code.
archives += hoststack
hoststack_src := $(addprefix lib/hoststack/,asyncio.c code.c copy.c elf.c layout.c line_table.c memory.c python.c stack.c string.c threads.c walk.c \
	native/aarch64.c native/debug_link.c native/debug_symbols.c native/expression.c native/leaf.c native/module.c native/processor.c native/recovery.c \
	native/rules.c native/stack_copy.c native/symbols.c native/unwind.c native/x86_64.c)
hoststack_cflags := $(call pkg_cflags,libdw)
