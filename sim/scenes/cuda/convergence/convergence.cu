/* SPDX-License-Identifier: MIT */
/* Kernels in which lanes of one warp wait for each other. */
#define KERNEL extern "C" __global__ void

/* The first lane of a warp is at a barrier of it, and the others are at another one: each is for all lanes. */
KERNEL merge(float *out, const float *in)
{
	float sum = in[threadIdx.x];

	if (threadIdx.x % 32 == 0) {
		out[threadIdx.x] = sum;
		__syncwarp();
		sum += out[threadIdx.x + 1];
		__syncthreads();
		out[threadIdx.x + 64] = sum;
	} else {
		out[threadIdx.x] = sum * 2;
		__syncwarp();
		sum += out[threadIdx.x - 1];
		__syncthreads();
		out[threadIdx.x + 32] = sum;
	}
}

/* A lock that is given back behind the place where all lanes of the warp meet again: the one that has it waits there. */
KERNEL push(float *out, unsigned *lock, unsigned n)
{
	float sum = 0;

	if (threadIdx.x < n)
		while (atomicCAS(lock, 0, 1) != 0)
			;
	else
		sum = out[threadIdx.x];
	out[0] += sum;
	__threadfence();
	atomicExch(lock, 0);
}
