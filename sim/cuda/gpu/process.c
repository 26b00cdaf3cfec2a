/* SPDX-License-Identifier: MIT */
/* Processes, their GPUs, and what can be asked of warps and devices. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#include "base/str.h"

/* Frees a list whose items hold nothing else. */
#define FREE_LIST(head)                                                                            \
	while (head) {                                                                             \
		__auto_type item_ = (head);                                                        \
		(head) = item_->next;                                                              \
		free(item_);                                                                       \
	}

struct sim_process *sim_process_create(struct sim *s, int pid)
{
	struct sim_process *p = calloc(1, sizeof(*p));
	struct sim_device d = { .n_sms = 132, .n_warps = 64, .n_registers = 255 };

	if (!p)
		return NULL;
	str_copy(d.name, sizeof(d.name), "Simulated GPU");
	str_copy(d.chip, sizeof(d.chip), "GH100");
	str_copy(d.sm, sizeof(d.sm), "sm_90");
	p->sim = s;
	p->pid = pid;
	/* Handles look like addresses of the host, which real ones are. */
	p->next_handle = UINT64_C(0x5500000001);
	p->next_grid = 1;
	p->next_code = SIM_CODE_BASE;
	p->next_alloc = SIM_ALLOC_BASE;
	p->next = s->processes;
	s->processes = p;
	if (sim_devices_set(p, 1, &d) || (s->script && command_run(p, s->script, NULL, 0, NULL))) {
		sim_process_destroy(p);
		return NULL;
	}
	return p;
}

void sim_process_destroy(struct sim_process *p)
{
	if (!p)
		return;
	for (struct sim_process **at = &p->sim->processes; *at; at = &(*at)->next)
		if (*at == p) {
			*at = p->next;
			break;
		}
	for (uint32_t i = 0; i < SIM_DEVICES_MAX; i++)
		free(p->devices[i].warps);
	FREE_LIST(p->contexts);
	sim_modules_free(p);
	FREE_LIST(p->grids);
	sim_regions_free(p);
	while (p->params) {
		struct sim_params *next = p->params->next;

		free(p->params);
		p->params = next;
	}
	FREE_LIST(p->planted);
	FREE_LIST(p->stacks);
	FREE_LIST(p->convergences);
	FREE_LIST(p->breakpoints);
	FREE_LIST(p->logs);
	FREE_LIST(p->faults);
	sim_queue_deinit(&p->sync);
	sim_queue_deinit(&p->async);
	sim_queue_deinit(&p->replay);
	free(p);
}

struct sim_process *sim_process_find(struct sim *s, int pid)
{
	for (struct sim_process *p = s->processes; p; p = p->next)
		if (p->pid == pid)
			return p;
	return NULL;
}

struct sim_process *sim_process_find_session(struct sim *s, uint32_t label, uint32_t session)
{
	for (struct sim_process *p = s->processes; p; p = p->next)
		if (p->phase != PHASE_NONE && p->label == label && p->session == session)
			return p;
	return NULL;
}

int sim_devices_set(struct sim_process *p, uint32_t n, const struct sim_device *model)
{
	if (p->grids)
		return -EBUSY;
	if (n > SIM_DEVICES_MAX || model->n_sms > SIM_SMS_MAX || model->n_warps > SIM_WARPS_MAX)
		return -ERANGE;
	for (uint32_t i = 0; i < SIM_DEVICES_MAX; i++) {
		free(p->devices[i].warps);
		p->devices[i].warps = NULL;
	}
	p->n_devices = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct sim_device *d = &p->devices[i];

		*d = *model;
		d->pci_bus = 0x18 + i;
		d->warps = calloc((size_t)d->n_sms * d->n_warps, sizeof(*d->warps));
		if (!d->warps)
			return -ENOMEM;
		p->n_devices++;
	}
	return 0;
}

struct sim_warp *sim_warp_at(struct sim_process *p, uint32_t dev, uint32_t sm, uint32_t warp)
{
	struct sim_device *d = &p->devices[dev];

	return &d->warps[(size_t)sm * d->n_warps + warp];
}

uint64_t sim_lane_pc(const struct sim_warp *w, uint32_t lane)
{
	return (w->active >> lane & 1 ? w->pc : w->idle_pc) + lane * w->apart;
}

struct sim_dim sim_thread_idx(const struct sim_warp *w, uint32_t lane)
{
	const struct sim_dim *b = &w->grid->block;
	uint32_t n = w->base_thread + lane;

	return (struct sim_dim){ n % b->x, n / b->x % b->y, n / b->x / b->y };
}

uint32_t sim_lane_exception(const struct sim_warp *w, uint32_t lane)
{
	return w->exception_lanes >> lane & 1 ? w->exception : CUDBGABI_EXCEPTION_NONE;
}

void sim_warp_touch(struct sim_process *p, uint32_t dev, uint32_t sm, struct sim_warp *w)
{
	w->changed = true;
	p->devices[dev].sm_changed[sm] = true;
}

/* Whether a device has a broken warp, or any exception. */
static bool device_has(const struct sim_device *d, bool fault)
{
	if (fault && d->exception)
		return true;
	for (uint32_t sm = 0; fault && sm < d->n_sms; sm++)
		if (d->sm_exception[sm])
			return true;
	for (size_t i = 0; i < (size_t)d->n_sms * d->n_warps; i++)
		if (d->warps[i].grid && (fault ? d->warps[i].exception != 0 : d->warps[i].broken))
			return true;
	return false;
}

/* One bit for every device that has a broken warp, or any exception. */
static uint64_t devices_mask(const struct sim_process *p, bool fault)
{
	uint64_t mask = 0;

	for (uint32_t i = 0; i < p->n_devices; i++)
		if (device_has(&p->devices[i], fault))
			mask |= UINT64_C(1) << i;
	return mask;
}

uint64_t sim_devices_broken(const struct sim_process *p)
{
	return devices_mask(p, false);
}

uint64_t sim_devices_faulted(const struct sim_process *p)
{
	return devices_mask(p, true);
}

/* Whether an SM or a warp on it has an exception. */
static bool sm_faulted(const struct sim_device *d, uint32_t sm)
{
	const struct sim_warp *w = &d->warps[(size_t)sm * d->n_warps];

	if (d->sm_exception[sm])
		return true;
	for (uint32_t i = 0; i < d->n_warps; i++)
		if (w[i].grid && w[i].exception)
			return true;
	return false;
}

uint64_t sim_sm_exceptions(const struct sim_process *p, uint32_t dev, uint32_t word)
{
	const struct sim_device *d = &p->devices[dev];
	uint64_t mask = 0;

	for (uint32_t i = 0; i < 64 && word * 64 + i < d->n_sms; i++)
		if (sm_faulted(d, word * 64 + i))
			mask |= UINT64_C(1) << i;
	return mask;
}
