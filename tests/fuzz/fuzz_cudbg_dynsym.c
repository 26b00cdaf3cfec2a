/* SPDX-License-Identifier: MIT */
/* A debuggee's symbol table and mappings; the input is its memory, and the text of its maps. */
#include <errno.h>
#include <string.h>

#include "fuzzlib.h"
#include "cudbgshim_target.h"

#define BASE UINT64_C(0x7f0000000000)

struct input {
	const uint8_t *data;
	size_t size;
};

static int read_input(void *ctx, uint64_t addr, void *buf, size_t size)
{
	const struct input *in = ctx;

	if (addr < BASE || addr - BASE > in->size || size > in->size - (addr - BASE))
		return -EFAULT;
	memcpy(buf, in->data + (addr - BASE), size);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	struct cudbgshim_memory memory = { .read = read_input, .ctx = &in };
	struct cudbgshim_symbols symbols;
	struct cudbgshim_symbols_error err;
	struct cudbgshim_library library;
	struct cudbgshim_map map;

	if (cudbgshim_symbols_read(&memory, BASE, &symbols, &err) == -EPROTO &&
	    err.symbol >= CUDBGSHIM_SYM_COUNT)
		__builtin_trap();
	for (size_t nth = 0; nth < 3; nth++)
		if (cudbgshim_find_libcuda((const char *)data, size, nth, &library) == 0 &&
		    library.end <= library.base)
			__builtin_trap();
	cudbgshim_maps_find((const char *)data, size, BASE, &map);
	return 0;
}
