/* SPDX-License-Identifier: MIT */
/* Waits; at SIGUSR1 one thread, number 37 of block 1, writes where nothing is. */
#include "common.cuh"

extern "C" __global__ void fault(struct shared_words *w, volatile int *nowhere)
{
	int index = (int)(blockIdx.x * 1000 + threadIdx.x);

	while (!w->stop && !w->fault) // wait here
		if (threadIdx.x == 0 && blockIdx.x < SLOTS) // wait here
			w->progress[blockIdx.x] = w->progress[blockIdx.x] + 1; // wait here
	if (w->fault && blockIdx.x == 1 && threadIdx.x == 37)
		*nowhere = index; // fault here
}

#ifndef DEVICE_ONLY
int main(int argc, char **argv)
{
	unsigned char *global;

	begin(argc, argv);
	global = planted_global(4096);
	fault<<<2, 64>>>(words, (volatile int *)0x10);
	return finish(global, 4096, (void *)0x10, 2, 64);
}
#endif
