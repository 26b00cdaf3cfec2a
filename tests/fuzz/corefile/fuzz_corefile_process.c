/* SPDX-License-Identifier: MIT */
/* One note of the core of a process, as each of those that are read. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "corefile/process.h"
#include "corefile/processor.h"
#include "fuzzlib.h"

static void check(const struct corefile_mappings *m, const uint8_t *data, size_t size)
{
	uint64_t before = 0;

	for (size_t i = 0; i < m->n; i++) {
		const struct corefile_mapping *p = &m->list[i];
		const uint8_t *path = (const uint8_t *)p->path;

		if (p->begin >= p->end || p->begin < before || p->end - p->begin > UINT64_MAX - p->offset ||
		    path < data || path >= data + size || !memchr(path, 0, (size_t)(data + size - path)))
			__builtin_trap();
		before = p->begin;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint16_t machines[] = { EM_X86_64, EM_AARCH64 };
	struct corefile_mappings mappings = { 0 };
	struct corefile_process process;
	struct corefile_thread thread;

	if (corefile_mappings_read(data, size, &mappings) == 0)
		check(&mappings, data, size);
	free(mappings.list);
	if (corefile_process_read(data, size, &process) == 0 && strlen(process.comm) >= sizeof(process.comm))
		__builtin_trap();
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
		(void)corefile_thread_read(corefile_processor_find(machines[i]), data, size, &thread);
	return 0;
}
