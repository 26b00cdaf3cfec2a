/* SPDX-License-Identifier: MIT */
/* C++ names: templates, namespaces, and the same inlined twice. */
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))

namespace app
{
template <typename T> struct vec {
	T *p;
	int n;
};

template <typename T> __device__ inline T twice(T x)
{
	return x + x;
}

template <typename T> __device__ inline T step(T x, int k)
{
	for (int i = 0; i < k; i++)
		x = twice(x) ^ k;
	return x;
}

template <typename T> __global__ void shape(vec<T> v, int k)
{
	for (int i = 0; i < v.n; i++)
		v.p[i] = step(twice(v.p[i]), k);
}

template __global__ void shape<int>(vec<int>, int);
template __global__ void shape<unsigned long>(vec<unsigned long>, int);
} // namespace app
