/* SPDX-License-Identifier: MIT */
/* Any bytes are code with waits for barrier objects, or without; and any word is an object, or none. */
#include <errno.h>

#include "base/reader.h"
#include "fuzzlib.h"
#include "waits/mbarrier.h"
#include "waits/sass.h"

static void check(bool good)
{
	if (!good)
		__builtin_trap();
}

static void search(const char *arch, const uint8_t *data, size_t size)
{
	struct waits_mbarrier_wait w;

	for (size_t at = 0; waits_mbarrier_find(arch, data, size, &at, &w) == 0; at += WAITS_SASS_BYTES) {
		check(at % WAITS_SASS_BYTES == 0 && at + (w.behind + 1u) * WAITS_SASS_BYTES <= size);
		check(w.offset >= -(1 << 23) && w.offset < 1 << 23 && w.behind <= 4);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const archs[] = { "sm_90", "sm_100", "sm_121", "sm_80", "" };
	struct waits_mbarrier m;
	struct reader r;

	for (size_t i = 0; i < sizeof(archs) / sizeof(archs[0]); i++) {
		struct waits_mbarrier_wait w;
		size_t at = 0;

		search(archs[i], data, size);
		check(waits_mbarrier_known(archs[i]) ==
		      (waits_mbarrier_find(archs[i], data, size, &at, &w) != -ENOTSUP));
	}
	reader_init(&r, data, size);
	if (waits_mbarrier_read(reader_u64(&r), &m) < 0)
		return 0;
	check(m.expected && m.expected <= WAITS_MBARRIER_EXPECTED_MAX && m.pending <= m.expected);
	check((m.pending || m.tx) && m.tx < 1 << 20 && m.tx > -(1 << 20));
	check(waits_mbarrier_blocks(&m, (uint32_t)m.phase << 31) &&
	      !waits_mbarrier_blocks(&m, (uint32_t)!m.phase << 31));
	return 0;
}
