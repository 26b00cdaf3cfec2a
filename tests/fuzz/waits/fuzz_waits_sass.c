/* SPDX-License-Identifier: MIT */
/* Any sixteen bytes are an instruction, or none that is known; and any counts have an answer. */
#include <string.h>

#include "fuzzlib.h"
#include "waits/sass.h"

static void check(bool good)
{
	if (!good)
		__builtin_trap();
}

static void look_at_code(const char *arch, const uint8_t *data, size_t size)
{
	struct waits_sass s;

	for (size_t at = 0; at < size && at < 256; at++) {
		if (waits_sass_read(arch, data + at, size - at, &s) < 0)
			continue;
		check(s.op < WAITS_SASS_OP_COUNT);
		check(!waits_sass_name(s.op) == (s.op == WAITS_SASS_OTHER || s.op == WAITS_SASS_TRANSFER));
		check(s.id < WAITS_SASS_BARRIERS && s.count < 4096);
		check(s.op == WAITS_SASS_TRANSFER || !s.has_target);
		check(s.op == WAITS_SASS_WARP_SYNC || s.mask_register == WAITS_SASS_NO_REGISTER);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const archs[] = { "sm_75", "sm_90", "sm_120", "sm_35", "" };
	struct waits_sass_barrier b = { 0 };
	enum waits_sass_missing m;
	char name[8] = "";

	for (size_t i = 0; i < sizeof(archs) / sizeof(archs[0]); i++)
		look_at_code(archs[i], data, size);
	memcpy(name, data, size < sizeof(name) - 1 ? size : sizeof(name) - 1);
	look_at_code(name, data, size);
	if (size < 4)
		return 0;
	b = (struct waits_sass_barrier){ .count = (data[0] | (uint32_t)data[1] << 8) & 0xfff,
					 .waiting = 1 + data[2] % 64,
					 .others = data[3] % 64, .may_arrive = data[3] >> 7 };
	m = waits_sass_missing(&b);
	/* Nobody is waited for who is not there, and who has exited is missing only where threads are counted. */
	check((m != WAITS_SASS_MISSING_ALL && m != WAITS_SASS_MISSING_SOME) || b.others);
	check((m != WAITS_SASS_MISSING_EXITED && m != WAITS_SASS_MISSING_MAY_EXITED) ||
	      (b.waiting + b.others) * 32 < b.count);
	check(m != WAITS_SASS_MISSING_EXITED || !b.may_arrive);
	return 0;
}
