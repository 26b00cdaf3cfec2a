/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "agentd/worker/cuda/cuda.h"
#include "base/cleanup.h"

#define CONTEXTS_MAX 65536u
#define MODULES_MAX  65536u
#define ARMED_MS     20

/* ------------------------------------------------------------------ what is loaded ----------- */

static void *grown(void *items, size_t n, size_t *capacity, size_t size, size_t max)
{
	size_t wanted = *capacity ? 2 * *capacity : 16;

	if (n < *capacity)
		return items;
	items = n < max ? realloc(items, wanted * size) : NULL;
	if (items)
		*capacity = wanted;
	return items;
}

struct cuda_context *cuda_context_get(struct target_cuda *c, uint64_t handle, uint32_t dev)
{
	struct cuda_context *list;

	for (size_t i = 0; i < c->n_contexts; i++)
		if (c->contexts[i].handle == handle)
			return &c->contexts[i];
	list = grown(c->contexts, c->n_contexts, &c->contexts_capacity, sizeof(*list),
		     CONTEXTS_MAX);
	if (!list) {
		c->lost_news = true;
		return NULL;
	}
	c->contexts = list;
	list[c->n_contexts] = (struct cuda_context){ .handle = handle, .dev = dev,
						     .number = c->last_context++ };
	return &list[c->n_contexts++];
}

static void context_ended(struct target_cuda *c, uint64_t handle)
{
	size_t kept = 0, i = 0;

	while (i < c->n_contexts && c->contexts[i].handle != handle)
		i++;
	if (i == c->n_contexts)
		return;
	for (c->n_contexts--; i < c->n_contexts; i++)
		c->contexts[i] = c->contexts[i + 1];
	for (i = 0; i < c->n_modules; i++)
		if (c->modules[i].context != handle)
			c->modules[kept++] = c->modules[i];
		else
			cuda_module_deinit(&c->modules[i]);
	c->n_modules = kept;
}

static void image_loaded(struct target_cuda *c, const struct cudbgshim_event *e)
{
	struct cuda_module *list = grown(c->modules, c->n_modules, &c->modules_capacity,
					 sizeof(*list), MODULES_MAX);

	if (!list) {
		c->lost_news = true;
		return;
	}
	c->modules = list;
	list[c->n_modules++] = (struct cuda_module){ .module = e->module, .context = e->context,
						     .handle = e->image.handle, .dev = e->dev,
						     .number = ++c->last_module,
						     .size = e->image.size, .version = 1 };
}

static void image_unloaded(struct target_cuda *c, const struct cudbgshim_event *e)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->n_modules; i++)
		if (c->modules[i].handle != e->image.handle || c->modules[i].dev != e->dev)
			c->modules[kept++] = c->modules[i];
		else
			cuda_module_deinit(&c->modules[i]);
	c->n_modules = kept;
}

/* Functions of a module were loaded: its image has addresses for them from now on. */
static void functions_loaded(struct target_cuda *c, const struct cudbgshim_event *e)
{
	for (size_t i = 0; i < c->n_modules; i++)
		if (c->modules[i].module == e->module && c->modules[i].dev == e->dev)
			c->modules[i].version++;
}

/* The driver has stopped everything because of a fault or a breakpoint. */
static void devices_stopped(struct target_cuda *c, const struct cudbgshim_event *e)
{
	uint64_t named = e->stop.faulted_devices | e->stop.broken_devices;

	for (size_t i = 0; i < c->n_devices; i++) {
		c->devices[i].faulted |= !named || named >> i & 1;
		c->devices[i].blamed |= e->stop.faulted_devices >> i & 1;
	}
}

void cuda_on_event(void *user, const struct cudbgshim_event *e)
{
	struct target_cuda *c = user;

	switch (e->kind) {
	case CUDBGSHIM_EVENT_CTX_CREATE:
	case CUDBGSHIM_EVENT_CTX_PUSH:
		cuda_context_get(c, e->context, e->dev);
		break;
	case CUDBGSHIM_EVENT_CTX_DESTROY:
		context_ended(c, e->context);
		break;
	case CUDBGSHIM_EVENT_ELF_IMAGE_LOADED:
		cuda_context_get(c, e->context, e->dev);
		image_loaded(c, e);
		break;
	case CUDBGSHIM_EVENT_ELF_IMAGE_UNLOADED:
		image_unloaded(c, e);
		break;
	case CUDBGSHIM_EVENT_FUNCTIONS_LOADED:
		functions_loaded(c, e);
		break;
	case CUDBGSHIM_EVENT_ALL_DEVICES_SUSPENDED:
		devices_stopped(c, e);
		break;
	default:
		break;
	}
}

/* ------------------------------------------------------------------ the loop's side ---------- */

void cuda_events_arm(struct target_cuda *c)
{
	bool armed = cudbgshim_session_outcome(c->session) == CUDBGSHIM_OUTCOME_ARMED;
	const struct itimerspec every = { .it_value.tv_nsec = armed ? ARMED_MS * 1000000 : 0,
					  .it_interval.tv_nsec = armed ? ARMED_MS * 1000000 : 0 };

	timerfd_settime(c->timer_fd, 0, &every, NULL);
}

/* CUDBGSHIM_EVENT_ALL_DEVICES_SUSPENDED came with 12.5. */
static bool has_stop_events(const struct target_cuda *c)
{
	struct cudbgshim_version v = cudbgshim_get_version(c->shim);

	return v.major > 12 || (v.major == 12 && v.minor >= 5);
}

