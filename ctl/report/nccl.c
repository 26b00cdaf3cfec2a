/* SPDX-License-Identifier: MIT */
/* What NCCL says of itself, one row for each communicator: hearsay, which accuses nobody. */
#include <inttypes.h>

#include "base/cleanup.h"
#include "ctl/nccl/communicators.h"
#include "ctl/nccl/report.h"
#include "ctl/report/html.h"
#include "ctl/report/report.h"

static void put_communicator(struct report *r, const struct nccl_said *t)
{
	const char *confidence = rpc_enum_name(&rpc_confidence_enum, t->told->confidence);
	auto_out struct out text = { 0 };

	nccl_report_put(&text, t->of);
	out_str(r->o, t->of->odd_count ? "<tr class=\"hit\">" : "<tr>");
	out_fmt(r->o, "<td>0x%" PRIx64 "</td>", t->of->hash);
	html_cell_u64(r->o, t->of->ranks);
	html_cell(r->o, t->by ? t->by->name : "this process");
	html_cell(r->o, text.data);
	html_cell(r->o, confidence);
	out_str(r->o, "</tr>\n");
}

int report_nccl(struct report *r)
{
	static const struct html_column columns[] = {
		{ "COMMUNICATOR", false }, { "RANKS", true }, { "WHO WAS TOLD", false }, { "WHAT IT SAYS", false },
		{ "CONFIDENCE", false },
	};
	size_t n, left;
	const struct nccl_said *list = nccl_communicators(r->a, r->s, &n, &left);

	if (!list)
		return rpc_arena_error(r->a);
	if (!n)
		return 0;
	html_section(r->o, "nccl", "What NCCL says of itself");
	html_table(r->o, "Communicators of NCCL, those with odd ranks first", columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < n && i < REPORT_ROWS_MAX; i++)
		put_communicator(r, &list[i]);
	html_table_end(r->o);
	report_put_more(r, n);
	if (left)
		out_fmt(r->o, "<p>%zu more communicator%s not in the document.</p>\n", left, left == 1 ? " is" : "s are");
	html_section_end(r->o);
	return 0;
}
