/* SPDX-License-Identifier: MIT */
/*
 * The file of www.speedscope.app, by its schema https://www.speedscope.app/file-format-schema.json: frames once, and
 * stacks as their numbers.  Waves and threads are two profiles.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctl/record/recording.h"

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"

void recording_put_frame(struct out *o, const struct recording_frame *f)
{
	out_json_fmt(o, ",{'name':%s", f->name);
	if (f->file[0])
		out_json_fmt(o, ",'file':%s", f->file);
	if (f->line)
		out_json_fmt(o, ",'line':%u", f->line);
	out_str(o, "}");
}

/* Frames are numbered in the order in which they were seen. */
static int put_frames(struct out *o, const struct recording *r, struct rpc_arena *a)
{
	const struct recording_frame **list = rpc_arena_array(a, r->n_frames, sizeof(const struct recording_frame *));

	if (!list)
		return rpc_arena_error(a);
	for (size_t i = 0; i < r->n_frames; i++)
		list[r->frames[i]->id] = r->frames[i];
	for (size_t i = 0; i < r->n_frames; i++)
		recording_put_frame(o, list[i]);
	return 0;
}

/* A number of captures, whose parts are millionths. */
static void put_captures(struct out *o, uint64_t weight)
{
	out_fmt(o, "%" PRIu64 ".%06" PRIu64, weight / RECORDING_CAPTURE, weight % RECORDING_CAPTURE);
}

static void put_profile(struct out *o, const struct recording *r, const struct recording_stack *const *list,
			bool threads)
{
	uint64_t end = 0;
	bool first = true;

	out_json_fmt(o, ",{'type':%s,'name':%s,'unit':%s,'startValue':0,'samples':[", "sampled",
		     threads ? "captures of threads" : "captures of waves", "none");
	for (size_t i = 0; i < r->n_stacks; i++) {
		if (list[i]->threads != threads)
			continue;
		out_str(o, first ? "[" : ",[");
		for (uint32_t k = 0; k < list[i]->depth; k++)
			out_fmt(o, "%s%" PRIu32, k ? "," : "", list[i]->frames[k]->id);
		out_str(o, "]");
		end += list[i]->weight;
		first = false;
	}
	out_str(o, "],\"weights\":[");
	first = true;
	for (size_t i = 0; i < r->n_stacks; i++) {
		if (list[i]->threads != threads)
			continue;
		out_str(o, first ? "" : ",");
		put_captures(o, list[i]->weight);
		first = false;
	}
	out_str(o, "],\"endValue\":");
	put_captures(o, end);
	out_str(o, "}");
}

int recording_write_speedscope(struct out *o, const struct recording *r, const struct recording_facts *f)
{
	const struct recording_stack *const *list;
	auto_out struct out name = { 0 };
	struct rpc_arena a;
	int k;

	rpc_arena_init(&a, 0);
	k = recording_sorted(r, &a, &list);
	out_fmt(&name, "%s: ", r->process);
	recording_put_facts(&name, r, f);
	out_json_fmt(o, "{'$schema':%s,'exporter':%s,'name':%s", SCHEMA, "gpu-agentctl " GPU_AGENT_VERSION,
		     name.data ? name.data : "");
	out_str(o, ",\"activeProfileIndex\":0,\"shared\":{\"frames\":[");
	if (k == 0)
		k = put_frames(o, r, &a);
	out_str(o, "]},\"profiles\":[");
	if (k == 0) {
		put_profile(o, r, list, false);
		if (r->thread_captures)
			put_profile(o, r, list, true);
	}
	out_str(o, "]}\n");
	rpc_arena_deinit(&a);
	k = k < 0 ? k : out_error(&name);
	return k < 0 ? k : out_error(o);
}
