/* SPDX-License-Identifier: MIT */
/* Two levels of inlining, a loop, a function that stays a function, and LDS. */
__attribute__((always_inline)) static inline int inner(int x, int n)
{
	int s = 0;

	for (int i = 0; i < n; i++)
		s = s * x + i;
	return s;
}

__attribute__((always_inline)) static inline int middle(int x, int n)
{
	int y = inner(x, n);

	return y ^ x;
}

__attribute__((noinline)) static int outside(int x)
{
	return x * middle(x, 5);
}

__kernel void scale(__global int *data, int n)
{
	__local int shared[64];
	unsigned lane = __builtin_amdgcn_workitem_id_x();
	unsigned id = __builtin_amdgcn_workgroup_id_x() * 64 + lane;

	shared[lane] = middle(data[id], n) + inner(n, 3);
	__builtin_amdgcn_s_barrier();
	data[id] = shared[63 - lane] + outside(n);
}

__kernel void spin(__global volatile int *flag)
{
	while (!*flag)
		__builtin_amdgcn_s_sleep(1);
}
