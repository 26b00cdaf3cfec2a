/* SPDX-License-Identifier: MIT */
/* The two snapshot operations: the caller chooses the stride, the kernel the content. */
#include "sim.h"

#include <errno.h>

/* One queue as the kernel lays it out. */
static void queue_entry_fill(const struct sim_queue *q, struct kfdabi_queue_entry *e)
{
	*e = (struct kfdabi_queue_entry){
		.exception_status = q->latched,
		.ring_base_address = q->args.ring_base_address,
		.write_pointer_address = q->args.write_pointer_address,
		.read_pointer_address = q->args.read_pointer_address,
		.ctx_save_restore_address = q->args.ctx_save_restore_address,
		.queue_id = q->id,
		.gpu_id = q->device->gpu->gpu_id,
		.ring_size = q->args.ring_size,
		.queue_type = q->type,
		.ctx_save_restore_area_size = q->args.ctx_save_restore_size,
	};
}

int sim_queue_snapshot(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	struct kfdabi_dbg_args *a = call->arg;
	uint32_t stride = a->queue_snapshot.entry_size, room = a->queue_snapshot.num_queues;
	uint32_t size = sizeof(struct kfdabi_queue_entry), n = 0;
	struct kfdabi_queue_entry e;
	struct sim_queue *q;

	a->queue_snapshot.num_queues = 0;
	if (!stride)
		return -EINVAL;
	if (size > stride)
		size = stride;
	a->queue_snapshot.entry_size = size;
	TAILQ_FOREACH(q, &p->queues, link) {
		/* Queues without room are counted but keep their bits. */
		if (n < room) {
			queue_entry_fill(q, &e);
			q->latched &= ~a->queue_snapshot.exception_mask;
			if ((s->has_partial && n >= s->partial) ||
			    s->os->mem_write(call->tid,
					     a->queue_snapshot.snapshot_buf_ptr +
						     (uint64_t)n * stride,
					     &e, size)) {
				a->queue_snapshot.num_queues = n;
				return -EFAULT;
			}
		}
		n++;
	}
	a->queue_snapshot.num_queues = n;
	return 0;
}

/* One GPU as the kernel lays it out. */
static void device_entry_fill(const struct sim *s, const struct sim_device *d,
			      struct kfdabi_device_entry *e)
{
	const struct gpu_profile *g = d->gpu->profile;
	struct kfdabi_process_apertures ap;

	sim_aperture_fill(d->gpu, &ap);
	*e = (struct kfdabi_device_entry){
		.exception_status = d->latched,
		.lds_base = ap.lds_base,
		.lds_limit = ap.lds_limit,
		.scratch_base = ap.scratch_base,
		.scratch_limit = ap.scratch_limit,
		.gpuvm_base = ap.gpuvm_base,
		.gpuvm_limit = ap.gpuvm_limit,
		.gpu_id = d->gpu->gpu_id,
		.location_id = d->gpu->location_id,
		.vendor_id = 0x1002,
		.device_id = g->device_id,
		.revision_id = g->revision_id,
		.subsystem_vendor_id = 0x1002,
		.subsystem_device_id = g->device_id,
		.fw_version = g->fw_version,
		.gfx_target_version = g->gfx_target_version,
		.simd_count = g->simd_count,
		.max_waves_per_simd = g->max_waves_per_simd,
		.array_count = g->array_count,
		.simd_arrays_per_engine = g->simd_arrays_per_engine,
		.num_xcc = g->num_xcc,
		.capability = gpu_profile_capability(g) |
			      (d->gpu->properties_read ? GPU_CAPABILITY_WATCH : 0),
		.debug_prop = g->debug_prop,
	};
}

int sim_device_snapshot(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	struct kfdabi_dbg_args *a = call->arg;
	uint32_t stride = a->device_snapshot.entry_size, room = a->device_snapshot.num_devices;
	uint32_t size = s->kernel->device_entry_size;
	struct kfdabi_device_entry e;

	/*
	 * A pointer is needed even for counting, with no room; the other snapshot operation is more
	 * generous.
	 */
	if (!a->device_snapshot.snapshot_buf_ptr)
		return -EINVAL;
	if (size > stride)
		size = stride;
	a->device_snapshot.entry_size = size;
	a->device_snapshot.num_devices = (uint32_t)p->n_devices;
	for (uint32_t i = 0; i < p->n_devices && i < room; i++) {
		struct sim_device *d = &p->devices[i];

		if (s->has_partial && i >= s->partial)
			return -EINVAL; /* The GPU left the topology in between. */
		device_entry_fill(s, d, &e);
		d->latched &= ~a->device_snapshot.exception_mask;
		if (size && s->os->mem_write(call->tid,
					     a->device_snapshot.snapshot_buf_ptr +
						     (uint64_t)i * stride,
					     &e, size))
			return -EFAULT;
	}
	return 0;
}
