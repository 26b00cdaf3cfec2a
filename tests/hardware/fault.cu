/* SPDX-License-Identifier: MIT */
/* Waits; at SIGUSR1 one thread writes where nothing is. */
#include "common.cuh"

extern "C" __global__ void fault(struct shared_words *w, volatile int *nowhere)
{
	while (!w->stop && !w->fault) // wait here
		if (threadIdx.x == 0 && blockIdx.x < SLOTS) // wait here
			w->progress[blockIdx.x] = w->progress[blockIdx.x] + 1; // wait here
	if (w->fault && blockIdx.x == 1 && threadIdx.x == 5)
		*nowhere = 42; // fault here
}

int main(int argc, char **argv)
{
	unsigned char *global;

	begin(argc, argv);
	global = planted_global(4096);
	fault<<<2, 64>>>(words, (volatile int *)0x10);
	return finish(global, 4096, 2, 64);
}
