/* SPDX-License-Identifier: MIT */
/* A kernel that calls the host, for the scenes: as printf(), malloc() and assert() of HIP do on a device. */
#define KERNEL extern "C" __attribute__((global)) void
#define DEVICE extern "C" __attribute__((device, noinline))
#define CONSTANT __attribute__((address_space(4)))

/* What the runtime passes for it, as ROCm's device library has it (__ockl_hostcall_internal()). */
struct header {
	unsigned long next, lanes;
	unsigned service, control;
};

struct buffer {
	struct header *headers;
	unsigned long (*payloads)[64][8];
	unsigned long doorbell;
	unsigned long free, ready, mask;
};

/* Take the first packet of a stack.  There are as many packets as waves, so that there is one. */
static __attribute__((device)) unsigned long take(struct buffer *b)
{
	unsigned long first = __atomic_load_n(&b->free, __ATOMIC_ACQUIRE);

	while (!__atomic_compare_exchange_n(&b->free, &first, b->headers[first & b->mask].next, false,
					    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		__builtin_amdgcn_s_sleep(1);
	return first;
}

static __attribute__((device)) void give(struct buffer *b, unsigned long *stack, unsigned long packet)
{
	unsigned long first = __atomic_load_n(stack, __ATOMIC_RELAXED);

	do
		b->headers[packet & b->mask].next = first;
	while (!__atomic_compare_exchange_n(stack, &first, packet, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

DEVICE unsigned long __ockl_hostcall_internal(struct buffer *b, unsigned service, unsigned long value)
{
	unsigned lane = __builtin_amdgcn_mbcnt_hi(-1, __builtin_amdgcn_mbcnt_lo(-1, 0));
	bool speaks = lane == __builtin_amdgcn_readfirstlane(lane);
	unsigned long packet = 0, low, high;
	struct header *h;

	if (speaks)
		packet = take(b);
	low = (unsigned)__builtin_amdgcn_readfirstlane((unsigned)packet);
	high = (unsigned)__builtin_amdgcn_readfirstlane((unsigned)(packet >> 32));
	packet = high << 32 | low;
	h = &b->headers[packet & b->mask];
	if (speaks) {
		h->service = service;
		h->lanes = __builtin_amdgcn_read_exec();
		h->control = 1;
	}
	b->payloads[packet & b->mask][lane][0] = value;
	if (speaks) {
		give(b, &b->ready, packet);
		__atomic_fetch_add((unsigned long *)(b->doorbell + 8), 1, __ATOMIC_RELEASE);
	}
	for (;;) {
		unsigned open = 1;

		if (speaks)
			open = __atomic_load_n(&h->control, __ATOMIC_ACQUIRE) & 1;
		if (!__builtin_amdgcn_readfirstlane(open))
			break;
		__builtin_amdgcn_s_sleep(1);
	}
	value = b->payloads[packet & b->mask][lane][0];
	if (speaks)
		give(b, &b->free, packet + b->mask + 1);
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
