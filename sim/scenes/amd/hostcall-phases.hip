/* SPDX-License-Identifier: MIT */
/* As hostcall.hip, with the buffer that ROCm's device library has if it is built with USE_NEW_HOSTCALL_IMPL. */
#define KERNEL extern "C" __attribute__((global)) void
#define DEVICE extern "C" __attribute__((device, noinline))
#define CONSTANT __attribute__((address_space(4)))

struct header {
	unsigned long lanes;
	unsigned service;
};

struct buffer {
	unsigned *device, *host, *occupied;
	struct header *headers;
	unsigned long (*payloads)[64][8];
	unsigned long doorbell;
	unsigned packets;
};

/* A packet is a wave's own whose bit it has set, if the host has answered the one before. */
static __attribute__((device)) bool take(struct buffer *b, unsigned i)
{
	unsigned bit = 1u << i % 32;

	if (__atomic_fetch_or(&b->occupied[i / 32], bit, __ATOMIC_RELAXED) & bit)
		return false;
	if (__atomic_load_n(&b->device[i], __ATOMIC_RELAXED) == __atomic_load_n(&b->host[i], __ATOMIC_RELAXED))
		return true;
	__atomic_fetch_and(&b->occupied[i / 32], ~bit, __ATOMIC_RELAXED);
	return false;
}

DEVICE unsigned long __ockl_hostcall_internal(struct buffer *b, unsigned service, unsigned long value)
{
	unsigned lane = __builtin_amdgcn_mbcnt_hi(-1, __builtin_amdgcn_mbcnt_lo(-1, 0));
	bool speaks = lane == __builtin_amdgcn_readfirstlane(lane);
	unsigned i = 0;

	if (speaks)
		while (!take(b, i)) {
			__builtin_amdgcn_s_sleep(1);
			i = i + 1 < b->packets ? i + 1 : 0;
		}
	i = (unsigned)__builtin_amdgcn_readfirstlane(i);
	if (speaks) {
		b->headers[i].service = service;
		b->headers[i].lanes = __builtin_amdgcn_read_exec();
	}
	b->payloads[i][lane][0] = value;
	if (speaks) {
		unsigned phase = __atomic_load_n(&b->device[i], __ATOMIC_RELAXED);

		__atomic_store_n(&b->device[i], phase ^ 1, __ATOMIC_RELEASE);
		__atomic_fetch_add((unsigned long *)(b->doorbell + 8), 1, __ATOMIC_RELEASE);
		while (__atomic_load_n(&b->device[i], __ATOMIC_ACQUIRE) != __atomic_load_n(&b->host[i], __ATOMIC_ACQUIRE))
			__builtin_amdgcn_s_sleep(1);
	}
	value = b->payloads[i][lane][0];
	if (speaks)
		__atomic_fetch_and(&b->occupied[i / 32], ~(1u << i % 32), __ATOMIC_RELAXED);
	return value;
}

static __attribute__((device)) struct buffer *this_buffer()
{
	return *(struct buffer *const CONSTANT *)((const CONSTANT char *)__builtin_amdgcn_implicitarg_ptr() + 24);
}

/* What a compiler makes of printf() calls these three, and adds the argument by which the buffer is found. */
DEVICE unsigned long __ockl_printf_begin(unsigned long version)
{
	return __ockl_hostcall_internal(this_buffer(), 2, version);
}

DEVICE unsigned long __ockl_printf_append_string_n(unsigned long message, const char *text, unsigned long size, unsigned last)
{
	return __ockl_hostcall_internal(this_buffer(), 2, (unsigned long)text);
}

DEVICE unsigned long __ockl_printf_append_args(unsigned long message, unsigned n, unsigned long a, unsigned long b, unsigned long c,
					       unsigned long d, unsigned long e, unsigned long f, unsigned long g, unsigned last)
{
	return __ockl_hostcall_internal(this_buffer(), 2, a);
}

extern "C" __attribute__((device)) int printf(const char *format, ...);

KERNEL check(const float *in)
{
	int i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();

	if (in[i] < 0)
		printf("negative: %d\n", i);
}
