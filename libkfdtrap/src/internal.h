/* SPDX-License-Identifier: MIT */
#ifndef KFDTRAP_INTERNAL_H
#define KFDTRAP_INTERNAL_H

/**
 * @file internal.h
 * The handle, and the one place where commands enter the kernel.
 */

#include "kfd_abi.h"
#include "kfdtrap.h"

/** A handle; see kfdtrap_create(). */
struct kfdtrap {
	const struct kfdtrap_sys *sys;
	int kfd_fd;
	uint32_t pid;
	uint32_t enable_by; /* What ENABLE names the process by instead; 0: nothing. */
};

/** How often a command is repeated on EINTR before the caller is told. */
#define KFD_INTR_MAX 1000


/** Lists of errno values beyond the common ones that a command documents; 0 ends a list. */
extern const int trap_errnos_none[];
extern const int trap_errnos_hardware[];

/**
 * Issue a debug-trap command.
 * @param args    The union is filled in; pid and op are set here.  Holds the kernel's answer
 *                afterwards, also after a failure.
 * @param errnos  Passed through besides the common ones; any other becomes -EIO.
 * @return the kernel's result (>= 0) or a documented -errno.
 */
int trap_call(const struct kfdtrap *kt, uint32_t op, struct kfdabi_dbg_args *args,
	      const int *errnos);

/** @return a pointer as the kernel's arguments have it. */
static inline uint64_t trap_ptr(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

#endif /* KFDTRAP_INTERNAL_H */
