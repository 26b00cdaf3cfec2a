/* SPDX-License-Identifier: MIT */
/* Fuzzes the loader of cubins with arbitrary bytes, and reads the code of what it accepted. */
#include <stdlib.h>
#include <string.h>

#include "fuzzlib.h"
#include "sim.h"

static uint64_t now_ns(void)
{
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct sim_os os = { .now_ns = now_ns };
	struct sim s = { .os = &os, .script = (char *)"devices 1 sms=1 warps=1" };
	struct sim_process *p = sim_process_create(&s, 1);
	struct sim_context *c = p ? sim_context_add(p, 0, 1) : NULL;
	volatile uint8_t last;
	struct sim_module *m;

	if (!c)
		abort();
	if (!sim_module_add(p, c->handle, data, size, false, &m))
		for (size_t i = 0; i < m->n_functions; i++) {
			const struct sim_function *f = &m->functions[i];
			const uint8_t *code = sim_code(p, 0, f->address, f->size);

			/* Every byte that is promised must be there. */
			if (code && f->size)
				last = code[f->size - 1];
		}
	(void)last;
	sim_process_destroy(p);
	return 0;
}
