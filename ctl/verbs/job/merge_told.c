/* SPDX-License-Identifier: MIT */
#include "ctl/verbs/job/merge_told.h"

#include <errno.h>
#include <inttypes.h>

#include "base/cleanup.h"
#include "ctl/nccl/communicators.h"
#include "ctl/nccl/report.h"
#include "ctl/verbs/wait/page.h"

/* How many communicators are shown without --verbose. */
#define SHOWN 4

static void put(struct ctl *c, const struct nccl_said *t)
{
	auto_out struct out text = { 0 };

	out_fmt(&text, "%s was told of communicator 0x%" PRIx64 " of %u: ", t->by ? t->by->name : "it", t->of->hash,
		t->of->ranks);
	nccl_report_put(&text, t->of);
	why_line(c, "NCCL", text.data, show_name(&c->arena, &rpc_confidence_enum, t->told->confidence));
}

int merge_told_show(struct ctl *c, const struct rpc_gpu_snapshot_result *s)
{
	size_t n, left, shown;
	const struct nccl_said *list = nccl_communicators(&c->arena, s, &n, &left);

	if (!list)
		return ctl_fail(c, ENOMEM, "what NCCL says");
	shown = c->verbose || n < SHOWN ? n : SHOWN;
	for (size_t i = 0; i < shown; i++)
		put(c, &list[i]);
	if (n > shown)
		why_line(c, "", rpc_arena_printf(&c->arena, "(%zu more communicator%s of NCCL: --verbose)", n - shown,
						  n - shown == 1 ? "" : "s"),
			  NULL);
	if (left)
		why_line(c, "", rpc_arena_printf(&c->arena, "(%zu more %s in no document: one keeps the first)", left,
						  left == 1 ? "is" : "are"),
			  NULL);
	return 0;
}
