/* SPDX-License-Identifier: MIT */
/* A sum over a whole grid, for the scenes: its workgroups wait for each other. */
#define KERNEL extern "C" __attribute__((global)) void
#define DEVICE __attribute__((device)) inline
#define CONSTANT __attribute__((address_space(4)))
#define GROUP  256

/* What the runtime passes to a cooperative launch, as ROCm's device library has it (__ockl_grid_sync()). */
struct grid {
	unsigned long multi;
	unsigned id, grids;
	unsigned long before, all;
	unsigned word, more; /* How many have come in the low half, how often all have in the high one. */
	unsigned groups;
};

DEVICE struct grid *this_grid()
{
	return *(struct grid *const CONSTANT *)((const CONSTANT char *)__builtin_amdgcn_implicitarg_ptr() + 48);
}

DEVICE void wait_for_all(unsigned *word, unsigned old)
{
	while ((__atomic_load_n(word, __ATOMIC_RELAXED) ^ old) <= 0xffff)
		__builtin_amdgcn_s_sleep(1);
}

DEVICE void grid_sync()
{
	struct grid *g = this_grid();

	__builtin_amdgcn_s_barrier();
	if (__builtin_amdgcn_workitem_id_x() == 0) {
		unsigned old = __atomic_fetch_add(&g->word, 1, __ATOMIC_RELAXED);

		if ((old & 0xffff) + 1 == g->groups)
			__atomic_fetch_add(&g->word, 0x10000 - g->groups, __ATOMIC_RELAXED);
		wait_for_all(&g->word, old);
	}
	__builtin_amdgcn_s_barrier();
}

DEVICE float part(const float *in, int n)
{
	float sum = 0;

	for (int i = 0; i < n; i++)
		sum += in[i * GROUP];
	return sum;
}

KERNEL reduce(float *out, const float *in, int n)
{
	int i = __builtin_amdgcn_workgroup_id_x() * GROUP + __builtin_amdgcn_workitem_id_x();

	out[i] = part(in + i, n);
	grid_sync();
	out[i] += out[0];
}