int cuda_event_drain(struct target *t)
{
	struct target_cuda *c = cuda_of(t);
	uint64_t count;
	int n;

	if (read(c->timer_fd, &count, sizeof(count)) < 0)
		count = 0;
	if (!c->shim)
		return 0;
	n = cudbgshim_session_drain(c->session);
	/*
	 * A stop may be announced by the notification alone, with nothing in the queues (4.6).  Where it
	 * always is, one notification may stand for a stop and for other news alike.
	 */
	if (n == 0 || (n > 0 && !has_stop_events(c)))
		for (size_t i = 0; i < c->n_devices; i++)
			c->devices[i].faulted = true;
	return n < 0 && cudbgshim_is_over(c->shim) ? -EPIPE : 0;
}

/* @return 1 when the runtime came up, 0, negative. */
static int step_armed(struct target_cuda *c, struct agent_err *err)
{
	struct cudbgshim_wait w;
	int r = cudbgshim_session_step(c->session, &w);

	if (r == CUDBGSHIM_SESSION_BUSY ||
	    (r == 0 && cudbgshim_session_outcome(c->session) == CUDBGSHIM_OUTCOME_ARMED))
		return 0;
	if (r < 0) {
		cuda_attach_error(c, err);
		target_end(&c->t, target_why_gone(&c->t), "attach", NULL);
		return r;
	}
	r = cuda_begin(c, err);
	cuda_events_arm(c);
	return r < 0 ? r : 1;
}

static uint64_t bit_of(uint32_t code)
{
	const struct cuda_exception *e = cuda_exception(code);

	return e ? TARGET_EXCEPTION_BIT(e->announced) : 0;
}

/* The multiprocessor itself knows those of warps that have exited. */
static uint64_t look_at_sm(struct target_cuda *c, const struct cuda_device *d, uint32_t sm)
{
	const struct cudbgshim_state *s = d->state;
	size_t n = (size_t)s->n_warps * s->n_lanes, first = sm * n;
	uint32_t exception;
	uint64_t mask = 0, error_pc;

	for (size_t i = first; i < first + n; i++)
		mask |= bit_of(s->lane_exception[i]);
	if (cuda_exited_of(c, d, sm, &exception, &error_pc) > 0)
		mask |= bit_of(exception);
	return mask;
}

/*
 * What stopped the device: all kinds of exceptions on it, as a mask.
 * @return 0; -EBUSY it runs: nothing has stopped it, or what did was told when its notification came
 *         before its event.  To resume it all the same might let go the next stop untold.
 */
static int look_for_exceptions(struct target_cuda *c, struct cuda_device *d, uint64_t *ret)
{
	bool broken = false;
	uint64_t mask = 0;
	int r = cuda_read_state(c, d);

	if (r == -EBUSY)
		return r;
	c->wants_resume = true;
	for (uint32_t sm = 0; r >= 0 && sm < d->state->n_sms; sm++) {
		mask |= look_at_sm(c, d, sm);
		broken |= d->state->broken_warps[sm] != 0;
	}
	/* A fault of the device alone, or of a kind that shows nowhere. */
	if (!mask && (d->blamed || broken))
		mask = TARGET_EXCEPTION_BIT(d->blamed ? RPC_EXCEPTION_WAVE_FAULT : RPC_EXCEPTION_WAVE_TRAP);
	*ret = mask;
	return 0;
}

/* @param last  Devices that run are done with; else they stay.  @return whether one has a fault. */
static bool next_fault(struct target_cuda *c, bool last, struct target_event *ret)
{
	for (size_t i = 0; i < c->n_devices; i++) {
		struct cuda_device *d = &c->devices[i];
		uint64_t mask = 0;

		if (!d->faulted || (look_for_exceptions(c, d, &mask) == -EBUSY && !last))
			continue;
		d->faulted = d->blamed = false;
		mask &= c->subscribed;
		d->exceptions |= mask;
		if (!mask)
			continue;
		*ret = (struct target_event){ .kind = TARGET_EVENT_EXCEPTION,
					      .source = { .exceptions = mask, .has_gpu = true,
							  .gpu_id = d->d.gpu_id },
					      .forwarded = true };
		return true;
	}
	return false;
}

static void forget_faults(struct target_cuda *c)
{
	for (size_t i = 0; i < c->n_devices; i++) {
		c->wants_resume |= c->devices[i].faulted && !c->subscribed;
		c->devices[i].faulted = c->devices[i].blamed = false;
	}
}

int cuda_event_next(struct target *t, struct target_event *ret, struct agent_err *err)
{
	struct target_cuda *c = cuda_of(t);

	if (!c->shim) {
		int r = step_armed(c, err);

		if (r == 1)
			*ret = (struct target_event){ .kind = TARGET_EVENT_RUNTIME };
		return r;
	}
	/*
	 * All devices stop together: one that ran a moment ago stands still, too, when another
	 * does.
	 */
	if (c->subscribed &&
	    (next_fault(c, false, ret) || (c->wants_resume && next_fault(c, true, ret))))
		return 1;
	forget_faults(c);
	/*
	 * All clients have been told: the devices that the driver stopped go on, so that the
	 * program hears it.
	 */
	if (c->wants_resume) {
		c->wants_resume = false;
		for (size_t i = 0; i < c->n_devices; i++)
			c->devices[i].stopped = !c->devices[i].suspended;
		return cuda_go(c, err);
	}
	return 0;
}

int cuda_event_done(struct target *t, const struct target_event *e, struct agent_err *err)
{
	return 0;
}

int cuda_subscribe(struct target *t, uint64_t exceptions, bool hold, struct agent_err *err)
{
	if (hold)
		return agent_err_set(err, RPC_ERROR_UNSUPPORTED, EOPNOTSUPP, "subscribe",
				     "leave hold out",
				     "exceptions of NVIDIA devices cannot be held back");
	cuda_of(t)->subscribed = exceptions;
	return 0;
}
