/* SPDX-License-Identifier: MIT */
/*
 * What the hardware leaves in a queue's context save area.
 *
 * A queue holds only the waves that were planted on it.  Without any, the control stack is empty
 * and the ranges touch at the place where the hardware would start to fill the area.
 */
#include "waves.h"

void sim_save_areas_write(struct sim *s, struct sim_process *p)
{
	struct sim_queue *q;

	/* All compute queues, also those that stayed on the hardware. */
	TAILQ_FOREACH(q, &p->queues, link)
		if (sim_queue_is_compute(q) && q->args.ctx_save_restore_address)
			sim_waves_save(s, p, q);
}
