/* SPDX-License-Identifier: MIT */
#include "ctl/record/interval.h"

#include <math.h>

/* Of a normal distribution, 95 % is within so many standard deviations. */
#define DEVIATIONS 1.959963984540054

struct interval interval_of(double share, double samples)
{
	double z2 = DEVIATIONS * DEVIATIONS, middle, half;

	if (samples <= 0)
		return (struct interval){ 0, 1 };
	middle = (share + z2 / (2 * samples)) / (1 + z2 / samples);
	half = DEVIATIONS * sqrt(share * (1 - share) / samples + z2 / (4 * samples * samples)) / (1 + z2 / samples);
	/* At the ends the sum may miss 0 and 1 by what a double rounds. */
	return (struct interval){ middle > half && share > 0 ? middle - half : 0,
				  middle + half < 1 && share < 1 ? middle + half : 1 };
}
