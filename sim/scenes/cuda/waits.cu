/* SPDX-License-Identifier: MIT */
/* Kernels for scenes in which warps wait for others that do not come. */
#define KERNEL	   extern "C" __global__ void
#define MEET(n, c) asm volatile("bar.sync " #n ", " #c ";" ::: "memory")

__device__ float work(const float *in, int n)
{
	float sum = 0;

#pragma unroll 1
	for (int i = threadIdx.x; i < n; i += blockDim.x)
		sum += in[i] * 2;
	return sum;
}

/* Warps 0 to 7 compute and warps 8 to 11 fetch, and 384 threads have to come to their barrier. */
KERNEL sparse_prefill(float *out, const float *in, const int *rows, int n)
{
	int row = rows[blockIdx.x];

	if (threadIdx.x < 256) {
		/* Nothing to do: and the others wait. */
		if (row < 0)
			return;
		out[threadIdx.x] = work(in, n);
		MEET(1, 384);
	} else {
		MEET(1, 384);
		out[threadIdx.x] = work(in, row);
	}
}

/* The first lane of each warp is at another barrier than the rest of it. */
KERNEL reduce(float *out, const float *in, int n)
{
	float sum = work(in, n);

	if (threadIdx.x % 32 == 0) {
		out[threadIdx.x] = sum;
		__syncthreads();
		sum += out[threadIdx.x + 32];
	} else {
		__syncwarp();
		out[threadIdx.x + 64] = sum;
	}
	__syncthreads();
	out[threadIdx.x] += sum;
}

/* Two halves of a block meet twice, and one of them has it in the other order. */
KERNEL exchange(float *out, const float *in, int n)
{
	if (threadIdx.x < 128) {
		MEET(1, 256);
		out[threadIdx.x] = work(in, n);
		MEET(2, 256);
	} else {
		MEET(2, 256);
		out[threadIdx.x] = work(in, n);
		MEET(1, 256);
	}
}
