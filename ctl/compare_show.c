/* SPDX-License-Identifier: MIT */
/* A comparison as text or JSON, and as an exit status. */
#include "ctl/compare_show.h"

#include "base/cleanup.h"
#include "ctl/cli_words.h"
#include "ctl/ctl.h"
#include "ctl/snapshot_show.h"
#include "ctl/terminal/text.h"

/* Append the verdict, and why each queue has its own. */
static void print_verdicts(struct ctl *c, const struct rpc_comparison *cmp)
{
	struct out *o = &c->output.text;

	out_fmt(o, "\nverdict: %s\n", show_name(&c->arena, &rpc_progress_enum, cmp->verdict));
	for (size_t i = 0; i < cmp->n_queues; i++) {
		const struct rpc_queue_change *q = &cmp->queues[i];

		if (!q->has_verdict || !q->evidence)
			continue;
		out_fmt(o, "%s %u %s: ", vendor_word(c->vendor, "queue"), q->queue_id,
			show_name(&c->arena, &rpc_progress_enum, q->verdict));
		text_put(o, "", cli_words(c, q->evidence), "\n");
	}
}

static int print_text(struct ctl *c, const struct rpc_comparison *cmp,
		      const struct rpc_gpu_snapshot_result *after, bool queues_only, bool arguments)
{
	const struct snapshot_page page = { .snapshot = after, .comparison = cmp, .queues_only = queues_only,
					    .arguments = arguments };
	int r = snapshot_show(c, &page);

	if (r == 0 && c->verbose)
		print_verdicts(c, cmp);
	return r;
}

static int print_json(struct ctl *c, const struct rpc_comparison *cmp)
{
	auto_out struct out text = { 0 };

	rpc_comparison_encode(&text, cmp);
	return ctl_print_json(c, &text);
}

int compare_show(struct ctl *c, const struct rpc_comparison *cmp,
		 const struct rpc_gpu_snapshot_result *after, bool queues_only, bool arguments)
{
	int r = ctl_is_json(c) ? print_json(c, cmp) : print_text(c, cmp, after, queues_only, arguments);

	if (r < 0)
		return r;
	/* The status tells the verdict, which what is missing need not change. */
	if (!cmp->complete)
		ctl_note(c, "missing: %s", cmp->n_missing ? cli_words(c, cmp->missing[0]) : "a part of a snapshot");
	/* Scripts ask for the exit status alone. */
	if (cmp->verdict == RPC_PROGRESS_HUNG)
		return CTL_EXIT_NO_PROGRESS;
	return cmp->verdict == RPC_PROGRESS_UNKNOWN ? CTL_EXIT_PARTIAL : 0;
}
