/* SPDX-License-Identifier: MIT */
#include "corefile/processor.h"

const struct corefile_processor *corefile_processor_find(uint16_t elf)
{
	static const struct corefile_processor *const all[] = { &corefile_x86_64, &corefile_aarch64 };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i]->elf == elf)
			return all[i];
	return NULL;
}
