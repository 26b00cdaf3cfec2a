/* SPDX-License-Identifier: MIT */
/* Decodes events, 92 packed bytes in and one neutral struct out, and passes notifications on. */
#include "internal.h"

#include <errno.h>

_Static_assert((int)CUDBGSHIM_EVENT_COUNT == CUDBGABI_EVENT_KIND_COUNT, "event kinds");
_Static_assert((int)CUDBGSHIM_EVENT_CUDA_LOGS_RULESET_CHANGED ==
		       CUDBGABI_EVENT_CUDA_LOGS_RULESET_CHANGED,
	       "event kinds");
_Static_assert(CUDBGSHIM_MAX_DEVICES == CUDBGABI_MAX_DEVICES, "devices");
_Static_assert(CUDBGSHIM_NO_TID == CUDBGABI_NO_TID, "tid");

static void decode_kernel_ready(const struct cudbgabi_event_kernel_ready *in,
				struct cudbgshim_event *e)
{
	e->dev = in->dev;
	e->tid = in->tid;
	e->context = in->context;
	e->module = in->module;
	e->kernel.grid = in->grid_id;
	e->kernel.function = in->function;
	e->kernel.entry = in->function_entry;
	e->kernel.parent = in->parent_grid_id;
	e->kernel.grid_dim = dim3_of(in->grid_dim);
	e->kernel.block_dim = dim3_of(in->block_dim);
	e->kernel.type = in->type;
	e->kernel.origin = in->origin;
}

static void decode_kernel_finished(const struct cudbgabi_event_kernel_finished *in,
				   struct cudbgshim_event *e)
{
	e->dev = in->dev;
	e->tid = in->tid;
	e->context = in->context;
	e->module = in->module;
	e->kernel.grid = in->grid_id;
	e->kernel.function = in->function;
	e->kernel.entry = in->function_entry;
}

static void decode_image(const struct cudbgabi_event_elf_image_loaded *in, bool loaded,
			 struct cudbgshim_event *e)
{
	e->dev = in->dev;
	e->context = in->context;
	e->module = in->module;
	e->image.handle = in->handle;
	e->image.size = in->size;
	e->image.properties = loaded ? in->properties : 0;
}

static void decode_step(const struct cudbgabi_event_single_step_complete *in,
			struct cudbgshim_event *e)
{
	e->dev = in->dev;
	e->context = in->context;
	e->stop.sm = in->sm;
	e->stop.warps_before = in->original_warp_mask;
	e->stop.warps_after = in->final_warp_mask;
	e->stop.broken_devices = in->broken_devices_mask;
	e->stop.faulted_devices = in->faulted_devices_mask;
}

int cudbgshim_event_decode(const void *bytes, size_t size, struct cudbgshim_event *ret_event)
{
	struct cudbgshim_event e = { .tid = CUDBGSHIM_NO_TID };
	struct cudbgabi_event in;

	if (size < sizeof(in))
		return -EINVAL;
	memcpy(&in, bytes, sizeof(in));
	e.kind = in.kind;
	switch (in.kind) {
	case CUDBGABI_EVENT_ELF_IMAGE_LOADED:
	case CUDBGABI_EVENT_ELF_IMAGE_UNLOADED:
		decode_image(&in.elf_image, in.kind == CUDBGABI_EVENT_ELF_IMAGE_LOADED, &e);
		break;
	case CUDBGABI_EVENT_KERNEL_READY:
		decode_kernel_ready(&in.kernel_ready, &e);
		break;
	case CUDBGABI_EVENT_KERNEL_FINISHED:
		decode_kernel_finished(&in.kernel_finished, &e);
		break;
	case CUDBGABI_EVENT_CTX_PUSH:
	case CUDBGABI_EVENT_CTX_POP:
	case CUDBGABI_EVENT_CTX_CREATE:
	case CUDBGABI_EVENT_CTX_DESTROY:
		e.dev = in.context.dev;
		e.tid = in.context.tid;
		e.context = in.context.context;
		break;
	case CUDBGABI_EVENT_INTERNAL_ERROR:
		e.internal_error = in.internal_error;
		break;
	case CUDBGABI_EVENT_FUNCTIONS_LOADED:
		e.dev = in.functions_loaded.dev;
		e.context = in.functions_loaded.context;
		e.module = in.functions_loaded.module;
		e.n_functions = in.functions_loaded.count;
		break;
	case CUDBGABI_EVENT_ALL_DEVICES_SUSPENDED:
		e.stop.broken_devices = in.all_devices_suspended.broken_devices_mask;
		e.stop.faulted_devices = in.all_devices_suspended.faulted_devices_mask;
		break;
	case CUDBGABI_EVENT_SINGLE_STEP_COMPLETE:
		decode_step(&in.single_step_complete, &e);
		break;
	case CUDBGABI_EVENT_CUDA_LOGS_RULESET_CHANGED:
		e.log_ruleset = in.log_ruleset;
		break;
	default:
		break; /* It has no payload that we know. */
	}
	if (e.dev >= CUDBGSHIM_MAX_DEVICES)
		return -EPROTO;
	*ret_event = e;
	return 0;
}

