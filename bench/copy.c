/* SPDX-License-Identifier: MIT */
/*
 * What reading many small places of another process costs at least: a bare loop, nothing else.
 *
 * usage: bench_copy PIECES STRIDE ROUNDS
 * Prints "vm MEDIAN-NS P99-NS" for process_vm_readv() with as many pieces in each call as it takes,
 * and "file MEDIAN-NS P99-NS" for one pread() of /proc/PID/mem for each.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SIZE	   128u
#define AT_ONCE	   1024u
#define ROUNDS_MAX 1001u

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* A process whose memory is its own, in pages of ordinary size.  @return once it is there. */
static pid_t start_target(uint8_t *area, size_t size)
{
	int ready[2];
	uint8_t byte;
	pid_t pid;

	if (pipe(ready) < 0 || (pid = fork()) < 0)
		return -1;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		memset(area, 2, size);
		if (write(ready[1], &byte, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	return read(ready[0], &byte, 1) == 1 ? pid : -1;
}

static bool by_vectors(pid_t pid, const struct iovec *local, const struct iovec *remote, size_t n)
{
	for (size_t i = 0; i < n; i += AT_ONCE) {
		size_t k = n - i < AT_ONCE ? n - i : AT_ONCE;

		if (process_vm_readv(pid, local + i, k, remote + i, k, 0) != (ssize_t)(k * SIZE))
			return false;
	}
	return true;
}

static bool by_file(int fd, const struct iovec *local, const struct iovec *remote, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (pread(fd, local[i].iov_base, SIZE, (off_t)(uintptr_t)remote[i].iov_base) != SIZE)
			return false;
	return true;
}

static void print(const char *name, uint64_t *times, size_t n)
{
	qsort(times, n, sizeof(times[0]), by_value);
	printf("%s %llu %llu\n", name, (unsigned long long)times[n / 2],
	       (unsigned long long)times[n * 99 / 100]);
}

int main(int argc, char **argv)
{
	size_t n = argc == 4 ? strtoul(argv[1], NULL, 10) : 0;
	size_t stride = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
	size_t rounds = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
	static uint64_t vm[ROUNDS_MAX], file[ROUNDS_MAX];
	struct iovec *local, *remote;
	uint8_t *area, *copy;
	char path[64];
	pid_t pid;
	int fd;

	if (!n || n > 100000 || stride < SIZE || stride > 1000000 || !rounds || rounds > ROUNDS_MAX) {
		fputs("usage: bench_copy PIECES STRIDE ROUNDS\n", stderr);
		return 2;
	}
	area = mmap(NULL, n * stride, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	copy = calloc(n, SIZE);
	local = calloc(n, sizeof(*local));
	remote = calloc(n, sizeof(*remote));
	if (area == MAP_FAILED || !copy || !local || !remote)
		return 1;
	madvise(area, n * stride, MADV_NOHUGEPAGE);
	memset(copy, 1, n * SIZE);
	for (size_t i = 0; i < n; i++) {
		local[i] = (struct iovec){ copy + i * SIZE, SIZE };
		remote[i] = (struct iovec){ area + i * stride, SIZE };
	}
	pid = start_target(area, n * stride);
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	for (size_t i = 0; fd >= 0 && i < rounds; i++) {
		uint64_t start = now_ns(), middle;

		if (!by_vectors(pid, local, remote, n))
			break;
		middle = now_ns();
		vm[i] = middle - start;
		if (!by_file(fd, local, remote, n))
			break;
		file[i] = now_ns() - middle;
		if (i + 1 == rounds) {
			print("vm", vm, rounds);
			print("file", file, rounds);
		}
	}
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	return fd < 0 || !file[rounds - 1];
}
