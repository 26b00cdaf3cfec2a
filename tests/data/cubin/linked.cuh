// A template that two units instantiate: a linker keeps one.
template <typename T> __device__ __noinline__ T scaled(T value, int rounds)
{
	for (int i = 0; i < rounds; i++)
		value = value * (T)2 + (T)i;
	return value;
}
