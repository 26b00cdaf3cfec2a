/* SPDX-License-Identifier: MIT */
/* A kernel with a caller, a callee, and data in every memory space: see README. */
__device__ int planted_global[8];

__device__ __noinline__ int callee(int *where, int value)
{
	volatile int on_stack[4];

	on_stack[value & 3] = value;
	*where = on_stack[0] + value; /* the planted fault */
	return *where;
}

extern "C" __global__ void planted(int *out, int n)
{
	__shared__ int block[64];

	block[threadIdx.x & 63] = n;
	__syncthreads();
	out[threadIdx.x] = callee(&planted_global[threadIdx.x & 7], block[n & 63]) + 1;
}
