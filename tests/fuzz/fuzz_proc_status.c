/* SPDX-License-Identifier: MIT */
/* Files of /proc/PID that the kernel writes, and a core file may only claim to have. */
#include "agentd/access.h"
#include "base/elf_view.h"
#include "fuzzlib.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct access_target t;

	(void)access_status_parse((const char *)data, size, &t);
	(void)elf_auxv_find(data, size, AT_RANDOM);
	return 0;
}
