// For a clang without NVIDIA's headers: calls that are inlined, and a unit whose extent leaves a function out.
#define DEVICE __attribute__((device))
#define KERNEL extern "C" __attribute__((global)) void

static DEVICE inline __attribute__((always_inline)) float weigh(float value, float *out)
{
	*out = value;
	return value * value + 3.0f;
}

static DEVICE inline __attribute__((always_inline)) float twice(float value, float *out)
{
	value = weigh(value, out);
	return weigh(value, out + 1);
}

static DEVICE __attribute__((noinline)) float polish(float value, int rounds)
{
	for (int i = 0; i < rounds; i++)
		value = value * 0.5f + 1.0f;
	return value;
}

KERNEL one(float *out, int rounds)
{
	out[__nvvm_read_ptx_sreg_tid_x()] = twice(polish(out[0], rounds), out + 1);
}

KERNEL two(float *out, int rounds)
{
	for (int i = 0; i < rounds; i++)
		out[i] = i;
}
