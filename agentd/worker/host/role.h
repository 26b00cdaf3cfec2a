/* SPDX-License-Identifier: MIT */
#ifndef WORKER_HOST_ROLE_H
#define WORKER_HOST_ROLE_H

/** @file role.h  What a thread is there for, by the names of its functions, its files and its own. */

#include "agentd/worker/host/reading.h"

/** @return false: nothing of it is known. */
bool role_find(const struct task *task, const struct reading_row *row, enum rpc_thread_role *ret);

#endif /* WORKER_HOST_ROLE_H */
