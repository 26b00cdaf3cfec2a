/* SPDX-License-Identifier: MIT */
/* Stand-in for libFuzzer's main(): fuzz_x DIRECTORY|FILE... [-mutations=N] */
#include "fuzzlib.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "base/cleanup.h"
#include "base/fd.h"

#define INPUT_MAX (1 << 20)
#define TARGET_SECONDS_MAX 120

static uint64_t rng = UINT64_C(0x9e3779b97f4a7c15);
static unsigned long n_inputs;

static uint64_t next_random(void)
{
	rng ^= rng >> 12;
	rng ^= rng << 25;
	rng ^= rng >> 27;
	return rng * UINT64_C(2685821657736338717);
}

/* A copy of exactly the input's size, so that ASan sees one byte too far. */
static void run_one(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	if (size)
		memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
	n_inputs++;
}

static size_t mutate(uint8_t *data, size_t size)
{
	unsigned n = 1 + (unsigned)(next_random() % 4);

	while (n-- && size) {
		size_t at = next_random() % size;

		switch (next_random() % 5) {
		case 0:
			data[at] ^= (uint8_t)(1u << (next_random() % 8));
			break;
		case 1:
			data[at] = (uint8_t)next_random();
			break;
		case 2:
			size = at;
			break;
		case 3:
			data[at] = next_random() & 1 ? 0xff : 0;
			break;
		case 4: {
			size_t len = 1 + next_random() % 8;

			if (len > size - at)
				len = size - at;
			memmove(data + at, data + next_random() % (size - len + 1), len);
			break;
		}
		}
	}
	return size;
}

static void run_file(const char *path, unsigned long mutations)
{
	auto_free char *data = NULL;
	auto_free uint8_t *work = NULL;
	size_t size = 0;
	int r = fd_read_file(path, INPUT_MAX, &data, &size);

	if (r < 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(-r));
		exit(2);
	}
	run_one((const uint8_t *)data, size);
	work = malloc(size ? size : 1);
	if (!work)
		abort();
	while (mutations--) {
		memcpy(work, data, size);
		run_one(work, mutate(work, size));
	}
}

static void run_path(const char *path, unsigned long mutations)
{
	struct dirent **names;
	struct stat st;
	int n;

	if (stat(path, &st) < 0) {
		perror(path);
		exit(2);
	}
	if (!S_ISDIR(st.st_mode)) {
		run_file(path, mutations);
		return;
	}
	n = scandir(path, &names, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		char file[4096];

		if (names[i]->d_name[0] != '.') {
			snprintf(file, sizeof(file), "%s/%s", path, names[i]->d_name);
			run_file(file, mutations);
		}
		free(names[i]);
	}
	if (n >= 0)
		free(names);
}

int main(int argc, char **argv)
{
	/* Of the processor's time: what waits for ever is for run-tests. */
	const struct itimerval limit = { .it_value.tv_sec = TARGET_SECONDS_MAX };
	unsigned long mutations = 2000;

	setitimer(ITIMER_PROF, &limit, NULL);
	for (int i = 1; i < argc; i++)
		if (!strncmp(argv[i], "-mutations=", 11))
			mutations = strtoul(argv[i] + 11, NULL, 10);
	run_one((const uint8_t *)"", 0);
	for (int i = 1; i < argc; i++)
		if (argv[i][0] != '-')
			run_path(argv[i], mutations);
	printf("PASS fuzz.%s: %lu inputs\n", strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0],
	       n_inputs);
	return 0;
}
