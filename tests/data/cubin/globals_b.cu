#include "globals.cuh"

static __device__ int own = 11;

extern "C" __global__ void globals_b(long *out)
{
	out[threadIdx.x] = shared_by_both + own++;
}
