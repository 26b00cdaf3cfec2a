/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SNAPSHOT_EXITED_H
#define WORKER_SNAPSHOT_EXITED_H

/**
 * @file exited.h
 * Exceptions whose waves are gone: a unit of the device recorded what was raised, and where.
 *
 * A back end gives each of them as a struct wave in which only gpu_id, unit, reasons, exception and
 * pc (0: not recorded) mean something.  There is at most one for each unit.
 */

#include "agentd/worker/snapshot/code.h"
#include "agentd/worker/target/waves.h"

/**
 * Count the exceptions with the same reasons at the same place, for replies.
 * @param code         Its arena holds the result.
 * @param exited       Changed: leader, site, place and kernel are set.
 * @param ret_unknown  Whether one of them is in no known code object.
 * @return 0, -ENOMEM.
 */
int exited_convert(struct code_set *code, struct wave *exited, size_t n,
		   struct rpc_exited_exception **ret, size_t *ret_n, bool *ret_unknown);

#endif /* WORKER_SNAPSHOT_EXITED_H */
