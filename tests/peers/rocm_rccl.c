/* SPDX-License-Identifier: MIT */
/*
 * One sum over two GPUs with RCCL, in one process.  Prints "ready" before it, "started" when both
 * GPUs were told, "ok" when they are done.  The few calls are declared here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int hipMalloc(void **ret, size_t size);
int hipSetDevice(int device);
int hipDeviceSynchronize(void);
int ncclCommInitAll(void **comms, int n, const int *devices);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclAllReduce(const void *from, void *to, size_t n, int type, int op, void *comm, void *stream);
enum { TYPE_FLOAT = 7, OP_SUM = 0, WORDS = 1024 };

static void check(int r, const char *what)
{
	if (!r)
		return;
	printf("error %s %d\n", what, r);
	exit(1);
}

int main(void)
{
	void *comms[2], *memory[2];
	char line[16];

	check(ncclCommInitAll(comms, 2, NULL), "ncclCommInitAll");
	for (int i = 0; i < 2; i++) {
		check(hipSetDevice(i), "hipSetDevice");
		check(hipMalloc(&memory[i], WORDS * sizeof(float)), "hipMalloc");
	}
	printf("ready\n");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	check(ncclGroupStart(), "ncclGroupStart");
	for (int i = 0; i < 2; i++)
		check(ncclAllReduce(memory[i], memory[i], WORDS, TYPE_FLOAT, OP_SUM, comms[i], NULL),
		      "ncclAllReduce");
	check(ncclGroupEnd(), "ncclGroupEnd");
	printf("started\n");
	fflush(stdout);
	for (int i = 0; i < 2; i++) {
		check(hipSetDevice(i), "hipSetDevice");
		check(hipDeviceSynchronize(), "hipDeviceSynchronize");
	}
	printf("ok\n");
	fflush(stdout);
	/* Its destructors wait for what a test has taken away. */
	_exit(0);
}
