/* SPDX-License-Identifier: MIT */
/* gpu-agentctl report: documents as one page of HTML, to read without an agent and to send to somebody. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctl/ctl.h"
#include "ctl/document/merge.h"
#include "ctl/verbs/job/merge_files.h"
#include "ctl/report/report.h"

static int write_page(struct ctl *c, const struct report_input *in)
{
	int r = report_write(&c->arena, &c->output.text, in);

	/* Whoever reads a page of HTML does that in a browser. */
	c->output.pager = false;
	if (r < 0)
		return ctl_fail(c, -r, "writing the page");
	return ctl_status(in->comparison ? in->comparison->complete : in->snapshot->complete, false);
}

static int read_text(struct ctl *c, const char *path, struct report_input *ret)
{
	auto_free char *text = NULL;
	const char *name;
	size_t size;
	int r = document_read_text(path, &name, &text, &size, &c->err);

	return r < 0 ? r : report_parse(name, text, size, &c->arena, ret, &c->err);
}

static int report_one(struct ctl *c, const char *path)
{
	struct report_input in = { 0 };
	struct document d;
	int r;

	if (strcmp(path, "-") != 0 && source_is_core(path)) {
		r = source_read(path, false, c->timeout_ms, &c->arena, &d, &c->err);
		in.snapshot = &d.snapshot;
	} else {
		r = read_text(c, path, &in);
	}
	return r < 0 ? r : write_page(c, &in);
}

static int report_many(struct ctl *c, int argc, char **argv)
{
	struct rpc_gpu_snapshot_result s;
	struct merge *m = merge_create();
	int r = m ? merge_files(c, m, argc, argv, &s) : ctl_fail(c, ENOMEM, "merging");

	if (r == 0)
		r = write_page(c, &(struct report_input){ .snapshot = &s, .merged = true });
	merge_destroy(m);
	return r;
}

static int run(struct ctl *c, int argc, char **argv)
{
	if (ctl_is_json(c))
		return ctl_usage(c, "a report is a page of HTML, which has the document in it: leave out --json");
	c->arena.limit = MERGE_MEMORY_MAX;
	return argc == 1 && !merge_is_directory(argv[0]) ? report_one(c, argv[0]) : report_many(c, argc, argv);
}

const struct ctl_verb ctl_verb_report = {
	.name = "report",
	.args = "FILE...",
	.summary = "Write one page of HTML from snapshots, cores or comparisons",
	.min_args = 1,
	.max_args = MERGE_FILES_MAX,
	.run = run,
};
