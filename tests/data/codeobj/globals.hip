/* SPDX-License-Identifier: MIT */
/* Variables outside of functions. */
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __constant__ __attribute__((constant))

__device__ long twice = 7;
static __device__ short own = 3;
__constant__ int fixed[8] = { 1, 2, 3 };
namespace
{
__device__ int nameless = 5;
}
namespace ns
{
__device__ int table[4] = { 1, 2, 3, 4 };
__device__ int twice = 8;
struct counter {
	static __device__ unsigned total;
};
__device__ unsigned counter::total = 9;
namespace in
{
__device__ float scale = 2.5f;

__device__ __attribute__((noinline)) long inner(int i)
{
	return table[i] + twice + (long)scale++ + counter::total++;
}
} // namespace in
} // namespace ns

extern "C" __global__ void globals(long *out, int i)
{
	out[i] = ns::in::inner(i & 3) + twice++ + own++ + fixed[i & 7] + nameless++;
	ns::twice++;
	ns::table[1]++;
}
