/* SPDX-License-Identifier: MIT */
/* One wave: wave.registers, and memory.read of all kinds of memory. */
#include <errno.h>

#include "agentd/worker/session/handlers.h"
#include "agentd/worker/snapshot/locations.h"

/* A lane's words are spread over as many times their size as there are lanes. */
#define SCRATCH_BYTES_MAX 65536u
#define REPLY_MEMORY_MAX ((size_t)64 << 20)
/* What a driver that stops devices for a read of memory takes. */
#define MEMORY_STOP_MS 20

static int invalid(struct agent_err *err, const char *what)
{
	return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, EINVAL, NULL, NULL, "params.%s", what);
}

/* ------------------------------------------------------------------ its queue ---------------- */

/* Find the queue of a wave, and all devices. */
static int find_queue(struct target *t, struct rpc_arena *a, const struct rpc_wave_name *wave,
		      struct target_waves_from *ret, struct agent_err *err)
{
	struct target_device *devices;
	struct rpc_queue *queues;
	size_t n_devices, n_queues;
	int r = t->ops->devices(t, a, &devices, &n_devices, err);

	if (r == 0)
		r = t->ops->queues(t, a, &queues, &n_queues, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n_queues; i++)
		if (queues[i].queue_id == wave->queue_id) {
			*ret = (struct target_waves_from){ .devices = devices,
							   .n_devices = n_devices,
							   .queues = &queues[i],
							   .n_queues = 1 };
			return 0;
		}
	return agent_err_set(err, RPC_ERROR_NO_SUCH_WAVE, ENOENT, "find the wave",
			     "gpu.queues lists those there are", "there is no queue %u",
			     wave->queue_id);
}

/* ------------------------------------------------------------------ values ------------------- */

static uint32_t begin_stop(void *context, uint32_t ms, uint32_t *ret_retry_ms)
{
	ms = readers_stop_begin(context, ms, ret_retry_ms);
	return ms ? session_stop_begin(context, ms) : 0;
}

static void end_stop(void *context, int64_t stopped_us)
{
	session_stop_end(context);
	readers_stop_end(context, stopped_us);
	if (stopped_us >= 0)
		session_note_stop(context, (uint64_t)stopped_us);
}

void handlers_value_request(struct session *s, struct rpc_arena *a, const struct rpc_wave_name *wave,
			    bool has_max_stop_ms, uint32_t max_stop_ms, struct value_request *ret)
{
	*ret = (struct value_request){ .target = s->target, .arena = a, .wave = wave,
				       .stops = { s, begin_stop, end_stop, readers_refuse },
				       .max_stop_ms = has_max_stop_ms ? max_stop_ms : HANDLERS_STOP_MS };
}

int handlers_value_begin(struct value_request *k, const char *lanes, struct agent_err *err)
{
	int r = find_queue(k->target, k->arena, k->wave, &k->from, err);

	if (r == 0)
		r = value_request_begin(k, err);
	return r == 0 ? value_request_choose_lanes(k, lanes, err) : r;
}

int handlers_value_frame(struct value_request *k, value_use_frame *use, void *context, bool *ret_unknown,
			 struct agent_err *err)
{
	int r = value_frame_find(k, HANDLERS_LOOK_UP_MS, use, context, ret_unknown, err);

	if (r == 0 && *ret_unknown && value_frame_make(k, use, context) < 0)
		r = agent_err_no_memory(err, NULL);
	return r;
}

/* ------------------------------------------------------------------ registers ---------------- */

static uint32_t bank_mask(const struct rpc_wave_registers_params *p)
{
	uint32_t mask = 0;

	if (!p->has_banks)
		return UINT32_MAX;
	for (size_t i = 0; i < p->n_banks; i++)
		mask |= UINT32_C(1) << p->banks[i];
	return mask;
}

/* Find the frames of the callers.  Without them there are still the addresses. */
static void find_callers(struct target *t, struct rpc_arena *a, struct rpc_wave_registers *ret)
{
	size_t text = LOCATIONS_TEXT_MAX;
	struct code_set code = { 0 };

	if (ret->n_callers && code_set_init(&code, t, a, HANDLERS_LOOK_UP_MS) == 0)
		(void)locations_find_callers(&code, ret->callers, ret->n_callers, &text);
	code_set_deinit(&code);
}

int handlers_wave_registers(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			    const struct rpc_wave_registers_params *params,
			    struct rpc_wave_registers_result *ret, struct agent_err *err)
{
	struct session *s = ctx;
	struct target *t = s->target;
	const struct target_registers_wanted what = {
		.wave = &params->wave,
		.banks = bank_mask(params),
		.first = params->first,
		.count = params->has_count ? params->count : UINT32_MAX,
		.work_items = params->work_items,
	};
	struct target_waves_from from;
	uint32_t retry_ms, ms = params->has_max_stop_ms ? params->max_stop_ms : HANDLERS_STOP_MS;
	int r;

