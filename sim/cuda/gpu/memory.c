/* SPDX-License-Identifier: MIT */
/* Registers and memory: what was planted, and a rule for the rest. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

uint32_t sim_register_default(enum sim_register kind, uint32_t dev, uint32_t sm, uint32_t warp,
			      uint32_t lane, uint32_t number)
{
	switch (kind) {
	case REG_NORMAL:
		return dev << 29 | sm << 20 | warp << 14 | lane << 8 | (number & 0xff);
	case REG_UNIFORM:
		return UINT32_C(0x80000000) | dev << 27 | sm << 16 | warp << 8 | (number & 0xff);
	case REG_PREDICATES:
	case REG_UNIFORM_PREDICATES:
		return (lane + number) % 2;
	default:
		return 0;
	}
}

/* Whether a kind of register is of a warp, and not of a lane. */
static bool is_uniform(enum sim_register kind)
{
	return kind == REG_UNIFORM || kind == REG_UNIFORM_PREDICATES;
}

/* Find the planted value of a register. */
static struct sim_planted *planted_find(const struct sim_process *p, enum sim_register kind,
					const uint64_t at[4], uint32_t number)
{
	for (struct sim_planted *v = p->planted; v; v = v->next)
		if (v->kind == kind && v->number == number && v->dev == at[0] && at[1] - v->sm < v->sms &&
		    at[2] - v->warp < v->warps && (is_uniform(kind) || at[3] - v->lane < v->lanes))
			return v;
	return NULL;
}

uint32_t sim_register_get(const struct sim_process *p, enum sim_register kind, const uint64_t at[4],
			  uint32_t number)
{
	const struct sim_planted *v = planted_find(p, kind, at, number);

	return v ? v->value
		 : sim_register_default(kind, (uint32_t)at[0], (uint32_t)at[1], (uint32_t)at[2],
					is_uniform(kind) ? 0 : (uint32_t)at[3], number);
}

int sim_register_set(struct sim_process *p, enum sim_register kind, const uint64_t at[4],
		     uint32_t number, uint32_t value)
{
	struct sim_planted *v = planted_find(p, kind, at, number);
	const struct sim_planted one = { NULL,            kind,   (uint32_t)at[0], (uint32_t)at[1], (uint32_t)at[2],
					 (uint32_t)at[3], number, value,           1,               1,
					 1 };

	/* Others than this one keep what was planted in many at a time. */
	if (!v || v->sms * v->warps * v->lanes > 1)
		return sim_registers_plant(p, &one);
	v->value = value;
	return 0;
}

int sim_registers_plant(struct sim_process *p, const struct sim_planted *model)
{
	struct sim_planted *v = malloc(sizeof(*v));

	if (!v)
		return -ENOMEM;
	*v = *model;
	v->next = p->planted;
	p->planted = v;
	return 0;
}

static bool contains(const struct sim_region *outer, const struct sim_region *r)
{
	return outer->space == r->space && outer->dev == r->dev && outer->sm == r->sm && outer->warp == r->warp &&
	       outer->lane == r->lane && outer->grid == r->grid &&
	       !memcmp(&outer->block, &r->block, sizeof(r->block)) &&
	       outer->managed == r->managed && r->address >= outer->address && r->size <= outer->size &&
	       r->address - outer->address <= outer->size - r->size;
}

int sim_region_add(struct sim_process *p, const struct sim_region *model)
{
	struct sim_region *r;

	for (r = p->regions; r; r = r->next)
		if (contains(r, model)) {
			memcpy(r->bytes + (model->address - r->address), model->bytes, model->size);
			free(model->bytes);
			return 0;
		}
	r = malloc(sizeof(*r));
	if (!r)
		return -ENOMEM;
	*r = *model;
	r->next = p->regions;
	p->regions = r;
	return 0;
}

void sim_regions_free(struct sim_process *p)
{
	while (p->regions) {
		struct sim_region *r = p->regions;

		p->regions = r->next;
		free(r->bytes);
		free(r);
	}
}

/*
 * Whether a region belongs to a place: shared memory belongs to a block, parameters to a grid,
 * local memory to a lane.
 */
static bool region_is_at(struct sim_process *p, const struct sim_region *r, const uint64_t at[4])
{
	const struct sim_warp *w;

	switch (r->space) {
	case SPACE_GLOBAL:
	case SPACE_PINNED:
		return true;
	case SPACE_CONST:
		return r->dev == at[0];
	case SPACE_LOCAL:
		return r->dev == at[0] && r->sm == at[1] && r->warp == at[2] && r->lane == at[3];
	default:
		w = sim_warp_at(p, (uint32_t)at[0], (uint32_t)at[1], (uint32_t)at[2]);
		if (r->dev != at[0] || !w->grid || w->grid->id != r->grid)
			return false;
		return r->space == SPACE_PARAM || !memcmp(&w->block, &r->block, sizeof(r->block));
	}
}

struct sim_region *sim_region_find(struct sim_process *p, enum sim_space space,
				   const uint64_t at[4], uint64_t address, uint64_t size)
{
	for (struct sim_region *r = p->regions; r; r = r->next)
		if (r->space == space && address >= r->address && address - r->address <= r->size &&
		    size <= r->size - (address - r->address) && region_is_at(p, r, at))
			return r;
	return NULL;
}

/* Whether a generic address is in the window that begins at base. */
static bool in_window(uint64_t address, uint64_t base)
{
	return address >= base && address - base < SIM_WINDOW_SIZE;
}

uint8_t *sim_generic(struct sim_process *p, const uint64_t at[4], uint64_t address, uint64_t size)
{
	enum sim_space space = SPACE_GLOBAL;
	struct sim_region *r;

	if (in_window(address, SIM_SHARED_BASE)) {
		space = SPACE_SHARED;
		address -= SIM_SHARED_BASE;
	} else if (in_window(address, SIM_LOCAL_BASE)) {
		space = SPACE_LOCAL;
		address -= SIM_LOCAL_BASE;
	}
	r = sim_region_find(p, space, at, address, size);
	/* Constant memory has generic addresses as well. */
	if (!r && space == SPACE_GLOBAL)
		r = sim_region_find(p, SPACE_CONST, at, address, size);
	if (r)
		return r->bytes + (address - r->address);
	return space == SPACE_GLOBAL ? sim_data_find(p, address, size) : NULL;
}

uint8_t *sim_data_find(const struct sim_process *p, uint64_t address, uint64_t size)
{
	for (const struct sim_module *m = p->modules; m; m = m->next)
		for (struct sim_data *d = m->data; d; d = d->next)
			if (address >= d->address && address - d->address <= d->size &&
			    size <= d->size - (address - d->address))
				return d->bytes + (address - d->address);
	return NULL;
}

/* The contents of sections lie in the image; each function knows where its own begin. */
const uint8_t *sim_code(const struct sim_process *p, uint32_t dev, uint64_t address, uint64_t size)
{
	for (const struct sim_module *m = p->modules; m; m = m->next)
		for (size_t i = 0; m->dev == dev && i < m->n_functions; i++) {
			const struct sim_function *f = &m->functions[i];

			if (address >= f->address && address - f->address <= f->size &&
			    size <= f->size - (address - f->address))
				return m->image + f->file_offset + (address - f->address);
		}
	return NULL;
}
