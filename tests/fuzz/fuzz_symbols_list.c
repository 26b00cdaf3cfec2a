/* SPDX-License-Identifier: MIT */
/* The input is the target's memory from address 0x100 on; r_debug lies at its start. */
#include <errno.h>
#include <string.h>

#include "fuzzlib.h"
#include "symbols/aql.h"
#include "symbols/code_list.h"

#define BASE 0x100u

struct input {
	const uint8_t *data;
	size_t size;
};

static ssize_t read_input(void *arg, uint64_t address, void *buf, size_t size)
{
	const struct input *in = arg;

	if (address < BASE || address - BASE >= in->size)
		return -EFAULT;
	if (size > in->size - (address - BASE))
		size = in->size - (size_t)(address - BASE);
	memcpy(buf, in->data + (address - BASE), size);
	return (ssize_t)size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	struct symbols_memory m = { read_input, &in };
	struct symbols_code_list l;
	struct symbols_aql_packet p;
	struct symbols_kernel_descriptor d;
	size_t length = 0;

	if (symbols_code_list_read(&m, BASE, &l) == 0) {
		for (size_t i = 0; i < l.n_items; i++) {
			length += strlen(l.items[i].uri);
			for (size_t j = 0; j < i && i < 64; j++)
				if (l.items[i].entry == l.items[j].entry)
					__builtin_trap();
		}
		if (l.n_items > SYMBOLS_CODE_LIST_MAX || length > 2 * SYMBOLS_CODE_LIST_URI_BYTES)
			__builtin_trap();
		symbols_code_list_deinit(&l);
	}
	(void)symbols_aql_decode(data, size, &p);
	(void)symbols_kernel_descriptor_decode(data, size, BASE, &d);
	return 0;
}
