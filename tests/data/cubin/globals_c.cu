#include "globals.cuh"

extern "C" __global__ void globals_c(long *out)
{
	out[threadIdx.x] = shared_by_both;
}
