/* SPDX-License-Identifier: MIT */
/* The application's side: the handshake of the runtime with a debugger, apertures. */
#include "sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- RUNTIME_ENABLE ---- */

/*
 * Wait for the debugger.  A surplus send lets the call pass at once; a repeated call after a
 * signal waits again without a second event.
 */
static int handshake(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	if (p->handshake) {
		sim_runtime_answered(p);
		return 0;
	}
	return sim_call_park(s, call, SIM_WAIT_RUNTIME, p);
}

void sim_runtime_answered(struct sim_process *p)
{
	p->handshake--;
	p->runtime_retry = false;
	/* Kept while the debugger is waited for (kfd_chardev.c:runtime_disable). */
	if (p->runtime.runtime_state == KFDABI_RUNTIME_STATE_DISABLED)
		p->runtime.ttmp_setup = 0;
}

/* Switch the runtime on.  A call that was repeated after a signal only waits again. */
static int runtime_on(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	const struct kfdabi_runtime_enable_args *a = call->arg;

	if (!p->runtime_retry) {
		if (p->runtime.runtime_state != KFDABI_RUNTIME_STATE_DISABLED)
			return -EBUSY;
		if (!TAILQ_EMPTY(&p->queues))
			return -EEXIST;
		p->runtime.runtime_state = KFDABI_RUNTIME_STATE_ENABLED;
		p->runtime.r_debug = a->r_debug;
		p->runtime.ttmp_setup = !!(a->mode_mask & KFDABI_RUNTIME_ENABLE_MODE_TTMP_SAVE);
		if (p->debugged) {
			sim_trap_activate(s, p);
			sim_raise(s, p, NULL, NULL, KFDABI_EC_MASK(KFDABI_EC_PROCESS_RUNTIME),
				  true);
		}
	}
	return p->debugged ? handshake(s, call, p) : 0;
}

/* Switch the runtime off; a debugger is told and waited for as well. */
static int runtime_off(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	bool was_enabled = p->runtime.runtime_state == KFDABI_RUNTIME_STATE_ENABLED;

	p->runtime.runtime_state = KFDABI_RUNTIME_STATE_DISABLED;
	p->runtime.r_debug = 0;
	if (!p->debugged) {
		p->runtime.ttmp_setup = 0;
		return 0;
	}
	if (was_enabled)
		sim_trap_deactivate(s, p);
	if (!p->runtime_retry)
		sim_raise(s, p, NULL, NULL, KFDABI_EC_MASK(KFDABI_EC_PROCESS_RUNTIME), true);
	return handshake(s, call, p);
}

int sim_runtime_enable(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	const struct kfdabi_runtime_enable_args *a = call->arg;

	return a->mode_mask & KFDABI_RUNTIME_ENABLE_MODE_ENABLE ? runtime_on(s, call, p)
								 : runtime_off(s, call, p);
}

/* ---- apertures ---- */

void sim_aperture_fill(struct sim_gpu *gpu, struct kfdabi_process_apertures *ret)
{
	/* The fixed layout of gfx9 and later. */
	*ret = (struct kfdabi_process_apertures){
		.lds_base = UINT64_C(0x1000000000000),
		.lds_limit = UINT64_C(0x10000ffffffff),
		.scratch_base = UINT64_C(0x2000000000000),
		.scratch_limit = UINT64_C(0x20000ffffffff),
		.gpuvm_base = UINT64_C(0x4000),
		.gpuvm_limit = UINT64_C(0x7fffffffffff),
		.gpu_id = gpu->gpu_id,
	};
}

/* The argument has room for seven. */
int sim_apertures(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	struct kfdabi_get_process_apertures_args *a = call->arg;

	a->num_of_nodes = 0;
	for (size_t i = 0; i < p->n_devices && i < 7; i++)
		sim_aperture_fill(p->devices[i].gpu, &a->apertures[a->num_of_nodes++]);
	return 0;
}

int sim_apertures_new(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	struct kfdabi_get_process_apertures_new_args *a = call->arg;
	struct kfdabi_process_apertures ap;
	uint32_t n = a->num_of_nodes;

	if (!n) {
		a->num_of_nodes = (uint32_t)p->n_devices;
		return 0;
	}
	if (n > p->n_devices)
		n = (uint32_t)p->n_devices;
	for (uint32_t i = 0; i < n; i++) {
		sim_aperture_fill(p->devices[i].gpu, &ap);
		if (s->os->mem_write(call->tid, a->apertures_ptr + i * sizeof(ap), &ap,
				     sizeof(ap)))
			return -EFAULT;
	}
	a->num_of_nodes = n;
	return 0;
}
