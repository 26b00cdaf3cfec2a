/* SPDX-License-Identifier: MIT */
/*
 * What reading many small places of another process costs at least: bare loops, nothing else.
 *
 * usage: bench_copy PID < places, then lines
 * The input begins with the number of places and their addresses, 64-bit numbers.  Then each line
 * asks for all of them once, and is answered with the nanoseconds that took or the word "error":
 *	vm N	process_vm_readv() with as many in each call as it takes, on N threads
 *	file N	pread() of /proc/PID/mem for each
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define SIZE	    128u
#define AT_ONCE	    1024u
#define THREADS_MAX 64u

static struct {
	pid_t pid;
	int fd;
	struct iovec *local, *remote;
	size_t n, n_threads;
	bool by_file;
	pthread_barrier_t start;
} all;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool by_vectors(size_t begin, size_t end)
{
	for (size_t i = begin; i < end; i += AT_ONCE) {
		size_t k = end - i < AT_ONCE ? end - i : AT_ONCE;

		if (process_vm_readv(all.pid, all.local + i, k, all.remote + i, k, 0) !=
		    (ssize_t)(k * SIZE))
			return false;
	}
	return true;
}

static bool by_file(size_t begin, size_t end)
{
	for (size_t i = begin; i < end; i++)
		if (pread(all.fd, all.local[i].iov_base, SIZE,
			  (off_t)(uintptr_t)all.remote[i].iov_base) != SIZE)
			return false;
	return true;
}

static bool part(size_t i)
{
	size_t begin = all.n * i / all.n_threads, end = all.n * (i + 1) / all.n_threads;

	return all.by_file ? by_file(begin, end) : by_vectors(begin, end);
}

static void *run_part(void *arg)
{
	pthread_barrier_wait(&all.start);
	return part((size_t)(uintptr_t)arg) ? NULL : arg;
}

/* Threads wait for the start before it is timed. */
static bool run(uint64_t *ret_ns)
{
	pthread_t threads[THREADS_MAX];
	bool good;
	uint64_t start;

	pthread_barrier_init(&all.start, NULL, (unsigned)all.n_threads);
	for (size_t i = 1; i < all.n_threads; i++)
		if (pthread_create(&threads[i], NULL, run_part, (void *)(uintptr_t)i) != 0)
			exit(1);
	usleep(1000);
	start = now_ns();
	pthread_barrier_wait(&all.start);
	good = part(0);
	for (size_t i = 1; i < all.n_threads; i++) {
		void *failed;

		pthread_join(threads[i], &failed);
		good = good && !failed;
	}
	*ret_ns = now_ns() - start;
	pthread_barrier_destroy(&all.start);
	return good;
}

static bool read_places(void)
{
	uint64_t n, place;
	uint8_t *copy;

	if (fread(&n, sizeof(n), 1, stdin) != 1 || n > 1000000)
		return false;
	all.n = n;
	copy = calloc(n, SIZE);
	all.local = calloc(n, sizeof(*all.local));
	all.remote = calloc(n, sizeof(*all.remote));
	if (!copy || !all.local || !all.remote)
		return false;
	memset(copy, 1, n * SIZE);
	for (size_t i = 0; i < n; i++) {
		if (fread(&place, sizeof(place), 1, stdin) != 1)
			return false;
		all.local[i] = (struct iovec){ copy + i * SIZE, SIZE };
		all.remote[i] = (struct iovec){ (void *)(uintptr_t)place, SIZE };
	}
	return true;
}

int main(int argc, char **argv)
{
	char path[64], line[64], way[16];

	all.pid = argc == 2 ? atoi(argv[1]) : 0;
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)all.pid);
	all.fd = open(path, O_RDONLY | O_CLOEXEC);
	if (all.fd < 0 || !read_places()) {
		fputs("usage: bench_copy PID < places, then lines\n", stderr);
		return 2;
	}
	setlinebuf(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		uint64_t ns;

		if (sscanf(line, "%15s %zu", way, &all.n_threads) != 2 || !all.n_threads ||
		    all.n_threads > THREADS_MAX)
			return 2;
		all.by_file = strcmp(way, "file") == 0;
		if (run(&ns))
			printf("%llu\n", (unsigned long long)ns);
		else
			puts("error");
	}
	return 0;
}
