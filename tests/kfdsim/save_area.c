/* SPDX-License-Identifier: MIT */
/*
 * What the hardware leaves in a queue's context save area.
 *
 * No queue of the simulator holds waves between two packets, so every control stack is empty; the
 * ranges touch at the place where the hardware would start to fill the area.
 */
#include "sim.h"

#include <stddef.h>

static void header_fill(const struct sim_queue *q, struct kfdabi_save_area_header *h)
{
	uint32_t boundary = q->args.ctl_stack_size;

	h->control_stack_offset = boundary;
	h->control_stack_size = 0;
	h->wave_state_offset = boundary;
	h->wave_state_size = 0;
}

void sim_save_areas_write(struct sim *s, struct sim_process *p)
{
	const size_t kernel_part = offsetof(struct kfdabi_save_area_header, debug_offset);
	struct kfdabi_save_area_header h;
	struct sim_queue *q;

	TAILQ_FOREACH(q, &p->queues, link) {
		if (!sim_queue_is_compute(q) || !q->args.ctx_save_restore_address)
			continue;
		header_fill(q, &h);
		/* Errors are swallowed: the area belongs to the application. */
		for (uint32_t xcc = 0; xcc < q->device->gpu->profile->num_xcc; xcc++)
			s->os->mem_write(p->tgid,
					 q->args.ctx_save_restore_address +
						 (uint64_t)xcc * q->args.ctx_save_restore_size,
					 &h, kernel_part);
	}
}
