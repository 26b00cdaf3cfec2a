/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PROCESS_YAMA_H
#define WORKER_PROCESS_YAMA_H

/**
 * @file yama.h
 * The kernel's restriction of ptrace(2) by Yama: Documentation/admin-guide/LSM/Yama.rst.
 */

#include "agentd/worker/process/options.h"

/** @return the value of kernel.yama.ptrace_scope; 0 without Yama, -1 if it cannot be read. */
int yama_ptrace_scope(void);
/** @return whether the kernel would let the agent trace other processes under @p scope. */
bool yama_allows(const struct worker_options *o, int scope);

#endif /* WORKER_PROCESS_YAMA_H */
