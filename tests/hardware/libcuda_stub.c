/* SPDX-License-Identifier: MIT */
/*
 * A driver without a GPU, for the test of program.c: memory of the host, and a thread that counts, ends and faults as
 * the kernels of this directory do.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/hardware/words.h"

#define ILLEGAL_ADDRESS 700
#define NOT_READY	600
#define EXPORT		__attribute__((visibility("default")))

EXPORT int cuInit(unsigned flags);
EXPORT int cuDeviceGet(int *device, int ordinal);
EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device);
EXPORT int cuDevicePrimaryCtxRetain(void **context, int device);
EXPORT int cuCtxSetCurrent(void *context);
EXPORT int cuMemHostAlloc(void **p, size_t size, unsigned flags);
EXPORT int cuMemAlloc_v2(uint64_t *address, size_t size);
EXPORT int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size);
EXPORT int cuModuleLoadData(void **module, const void *image);
EXPORT int cuModuleGetFunction(void **function, void *module, const char *name);
EXPORT int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
			  unsigned shared, void *stream, void **arguments, void **extra);
EXPORT int cuStreamQuery(void *stream);
EXPORT int cuGetErrorName(int error, const char **name);

static volatile int outcome = NOT_READY;

int cuInit(unsigned flags)
{
	return 0;
}

int cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return 0;
}

/* A GPU of compute capability 9.0. */
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	*value = attribute == 75 ? 9 : 0;
	return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
	*context = (void *)&outcome;
	return 0;
}

int cuCtxSetCurrent(void *context)
{
	return 0;
}

int cuMemHostAlloc(void **p, size_t size, unsigned flags)
{
	*p = malloc(size);
	return *p ? 0 : 2;
}

int cuMemAlloc_v2(uint64_t *address, size_t size)
{
	*address = (uint64_t)(uintptr_t)malloc(size);
	return *address ? 0 : 2;
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size)
{
	memcpy((void *)(uintptr_t)to, from, size);
	return 0;
}

int cuModuleLoadData(void **module, const void *image)
{
	*module = (void *)image;
	return memcmp(image, "\177ELF", 4) ? 200 : 0;
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
	*function = module;
	return 0;
}

static void *run(void *arg)
{
	struct shared_words *w = arg;

	while (!w->stop && !w->fault) {
		w->progress[0] = w->progress[0] + 1;
		usleep(500);
	}
	outcome = w->fault ? ILLEGAL_ADDRESS : 0;
	return NULL;
}

int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
		   unsigned shared, void *stream, void **arguments, void **extra)
{
	struct shared_words *w;
	pthread_t thread;

	memcpy(&w, arguments[0], sizeof(w));
	return pthread_create(&thread, NULL, run, w) ? 999 : 0;
}

int cuStreamQuery(void *stream)
{
	return outcome;
}

int cuGetErrorName(int error, const char **name)
{
	*name = error == ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : error ? "CUDA_ERROR_UNKNOWN" : "CUDA_SUCCESS";
	return 0;
}
