/* SPDX-License-Identifier: MIT */
#include "hoststack/native/processor.h"

const struct native_processor *native_processor_find(uint16_t elf)
{
	static const struct native_processor *const all[] = { &native_x86_64, &native_aarch64 };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i]->elf == elf)
			return all[i];
	return NULL;
}
