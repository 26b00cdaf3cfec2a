/* SPDX-License-Identifier: MIT */
/* Reads documents.  Their text may come from anywhere: the schema decides what is accepted. */
#include "ctl/document/document.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"

/*
 * Whether this client can read a document of that schema.  The version may have a minor part, as in
 * "gpu-agent.snapshot/1.4".
 */
static bool is_snapshot(const char *schema)
{
	size_t n = strlen(DOCUMENT_SNAPSHOT);

	return str_starts_with(schema, DOCUMENT_SNAPSHOT) && (!schema[n] || schema[n] == '.');
}

/*
 * Check the schema and find the kind, before the whole is decoded: another version may look quite
 * different.
 */
static int check_head(struct rpc_decoder *d, struct json_object *obj, bool *ret_merged)
{
	struct rpc_document_head head;
	int r = rpc_document_head_decode(d, obj, &head);

	if (r < 0)
		return r;
	if (!is_snapshot(head.schema))
		return agent_err_set(d->err, RPC_ERROR_INVALID_PARAMS, EINVAL, NULL,
				     "save one with `gpu-agentctl snapshot PID -j -o FILE`",
				     "the document is \"%.60s\", not " DOCUMENT_SNAPSHOT,
				     head.schema);
	*ret_merged = !strcmp(head.source.kind, DOCUMENT_MERGED);
	return 0;
}

static int decode(struct rpc_decoder *d, struct json_object *obj, struct document *ret)
{
	int r = check_head(d, obj, &ret->merged);

	if (r == 0)
		r = rpc_gpu_snapshot_result_decode(d, obj, &ret->snapshot);
	/* merge_add() trusts the list of ranks of a merged document. */
	if (r == 0 && ret->merged != ret->snapshot.has_ranks)
		r = agent_err_set(d->err, RPC_ERROR_INVALID_PARAMS, EINVAL, NULL, NULL,
				  "a document is merged if and only if it has a list of ranks");
	return r;
}

/* What `cores info -j` prints has the document of the record in it.  @return NULL where it is nothing of that kind. */
static const char *in_record(struct json_object *obj, struct rpc_arena *arena)
{
	struct agent_err ignored = { 0 };
	struct rpc_cores_info_result info;
	struct rpc_decoder d;

	rpc_decoder_init_lenient(&d, "document", arena, &ignored);
	return rpc_cores_info_result_decode(&d, obj, &info) == 0 ? info.snapshot : NULL;
}

static int parse(struct rpc_decoder *d, const char *text, size_t size, struct document *ret)
{
	struct json_object *obj = NULL;
	const char *inner;
	int r = rpc_json_parse(text, size, &obj, d->err);

	inner = r == 0 ? in_record(obj, d->arena) : NULL;
	if (inner) {
		rpc_json_put(obj);
		obj = NULL;
		r = rpc_json_parse(inner, strlen(inner), &obj, d->err);
	}
	if (r == 0)
		r = decode(d, obj, ret);
	rpc_json_put(obj);
	return r;
}

int document_parse(const char *name, const char *text, size_t size, struct rpc_arena *arena,
		   struct document *ret, struct agent_err *err)
{
	struct rpc_decoder d;
	int r;

	*ret = (struct document){ .name = name };
	rpc_decoder_init_lenient(&d, "document", arena, err);
	/* The document is the user's: what is wrong with it is no internal error. */
	d.code = RPC_ERROR_INVALID_PARAMS;
	r = parse(&d, text, size, ret);
	if (r < 0)
		agent_err_prepend(err, "%.100s", name);
	return r;
}

int document_read_text(const char *path, const char **ret_name, char **ret_text, size_t *ret_size,
		       struct agent_err *err)
{
	bool is_stdin = !strcmp(path, "-");
	const char *name = is_stdin ? "standard input" : path;
	int r = fd_read_file(is_stdin ? "/dev/stdin" : path, DOCUMENT_SIZE_MAX, ret_text, ret_size);

	*ret_name = name;
	if (r == -EFBIG)
		return agent_err_set(err, RPC_ERROR_TOO_LARGE, EFBIG, "read", NULL,
				     "%.100s: larger than %zu MiB", name, DOCUMENT_SIZE_MAX >> 20);
	if (r < 0)
		return agent_err_set(err, RPC_ERROR_FAILED, -r, "read", NULL, "%.100s: %s", name,
				     strerror(-r));
	return 0;
}

int document_read(const char *path, struct rpc_arena *arena, struct document *ret,
		  struct agent_err *err)
{
	auto_free char *text = NULL;
	const char *name;
	size_t size;
	int r = document_read_text(path, &name, &text, &size, err);

	return r < 0 ? r : document_parse(name, text, size, arena, ret, err);
}
