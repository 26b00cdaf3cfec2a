/* SPDX-License-Identifier: MIT */
#ifndef HARDWARE_COMMON_CUH
#define HARDWARE_COMMON_CUH

/**
 * @file common.cuh
 * What the test programs share: stages before the kernel, a heartbeat thread, a status file.  As programs of the CUDA
 * runtime they are compiled where nvcc is; program.c starts the same kernels, compiled with DEVICE_ONLY, by the driver
 * alone, and is used as these are.
 *
 * usage: PROGRAM --status-file PATH [--stop-at none|loaded|init|context]
 *
 * The program stops before the named stage and goes on at SIGUSR1: `none` has not even loaded the
 * driver, `loaded` has not called cuInit, `init` has no context, `context` no kernel.  Standard
 * output has a line of JSON for `stopped`, `ready` and the end of the kernel.  SIGTERM ends the kernel and the
 * program.  The status file is mapped shared; struct hardware_status is its layout.
 */

#include <stdint.h>

#include "words.h"

#ifndef DEVICE_ONLY
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CHECK(call)                                                                                    \
	do {                                                                                           \
		cudaError_t check_error = (call);                                                      \
		if (check_error != cudaSuccess) {                                                      \
			fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(check_error));           \
			exit(1);                                                                       \
		}                                                                                      \
	} while (0)

static struct hardware_status *status;
static struct shared_words *words; /* NULL until there is a context */
static volatile sig_atomic_t n_go, is_ready, is_ended;
static const char *stop_at = "";

static void on_go(int sig)
{
	n_go++;
	if (is_ready)
		words->fault = 1;
}

static void on_end(int sig)
{
	is_ended = 1;
	if (words)
		words->stop = 1;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void *beat(void *arg)
{
	uint64_t last = now_ns();

	for (;;) {
		uint64_t now = now_ns(), sum = 0;
		struct timespec pause = { 0, 500000 };

		if (now - last > status->max_gap_ns)
			status->max_gap_ns = now - last;
		last = now;
		for (int i = 0; words && i < SLOTS; i++)
			sum += words->progress[i];
		status->progress = sum;
		status->beats++;
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static void status_map(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	void *p = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, sizeof(*status)) == 0)
		p = mmap(NULL, sizeof(*status), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		perror(path);
		exit(1);
	}
	status = (struct hardware_status *)p;
	memset(status, 0, sizeof(*status));
	status->pid = getpid();
	status->kernel_error = -1;
	status->magic = HARDWARE_MAGIC;
}

/* Wait for SIGUSR1 when told to stop here. */
static void stage(const char *name)
{
	sig_atomic_t before = n_go;

	if (strcmp(stop_at, name))
		return;
	printf("{\"stopped\": \"%s\", \"pid\": %d}\n", name, getpid());
	fflush(stdout);
	while (n_go == before && !is_ended)
		usleep(1000);
	if (is_ended)
		exit(0);
}

/* Up to a context and the words in it. */
static void begin(int argc, char **argv)
{
	const char *path = NULL;
	int (*init)(unsigned);
	pthread_t thread;
	void *driver;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--status-file"))
			path = argv[i + 1];
		if (!strcmp(argv[i], "--stop-at"))
			stop_at = argv[i + 1];
	}
	if (!path) {
		fprintf(stderr, "usage: %s --status-file PATH [--stop-at STAGE]\n", argv[0]);
		exit(2);
	}
	signal(SIGUSR1, on_go);
	signal(SIGTERM, on_end);
	status_map(path);
	pthread_create(&thread, NULL, beat, NULL);
	stage("none");
	driver = dlopen("libcuda.so.1", RTLD_NOW);
	if (!driver) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	stage("loaded");
	init = (int (*)(unsigned))dlsym(driver, "cuInit");
	if (!init || init(0)) {
		fprintf(stderr, "cuInit failed\n");
		exit(1);
	}
	stage("init");
	CHECK(cudaHostAlloc((void **)&words, sizeof(*words), cudaHostAllocMapped));
	memset((void *)words, 0, sizeof(*words));
	for (uint32_t i = 0; i < 1024; i++)
		words->tags[i] = 0xc0ffee00u + i;
	stage("context");
}

/* Global memory with bytes 0, 7, 14, ...; a reader can check them. */
static unsigned char *planted_global(size_t size)
{
	unsigned char *bytes = (unsigned char *)malloc(size), *device;

	for (size_t i = 0; i < size; i++)
		bytes[i] = (unsigned char)(i * 7);
	CHECK(cudaMalloc((void **)&device, size));
	CHECK(cudaMemcpy(device, bytes, size, cudaMemcpyHostToDevice));
	free(bytes);
	return device;
}

/* The kernel is under way: say where things are, wait for its end. */
static int finish(const void *global, size_t global_size, const void *out, int blocks, int threads)
{
	cudaError_t error;

	CHECK(cudaGetLastError());
	while (!words->progress[0] && !is_ended)
		usleep(1000);
	is_ready = 1;
	printf("{\"ready\": true, \"pid\": %d, \"global\": \"0x%llx\", \"global_size\": %zu, "
	       "\"shared\": \"0x%llx\", \"local\": \"0x%llx\", \"words\": \"0x%llx\", \"out\": \"0x%llx\", "
	       "\"blocks\": %d, \"threads\": %d}\n",
	       getpid(), (unsigned long long)(uintptr_t)global, global_size,
	       (unsigned long long)words->shared_address, (unsigned long long)words->local_address,
	       (unsigned long long)(uintptr_t)words, (unsigned long long)(uintptr_t)out, blocks, threads);
	fflush(stdout);
	/* No synchronisation that spins: a stopped GPU would use a whole CPU. */
	while ((error = cudaStreamQuery(0)) == cudaErrorNotReady)
		usleep(1000);
	status->kernel_error = (int32_t)error;
	printf("{\"kernel_error\": %d, \"name\": \"%s\"}\n", (int)error, cudaGetErrorName(error));
	fflush(stdout);
	while (!is_ended && n_go)
		usleep(1000);
	return 0;
}

#endif /* DEVICE_ONLY */

#endif /* HARDWARE_COMMON_CUH */
