/* SPDX-License-Identifier: MIT */
/* Files and directories of documents as one merged document. */
#include "ctl/verbs/job/merge_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "ctl/ctl.h"
#include "ctl/verbs/job/merge_told.h"

/* What the functions of one merge work on. */
struct job {
	struct ctl *c;
	struct merge *merge;
};

/*
 * Note a file that cannot be used: a broken one does not keep the others from being seen.  The
 * first error is kept, in case no file can be used.
 */
static int skip(struct job *j, const struct agent_err *err)
{
	ctl_note(j->c, "skipped: %s", err->message);
	if (!j->c->err.code)
		j->c->err = *err;
	return merge_add_missing(j->merge, rpc_arena_printf(&j->c->arena, "skipped: %s",
							    err->message));
}

static int add_file(struct job *j, const char *path)
{
	auto_rpc_arena struct rpc_arena arena;
	struct agent_err err = { 0 };
	struct document d;
	int r;

	rpc_arena_init(&arena, DOCUMENT_MEMORY_MAX);
	r = source_read(path, false, j->c->timeout_ms, &arena, &d, &err);
	if (r == 0)
		r = merge_add(j->merge, &d, &err);
	return r < 0 ? skip(j, &err) : 0;
}

static int is_document(const struct dirent *e)
{
	size_t n = strlen(e->d_name);

	return e->d_name[0] != '.' && n > 5 && !strcmp(e->d_name + n - 5, ".json");
}

/* Add every *.json file of a directory, rank10 behind rank9. */
static int add_directory(struct job *j, const char *path)
{
	struct dirent **list;
	int n = scandir(path, &list, is_document, versionsort), r = 0;

	if (n < 0)
		return ctl_fail(j->c, errno, path);
	for (int i = 0; i < n; i++) {
		const char *file = rpc_arena_printf(&j->c->arena, "%s/%s", path, list[i]->d_name);

		if (r == 0)
			r = file ? add_file(j, file) : -ENOMEM;
		free(list[i]);
	}
	free(list);
	return r;
}

bool merge_is_directory(const char *path)
{
	struct stat st;

	/* What cannot be looked at is left to add_file(), which says why. */
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int add_all(struct job *j, int argc, char **argv)
{
	int r = 0;

	for (int i = 0; r == 0 && i < argc; i++)
		r = merge_is_directory(argv[i]) ? add_directory(j, argv[i]) : add_file(j, argv[i]);
	if (r < 0 || merge_ranks(j->merge))
		return r;
	/* Nothing could be used: the first file's own failure says more than that. */
	return j->c->err.code ? -EINVAL : ctl_usage(j->c, "there is no *.json file");
}

int merge_files(struct ctl *c, struct merge *m, int argc, char **argv, struct rpc_gpu_snapshot_result *ret)
{
	struct job j = { .c = c, .merge = m };
	int r = add_all(&j, argc, argv);

	if (r < 0)
		return r;
	r = merge_finish(m, ret);
	return r < 0 ? ctl_fail(c, -r, "merging") : 0;
}

int merge_show(struct ctl *c, const struct rpc_gpu_snapshot_result *s)
{
	const struct table_form form = ctl_table_form(c);
	auto_out struct out text = { 0 };
	int r;

	if (!ctl_is_json(c)) {
		r = merge_print(&c->arena, &c->output.text, s, &form);
		return r < 0 ? ctl_fail(c, -r, "writing the tree") : merge_told_show(c, s);
	}
	rpc_gpu_snapshot_result_encode(&text, s);
	return ctl_print_json(c, &text);
}
