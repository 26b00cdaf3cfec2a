/* SPDX-License-Identifier: MIT */
/* Kernels of a training step, for the scenes. */
#define KERNEL extern "C" __global__ void
#define DEVICE __device__ __forceinline__
#define SHARED __shared__
#define GROUP  256

DEVICE int thread_id()
{
	return blockIdx.x * GROUP + threadIdx.x;
}

/* ---- embedding: rows of a table ---- */

template <typename T> DEVICE T load_row(const T *table, int row)
{
	return table[row * 1024];
}

template <typename T> DEVICE T lookup(const T *table, const int *tokens, int i)
{
	return load_row(table, tokens[i]);
}

KERNEL embedding(float *out, const float *table, const int *tokens)
{
	int i = thread_id();

	out[i] = lookup(table, tokens, i);
}

/* ---- all_reduce: a sum over all GPUs, each of which waits for the one before it ---- */

DEVICE void wait_for_peer(volatile int *arrived, int step)
{
	while (*arrived < step)
		asm volatile("nanosleep.u32 100;");
}

DEVICE float ring_step(const float *chunk, volatile int *arrived, int step)
{
	wait_for_peer(arrived, step);
	return chunk[step * GROUP];
}

KERNEL all_reduce(float *out, const float *chunk, volatile int *arrived, int gpus)
{
	float sum = out[thread_id()];

	for (int step = 1; step < gpus; step++)
		sum += ring_step(chunk, arrived, step);
	out[thread_id()] = sum;
}

/* ---- gemm: a product of matrices ---- */

DEVICE float dot(const float *a, const float *b, int n)
{
	float sum = 0;

	for (int k = 0; k < n; k++)
		sum += a[k] * b[k * 1024];
	return sum;
}

KERNEL gemm(float *c, const float *a, const float *b, int n)
{
	SHARED float tile[GROUP];
	int i = thread_id();

	tile[i % GROUP] = dot(a + i, b, n);
	__syncthreads();
	c[i] = tile[GROUP - 1 - i % GROUP];
}
