#include "globals.cuh"

__device__ long shared_by_both = 7;
static __device__ short own = 3;
static __device__ int of_a = 1;
__constant__ int banked[8];
__shared__ int block_wide[32];
namespace
{
__device__ int nameless = 5;
}
namespace ns
{
__device__ int table[4] = { 1, 2, 3, 4 };
__device__ int shared_by_both = 8;
namespace in
{
__constant__ float scale = 2.5f;

__device__ __noinline__ long inner(int i)
{
	return table[i] + shared_by_both + (long)scale;
}
} // namespace in
} // namespace ns

extern "C" __global__ void globals_a(long *out)
{
	block_wide[threadIdx.x] = nameless++;
	out[threadIdx.x] = ns::in::inner(threadIdx.x & 3) + shared_by_both + own++ + banked[1] + of_a++;
}
