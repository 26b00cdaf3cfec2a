/* SPDX-License-Identifier: MIT */
#include "agentd/worker/value/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bit_list.h"
#include "base/clock.h"

bool value_request_is_late(struct value_request *k)
{
	k->out_of_time |= clock_now_ns() >= k->deadline_ns;
	return k->out_of_time;
}

void value_request_miss(struct value_request *k, const char *what)
{
	const char **list = rpc_arena_array(k->arena, k->n_missing + 1, sizeof(*list));

	if (!list)
		return;
	if (k->n_missing)
		memcpy(list, k->missing, k->n_missing * sizeof(*list));
	list[k->n_missing++] = what;
	k->missing = list;
}

uint64_t value_request_address(const struct value_request *k, uint32_t lane, uint32_t calls)
{
	const struct rpc_wave_registers *r = &k->registers;

	if (calls)
		return r->callers[calls - 1].address;
	for (size_t i = 0; i < r->n_work_items; i++)
		if (r->work_items[i].lane == lane && r->work_items[i].has_pc)
			return r->work_items[i].pc;
	return r->wave.pc;
}

bool value_request_stop_begin(struct value_request *k, uint32_t *ret_retry_ms)
{
	k->from.max_stop_ms = k->stops.begin(k->stops.context, k->max_stop_ms, ret_retry_ms);
	return k->from.max_stop_ms;
}

void value_request_stop_end(struct value_request *k, int64_t stopped_us)
{
	k->stops.end(k->stops.context, stopped_us);
}

static int copy_registers(struct value_request *k, struct agent_err *err)
{
	const struct target_registers_wanted what = {
		.wave = k->wave, .banks = k->no_values ? UINT32_C(1) << RPC_REGISTER_BANK_SPECIAL : UINT32_MAX,
		.count = UINT32_MAX, .work_items = true,
	};
	uint32_t retry_ms;
	int r;

	if (!value_request_stop_begin(k, &retry_ms))
		return k->stops.refuse(retry_ms, err);
	r = k->target->ops->registers(k->target, &k->from, &what, k->arena, &k->registers, &k->stopped_us, err);
	value_request_stop_end(k, (int64_t)k->stopped_us);
	return r;
}

/* The lane that callers are told of: the first with an exception, else the first active one. */
static uint32_t speaker(const struct rpc_wave_registers *r)
{
	for (size_t i = 0; i < r->n_work_items; i++)
		if (r->work_items[i].exception)
			return r->work_items[i].lane;
	return r->wave.exec ? (uint32_t)__builtin_ctzll(r->wave.exec) : 0;
}

static int choose_lane(struct value_request *k, struct agent_err *err)
{
	if (!k->has_lane)
		k->lane = speaker(&k->registers);
	if (k->lane >= k->registers.wave.width)
		return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, EINVAL, NULL, NULL,
				     "params.lane: the wave has only %u lanes", k->registers.wave.width);
	if (k->lane != speaker(&k->registers))
		k->registers.n_callers = 0;
	k->active = k->registers.wave.exec >> k->lane & 1;
	return 0;
}

static uint64_t all_lanes(const struct rpc_wave_registers *r)
{
	return UINT64_MAX >> (64 - r->wave.width);
}

uint64_t value_request_lanes_there(const struct value_request *k)
{
	const struct rpc_wave_registers *r = &k->registers;
	uint64_t lanes = 0;

	for (size_t i = 0; i < r->n_work_items; i++)
		lanes |= UINT64_C(1) << r->work_items[i].lane % 64;
	return (r->n_work_items ? lanes : UINT64_MAX) & all_lanes(r);
}

const struct rpc_wave_part *value_request_part(const struct value_request *k, uint32_t lane)
{
	const struct rpc_wave *w = &k->registers.wave;

	for (size_t i = 0; i < w->n_parts; i++)
		if (w->parts[i].exec >> lane & 1)
			return &w->parts[i];
	return NULL;
}

int value_request_choose_lanes(struct value_request *k, const char *text, struct agent_err *err)
{
	const struct rpc_wave_registers *r = &k->registers;
	const struct rpc_wave_part *part = value_request_part(k, k->lane);

	if (!text)
		return 0;
	if (!strcmp(text, "all"))
		k->lanes = value_request_lanes_there(k);
	else if (!strcmp(text, "active"))
		k->lanes = r->wave.exec;
	else if (!strcmp(text, "part"))
		k->lanes = part ? part->exec : value_request_lanes_there(k);
	else if (bit_list_parse(text, &k->lanes) < 0)
		return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, EINVAL, NULL, NULL,
				     "params.lanes: none of all, active and part, nor a list of lanes such as 0-3,8");
	if (k->lanes & ~all_lanes(r))
		return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, EINVAL, NULL, NULL,
				     "params.lanes: the wave has only %u lanes", r->wave.width);
	k->memory.lanes = k->lanes & value_request_lanes_there(k);
	return 0;
}

int value_request_begin(struct value_request *k, struct agent_err *err)
{
	int r;

	if (!k->target->ops->registers || !k->target->ops->wave_memory)
		return agent_err_set(err, RPC_ERROR_UNSUPPORTED, EOPNOTSUPP, NULL, NULL,
				     "devices of this vendor do not show registers");
	k->told.text_left = VALUE_TEXT_MAX;
	k->names_left = VALUE_NAMES_MAX;
	k->deadline_ns = clock_deadline_ms(VALUE_REQUEST_MS);
	k->arena->limit = VALUE_REPLY_MAX;
	if (value_memory_init(&k->memory) < 0)
		return agent_err_no_memory(err, NULL);
	r = copy_registers(k, err);
	return r < 0 ? r : choose_lane(k, err);
}

void value_request_end(struct value_request *k)
{
	bool stands = k->target->origin || k->from.queues[0].suspended ||
		      k->registers.wave.state != RPC_WAVE_STATE_RUNNING;

	if (k->memory.ran && !stands)
		value_request_miss(k, "memory: it was read after the registers, and the queue ran in between; "
				      "suspend it for values of one moment");
	if (k->told.cut)
		value_request_miss(k, "value: it leads to more memory than one request reads");
	if (k->told.too_large)
		value_request_miss(k, "value: one is too large to be read as a whole");
	if (k->told.unreadable)
		value_request_miss(k, "memory: that of some variables could not be read");
	if (k->out_of_time)
		value_request_miss(k, "variables: looking at them takes too long, and some were not read");
	if (k->told.out_of_text)
		value_request_miss(k, "lanes: values of some were left out, as the answer would become too long");
	if (k->memory.busy)
		value_request_miss(k, "memory: some of the wave's was not read, as its queue may not be stopped now");
	if (k->memory.late && !k->out_of_time)
		value_request_miss(k, "memory: some of the wave's was not read in the time that a stop may take");
	if (k->memory.out_of_pieces)
		value_request_miss(k, "memory: more of the wave's was asked for than one request reads");
	for (size_t i = 0; i < k->registers.n_missing; i++)
		value_request_miss(k, k->registers.missing[i]);
}

void value_request_deinit(struct value_request *k)
{
	value_memory_deinit(&k->memory);
}
