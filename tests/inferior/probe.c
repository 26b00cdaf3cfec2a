/* SPDX-License-Identifier: MIT */
#include "tests/inferior/probe.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/fd.h"

static void print_one(const struct cudbgshim_memory *memory, enum cudbgshim_symbol s, uint64_t addr)
{
	uint32_t size = cudbgshim_symbol_size(s);
	uint64_t value = 0;

	if (size && size <= sizeof(value) && memory->read(memory->ctx, addr, &value, size) < 0)
		return;
	printf("symbol %s 0x%" PRIx64 " %u %" PRIu64 "\n", cudbgshim_symbol_name(s), addr, size, value);
}

int probe_symbols(const struct cudbgshim_memory *memory, int proc_fd)
{
	auto_free char *maps = NULL;
	struct cudbgshim_library library;
	struct cudbgshim_symbols symbols;
	struct cudbgshim_symbols_error err = { .what = "" };
	size_t size;
	int rc = fd_read_file_at(proc_fd, "maps", 16 << 20, &maps, &size);

	if (rc == 0)
		rc = cudbgshim_find_libcuda(maps, size, 0, &library);
	if (rc < 0) {
		puts("no library");
		return rc;
	}
	printf("library %s\n", library.path);
	rc = cudbgshim_symbols_read(memory, library.base, &symbols, &err);
	if (rc < 0)
		printf("refused %d %s\n", rc, err.what);
	for (enum cudbgshim_symbol s = 0; rc == 0 && s < CUDBGSHIM_SYM_COUNT; s++)
		if (symbols.addr[s])
			print_one(memory, s, symbols.addr[s]);
	return rc;
}
