/* SPDX-License-Identifier: MIT */
/*
 * Answers one debugger call: coordinates are checked, faults of the script applied, the handler is
 * found.
 */
#include <string.h>

#include "sim.h"

void call_out(struct call *c, const void *data, size_t size)
{
	uint32_t n;

	/* Outputs come in the order of the prototype; buffers that only go in are skipped. */
	while (c->n_out < c->q->info->n_buffers && !slot_is_output(&c->q->info->buffers[c->n_out]))
		c->n_out++;
	/* No more than the caller has room for. */
	if (size > c->q->buffers[c->n_out].size && c->q->info->buffers[c->n_out].kind == SLOT_OUT)
		size = c->q->buffers[c->n_out].size;
	n = (uint32_t)size;
	out_bytes(c->out, &n, sizeof(n));
	out_bytes(c->out, data, size);
	c->n_out++;
}

void call_u8(struct call *c, uint8_t v)
{
	call_out(c, &v, sizeof(v));
}

void call_u32(struct call *c, uint32_t v)
{
	call_out(c, &v, sizeof(v));
}

void call_u64(struct call *c, uint64_t v)
{
	call_out(c, &v, sizeof(v));
}

void call_dim(struct call *c, const struct sim_dim *d)
{
	call_out(c, d, sizeof(*d));
}

void call_text(struct call *c, const char *text)
{
	call_out(c, text, strlen(text) + 1);
}

size_t call_room(const struct call *c, size_t i)
{
	return c->q->buffers[i].size;
}

/* ---- faults ---- */

/* Whether a fault is for this call of the slot, which it counts. */
static bool fault_applies(struct sim_fault *f, uint32_t slot)
{
	if (f->slot != slot && f->slot != SLOT_COUNT)
		return false;
	f->seen++;
	return f->seen >= f->from && f->seen - f->from < f->count;
}

/*
 * Apply the faults for a slot.
 * @return a result to answer at once, or -1.
 */
static int64_t faults_apply(struct sim_process *p, uint32_t slot, struct call_fate *fate)
{
	int64_t result = -1;

	for (struct sim_fault *f = p->faults; f; f = f->next) {
		if (f->kind == FAULT_TRUNCATE || !fault_applies(f, slot))
			continue;
		switch (f->kind) {
		case FAULT_RESULT:
			result = f->value;
			break;
		case FAULT_DELAY:
			fate->delay_ms += f->value;
			break;
		case FAULT_HANG:
			fate->hang = true;
			break;
		case FAULT_KILL_TARGET:
			fate->kill_target = true;
			break;
		default:
			fate->kill_engine = true;
		}
	}
	return result;
}

/* Cut answers short: the first output of the reply loses bytes. */
static void faults_truncate(struct sim_process *p, const struct slot_request *q, struct out *out)
{
	for (struct sim_fault *f = p->faults; f; f = f->next)
		if (f->kind == FAULT_TRUNCATE && fault_applies(f, q->slot)) {
			uint32_t n;

			if (out->size < 4)
				continue;
			memcpy(&n, out->data, 4);
			if (n > f->value && out->size >= 4 + n) {
				memmove(out->data + 4 + f->value, out->data + 4 + n,
					out->size - 4 - n);
				out->size -= n - f->value;
				memcpy(out->data, &f->value, 4);
			}
		}
}

/* ---- dispatch ---- */

/* Check device, SM, warp and lane as the real API does, and look them up. */
static uint32_t coordinates_check(struct call *c)
{
	uint32_t depth = c->q->info->depth;
	const uint64_t *in = c->in;

	if (!depth)
		return CUDBGABI_SUCCESS;
	if (in[0] >= c->p->n_devices)
		return CUDBGABI_ERROR_INVALID_DEVICE;
	c->dev = &c->p->devices[in[0]];
	if (!c->q->info->runs && !c->dev->suspended)
		return CUDBGABI_ERROR_RUNNING_DEVICE;
	if (depth > 1 && in[1] >= c->dev->n_sms)
		return CUDBGABI_ERROR_INVALID_SM;
	if (depth > 2 && in[2] >= c->dev->n_warps)
		return CUDBGABI_ERROR_INVALID_WARP;
	if (depth > 2) {
		c->warp = sim_warp_at(c->p, (uint32_t)in[0], (uint32_t)in[1], (uint32_t)in[2]);
		if (!c->warp->grid)
			return CUDBGABI_ERROR_INVALID_WARP;
	}
	if (depth > 3 && (in[3] >= SIM_LANES || !(c->warp->valid >> in[3] & 1)))
		return CUDBGABI_ERROR_INVALID_LANE;
	return CUDBGABI_SUCCESS;
}

/* Find the function of a slot; NULL if it is not simulated. */
static call_fn *find(uint32_t slot)
{
	call_fn *const *const tables[] = { calls_state, calls_memory, calls_session, calls_batch };

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (tables[i][slot])
			return tables[i][slot];
	return NULL;
}

uint32_t call_answer(struct sim_process *p, const struct slot_request *q, struct out *out,
		     struct call_fate *ret_fate)
{
	struct call c = { .p = p, .q = q, .in = q->in, .out = out };
	call_fn *handler = find(q->slot);
	int64_t fault;
	uint32_t result;

	*ret_fate = (struct call_fate){ 0 };
	p->calls++;
	p->calls_of[q->slot]++;
	fault = faults_apply(p, q->slot, ret_fate);
	/* After an internal error only the end of the session is left. */
	if (p->broken_api && q->slot != SLOT_finalize && q->slot != SLOT_getNextEvent)
		return CUDBGABI_ERROR_COMMUNICATION_FAILURE;
	if (fault >= 0)
		return (uint32_t)fault;
	if (!handler)
		return CUDBGABI_ERROR_NOT_SUPPORTED;
	result = coordinates_check(&c);
	if (!result)
		result = handler(&c);
	/* A failed call has no outputs, but a short buffer may be told of. */
	if (result && result != CUDBGABI_ERROR_BUFFER_TOO_SMALL)
		out_reset(out);
	faults_truncate(p, q, out);
	return result;
}
