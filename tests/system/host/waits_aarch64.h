/* SPDX-License-Identifier: MIT */
#ifndef WAITS_AARCH64_H
#define WAITS_AARCH64_H

/** @file waits_aarch64.h  A system call without the C library around it. */

#include <sys/syscall.h>

/** One that waits, if all its arguments are 0. */
#define WAITS_FOR_EVER SYS_ppoll

static inline __attribute__((always_inline)) long call_kernel(long number, const void *first)
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = (long)first;
	register long x1 __asm__("x1") = 0;
	register long x2 __asm__("x2") = 0;
	register long x3 __asm__("x3") = 0;

	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
	return x0;
}

#endif /* WAITS_AARCH64_H */
