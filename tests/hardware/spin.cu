/* SPDX-License-Identifier: MIT */
/* Every warp goes round in one loop; known values in memory, in a register, in arguments and in variables. */
#include "common.cuh"

extern "C" __global__ void spin(struct shared_words *w, volatile unsigned *out, int number, float ratio,
				unsigned long long wide, struct pair both)
{
	__shared__ volatile unsigned pattern[64];
	volatile unsigned own[16];
	unsigned tag = w->tags[threadIdx.x];
	int index = (int)(blockIdx.x * blockDim.x + threadIdx.x);
	short small = (short)(-index);
	long long far = 0x100000000ll * index + 7;
	float half = (float)index * 0.5f;
	double quarter = (double)index + 0.25;
	struct pair mine = { index + 1000, -half };

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
	/* Whatever is used here has kept its place until now. */
	out[threadIdx.x] = tag + pattern[threadIdx.x % 64] + own[tag % 16] + (unsigned)number + (unsigned)(ratio * half) +
			   (unsigned)(wide + (unsigned long long)far) + (unsigned)(both.first + mine.first) +
			   (unsigned)(both.second * mine.second) + (unsigned)quarter + (unsigned)small;
}

#ifndef DEVICE_ONLY
int main(int argc, char **argv)
{
	struct pair both = PLANTED_PAIR;
	unsigned char *global;

	begin(argc, argv);
	global = planted_global(4096);
	spin<<<8, 128>>>(words, (volatile unsigned *)(global + 2048), PLANTED_NUMBER, PLANTED_RATIO, PLANTED_WIDE, both);
	return finish(global, 2048, global + 2048, 8, 128);
}
#endif
