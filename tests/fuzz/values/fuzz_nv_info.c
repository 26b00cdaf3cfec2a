/* SPDX-License-Identifier: MIT */
/* What NVIDIA's compiler noted about a kernel. */
#include "fuzzlib.h"
#include "symbols/metadata/nv_info.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbols_nv_info i;
	size_t n = 0;

	(void)symbols_nv_info_read(data, size, &i);
	for (size_t k = 0; k < SYMBOLS_NV_PARAMETERS_MAX; k++)
		n += i.parameters[k].is_known;
	if (n > i.n || i.n > UINT16_MAX + 1)
		__builtin_trap();
	return 0;
}
