/* SPDX-License-Identifier: MIT */
/*
 * The arguments are those of ROCr's amd_blit_kernel.h.  A copy is told as phases, each with the
 * place that it begins at and one more place where the last one ends:
 *
 *	aligned      4 phases: source, target; end of source, end of target; threads
 *	not aligned  2 phases, likewise
 *	fill         2 phases: target only; end; word, threads
 *
 * They lie in memory that is used again and is as long as the longest, so that what is behind them
 * may be of an earlier dispatch: the number of threads and the distances tell them apart.
 */
#include "copy_kernel.h"

#include <errno.h>
#include <string.h>

static uint64_t u64_at(const uint8_t *p, size_t i)
{
	uint64_t v;

	memcpy(&v, p + i * 8, sizeof(v));
	return v;
}

static bool threads_are(const uint8_t *p, size_t at, uint32_t threads)
{
	uint32_t v;

	memcpy(&v, p + at, sizeof(v));
	return v == threads;
}

/* Whether phases follow each other in source and target alike. */
static bool is_copy(const uint8_t *p, size_t phases)
{
	for (size_t i = 0; i < phases; i++) {
		uint64_t source = u64_at(p, i * 2), target = u64_at(p, i * 2 + 1);
		uint64_t next = u64_at(p, i * 2 + 2);

		if (next < source || u64_at(p, i * 2 + 3) - target != next - source)
			return false;
	}
	return true;
}

static void set_copy(const uint8_t *p, size_t phases, struct copy_kernel *ret)
{
	*ret = (struct copy_kernel){
		.from = u64_at(p, 0),
		.to = u64_at(p, 1),
		.size = u64_at(p, phases * 2) - u64_at(p, 0),
	};
}

static bool is_fill(const uint8_t *p)
{
	return u64_at(p, 0) <= u64_at(p, 1) && u64_at(p, 1) <= u64_at(p, 2);
}

int copy_kernel_parse(const void *bytes, size_t size, uint32_t threads, struct copy_kernel *ret)
{
	const uint8_t *p = bytes;

	if (size < COPY_KERNEL_ARGUMENTS)
		return -EINVAL;
	if (threads_are(p, 80, threads) && is_copy(p, 4)) {
		set_copy(p, 4, ret);
	} else if (threads_are(p, 48, threads) && is_copy(p, 2)) {
		set_copy(p, 2, ret);
	} else if (threads_are(p, 28, threads) && is_fill(p)) {
		*ret = (struct copy_kernel){ .fills = true,
					     .to = u64_at(p, 0),
					     .size = u64_at(p, 2) - u64_at(p, 0) };
		memcpy(&ret->word, p + 24, sizeof(ret->word));
	} else {
		return -EINVAL;
	}
	return 0;
}
