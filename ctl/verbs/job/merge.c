/* SPDX-License-Identifier: MIT */
/* gpu-agentctl merge: snapshots of many ranks as one, and which rank is the odd one out. */
#include <errno.h>

#include "ctl/ctl.h"
#include "ctl/verbs/job/merge_files.h"

static int run(struct ctl *c, int argc, char **argv)
{
	struct rpc_gpu_snapshot_result result;
	struct merge *m = merge_create();
	int r;

	if (!m)
		return ctl_fail(c, ENOMEM, "merging");
	c->arena.limit = MERGE_MEMORY_MAX;
	r = merge_files(c, m, argc, argv, &result);
	if (r == 0)
		r = merge_show(c, &result);
	if (r == 0)
		r = ctl_status(result.complete, false);
	merge_destroy(m);
	return r;
}

const struct ctl_verb ctl_verb_merge = {
	.name = "merge",
	.args = "FILE...",
	.summary = "Merge snapshots of many ranks into a tree, and name the odd one out",
	.min_args = 1,
	.max_args = MERGE_FILES_MAX,
	.run = run,
};
