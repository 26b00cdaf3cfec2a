/* SPDX-License-Identifier: MIT */
#ifndef CTL_NCCL_REPORT_H
#define CTL_NCCL_REPORT_H

/**
 * @file report.h
 * What a report of NCCL says of the communicators of one process.
 *
 * The report is a stranger's.  Texts live in the arena and may hold what that stranger chose: escape them before
 * printing.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc_gen.h"

#define NCCL_COMMUNICATORS_MAX 64 /**< Most that are told. */
#define NCCL_ODD_MAX	       64 /**< Most ranks that are told of each. */

/** Whose communicators are wanted. */
struct nccl_who {
	uint32_t pid; /**< As it numbers itself.  Processes of other hosts may have the same number. */
	/** Whether that is an address of its host. */
	bool (*is_here)(void *data, const char *host);
	void *data;
};

/**
 * Read a report in JSON.
 * @param ret  The address is left to the caller.  Communicators with ranks that differ come first.
 * @return 0, or negative with @p err: it is no such report, or there is no memory.
 */
int nccl_report_read(const char *text, size_t size, const struct nccl_who *who, struct rpc_arena *arena,
		     struct rpc_nccl_told *ret, struct agent_err *err);

/**
 * Say of communicators which collective operation that the waves execute is theirs, by rank and number of ranks: where
 * that leaves a choice, nothing is said.
 * @return how many of the operations are joined so.
 */
size_t nccl_report_join(struct rpc_nccl_told *told, const struct rpc_collective *collectives, size_t n);

/** Append what is said of the ranks of a communicator. */
void nccl_report_put(struct out *o, const struct rpc_nccl_communicator *c);

#endif /* CTL_NCCL_REPORT_H */
