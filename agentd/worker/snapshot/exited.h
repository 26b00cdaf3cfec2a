/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SNAPSHOT_EXITED_H
#define WORKER_SNAPSHOT_EXITED_H

/**
 * @file exited.h
 * Exceptions whose waves are gone: a unit of the device recorded them, and where.
 *
 * Back ends give each as a struct wave of which only gpu_id, unit, reasons, exception and pc (0: not
 * recorded) mean something; one for each unit.
 */

#include "agentd/worker/snapshot/code.h"
#include "agentd/worker/target/waves.h"

/**
 * Those of the same reason at the same place, counted, for replies.
 * @param code         Its arena holds the result.
 * @param ret_unknown  Whether one of them is in no code object that we know.
 * @return 0, -ENOMEM.
 */
int exited_convert(struct code_set *code, struct wave *exited, size_t n,
		   struct rpc_exited_exception **ret, size_t *ret_n, bool *ret_unknown);

#endif /* WORKER_SNAPSHOT_EXITED_H */
