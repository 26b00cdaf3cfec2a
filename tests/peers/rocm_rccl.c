/* SPDX-License-Identifier: MIT */
/*
 * Sums over two GPUs with RCCL, in one process: one for each line of standard input.  Prints "ready"
 * before them, "started" when both GPUs were told, "ok" and a sum of the bytes when they are done.
 * The few calls are declared here.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int hipMalloc(void **ret, size_t size);
int hipMemcpy(void *to, const void *from, size_t size, int kind);
int hipSetDevice(int device);
int hipDeviceSynchronize(void);
int ncclCommInitAll(void **comms, int n, const int *devices);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclAllReduce(const void *from, void *to, size_t n, int type, int op, void *comm, void *stream);
enum { HOST_TO_DEVICE = 1, DEVICE_TO_HOST = 2 };
enum { TYPE_FLOAT = 7, OP_SUM = 0, GPUS = 2, WORDS = 1 << 18 };

static void *comms[GPUS], *memory[GPUS];
static uint32_t words[WORDS];

static void check(int r, const char *what)
{
	if (!r)
		return;
	printf("error %s %d\n", what, r);
	exit(1);
}

static void set_up(int gpu)
{
	for (uint32_t i = 0; i < WORDS; i++)
		words[i] = (i + (uint32_t)gpu) * 2654435761u;
	check(hipSetDevice(gpu), "hipSetDevice");
	check(hipMalloc(&memory[gpu], sizeof(words)), "hipMalloc");
	check(hipMemcpy(memory[gpu], words, sizeof(words), HOST_TO_DEVICE), "to the GPU");
}

static void sum(void)
{
	check(ncclGroupStart(), "ncclGroupStart");
	for (int i = 0; i < GPUS; i++)
		check(ncclAllReduce(memory[i], memory[i], WORDS, TYPE_FLOAT, OP_SUM, comms[i], NULL),
		      "ncclAllReduce");
	check(ncclGroupEnd(), "ncclGroupEnd");
}

/* Of all bytes of a GPU, onto what others have. */
static uint64_t bytes_of(int gpu, uint64_t all)
{
	check(hipSetDevice(gpu), "hipSetDevice");
	check(hipDeviceSynchronize(), "hipDeviceSynchronize");
	check(hipMemcpy(words, memory[gpu], sizeof(words), DEVICE_TO_HOST), "from the GPU");
	for (uint32_t i = 0; i < WORDS; i++)
		all = all * 31 + words[i];
	return all;
}

int main(void)
{
	char line[16];

	check(ncclCommInitAll(comms, GPUS, NULL), "ncclCommInitAll");
	for (int i = 0; i < GPUS; i++)
		set_up(i);
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		uint64_t all = 0;

		sum();
		printf("started\n");
		fflush(stdout);
		for (int i = 0; i < GPUS; i++)
			all = bytes_of(i, all);
		printf("ok %016llx\n", (unsigned long long)all);
		fflush(stdout);
	}
	/* Its destructors wait for what a test has taken away. */
	_exit(0);
}
