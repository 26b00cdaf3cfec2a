/* SPDX-License-Identifier: MIT */
/* gpu-agentctl diff: what changed between two saved snapshots of a process. */
#include <string.h>

#include "ctl/compare_show.h"
#include "ctl/ctl.h"
#include "ctl/document/compare.h"

static bool any_progress;

static const struct argv_option options[] = {
	{ "any-progress", 0, ARGV_FLAG, &any_progress, NULL,
	  "call the process progressing when one queue is, whatever the others do" },
	{ 0 },
};

/* Read two documents; a core file counts as one. */
static int read_both(struct ctl *c, char **argv, struct document *before, struct document *after)
{
	int r;

	if (!strcmp(argv[0], "-") && !strcmp(argv[1], "-"))
		return ctl_usage(c, "only one of the files can be standard input");
	c->arena.limit = 2 * DOCUMENT_MEMORY_MAX;
	r = source_read(argv[0], true, c->timeout_ms, &c->arena, before, &c->err);
	return r < 0 ? r : source_read(argv[1], true, c->timeout_ms, &c->arena, after, &c->err);
}

static int compare(struct ctl *c, const struct document *before, const struct document *after)
{
	const char *mismatch = compare_mismatch(&c->arena, &before->snapshot, &after->snapshot);
	struct rpc_comparison cmp;
	int r;

	if (mismatch)
		return ctl_usage(c, "these are not two snapshots of one process: %s", mismatch);
	/* Users need not know which file is the older one. */
	if (after->snapshot.time_us < before->snapshot.time_us) {
		const struct document *later = before;

		ctl_note(c, "%s is the earlier one; compared in that order", after->name);
		before = after;
		after = later;
	}
	r = compare_snapshots(&c->arena, &before->snapshot, &after->snapshot, any_progress, &cmp);
	if (r < 0)
		return ctl_fail(c, -r, "comparing");
	cmp.before.file = before->name;
	cmp.after.file = after->name;
	return compare_show(c, &cmp, &after->snapshot, false, false);
}

static int run(struct ctl *c, int argc, char **argv)
{
	struct document before, after;
	int r = read_both(c, argv, &before, &after);

	return r < 0 ? r : compare(c, &before, &after);
}

const struct ctl_verb ctl_verb_diff = {
	.name = "diff",
	.args = "FILE FILE",
	.options = options,
	.summary = "Compare two saved snapshots of a process: hung, slow or progressing?",
	.min_args = 2,
	.max_args = 2,
	.run = run,
};
