/* SPDX-License-Identifier: MIT */
/* Sums over a whole grid: its blocks wait for each other. */
#include <cooperative_groups.h>
#define KERNEL extern "C" __global__ void
#define BLOCK  256

__device__ float part(const float *in, int n)
{
	float sum = 0;

	for (int i = 0; i < n; i++)
		sum += in[i * BLOCK];
	return sum;
}

/* By a cooperative launch. */
KERNEL reduce(float *out, const float *in, int n)
{
	int i = blockIdx.x * BLOCK + threadIdx.x;

	out[i] = part(in + i, n);
	cooperative_groups::this_grid().sync();
	out[i] += out[0];
}

/* Each block works on between its arrival and its wait, and waits a second time. */
KERNEL reduce_apart(float *out, const float *in, int n)
{
	cooperative_groups::grid_group grid = cooperative_groups::this_grid();
	int i = blockIdx.x * BLOCK + threadIdx.x;

	out[i] = part(in + i, n);
	auto token = grid.barrier_arrive();
	float more = part(in + n, n);
	grid.barrier_wait(std::move(token));
	out[i] += out[0] + more;
	grid.sync();
	out[i] += out[1];
}

struct barrier {
	unsigned size, word;
};

__device__ unsigned add(struct barrier *b, unsigned value)
{
	unsigned old;

	asm volatile("atom.add.release.gpu.u32 %0, [%1+4], %2;" : "=r"(old) : "l"(b), "r"(value) : "memory");
	return old;
}

__device__ unsigned acquire(const struct barrier *b)
{
	unsigned value;

	asm volatile("ld.acquire.gpu.u32 %0, [%1+4];" : "=r"(value) : "l"(b) : "memory");
	return value;
}

/* The same algorithm, with a word of the program's own: what it stands for is not known. */
KERNEL reduce_own(float *out, const float *in, int n, struct barrier *own)
{
	int i = blockIdx.x * BLOCK + threadIdx.x;

	out[i] = part(in + i, n);
	cooperative_groups::this_grid().sync();
	if (threadIdx.x == 0) {
		unsigned old = add(own, blockIdx.x ? 1 : 0x80000000 - (gridDim.x - 1));

		while (((old ^ acquire(own)) & 0x80000000) == 0)
			;
	}
	__syncthreads();
	out[i] += out[0];
}
