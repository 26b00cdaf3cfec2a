/* SPDX-License-Identifier: MIT */
/* Reads what a report is of: a snapshot, merged or not, or a comparison of two. */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "ctl/document/document.h"
#include "ctl/report/report.h"

static bool is_comparison(const char *schema)
{
	size_t n = strlen(DOCUMENT_COMPARISON);

	return str_starts_with(schema, DOCUMENT_COMPARISON) && (!schema[n] || schema[n] == '.');
}

/* The later snapshot that a comparison of `snapshot --again` has in it. */
static int decode_later(const char *name, const char *text, struct rpc_arena *a, struct rpc_gpu_snapshot_result *ret,
			struct agent_err *err)
{
	struct document d;
	int r = document_parse(name, text, strlen(text), a, &d, err);

	if (r == 0 && d.merged)
		r = agent_err_set(err, RPC_ERROR_INVALID_PARAMS, EINVAL, NULL, NULL,
				  "%.100s: the later snapshot is one of many processes", name);
	if (r == 0)
		*ret = d.snapshot;
	return r;
}

/* Without the snapshot, a comparison still tells queues and groups of the later one. */
static int rebuild_later(struct rpc_arena *a, const struct rpc_comparison *cmp, struct rpc_gpu_snapshot_result *ret)
{
	struct rpc_queue *queues = rpc_arena_array(a, cmp->n_queues, sizeof(*queues));
	struct rpc_group *groups = rpc_arena_array(a, cmp->n_groups, sizeof(*groups));

	if (!queues || !groups)
		return rpc_arena_error(a);
	*ret = (struct rpc_gpu_snapshot_result){
		.schema = DOCUMENT_SNAPSHOT,
		.source = cmp->source,
		.process = cmp->process,
		.time_us = cmp->after.time_us,
		.wave_count = cmp->after.wave_count,
		.stopped_us = cmp->after.stopped_us,
		.complete = cmp->after.complete,
		.queues = queues,
		.groups = groups,
		.interface_version = "",
		.missing = cmp->missing,
		.n_missing = cmp->n_missing,
	};
	for (size_t i = 0; i < cmp->n_queues; i++) {
		const struct rpc_queue_change *q = &cmp->queues[i];

		if (q->change == RPC_CHANGE_REMOVED)
			continue;
		queues[ret->n_queues++] = (struct rpc_queue){
			.queue_id = q->queue_id,
			.gpu_id = q->gpu_id,
			.type = cmp->process.vendor == RPC_VENDOR_NVIDIA ? RPC_QUEUE_TYPE_CONTEXT
									 : RPC_QUEUE_TYPE_COMPUTE_AQL,
			.has_read_index = q->has_read_after,
			.read_index = q->read_after,
			.has_write_index = q->has_write_after,
			.write_index = q->write_after,
			.has_waves = q->has_waves_after,
			.waves = q->waves_after,
			.has_faulting_waves = q->has_faulting_waves,
			.faulting_waves = q->faulting_waves,
		};
	}
	for (size_t i = 0; i < cmp->n_groups; i++)
		if (cmp->groups[i].change != RPC_CHANGE_REMOVED)
			groups[ret->n_groups++] = cmp->groups[i].group;
	return 0;
}

static int decode_comparison(const char *name, struct rpc_decoder *d, struct json_object *obj, struct report_input *ret)
{
	struct rpc_comparison *cmp = rpc_arena_alloc(d->arena, sizeof(*cmp));
	struct rpc_gpu_snapshot_result *later = rpc_arena_alloc(d->arena, sizeof(*later));
	int r = cmp && later ? rpc_comparison_decode(d, obj, cmp) : rpc_arena_error(d->arena);

	if (r < 0) {
		agent_err_prepend(d->err, "%.100s", name);
		return r;
	}
	r = cmp->snapshot ? decode_later(name, cmp->snapshot, d->arena, later, d->err)
			  : rebuild_later(d->arena, cmp, later);
	*ret = (struct report_input){ .snapshot = later, .comparison = cmp };
	return r;
}

static int decode_snapshot(const char *name, const char *text, size_t size, struct rpc_arena *a,
			   struct report_input *ret, struct agent_err *err)
{
	struct document *d = rpc_arena_alloc(a, sizeof(*d));
	int r = d ? document_parse(name, text, size, a, d, err) : rpc_arena_error(a);

	if (r == 0)
		*ret = (struct report_input){ .snapshot = &d->snapshot, .merged = d->merged };
	return r;
}

int report_parse(const char *name, const char *text, size_t size, struct rpc_arena *a, struct report_input *ret,
		 struct agent_err *err)
{
	struct agent_err ignored = { 0 };
	struct json_object *obj = NULL;
	struct rpc_document_head head;
	struct rpc_decoder d;
	int r;

	/* What is no comparison is told by document_parse(), which is stricter with the beginning. */
	rpc_decoder_init_lenient(&d, "document", a, &ignored);
	d.code = RPC_ERROR_INVALID_PARAMS;
	r = rpc_json_parse(text, size, &obj, &ignored);
	if (r == 0)
		r = rpc_document_head_decode(&d, obj, &head);
	if (r < 0 || !is_comparison(head.schema)) {
		rpc_json_put(obj);
		return decode_snapshot(name, text, size, a, ret, err);
	}
	d.err = err;
	r = decode_comparison(name, &d, obj, ret);
	rpc_json_put(obj);
	return r;
}
