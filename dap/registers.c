/* SPDX-License-Identifier: MIT */
/*
 * Registers of one wave, fetched once for all scopes that are opened.  Vector registers are many
 * and fetched by chunks; a cache of one chunk is enough for an editor that opens one after the
 * other.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "dap/adapter.h"

/* Bytes that decoded registers of one wave may need. */
#define REGISTERS_BYTES ((size_t)32 << 20)

void dap_registers_forget(struct dap *d)
{
	d->shared.valid = d->vector.valid = false;
}

/* Whether what was fetched is of that thread, snapshot and chunk. */
static bool is_cached(const struct dap_registers *r, const struct dap_ref *of, uint32_t first)
{
	return r->valid && r->generation == of->refs->generation && r->thread == of->thread &&
	       r->first == first;
}

static int fetch(struct dap *d, struct dap_registers *r, struct rpc_wave_registers_params *p,
		 const struct dap_ref *of, struct agent_err *err)
{
	struct rpc_wave_registers_result result;
	int status;

	p->session = d->session;
	p->wave = of->snap->threads[of->thread].wave;
	p->has_max_stop_ms = d->max_stop_ms;
	p->max_stop_ms = d->max_stop_ms;
	/* The arena is emptied before the call, so that nothing old may be used if that fails. */
	r->valid = false;
	rpc_arena_reset(&r->arena);
	r->arena.limit = REGISTERS_BYTES;
	status = rpc_client_wave_registers(d->client, p, &r->arena, &result, err);
	if (status < 0)
		return status;
	r->regs = result.registers;
	r->generation = of->refs->generation;
	r->thread = of->thread;
	r->first = p->first;
	r->valid = true;
	return 0;
}

static enum rpc_register_bank shared_banks[] = { RPC_REGISTER_BANK_SPECIAL, RPC_REGISTER_BANK_SCALAR,
						 RPC_REGISTER_BANK_TRAP };

int dap_registers_of(struct dap *d, const struct rpc_wave_name *wave,
		     struct rpc_wave_registers_result *ret, struct agent_err *err)
{
	const struct rpc_wave_registers_params p = {
		.session = d->session, .wave = *wave, .has_banks = true, .banks = shared_banks,
		.n_banks = 1, .has_work_items = true, .work_items = true,
		.has_max_stop_ms = d->max_stop_ms, .max_stop_ms = d->max_stop_ms
	};

	return rpc_client_wave_registers(d->client, &p, &d->arena, ret, err);
}

const struct rpc_wave_registers *dap_registers_shared(struct dap *d, const struct dap_ref *of,
						      struct agent_err *err)
{
	struct rpc_wave_registers_params p = { .has_banks = true, .banks = shared_banks,
					       .n_banks = ARRAY_SIZE(shared_banks),
					       .has_work_items = true, .work_items = true };

	if (!is_cached(&d->shared, of, 0) && fetch(d, &d->shared, &p, of, err) < 0)
		return NULL;
	return &d->shared.regs;
}

const struct rpc_wave_registers *dap_registers_vector(struct dap *d, const struct dap_ref *of,
						      uint32_t chunk, struct agent_err *err)
{
	enum rpc_register_bank banks[] = { RPC_REGISTER_BANK_VECTOR,
					   RPC_REGISTER_BANK_ACCUMULATOR };
	struct rpc_wave_registers_params p = { .has_banks = true, .banks = banks,
					       .n_banks = ARRAY_SIZE(banks), .has_first = true,
					       .first = chunk * DAP_REGISTER_CHUNK,
					       .has_count = true, .count = DAP_REGISTER_CHUNK };

	if (!is_cached(&d->vector, of, p.first) && fetch(d, &d->vector, &p, of, err) < 0)
		return NULL;
	return &d->vector.regs;
}

size_t dap_registers_in_chunk(const struct rpc_wave_registers *r, uint32_t chunk)
{
	uint32_t first = chunk * DAP_REGISTER_CHUNK;
	uint32_t n = first < r->vector_count ? r->vector_count - first : 0;

	n = n < DAP_REGISTER_CHUNK ? n : DAP_REGISTER_CHUNK;
	return n < r->n_vector ? n : r->n_vector;
}
