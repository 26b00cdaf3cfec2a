/* SPDX-License-Identifier: MIT */
#ifndef WAVE_POPULATION_H
#define WAVE_POPULATION_H

/** @file population.h  Random waves that one generation can have, for the tests of the decoder. */

#include "sim/kfd/wave/wave_encode.h"

#define POPULATION_WAVES_MAX 32

struct population {
	const struct wave_silicon *silicon;
	uint64_t seed;
	/* What the runtime and the driver say. */
	uint32_t r_version, ttmp_setup, debug_prop;
	size_t n;
	struct wave_desc waves[POPULATION_WAVES_MAX];
	struct wave_save save;
};

/** Everything follows from @p seed.  @return 0, -ENOMEM; other errors are bugs. */
int population_create(const struct wave_silicon *g, uint64_t seed, struct population *ret);
void population_destroy(struct population *p);

/** Whether the TTMPs that the dispatcher fills can be believed at all. */
bool population_has_launch_info(const struct population *p);

#endif /* WAVE_POPULATION_H */
