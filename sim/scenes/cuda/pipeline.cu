/* SPDX-License-Identifier: MIT */
/* A kernel whose warps hand tiles on by barriers in shared memory, and of which some leave early. */
#define STAGES 6
#define KERNEL extern "C" __global__ void
typedef unsigned long long barrier;

__device__ unsigned place(const barrier *b)
{
	return (unsigned)__cvta_generic_to_shared(b);
}

__device__ void init(const barrier *b, unsigned count)
{
	asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(place(b)), "r"(count) : "memory");
}

__device__ void arrive(const barrier *b)
{
	asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(place(b)) : "memory");
}

__device__ void wait(const barrier *b, unsigned parity)
{
	asm volatile("{\n.reg .pred done;\n"
		     "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
		     "@done bra.uni over;\nbra.uni again;\nover:\n}" ::"r"(place(b)),
		     "r"(parity)
		     : "memory");
}

/* Warp 0 loads tiles, warps 1 to 4 hand them out, and warps 5 to 11 compute until there are no more for them. */
KERNEL grouped_gemm(float *out, const float *in, const int *tiles, int n)
{
	__shared__ barrier empty[STAGES], full[STAGES], ring;
	__shared__ float stage[STAGES][32];
	unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;

	if (threadIdx.x == 0) {
		for (int i = 0; i < STAGES; i++) {
			init(&empty[i], 1);
			init(&full[i], 32);
		}
		init(&ring, 12);
	}
	__syncthreads();
	if (warp == 0) {
#pragma unroll 1
		for (int i = 0; i < n; i++) {
			wait(&empty[i % STAGES], ~(i / STAGES) & 1);
			stage[i % STAGES][lane] = in[i * 32 + lane];
			arrive(&full[i % STAGES]);
			if (lane == 0)
				arrive(&ring);
		}
	} else if (warp < 5) {
#pragma unroll 1
		for (int i = 0; i < n; i++) {
			if (lane == 0)
				arrive(&ring);
			wait(&ring, i & 1);
			out[n * 32 + i] = tiles[i];
		}
	} else {
		/* They leave one tile too early. */
#pragma unroll 1
		for (int i = 0; i < n && tiles[i + 1] >= 0; i++) {
			wait(&full[i % STAGES], i / STAGES & 1);
			out[i * 32 + lane] = stage[i % STAGES][lane] * 2;
			if (warp == 5 && lane == 0)
				arrive(&empty[i % STAGES]);
			if (lane == 0)
				arrive(&ring);
		}
	}
}
