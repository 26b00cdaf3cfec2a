/* SPDX-License-Identifier: MIT */
#include "agentd/worker/target/core_file.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "corefile/amdgpu/read.h"
#include "corefile/cuda/read.h"

/* The head of the largest process, which has thousands of queues, is shorter. */
#define HEAD_BYTES_MAX ((size_t)4 << 20)
#define UNKNOWN	       "unknown"

void core_file_init(struct core_file *f, const struct core_bytes *bytes)
{
	*f = (struct core_file){ .bytes = *bytes };
	rpc_arena_init(&f->arena, TARGET_ARENA_MAX);
}

void core_file_deinit(struct core_file *f)
{
	rpc_arena_deinit(&f->arena);
}

/* ------------------------------------------------------------------ the head ----------------- */

void core_file_set_head(struct core_file *f, const void *text, size_t size)
{
	struct rpc_gpu_snapshot_result *head =
		rpc_arena_alloc(&f->arena, sizeof(struct rpc_gpu_snapshot_result));
	struct json_object *obj = NULL;
	struct rpc_decoder d;

	if (!head || f->head || size > HEAD_BYTES_MAX)
		return;
	rpc_decoder_init_lenient(&d, "head", &f->arena, NULL);
	if (rpc_json_parse(text, size, &obj, NULL) == 0 &&
	    rpc_gpu_snapshot_result_decode(&d, obj, head) == 0)
		f->head = head;
	rpc_json_put(obj);
}

/* @return the device of the head with this id; NULL: it has none, or there is no head. */
static const struct rpc_device *core_file_device(const struct core_file *f, uint32_t gpu_id)
{
	for (size_t i = 0; f->head && i < f->head->n_devices; i++)
		if (f->head->devices[i].gpu_id == gpu_id)
			return &f->head->devices[i];
	return NULL;
}

const struct rpc_queue *core_file_queue(const struct core_file *f, uint32_t queue_id)
{
	for (size_t i = 0; f->head && i < f->head->n_queues; i++)
		if (f->head->queues[i].queue_id == queue_id)
			return &f->head->queues[i];
	return NULL;
}

void core_file_complete_device(const struct core_file *f, struct rpc_device *d)
{
	const struct rpc_device *known = core_file_device(f, d->gpu_id);

	if (!known)
		return;
	d->name = known->name;
	if (known->pci)
		d->pci = known->pci;
	/* Only devices that are topology nodes (AMD) have these two. */
	if (d->has_node) {
		d->node = known->node;
		d->render_node = known->render_node;
	}
	d->has_memory_bytes = known->memory_bytes != 0;
	d->memory_bytes = known->memory_bytes;
	d->has_device_id = d->has_revision_id = known->has_device_id;
	d->device_id = known->device_id;
	d->revision_id = known->revision_id;
}

/* ------------------------------------------------------------------ where it comes from ------ */

static int describe_missing(struct core_file *f, const struct corefile_problems *problems)
{
	struct target_origin *o = &f->origin;
	size_t n_head = f->head ? f->head->n_missing : 0;

	o->missing = rpc_arena_array(&f->arena, n_head + problems->n + 1, sizeof(*o->missing));
	if (!o->missing)
		return -ENOMEM;
	for (size_t i = 0; i < n_head; i++)
		o->missing[o->n_missing++] = f->head->missing[i];
	for (size_t i = 0; i < problems->n; i++) {
		const struct corefile_problem *p = &problems->list[i];

		o->missing[o->n_missing++] =
			p->offset == COREFILE_NO_OFFSET
				? rpc_arena_printf(&f->arena, "core file: %s", p->text)
			: p->section == COREFILE_NO_SECTION
				? rpc_arena_printf(&f->arena, "core file, offset 0x%llx: %s",
						   (unsigned long long)p->offset, p->text)
				: rpc_arena_printf(
					  &f->arena, "core file, section %u, offset 0x%llx: %s",
					  p->section, (unsigned long long)p->offset, p->text);
	}
	if (problems->total > problems->n)
		o->missing[o->n_missing++] =
			rpc_arena_printf(&f->arena, "core file: %zu more problems",
					 problems->total - problems->n);
	return rpc_arena_error(&f->arena);
}

int core_file_describe(struct core_file *f, const char *format, const char *writer,
		       const struct corefile_problems *problems)
{
	const struct rpc_gpu_snapshot_result *head = f->head;
	struct target_origin *o = &f->origin;

	o->source = (struct rpc_snapshot_source){
		.kind = "core",
		.host = head ? head->source.host : UNKNOWN,
		.agent = GPU_AGENT_VERSION,
		.file = f->bytes.name,
		.format = format,
		.writer = head ? rpc_arena_printf(&f->arena, "gpu-agent %.40s", head->source.agent) :
				 writer,
	};
	if (head) {
		o->time_us = head->time_us;
		o->process = head->process;
		o->has_holder_uid = head->has_holder_uid;
		o->holder_uid = head->holder_uid;
	} else if (!o->time_us) {
		o->time_us = f->bytes.time_us;
	}
	if (!o->process.comm)
		o->process.comm = UNKNOWN;
	/* snapshot_tell() lists the GPUs again: those that have queues in this core. */
	o->process.gpu_ids = NULL;
	o->process.n_gpu_ids = 0;
	return describe_missing(f, problems);
}

/* ------------------------------------------------------------------ which format ------------- */

int core_file_refuse(const struct core_file *f, int r, const struct corefile_problem *why,
		     struct agent_err *err)
{
	const char *name = f->bytes.name ? f->bytes.name : "the core";

	if (r == -ENOMEM)
		return agent_err_no_memory(err, "read the core");
	if (why->section == COREFILE_NO_SECTION)
		return agent_err_set(err, RPC_ERROR_FAILED, -r, "read the core", NULL,
				     "%.80s: offset 0x%llx: %s", name,
				     (unsigned long long)why->offset, why->text);
	return agent_err_set(err, RPC_ERROR_FAILED, -r, "read the core", NULL,
			     "%.80s: section %u, offset 0x%llx: %s", name, why->section,
			     (unsigned long long)why->offset, why->text);
}

/*
 * The reader of NVIDIA's cores looks into every ELF file, so it says best what is wrong with a file
 * that is no core of AMD's.
 */
int target_core_create(const struct worker_options *o, const struct core_bytes *bytes,
		       struct target **ret, struct agent_err *err)
{
	if (amdcore_is(bytes->data, bytes->size))
		return core_kfd_create(o, bytes, ret, err);
	return core_cuda_create(o, bytes, ret, err);
}
