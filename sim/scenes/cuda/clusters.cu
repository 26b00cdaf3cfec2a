/* SPDX-License-Identifier: MIT */
/* A kernel for scenes in which blocks of a cluster wait for each other. */
#define ARRIVE() asm volatile("barrier.cluster.arrive.release;" ::: "memory")
#define WAIT()	 asm volatile("barrier.cluster.wait.acquire;" ::: "memory")

__device__ float work(const float *in, int n)
{
	float sum = 0;

#pragma unroll 1
	for (int i = threadIdx.x; i < n; i += blockDim.x)
		sum += in[i] * 2;
	return sum;
}

/* The cell of the same number in the cluster's other block. */
__device__ float other(float *cell)
{
	float value;

	asm volatile("{\n\t.reg .u32 rank, at;\n\tmov.u32 rank, %%cluster_ctarank;\n\txor.b32 rank, rank, 1;\n\t"
		     "mapa.shared::cluster.u32 at, %1, rank;\n\tld.shared::cluster.f32 %0, [at];\n\t}"
		     : "=f"(value) : "r"((unsigned)__cvta_generic_to_shared(cell)) : "memory");
	return value;
}

/* Two blocks give each other what they have computed. */
extern "C" __global__ void __cluster_dims__(2) halo(float *out, const float *in, int n)
{
	__shared__ float cells[256];

	cells[threadIdx.x] = work(in, n);
	ARRIVE();
	WAIT();
	out[blockIdx.x * blockDim.x + threadIdx.x] = other(&cells[threadIdx.x]);
	ARRIVE();
	WAIT();
}

/* The same, and each block works while it waits for the other one. */
extern "C" __global__ void __cluster_dims__(2) halo_apart(float *out, const float *in, int n)
{
	__shared__ float cells[256];
	float sum = work(in, n);

	cells[threadIdx.x] = sum;
	ARRIVE();
	sum += work(out, n);
	WAIT();
	out[blockIdx.x * blockDim.x + threadIdx.x] = sum + other(&cells[threadIdx.x]);
	ARRIVE();
	WAIT();
}

/* The warps of a block meet before it meets the other one. */
extern "C" __global__ void __cluster_dims__(2) halo_block(float *out, const float *in, int n)
{
	__shared__ float cells[256];
	float sum;

	cells[threadIdx.x] = work(in, n);
	__syncthreads();
	sum = cells[threadIdx.x ^ 32];
	ARRIVE();
	WAIT();
	out[blockIdx.x * blockDim.x + threadIdx.x] = sum + other(&cells[threadIdx.x]);
	ARRIVE();
	WAIT();
}