int cudbgshim_get_next_event(struct cudbgshim *s, enum cudbgshim_queue queue,
			     struct cudbgshim_event *ret_event)
{
	struct cudbgabi_event raw = { 0 };
	struct cudbgshim_event e;
	int r = CALL(s, getNextEvent, queue, &raw);

	if (last_result_is(s, CUDBGABI_ERROR_NO_EVENT_AVAILABLE))
		return CUDBGSHIM_NO_EVENT;
	if (r < 0)
		return r;
	if (raw.kind == CUDBGABI_EVENT_INVALID)
		return CUDBGSHIM_NO_EVENT;
	r = cudbgshim_event_decode(&raw, sizeof(raw), &e);
	if (r < 0)
		return r;
	if (e.kind == CUDBGSHIM_EVENT_INTERNAL_ERROR)
		s->over = true;
	*ret_event = e;
	return 0;
}

int cudbgshim_acknowledge_sync_events(struct cudbgshim *s)
{
	return CALL(s, acknowledgeSyncEvents);
}

/*
 * The receiver of notifications.  The engine calls back from a thread of its own and, in one of the
 * forms, without any pointer of ours.  There is one API per process, and so one receiver.
 */
static struct {
	_Atomic(cudbgshim_notify_fn) notify;
	void *user;
} callback;

static void call_back(uint32_t tid)
{
	cudbgshim_notify_fn notify = atomic_load(&callback.notify);

	if (notify)
		notify(callback.user, tid);
}

static void notify_31(void *user_data)
{
	call_back(CUDBGSHIM_NO_TID);
}

static void notify_41(struct cudbgabi_notify_41 *data)
{
	call_back(data ? data->tid : CUDBGSHIM_NO_TID);
}

static void notify_130(struct cudbgabi_notify *data)
{
	call_back(data ? data->tid : CUDBGSHIM_NO_TID);
}

void event_forget_notify(void)
{
	atomic_store(&callback.notify, NULL);
}

int cudbgshim_set_notify(struct cudbgshim *s, cudbgshim_notify_fn notify, void *user)
{
	int r;

	event_forget_notify();
	callback.user = user;
	atomic_store(&callback.notify, notify);
	if (HAS(s, setNotifyNewEventCallback))
		r = CALL(s, setNotifyNewEventCallback, notify ? notify_130 : NULL, NULL);
	else if (HAS(s, setNotifyNewEventCallback41))
		r = CALL(s, setNotifyNewEventCallback41, notify ? notify_41 : NULL);
	else
		r = CALL(s, setNotifyNewEventCallback31, notify ? notify_31 : NULL, NULL);
	if (r < 0)
		event_forget_notify();
	return r;
}
