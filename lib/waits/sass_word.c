/* SPDX-License-Identifier: MIT */
#include "waits/sass_word.h"

#include <string.h>

/* Devices for which tables were compared with ptxas; sm_70 and sm_72 have the opcodes of sm_75. */
static const struct {
	const char *name;
	enum waits_sass_age age;
} archs[] = {
	{ "sm_70", WAITS_SASS_SM_70 },	 { "sm_72", WAITS_SASS_SM_70 },	  { "sm_75", WAITS_SASS_SM_70 },
	{ "sm_80", WAITS_SASS_SM_80 },	 { "sm_86", WAITS_SASS_SM_80 },	  { "sm_87", WAITS_SASS_SM_80 },
	{ "sm_88", WAITS_SASS_SM_80 },	 { "sm_89", WAITS_SASS_SM_80 },	  { "sm_90", WAITS_SASS_SM_90 },
	{ "sm_100", WAITS_SASS_SM_100 }, { "sm_103", WAITS_SASS_SM_100 }, { "sm_110", WAITS_SASS_SM_100 },
	{ "sm_120", WAITS_SASS_SM_100 }, { "sm_121", WAITS_SASS_SM_100 },
};

enum waits_sass_age waits_sass_age_of(const char *arch)
{
	for (size_t i = 0; arch && i < sizeof(archs) / sizeof(archs[0]); i++)
		if (!strcmp(archs[i].name, arch))
			return archs[i].age;
	return WAITS_SASS_AGE_COUNT;
}

int64_t waits_sass_distance(struct waits_sass_word w, enum waits_sass_age age)
{
	uint64_t far = waits_sass_bits(w.low, 34, 30) << 8 | waits_sass_bits(w.low, 16, 8), sign = UINT64_C(1) << 37;

	if (age < WAITS_SASS_SM_90)
		return (int32_t)(uint32_t)(waits_sass_bits(w.low, 32, 32) & ~UINT64_C(3));
	return (int64_t)((far ^ sign) - sign) * 4;
}
