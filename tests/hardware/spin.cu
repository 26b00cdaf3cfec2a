/* SPDX-License-Identifier: MIT */
/* Every warp goes round in one loop; known values in global, shared and local memory and a register. */
#include "common.cuh"

extern "C" __global__ void spin(struct shared_words *w, volatile unsigned *out)
{
	__shared__ volatile unsigned pattern[64];
	volatile unsigned own[16];
	unsigned tag = w->tags[threadIdx.x];

	for (unsigned i = threadIdx.x; i < 64; i += blockDim.x)
		pattern[i] = 0x5eed0000u + i;
	for (unsigned i = 0; i < 16; i++)
		own[i] = (threadIdx.x << 16) + i;
	__syncthreads();
	if (threadIdx.x == 0 && blockIdx.x == 0) {
		w->shared_address = (uint64_t)__cvta_generic_to_shared((const void *)pattern);
		w->local_address = (uint64_t)__cvta_generic_to_local((const void *)own);
		__threadfence_system();
	}
	while (!w->stop) // spin here
		if (threadIdx.x == 0 && blockIdx.x < SLOTS) // spin here
			w->progress[blockIdx.x] = w->progress[blockIdx.x] + 1; // spin here
	out[threadIdx.x] = tag + pattern[threadIdx.x % 64] + own[tag % 16];
}

int main(int argc, char **argv)
{
	unsigned char *global;

	begin(argc, argv);
	global = planted_global(4096);
	spin<<<8, 128>>>(words, (volatile unsigned *)(global + 2048));
	return finish(global, 2048, 8, 128);
}
