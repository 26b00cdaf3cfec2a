/* SPDX-License-Identifier: MIT */
#include "agentd/worker/convergence/convergence.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"

static bool is_same_unit(const struct wave *a, const struct wave *b)
{
	return a->gpu_id == b->gpu_id && a->unit == b->unit;
}

/* Waves of a multiprocessor lie together, block by block. */
static void sort(const struct target_waves *waves, struct target_convergence *list, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) {
		const uint32_t wave = list[i].wave;
		uint32_t k = i;

		for (; k && waves->waves[list[k - 1].wave].index > waves->waves[wave].index; k--)
			list[k].wave = list[k - 1].wave;
		list[k].wave = wave;
	}
}

/* The next multiprocessor with waves that are apart, behind those that are in the list.  @return how many they are. */
static uint32_t find_next(const struct convergence_source *from, struct target_waves *waves, size_t *at)
{
	struct target_convergence *list = &waves->convergences[waves->n_convergences];
	const size_t room = CONVERGENCES_MAX - waves->n_convergences;
	uint32_t n = 0;

	for (; *at < waves->n_waves && n < room; (*at)++) {
		if (n && !is_same_unit(&waves->waves[list[0].wave], &waves->waves[*at]))
			break;
		if (from->is_apart(from->ctx, (uint32_t)*at))
			list[n++].wave = (uint32_t)*at;
	}
	sort(waves, list, n);
	return n;
}

static uint32_t count(const struct convergence_source *from, const struct target_waves *waves, size_t at)
{
	uint32_t n = 0;

	for (; at < waves->n_waves; at++)
		n += from->is_apart(from->ctx, (uint32_t)at);
	return n;
}

static const char *missing_text(struct rpc_arena *a, uint32_t refused, uint32_t left_out)
{
	static const char why[] = "their state was not read, for lack of time, or because there are too many";
	const char *s = refused == 1 ? "" : "s";

	if (refused && left_out)
		return rpc_arena_printf(a, "convergence barriers of %u warp%s: the driver does not tell their state, "
					   "and was not asked for that of %u other%s", refused, s, left_out,
					left_out == 1 ? "" : "s");
	if (refused)
		return rpc_arena_printf(a, "convergence barriers of %u warp%s: the driver does not tell their state",
					refused, s);
	return left_out ? rpc_arena_printf(a, "convergence barriers of %u warp%s: %s", left_out,
					   left_out == 1 ? "" : "s", why) : NULL;
}

static int by_wave(const void *x, const void *y)
{
	const struct target_convergence *a = x, *b = y;

	return a->wave < b->wave ? -1 : a->wave > b->wave;
}

const char *convergence_read(const struct convergence_source *from, uint64_t deadline_ns, struct rpc_arena *a,
			     struct target_waves *waves)
{
	uint32_t refused = 0, n;
	size_t at = 0;
	int r = 0;

	waves->n_convergences = 0;
	n = count(from, waves, 0);
	waves->convergences = n ? rpc_arena_array(a, n < CONVERGENCES_MAX ? n : CONVERGENCES_MAX,
						  sizeof(*waves->convergences)) : NULL;
	if (!waves->convergences)
		return NULL;
	/* Whoever refuses once does so for each multiprocessor, while all stand still. */
	while (!refused && clock_now_ns() < deadline_ns) {
		n = find_next(from, waves, &at);
		if (!n)
			break;
		r = from->read(from->ctx, &waves->convergences[waves->n_convergences], n);
		if (r == -ENOSYS)
			return NULL;
		waves->n_convergences += r == 0 ? n : 0;
		refused += r == 0 ? 0 : n;
	}
	/* Whoever looks for one has the wave. */
	qsort(waves->convergences, waves->n_convergences, sizeof(*waves->convergences), by_wave);
	return missing_text(a, refused, count(from, waves, at));
}
