/* SPDX-License-Identifier: MIT */
#ifndef KFDTRAP_FAKE_H
#define KFDTRAP_FAKE_H

/**
 * @file kfdtrap_fake.h
 * A kernel that records one debug-trap command and answers as told.
 */

#include "libkfdtrap/include/kfdtrap.h"
#include "libkfdtrap/src/kfd_abi.h"
#include "tests/lib/testlib.h"

#define FAKE_FD	 7
#define FAKE_PID 4242u

static struct {
	int ret, err;		/* Result; err counts when ret is negative. */
	int interrupts;		/* How often EINTR comes first. */
	void (*answer)(struct kfdabi_dbg_args *args);
	int n_calls;
	struct kfdabi_dbg_args got; /* Argument of the last call, as it came in. */
} fake;

/* Like the kernel: the argument is copied back on failure too. */
static inline int fake_ioctl(int fd, unsigned long req, void *arg)
{
	struct kfdabi_dbg_args *args = arg;

	CU_ASSERT_EQUAL(fd, FAKE_FD);
	TEST_EQ_FATAL(req, KFDABI_IOC_DBG_TRAP);
	fake.n_calls++;
	fake.got = *args;
	if (fake.interrupts > 0 || fake.ret < 0) {
		memset((char *)args + 8, 0xaa, sizeof(*args) - 8);
		errno = fake.interrupts-- > 0 ? EINTR : fake.err;
		return -1;
	}
	if (fake.answer)
		fake.answer(args);
	return fake.ret;
}

static const struct kfdtrap_sys fake_sys = { .ioctl = fake_ioctl };

DEFINE_AUTO(struct kfdtrap *, kfdtrap_destroy);
#define auto_kfdtrap auto_call(kfdtrap_destroyp)

static inline struct kfdtrap *fake_kfdtrap(void)
{
	struct kfdtrap *kt = NULL;

	TEST_EQ_FATAL(kfdtrap_create(FAKE_FD, FAKE_PID, &fake_sys, &kt), 0);
	return kt;
}

#endif /* KFDTRAP_FAKE_H */
