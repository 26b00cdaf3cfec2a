/* SPDX-License-Identifier: MIT */
/* Calls that change something: opening, suspending, stepping, breakpoints, events, dumps. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static uint32_t initialize(struct call *c)
{
	return session_initialize(c->p);
}

static uint32_t finalize(struct call *c)
{
	session_finalize(c->p);
	return CUDBGABI_SUCCESS;
}

/* A call that succeeds without effect. */
static uint32_t nothing(struct call *c)
{
	return CUDBGABI_SUCCESS;
}

static uint32_t suspend_device(struct call *c)
{
	if (c->dev->suspended)
		return CUDBGABI_ERROR_SUSPENDED_DEVICE;
	sim_device_suspend(c->p, (uint32_t)c->in[0]);
	return CUDBGABI_SUCCESS;
}

static uint32_t resume_device(struct call *c)
{
	if (!c->dev->suspended)
		return CUDBGABI_ERROR_RUNNING_DEVICE;
	sim_device_resume(c->p, (uint32_t)c->in[0]);
	return CUDBGABI_SUCCESS;
}

static uint32_t suspend_all(struct call *c)
{
	uint64_t masks[2];

	for (uint32_t i = 0; i < c->p->n_devices; i++)
		sim_device_suspend(c->p, i);
	/* The caller asks for an event, or not. */
	if (!c->in[0])
		return CUDBGABI_SUCCESS;
	masks[0] = sim_devices_broken(c->p);
	masks[1] = sim_devices_faulted(c->p);
	sim_queue_push(&c->p->sync, CUDBGABI_EVENT_ALL_DEVICES_SUSPENDED, masks, sizeof(masks));
	sim_events_announce(c->p, CUDBGABI_NO_TID);
	return CUDBGABI_SUCCESS;
}

static uint32_t resume_all(struct call *c)
{
	for (uint32_t i = 0; i < c->p->n_devices; i++)
		sim_device_resume(c->p, i);
	return CUDBGABI_SUCCESS;
}

/* ---- stepping ---- */

/* Step the warp; newer forms answer with the mask of warps that moved. */
static uint32_t step(struct call *c, uint32_t n)
{
	if (sim_step(c->p, c->in, n))
		return CUDBGABI_ERROR_WARP_RESUME_NOT_POSSIBLE;
	if (c->q->info->n_buffers)
		call_u64(c, UINT64_C(1) << c->in[2]);
	return CUDBGABI_SUCCESS;
}

static uint32_t step_one(struct call *c)
{
	return step(c, 1);
}
static uint32_t step_many65(struct call *c)
{
	return step(c, (uint32_t)c->in[3]);
}
static uint32_t step_many(struct call *c)
{
	return step(c, (uint32_t)c->in[4]);
}

/* Warps of a mask reach an address at once; all are checked before any moves. */
static uint32_t run_until(struct call *c)
{
	uint64_t mask = c->in[2];
	uint32_t dev = (uint32_t)c->in[0], sm = (uint32_t)c->in[1];

	for (uint32_t i = 0; i < 64; i++)
		if (mask >> i & 1 && (i >= c->dev->n_warps || !sim_warp_at(c->p, dev, sm, i)->grid))
			return CUDBGABI_ERROR_INVALID_WARP_MASK;
	for (uint32_t i = 0; i < c->dev->n_warps; i++) {
		struct sim_warp *w = sim_warp_at(c->p, dev, sm, i);

		if (!(mask >> i & 1))
			continue;
		if (w->exception)
			return CUDBGABI_ERROR_WARP_RESUME_NOT_POSSIBLE;
		w->pc = c->in[3];
		sim_warp_touch(c->p, dev, sm, w);
	}
	return CUDBGABI_SUCCESS;
}

/* ---- breakpoints ---- */

static uint32_t set_breakpoint(struct call *c)
{
	uint64_t handle;

	return sim_breakpoint_set(c->p, (uint32_t)c->in[0], c->in[1], &handle)
		       ? CUDBGABI_ERROR_INVALID_ADDRESS
		       : CUDBGABI_SUCCESS;
}

