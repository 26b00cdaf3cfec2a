/* SPDX-License-Identifier: MIT */
/*
 * Attach, replay and detach as seen from the engine.
 *
 * Whatever needs a running debuggee is asked of its engine thread: a stopped one does not answer,
 * and nothing goes on.  Events are only sent once that thread says that cudbgIpcFlag is set.
 */
#include "sim.h"

/*
 * The resume word of a replay, the bit of capabilities that marks a launch, and nanoseconds between
 * two questions.
 */
#define RESUME_WORD 1u
#define LAUNCH_BIT  (UINT32_C(1) << 31)
/* Another bit of theirs: cudbgApiDetach() was called in the program since the last attach. */
#define RELEASED_BIT (UINT32_C(1) << 30)
#define ASK_AGAIN_NS UINT64_C(1000000)

/* Ask the engine thread, unless it owes an answer. */
static void ask(struct sim_process *p)
{
	if (p->ask_pending)
		return;
	p->ask_pending = true;
	p->asked_ns = p->sim->os->now_ns();
	p->sim->os->ask_engine(p, WIRE_ASK_ALIVE, 0, 0);
}

static bool is_left(const struct sim_process *p)
{
	for (uint32_t i = 0; i < p->n_devices; i++)
		if (p->devices[i].left)
			return true;
	return false;
}

uint32_t session_engine(struct sim_process *p, uint32_t label, uint32_t session,
			uint32_t capabilities, uint32_t *ret_resume)
{
	*ret_resume = 0;
	if (capabilities & RELEASED_BIT && is_left(p))
		return SESSION_FATAL;
	if (p->script.mps)
		return CUDBGABI_ERROR_ATTACH_NOT_POSSIBLE;
	if (p->script.attach_times) {
		p->script.attach_times--;
		return p->script.attach_result;
	}
	if (p->engagements && p->script.second == SECOND_INACTIVE)
		return SESSION_INACTIVE;
	if (p->engagements && p->script.second == SECOND_REFUSED)
		return CUDBGABI_ERROR_INITIALIZATION_FAILURE;
	p->engagements++;
	p->phase = PHASE_ENGINE;
	p->label = label;
	p->session = session;
	p->capabilities = capabilities & ~(LAUNCH_BIT | RELEASED_BIT);
	p->launched = p->ipc_flag = capabilities & LAUNCH_BIT;
	p->ask_pending = false;
	p->broken_api = false;
	if (!(capabilities & LAUNCH_BIT) && p->contexts && p->script.replay != REPLAY_NONE)
		*ret_resume = RESUME_WORD;
	p->app_resume_flag = *ret_resume;
	return CUDBGABI_SUCCESS;
}

/* ---- replay ---- */

/* Append the events of a context with its modules and grids. */
static void replay_context(struct sim_process *p, const struct sim_context *c)
{
	event_context(&p->replay, CUDBGABI_EVENT_CTX_CREATE, c);
	if (!(p->capabilities & CUDBGABI_CAPABILITY_NO_CONTEXT_PUSH_POP_EVENTS))
		event_context(&p->replay, CUDBGABI_EVENT_CTX_PUSH, c);
	for (const struct sim_module *m = p->modules; m; m = m->next) {
		if (m->context != c->handle)
			continue;
		event_module(&p->replay, CUDBGABI_EVENT_ELF_IMAGE_LOADED, m);
		event_functions(&p->replay, m);
	}
	for (const struct sim_grid *g = p->grids; g; g = g->next)
		if (g->context == c->handle)
			event_grid(&p->replay, CUDBGABI_EVENT_KERNEL_READY, g);
}

/* Turn the order round, which a debugger must bear. */
static void replay_reverse(struct sim_queue *q)
{
	for (size_t i = 0; i < q->n / 2; i++)
		for (size_t b = 0; b < SIM_EVENT_SIZE; b++) {
			uint8_t *x = &q->events[i][b], *y = &q->events[q->n - 1 - i][b], t = *x;

			*x = *y;
			*y = t;
		}
}

/* Write the events that a debugger missed. */
static void replay_build(struct sim_process *p)
{
	sim_queue_deinit(&p->replay);
	for (uint32_t i = 0; i < p->script.replay_extra; i++)
		if (p->contexts) {
			event_context(&p->replay, CUDBGABI_EVENT_CTX_PUSH, p->contexts);
			event_context(&p->replay, CUDBGABI_EVENT_CTX_POP, p->contexts);
		}
	for (const struct sim_context *c = p->contexts; c; c = c->next)
		replay_context(p, c);
	if (p->script.replay_reverse)
		replay_reverse(&p->replay);
}

