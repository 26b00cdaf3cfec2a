/* SPDX-License-Identifier: MIT */
/*
 * The peer of host.stacks: the same reads of each thread in a bare loop, and nothing made of them.
 * usage: bench_stacks threads N   N threads that wait, until it is killed; prints a line
 *        bench_stacks read PID    prints the microseconds that one pass took, the best of 20
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define PASSES 20
/* As much of a stack as the worker copies first. */
#define STACK_BYTES 20480

static void *sleep_on(void *semaphore)
{
	sem_wait(semaphore);
	return NULL;
}

static int run_threads(size_t n)
{
	static sem_t semaphore;
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 131072); /* The least that aarch64 takes. */
	for (size_t i = 1; i < n; i++)
		if (pthread_create(&thread, &attributes, sleep_on, &semaphore))
			return 1;
	puts("ready");
	fflush(stdout);
	sleep_on(&semaphore);
	return 0;
}

static ssize_t read_file(int tasks, const char *tid, const char *name, char *text, size_t size)
{
	char path[300];
	auto_close int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s", tid, name);
	fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, size - 1);
	text[n < 0 ? 0 : n] = '\0';
	return n;
}

static void read_thread(pid_t pid, int tasks, const char *tid)
{
	/* Listed, described, looked at; then the stack is read, and it is looked at once more. */
	static const char *const files[] = { "schedstat", "syscall", "stat", "schedstat", "syscall" };
	char text[512], stack[STACK_BYTES];
	uint64_t pointer = 0;
	struct iovec local = { stack, sizeof(stack) }, remote;

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		read_file(tasks, tid, files[i], text, sizeof(text));
	sscanf(text, "%*d %*x %*x %*x %*x %*x %*x %" SCNx64, &pointer);
	remote = (struct iovec){ (void *)(uintptr_t)pointer, sizeof(stack) };
	process_vm_readv(pid, &local, 1, &remote, 1, 0);
	read_file(tasks, tid, "schedstat", text, sizeof(text));
}

static uint64_t pass(pid_t pid, const char *path)
{
	const uint64_t begin = clock_now_ns();
	DIR *dir = opendir(path);
	const struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (e->d_name[0] != '.')
			read_thread(pid, dirfd(dir), e->d_name);
	if (dir)
		closedir(dir);
	return clock_now_ns() - begin;
}

int main(int argc, char **argv)
{
	uint64_t best = UINT64_MAX;
	char path[40];

	if (argc != 3)
		return 2;
	if (!strcmp(argv[1], "threads"))
		return run_threads(strtoul(argv[2], NULL, 10));
	snprintf(path, sizeof(path), "/proc/%d/task", atoi(argv[2]));
	for (int i = 0; i < PASSES; i++) {
		const uint64_t ns = pass((pid_t)atoi(argv[2]), path);

		best = ns < best ? ns : best;
	}
	printf("%" PRIu64 "\n", best / 1000);
	return 0;
}