static uint32_t unset_breakpoint(struct call *c)
{
	return sim_breakpoint_unset(c->p, (uint32_t)c->in[0], c->in[1])
		       ? CUDBGABI_ERROR_INVALID_ADDRESS
		       : CUDBGABI_SUCCESS;
}

static uint32_t insert_breakpoint(struct call *c)
{
	uint64_t handle;

	if (sim_breakpoint_set(c->p, (uint32_t)c->in[0], c->in[1], &handle))
		return CUDBGABI_ERROR_INVALID_ADDRESS;
	call_u64(c, handle);
	return CUDBGABI_SUCCESS;
}

/* Find a breakpoint by its handle. */
static struct sim_breakpoint *breakpoint_of(struct call *c)
{
	for (struct sim_breakpoint *b = c->p->breakpoints; b; b = b->next)
		if (b->handle == c->in[0])
			return b;
	return NULL;
}

static uint32_t breakpoint_switch(struct call *c, bool on)
{
	struct sim_breakpoint *b = breakpoint_of(c);

	if (!b)
		return CUDBGABI_ERROR_INVALID_ARGS;
	if (b->enabled == on)
		return CUDBGABI_ERROR_BREAKPOINT_STATE_CONFLICT;
	b->enabled = on;
	return CUDBGABI_SUCCESS;
}

static uint32_t enable_breakpoint(struct call *c)
{
	return breakpoint_switch(c, true);
}

static uint32_t disable_breakpoint(struct call *c)
{
	return breakpoint_switch(c, false);
}

static uint32_t is_enabled(struct call *c)
{
	struct sim_breakpoint *b = breakpoint_of(c);

	if (!b)
		return CUDBGABI_ERROR_INVALID_ARGS;
	call_u32(c, b->enabled);
	return CUDBGABI_SUCCESS;
}

static uint32_t remove_breakpoint(struct call *c)
{
	struct sim_breakpoint *b = breakpoint_of(c);

	if (!b)
		return CUDBGABI_ERROR_INVALID_ARGS;
	sim_breakpoint_unset(c->p, b->dev, b->address);
	return CUDBGABI_SUCCESS;
}

/* ---- events ---- */

static uint32_t get_next_event(struct call *c)
{
	struct sim_queue *q = c->in[0] == CUDBGABI_EVENT_QUEUE_SYNC ? &c->p->sync : &c->p->async;
	const uint8_t *e = sim_queue_peek(q);

	if (c->in[0] > CUDBGABI_EVENT_QUEUE_ASYNC)
		return CUDBGABI_ERROR_INVALID_ARGS;
	if (!e)
		return CUDBGABI_ERROR_NO_EVENT_AVAILABLE;
	call_out(c, e, SIM_EVENT_SIZE);
	sim_queue_pop(q);
	return CUDBGABI_SUCCESS;
}

static uint32_t acknowledge(struct call *c)
{
	session_acknowledge(c->p);
	return CUDBGABI_SUCCESS;
}

static uint32_t launch_mode(struct call *c)
{
	if (c->in[0] > CUDBGABI_KNL_LAUNCH_NOTIFY_DEFER)
		return CUDBGABI_ERROR_INVALID_ARGS;
	c->p->launch_defer = c->in[0] == CUDBGABI_KNL_LAUNCH_NOTIFY_DEFER;
	return CUDBGABI_SUCCESS;
}

static uint32_t cleanup(struct call *c)
{
	session_cleanup(c->p, (uint32_t)c->in[0]);
	return CUDBGABI_SUCCESS;
}

/* ---- logs, texts, dumps ---- */

/* Take the oldest log message off the list. */
static struct sim_log *log_take(struct sim_process *p)
{
	struct sim_log *l = p->logs;

	if (l)
		p->logs = l->next;
	return l;
}

static uint32_t consume_logs(struct call *c)
{
	struct cudbgabi_log_message m[32];
	size_t room = call_room(c, 0) / sizeof(m[0]);
	uint32_t n = 0;

	while (n < room && n < 32 && c->p->logs) {
		struct sim_log *l = log_take(c->p);

		m[n] = (struct cudbgabi_log_message){ .time_ns = l->time_ns,
						      .tid = l->tid,
						      .level = l->level };
		memcpy(m[n++].text, l->text, sizeof(l->text));
		free(l);
	}
	call_out(c, m, n * sizeof(m[0]));
	call_u32(c, n);
	return CUDBGABI_SUCCESS;
}