	if (!t->ops->registers)
		return agent_err_set(err, RPC_ERROR_UNSUPPORTED, EOPNOTSUPP, NULL, NULL,
				     "devices of this vendor do not show registers");
	arena->limit = REPLY_MEMORY_MAX;
	r = find_queue(t, arena, &params->wave, &from, err);
	if (r < 0)
		return r;
	ms = readers_stop_begin(s, ms, &retry_ms);
	if (!ms)
		return readers_refuse(retry_ms, err);
	from.max_stop_ms = session_stop_begin(s, ms);
	r = t->ops->registers(t, &from, &what, arena, &ret->registers, &ret->stopped_us, err);
	session_stop_end(s);
	readers_stop_end(s, (int64_t)ret->stopped_us);
	session_note_stop(s, ret->stopped_us);
	if (r == 0)
		find_callers(t, arena, &ret->registers);
	return r;
}

/* ------------------------------------------------------------------ memory ------------------- */

static bool in_aperture(const struct target_device *d, uint64_t address, enum rpc_memory_space *ret)
{
	bool lds = address >= d->rpc.lds_base && address <= d->rpc.lds_limit;

	*ret = lds ? RPC_MEMORY_SPACE_LDS : RPC_MEMORY_SPACE_SCRATCH;
	return lds || (address >= d->rpc.scratch_base && address <= d->rpc.scratch_limit);
}

/* An address that means something else for every workgroup or lane is not read as global memory. */
static int check_aperture(struct target *t, struct rpc_arena *a, uint64_t address,
			  struct agent_err *err)
{
	struct target_device *d;
	enum rpc_memory_space space;
	size_t n;
	int r;

	if (address < TARGET_GLOBAL_END)
		return 0;
	r = t->ops->devices(t, a, &d, &n, err);
	for (size_t i = 0; r == 0 && i < n; i++) {
		bool lds;

		if (!in_aperture(&d[i], address, &space))
			continue;
		lds = space == RPC_MEMORY_SPACE_LDS;
		return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, EINVAL, NULL,
				     lds ? "pass space \"lds\" and a wave of the workgroup" :
					   "pass space \"scratch\", a wave and a lane",
				     "params.address: 0x%llx is %s of device %u, which each %s has its own of",
				     (unsigned long long)address, lds ? "LDS memory" : "private memory",
				     d[i].rpc.gpu_id, lds ? "workgroup" : "lane");
	}
	return r;
}

/* Read memory through the devices, which some drivers stop for that. */
static ssize_t read_by_device(struct session *s, const struct rpc_memory_read_params *p, void *buf,
			      uint32_t *ret_retry_ms, struct agent_err *err)
{
	struct target *t = s->target;
	ssize_t n;

	if (!t->ops->memory)
		return -EFAULT;
	t->memory_stopped_us = 0;
	t->memory_no_stop = !readers_stop_begin(s, MEMORY_STOP_MS, ret_retry_ms);
	n = t->ops->memory(t, p->address, buf, p->size, err);
	readers_stop_end(s, (int64_t)t->memory_stopped_us);
	return n;
}

static ssize_t read_checked(struct session *s, const struct rpc_memory_read_params *p, void *buf,
			    struct agent_err *err)
{
	struct target *t = s->target;
	uint32_t retry_ms;
	ssize_t n;

	n = read_by_device(s, p, buf, &retry_ms, err);
	if (n == -EBUSY && t->memory_no_stop)
		return readers_refuse(retry_ms, err);
	if (t->ended)
		return n;
	if (n < 0)
		n = memory_read(&t->memory, p->address, buf, p->size);
	if (n < 0 && t->origin)
		return agent_err_set(err, RPC_ERROR_FAILED, (int)-n, "read the core", NULL,
				     "the core has nothing at 0x%llx",
				     (unsigned long long)p->address);
	if (n < 0)
		return agent_err_set(err, RPC_ERROR_FAILED, (int)-n, "read /proc/PID/mem",
				     "gpu.queues and /proc/PID/maps tell what is mapped",
				     "nothing readable at 0x%llx",
				     (unsigned long long)p->address);
	return n;
}

static ssize_t read_global(struct session *s, struct rpc_arena *a,
			   const struct rpc_memory_read_params *p, void *buf, struct agent_err *err)
{
	int r;

	if (p->has_wave || p->has_lane || p->has_bank)
		return invalid(err, "wave, lane, bank: not for global memory");
	r = check_aperture(s->target, a, p->address, err);
	return r < 0 ? r : read_checked(s, p, buf, err);
}

/*
 * A generic address that no aperture can have is one of global memory, whichever wave and lane it was taken
 * from: no queue has to stop for it.
 */
static ssize_t read_generic(struct session *s, const struct rpc_memory_read_params *p, void *buf,
			    struct agent_err *err)
{
	int r;

