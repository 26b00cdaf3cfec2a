/* SPDX-License-Identifier: MIT */
/* Half the lanes of each warp go round in one place, half in another that is called or inlined. */
#include "common.cuh"

__device__ __noinline__ unsigned called(struct shared_words *w, unsigned depth)
{
	unsigned seen = depth * 2 + 1;

	while (!w->stop) // called here
		__nanosleep(100); // called here
	return seen + depth;
}

__device__ __forceinline__ void inlined(struct shared_words *w)
{
	while (!w->stop) // inlined here
		if (threadIdx.x == 0 && blockIdx.x < SLOTS) // inlined here
			w->progress[blockIdx.x] = w->progress[blockIdx.x] + 1; // inlined here
}

template <typename T> __global__ void diverge(struct shared_words *w, T *out)
{
	unsigned result = threadIdx.x;

	if (threadIdx.x % 32 < 16)
		inlined(w);
	else
		result = called(w, threadIdx.x);
	out[threadIdx.x] = (T)result;
}

template __global__ void diverge<float>(struct shared_words *w, float *out);

#ifndef DEVICE_ONLY
int main(int argc, char **argv)
{
	unsigned char *global;

	begin(argc, argv);
	global = planted_global(8192);
	diverge<float><<<4, 64>>>(words, (float *)(global + 4096));
	return finish(global, 4096, global + 4096, 4, 64);
}
#endif
