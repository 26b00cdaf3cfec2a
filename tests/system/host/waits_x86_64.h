/* SPDX-License-Identifier: MIT */
#ifndef WAITS_X86_64_H
#define WAITS_X86_64_H

/** @file waits_x86_64.h  A system call without the C library around it. */

#include <sys/syscall.h>

/** One that waits, without arguments that matter. */
#define WAITS_FOR_EVER SYS_pause

static inline __attribute__((always_inline)) long call_kernel(long number, const void *first)
{
	__asm__ volatile("syscall" : "+a"(number) : "D"(first), "S"(0) : "rcx", "r11", "memory");
	return number;
}

#endif /* WAITS_X86_64_H */
