/* SPDX-License-Identifier: MIT */
/*
 * Grouping of waves, beside copying them.
 *
 * usage: bench_group WAVES ROUNDS
 * Prints one line per case: NAME GROUPS MEDIAN-NS MEMCPY-NS.  "few": the waves stand at seven
 * places; "unique": no two stand at the same.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agentd/worker/snapshot/groups.h"
#include "agentd/worker/target/waves.h"

#define ROUNDS_MAX 1001u

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int measure(const char *name, const struct wave *waves, struct wave *copy, size_t n,
		   size_t rounds)
{
	static uint64_t ours[ROUNDS_MAX], peer[ROUNDS_MAX];
	size_t n_groups = 0;

	for (size_t i = 0; i < rounds; i++) {
		struct group *groups;
		uint32_t *group_of;
		uint64_t start = now_ns(), middle;

		if (group_waves(waves, n, &groups, &n_groups, &group_of) < 0)
			return -1;
		middle = now_ns();
		memcpy(copy, waves, n * sizeof(*waves));
		peer[i] = now_ns() - middle;
		ours[i] = middle - start;
		free(groups);
		free(group_of);
	}
	qsort(ours, rounds, sizeof(ours[0]), by_value);
	qsort(peer, rounds, sizeof(peer[0]), by_value);
	printf("%s %zu %llu %llu\n", name, n_groups, (unsigned long long)ours[rounds / 2],
	       (unsigned long long)peer[rounds / 2]);
	return 0;
}

int main(int argc, char **argv)
{
	size_t n = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
	size_t rounds = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
	struct wave *waves = calloc(n + 1, sizeof(*waves)), *copy = calloc(n + 1, sizeof(*copy));
	int r;

	if (!n || n > 1000000 || !rounds || rounds > ROUNDS_MAX || !waves || !copy) {
		fputs("usage: bench_group WAVES ROUNDS\n", stderr);
		return 2;
	}
	for (size_t i = 0; i < n; i++)
		waves[i] = (struct wave){ .place = (uint32_t)i % 7, .gpu_id = 1,
					  .index = (uint32_t)i, .leader = (uint32_t)(i & ~3u),
					  .lanes = 64, .width = 64 };
	r = measure("few", waves, copy, n, rounds);
	for (size_t i = 0; i < n; i++)
		waves[i].place = (uint32_t)i * UINT32_C(2654435761);
	if (r == 0)
		r = measure("unique", waves, copy, n, rounds);
	free(waves);
	free(copy);
	return r < 0;
}