/* The message of 12.9 is shorter than that of later releases. */
static uint32_t consume_logs129(struct call *c)
{
	struct cudbgabi_log_message_129 m[32];
	size_t room = call_room(c, 0) / sizeof(m[0]);
	uint32_t n = 0;

	while (n < room && n < 32 && c->p->logs) {
		struct sim_log *l = log_take(c->p);

		m[n] = (struct cudbgabi_log_message_129){ l->time_ns, l->tid, l->level, "" };
		memcpy(m[n++].text, l->text, sizeof(l->text));
		free(l);
	}
	call_out(c, m, n * sizeof(m[0]));
	call_u32(c, n);
	return CUDBGABI_SUCCESS;
}

static uint32_t error_string(struct call *c)
{
	static const char text[] = "simulated: no error is known";

	if (call_room(c, 0) < sizeof(text))
		return CUDBGABI_ERROR_BUFFER_TOO_SMALL;
	call_out(c, text, sizeof(text));
	call_u32(c, sizeof(text));
	return CUDBGABI_SUCCESS;
}

static uint32_t cpu_stack(struct call *c)
{
	static const uint64_t stack[] = { 0x401000, 0x402000, 0x403000 };

	if (!(c->p->capabilities & CUDBGABI_CAPABILITY_CPU_CALL_STACKS))
		return CUDBGABI_ERROR_MISSING_DATA;
	call_out(c, stack, sizeof(stack));
	call_u32(c, 3);
	return CUDBGABI_SUCCESS;
}

/* The first image stands for a dump; the engine in the debugger's process writes the file. */
static uint32_t core_dump(struct call *c)
{
	const struct sim_module *m = c->p->modules;

	/* Releases from 12.5 on refuse this flag. */
	if (c->in[0] & CUDBGABI_COREDUMP_SKIP_ABORT && c->p->release >= 1205)
		return CUDBGABI_ERROR_INVALID_ARGS;
	if (!m)
		return CUDBGABI_ERROR_INVALID_CONTEXT;
	if (!sim_all_suspended(c->p))
		return CUDBGABI_ERROR_RUNNING_DEVICE;
	out_bytes(c->out, m->relocated, m->size);
	return CUDBGABI_SUCCESS;
}

call_fn *const calls_session[SLOT_COUNT] = {
	[SLOT_initialize] = initialize,
	[SLOT_finalize] = finalize,
	[SLOT_suspendDevice] = suspend_device,
	[SLOT_resumeDevice] = resume_device,
	[SLOT_singleStepWarp40] = step_one,
	[SLOT_singleStepWarp41] = step_one,
	[SLOT_singleStepWarp65] = step_many65,
	[SLOT_singleStepWarp] = step_many,
	[SLOT_resumeWarpsUntilPC60] = run_until,
	[SLOT_resumeWarpsUntilPC] = run_until,
	[SLOT_setBreakpoint] = set_breakpoint,
	[SLOT_unsetBreakpoint] = unset_breakpoint,
	[SLOT_insertBreakpoint] = insert_breakpoint,
	[SLOT_removeBreakpoint] = remove_breakpoint,
	[SLOT_enableBreakpoint] = enable_breakpoint,
	[SLOT_disableBreakpoint] = disable_breakpoint,
	[SLOT_isBreakpointEnabled] = is_enabled,
	[SLOT_clearAttachState] = nothing,
	[SLOT_acknowledgeSyncEvents] = acknowledge,
	[SLOT_setKernelLaunchNotificationMode] = launch_mode,
	[SLOT_getNextEvent] = get_next_event,
	[SLOT_requestCleanupOnDetach] = cleanup,
	[SLOT_getErrorStringEx] = error_string,
	[SLOT_generateCoredump] = core_dump,
	[SLOT_consumeCudaLogs129] = consume_logs129,
	[SLOT_consumeCudaLogs] = consume_logs,
	[SLOT_readCPUCallStack] = cpu_stack,
	[SLOT_suspendAllDevices] = suspend_all,
	[SLOT_resumeAllDevices] = resume_all,
};
