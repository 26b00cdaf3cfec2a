// Kernels for tests: a loop, a divergent branch with an inlined and a called function, a fault.

__device__ __noinline__ float polish(float value, int rounds)
{
	for (int i = 0; i < rounds; i++)
		value = value * 0.5f + 1.0f;
	return value;
}

__device__ inline float weigh(float value)
{
	return value * value + 3.0f;
}

extern "C" __global__ void spin(volatile int *stop, float *out)
{
	float sum = 0.0f;

	while (!*stop)
		sum = weigh(sum);
	out[threadIdx.x] = sum;
}

template <typename T> __global__ void diverge(T *out, int rounds)
{
	__shared__ T tile[32];

	tile[threadIdx.x % 32] = (T)threadIdx.x;
	__syncthreads();
	if (threadIdx.x % 32 < 16)
		out[threadIdx.x] = weigh(tile[31 - threadIdx.x % 32]);
	else
		out[threadIdx.x] = polish(tile[threadIdx.x % 32], rounds);
}

template __global__ void diverge<float>(float *out, int rounds);

extern "C" __global__ void fault(int *where)
{
	if (threadIdx.x == 5)
		*where = 42;
}
