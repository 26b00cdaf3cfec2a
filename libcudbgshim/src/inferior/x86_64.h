/* SPDX-License-Identifier: MIT */
#ifndef CUDBGSHIM_INFERIOR_X86_64_H
#define CUDBGSHIM_INFERIOR_X86_64_H

/** @file x86_64.h  What tests look at, too. */

#include "libcudbgshim/src/inferior/inferior.h"

/**
 * @return the registers with which the thread repeats the system call that was interrupted, as the
 *         kernel would; outside of a system call they are unchanged.
 */
struct user_regs_struct inferior_restarted(const struct user_regs_struct *regs);

#endif /* CUDBGSHIM_INFERIOR_X86_64_H */