/* Hand over the next events of the replay, and announce them. */
static void replay_round(struct sim_process *p)
{
	uint32_t batch = p->script.replay_batch ? p->script.replay_batch : UINT32_MAX;

	if (p->script.replay == REPLAY_ENDLESS && !sim_queue_peek(&p->replay))
		replay_build(p);
	for (uint32_t i = 0; i < batch && sim_queue_peek(&p->replay); i++) {
		uint32_t kind;
		const uint8_t *e = sim_queue_peek(&p->replay);

		__builtin_memcpy(&kind, e, 4);
		sim_queue_push(&p->sync, kind, e + 4, SIM_EVENT_SIZE - 4);
		sim_queue_pop(&p->replay);
	}
	sim_events_announce(p, CUDBGABI_NO_TID);
}

/* Go on with the replay: events, then cudbgDebuggerInitialized, then ATTACH_COMPLETE. */
static void replay_go_on(struct sim_process *p)
{
	if (p->owes_ack || p->script.replay == REPLAY_HANG)
		return;
	if (!p->ipc_flag)
		return; /* session_tick() asks again. */
	if (sim_queue_peek(&p->replay) || p->script.replay == REPLAY_ENDLESS) {
		replay_round(p);
	} else if (!p->initialized) {
		p->initialized = true;
		p->ask_pending = true;
		p->sim->os->ask_engine(p, WIRE_ASK_SET, 1, RESUME_WORD);
	} else {
		p->phase = PHASE_ATTACHED;
		p->app_resume_flag = 0;
		sim_queue_push(&p->sync, CUDBGABI_EVENT_ATTACH_COMPLETE, NULL, 0);
		sim_events_announce(p, CUDBGABI_NO_TID);
	}
}

uint32_t session_initialize(struct sim_process *p)
{
	if (p->phase == PHASE_NONE)
		return CUDBGABI_ERROR_INITIALIZATION_FAILURE;
	p->initialized = false;
	if (!p->launched) {
		p->owes_ack = false;
		sim_queue_deinit(&p->sync);
		sim_queue_deinit(&p->async);
	}
	for (uint32_t i = 0; i < p->n_devices; i++)
		p->devices[i].told = false;
	if (sim_queue_peek(&p->sync))
		sim_events_announce(p, CUDBGABI_NO_TID);
	p->phase = p->app_resume_flag ? PHASE_REPLAY : PHASE_ATTACHED;
	if (p->phase == PHASE_REPLAY)
		replay_build(p);
	ask(p);
	return p->n_devices ? CUDBGABI_SUCCESS : CUDBGABI_ERROR_NO_DEVICE_AVAILABLE;
}

/* Finish a detach: the program first, then the event. */
static void detach_go_on(struct sim_process *p)
{
	if (!p->let_go) {
		p->let_go = p->ask_pending = true;
		p->sim->os->ask_engine(p, WIRE_ASK_LET_GO, 0, 0);
		return;
	}
	p->phase = PHASE_ENGINE;
	sim_queue_push(&p->sync, CUDBGABI_EVENT_DETACH_COMPLETE, NULL, 0);
	sim_events_announce(p, CUDBGABI_NO_TID);
}

void session_engine_answer(struct sim_process *p, bool ipc_flag)
{
	p->ask_pending = false;
	p->ipc_flag = ipc_flag;
	if (p->phase == PHASE_REPLAY) {
		replay_go_on(p);
	} else if (p->phase == PHASE_DETACHING && ipc_flag && !p->script.no_complete) {
		detach_go_on(p);
	}
}

/* Questions without a pause would keep the processor from the debugger that they wait for. */
void session_tick(struct sim_process *p)
{
	bool waits = (p->phase == PHASE_REPLAY && !p->owes_ack) || p->phase == PHASE_DETACHING ||
		     (p->phase == PHASE_ATTACHED && !p->ipc_flag);

	if (waits && p->sim->os->now_ns() - p->asked_ns >= ASK_AGAIN_NS)
		ask(p);
	sim_run(p);
}

void session_acknowledge(struct sim_process *p)
{
	p->owes_ack = false;
	p->sim->os->release_app(p);
	if (p->phase == PHASE_REPLAY)
		ask(p);
}

void session_cleanup(struct sim_process *p, uint32_t flag)
{
	p->app_resume_flag = flag;
	p->phase = PHASE_DETACHING;
	p->let_go = false;
	ask(p);
}

/*
 * End a session.  The program goes on in every case; breakpoints stay where they are, as on the
 * real thing, and so do GPUs that a debugger had suspended when it died.
 */
static void session_end(struct sim_process *p, bool resume)
{
	sim_queue_deinit(&p->sync);
	sim_queue_deinit(&p->async);
	sim_queue_deinit(&p->replay);
	p->owes_ack = false;
	p->sim->os->release_app(p);
	for (uint32_t i = 0; i < p->n_devices; i++)
		if (resume)
			sim_device_resume(p, i);
		else
			sim_device_leave(p, i);
	if (p->phase != PHASE_NONE)
		p->phase = PHASE_ENGINE;
}

void session_finalize(struct sim_process *p)
{
	session_end(p, true);
}

void sim_debugger_gone(struct sim_process *p)
{
	session_end(p, p->script.let_go);
}
