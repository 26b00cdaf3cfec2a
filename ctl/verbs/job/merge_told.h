/* SPDX-License-Identifier: MIT */
#ifndef CTL_VERBS_JOB_MERGE_TOLD_H
#define CTL_VERBS_JOB_MERGE_TOLD_H

/** @file merge_told.h  What NCCL has said of itself to the ranks of a merged document, in words. */

#include "ctl/ctl.h"

/**
 * Append a line for each communicator, as the rank says that was told of it last: hearsay, which accuses nobody.
 * @return 0, negative with c->err.
 */
int merge_told_show(struct ctl *c, const struct rpc_gpu_snapshot_result *s);

#endif /* CTL_VERBS_JOB_MERGE_TOLD_H */
