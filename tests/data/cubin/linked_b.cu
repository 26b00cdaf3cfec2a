#include "linked.cuh"

__device__ float other(float value, int rounds)
{
	if (rounds > 4)
		return scaled<float>(value, rounds - 4);
	return value * rounds;
}

extern "C" __global__ void second(float *out, int rounds)
{
	out[threadIdx.x] = other(out[1], rounds);
}