	if (!p->has_wave)
		return invalid(err, "wave: missing; say whose memory");
	if (p->has_bank)
		return invalid(err, "bank: only for constant");
	r = wave_name_check(&p->wave, "params.wave", err);
	return r < 0 ? r : read_checked(s, p, buf, err);
}

static bool is_global(const struct target *t, const struct rpc_memory_read_params *p)
{
	return p->space == RPC_MEMORY_SPACE_GENERIC && p->address < TARGET_GLOBAL_END &&
	       !(t->ops->wave_spaces & TARGET_SPACE_BIT(RPC_MEMORY_SPACE_GENERIC));
}

static int check_wave_memory(const struct target *t, const struct rpc_memory_read_params *p,
			     struct agent_err *err)
{
	bool generic = p->space == RPC_MEMORY_SPACE_GENERIC;
	bool of_lane = generic || p->space == RPC_MEMORY_SPACE_SCRATCH;
	/* Where devices have apertures, generic addresses are those of other memories. */
	uint32_t spaces = TARGET_SPACE_BIT(p->space) | (generic ? TARGET_SPACES_COMMON : 0);

	if (!(t->ops->wave_spaces & spaces))
		return agent_err_set(err, RPC_ERROR_UNSUPPORTED, EOPNOTSUPP, NULL, NULL,
				     "devices of this vendor do not show such memory");
	if (!p->has_wave)
		return invalid(err, "wave: missing; say whose memory");
	if (of_lane && !p->has_lane)
		return invalid(err, "lane: missing; each lane has private memory of its own");
	if (!of_lane && p->has_lane)
		return invalid(err, "lane: only for scratch and generic; all lanes share the rest");
	if (p->has_bank && p->space != RPC_MEMORY_SPACE_CONSTANT)
		return invalid(err, "bank: only for constant");
	return 0;
}

/* Which memory of the wave a generic address means that is in an aperture of its device. */
static int find_aperture(const struct target_waves_from *from, uint64_t address, enum rpc_memory_space *ret,
			 struct agent_err *err)
{
	for (size_t i = 0; i < from->n_devices; i++)
		if (from->devices[i].rpc.gpu_id == from->queues[0].gpu_id &&
		    in_aperture(&from->devices[i], address, ret))
			return 0;
	return agent_err_set(err, RPC_ERROR_FAILED, EFAULT, "read memory of a wave",
			     "gpu.devices lists the apertures of each device",
			     "0x%llx is no address of global memory, and in no aperture of device %u",
			     (unsigned long long)address, from->queues[0].gpu_id);
}

static ssize_t read_wave_memory(struct session *s, struct rpc_arena *a,
				const struct rpc_memory_read_params *p, void *buf,
				struct agent_err *err)
{
	struct target *t = s->target;
	struct target_wave_memory what = { .wave = &p->wave,
					   .space = p->space,
					   .lane = p->lane,
					   .bank = p->bank,
					   .address = p->address,
					   .buf = buf,
					   .size = p->size };
	struct target_waves_from from;
	uint32_t retry_ms, ms = p->has_max_stop_ms ? p->max_stop_ms : HANDLERS_STOP_MS;
	int r = check_wave_memory(t, p, err);

	if (r == 0)
		r = find_queue(t, a, &p->wave, &from, err);
	if (r == 0 && !(t->ops->wave_spaces & TARGET_SPACE_BIT(p->space)))
		r = find_aperture(&from, p->address, &what.space, err);
	if (r == 0 && what.space == RPC_MEMORY_SPACE_SCRATCH && p->size > SCRATCH_BYTES_MAX)
		r = invalid(err, "size: more than 65536 bytes of private memory");
	if (r < 0)
		return r;
	ms = readers_stop_begin(s, ms, &retry_ms);
	if (!ms)
		return readers_refuse(retry_ms, err);
	from.max_stop_ms = session_stop_begin(s, ms);
	r = t->ops->wave_memory(t, &from, &what, a, err);
	session_stop_end(s);
	readers_stop_end(s, -1);
	return r;
}

int handlers_memory_read(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			 const struct rpc_memory_read_params *params,
			 struct rpc_memory_read_result *ret, struct agent_err *err)
{
	struct session *s = ctx;
	void *buf;
	ssize_t n;

	arena->limit = REPLY_MEMORY_MAX;
	buf = rpc_arena_alloc(arena, params->size);
	if (!buf)
		return agent_err_no_memory(err, NULL);
	if (!params->has_space || params->space == RPC_MEMORY_SPACE_GLOBAL)
		n = read_global(s, arena, params, buf, err);
	else if (is_global(s->target, params))
		n = read_generic(s, params, buf, err);
	else
		n = read_wave_memory(s, arena, params, buf, err);
	if (n < 0)
		return (int)n;
	ret->address = params->address;
	ret->size = (uint32_t)n;
	ret->data = rpc_arena_base64(arena, buf, (size_t)n);
	return rpc_arena_error(arena) ? agent_err_no_memory(err, NULL) : 0;
}
