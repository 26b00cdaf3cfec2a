/* SPDX-License-Identifier: MIT */
/* DBG_TRAP: the checks before every operation, the session itself, and the small operations. */
#include "sim.h"

#include <errno.h>
#include <string.h>

/* Operations that need an enabled runtime. */
#define HARDWARE_OP_FIRST KFDABI_DBG_SET_WAVE_LAUNCH_OVERRIDE
#define HARDWARE_OP_LAST  KFDABI_DBG_SET_FLAGS

/* ---- activation ---- */

/* Why a GPU cannot be switched into debug mode, as a runtime state; 0 if it can. */
static uint32_t activation_fails(const struct sim_process *p, const struct sim_device *d)
{
	const struct sim_queue *q;

	if (d->gpu->fail_activate)
		return d->gpu->fail_activate;
	if (!d->gpu->profile->per_vmid && d->gpu->debug_owner && d->gpu->debug_owner != p)
		return KFDABI_RUNTIME_STATE_ENABLED_BUSY;
	if (!d->gpu->profile->cu_mask_excludes_debug)
		return 0;
	TAILQ_FOREACH(q, &p->queues, link)
		if (q->device == d && q->has_cu_mask)
			return KFDABI_RUNTIME_STATE_ENABLED_BUSY;
	return 0;
}

/* Take back all that a session has set on a GPU. */
static void device_release(struct sim_process *p, struct sim_device *d)
{
	if (d->gpu->debug_owner == p)
		d->gpu->debug_owner = NULL;
	for (size_t i = 0; i < KFDABI_WATCH_IDS; i++)
		if (d->gpu->watch[i].owner == p)
			d->gpu->watch[i] = (struct sim_watch){ 0 };
	d->launch_mode = 0;
	d->override = 0;
}

void sim_trap_activate(struct sim *s, struct sim_process *p)
{
	for (size_t i = 0; i < p->n_devices; i++) {
		struct sim_device *d = &p->devices[i];
		uint32_t failure = activation_fails(p, d);

		if (failure) {
			while (i-- > 0)
				device_release(p, &p->devices[i]);
			p->runtime.runtime_state = failure;
			return;
		}
		if (!d->gpu->profile->per_vmid)
			d->gpu->debug_owner = p;
	}
}

void sim_trap_deactivate(struct sim *s, struct sim_process *p)
{
	for (size_t i = 0; i < p->n_devices; i++)
		device_release(p, &p->devices[i]);
	p->flags = 0;
	sim_queues_resume_all(s, p);
}

void sim_trap_disable(struct sim *s, struct sim_process *p)
{
	struct sim_queue *q;

	if (p->runtime.runtime_state == KFDABI_RUNTIME_STATE_ENABLED)
		sim_trap_deactivate(s, p);
	else if (p->runtime.runtime_state != KFDABI_RUNTIME_STATE_DISABLED)
		p->runtime.runtime_state = KFDABI_RUNTIME_STATE_ENABLED;
	if (p->dbg_fd >= 0)
		s->os->fd_close(p->dbg_fd);
	p->dbg_fd = -1;
	/*
	 * It is the session of the process that is recorded by then; the driver does not look
	 * whether that one has counted it.
	 */
	if (p->debugger && p->debugger->n_debugging)
		p->debugger->n_debugging--;
	p->debugger = NULL;
	p->debugged = false;
	/* Status goes, while fault records and the mask stay, as in the driver. */
	p->latched = 0;
	TAILQ_FOREACH(q, &p->queues, link)
		q->latched = 0;
	for (size_t i = 0; i < p->n_devices; i++)
		p->devices[i].latched = 0;
}

/* ---- session operations ---- */

/* Whether the GPUs allow a session at all. */
static int enable_check_devices(const struct sim_process *p)
{
	for (size_t i = 0; i < p->n_devices; i++) {
		const struct sim_device *d = &p->devices[i];

		if (d->gpu->profile->too_old || d->gpu->lost)
			return -ENODEV;
		if (d->gws && d->gpu->profile->cu_mask_excludes_debug)
			return -EBUSY;
	}
	return 0;
}

static int op_enable(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	struct kfdabi_dbg_args *a = call->arg;
	uint32_t size = a->enable.rinfo_size;
	int r;

	/*
	 * The debugger is recorded before the checks: a failing ENABLE still replaces the record,
	 * also that of a session which is on.  The recorded debugger may do nothing any more, and
	 * neither's end ends the session.
	 */
	if (p != call->file->process)
		p->debugger = call->file->process;
	if (p->debugged)
		return -EALREADY;
	r = enable_check_devices(p);
	if (r)
		return r;
	r = s->os->fd_take(call->tid, (int)a->enable.dbg_fd, &p->dbg_fd);
	if (r) {
		p->dbg_fd = -1;
		return r;
	}
	if (p->runtime.runtime_state == KFDABI_RUNTIME_STATE_ENABLED)
		sim_trap_activate(s, p);
	if (p->debugger)
		p->debugger->n_debugging++;
	p->debugged = true;
	p->enabled_as = a->pid;
	if (size > sizeof(p->runtime))
		size = sizeof(p->runtime);
	/* The caller is told the size that it should have asked for. */
	a->enable.rinfo_size = sizeof(p->runtime);
	if (size && s->os->mem_write(call->tid, a->enable.rinfo_ptr, &p->runtime, size)) {
		if (s->enable_unwinds)
			sim_trap_disable(s, p);
		return -EFAULT;
	}
	p->enabled_mask = a->enable.exception_mask;
	return 0;
}

static int op_disable(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	sim_trap_disable(s, p);
	return 0;
}

static int op_send(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	const struct kfdabi_dbg_args *a = call->arg;
	uint64_t mask = a->send_runtime_event.exception_mask;
	struct sim_device *d;
	struct sim_queue *q;

	if (mask & KFDABI_EC_MASK(KFDABI_EC_DEVICE_MEMORY_VIOLATION)) {
		d = sim_device_find(p, a->send_runtime_event.gpu_id);
		if (!d)
			return -ENODEV;
		sim_forward_fault(s, p, d);
		mask &= ~KFDABI_EC_MASK(KFDABI_EC_DEVICE_MEMORY_VIOLATION);
	}
	if (mask & KFDABI_EC_MASK(KFDABI_EC_PROCESS_RUNTIME)) {
		p->handshake++;
		sim_call_wake(s, SIM_WAIT_RUNTIME, p);
		/* What is left over goes to a queue. */
		mask &= ~KFDABI_EC_MASK(KFDABI_EC_PROCESS_RUNTIME);
	}
	q = mask ? sim_queue_find(p, a->send_runtime_event.queue_id) : NULL;
	if (q)
		sim_forward_queue_error(s, p, q, mask);
	return 0;
}

/* A new mask tells at once of what was latched before, in the caller's own context. */
static int op_exceptions(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	const struct kfdabi_dbg_args *a = call->arg;
	uint64_t latched = p->latched;
	const struct sim_queue *q;

	TAILQ_FOREACH(q, &p->queues, link)
		latched |= q->latched;
	for (size_t i = 0; i < p->n_devices; i++)
		latched |= p->devices[i].latched;
	if (latched & a->set_exceptions_enabled.exception_mask)
		sim_notify(s, p, call->tgid);
	p->enabled_mask = a->set_exceptions_enabled.exception_mask;
	return 0;
}

/* ---- hardware settings ---- */

/* A GPU that is gone or being reset answers nothing. */
static int check_hardware(const struct sim_process *p)
{
	for (size_t i = 0; i < p->n_devices; i++)
		if (p->devices[i].gpu->resetting || p->devices[i].gpu->lost)
			return -EIO;
	return 0;
}

static int check_override_mode(const struct gpu_profile *g, uint32_t mode)
{
	if (g->override_or_only)
		return mode == KFDABI_OVERRIDE_OR ? 0 : -EINVAL;
	/* The comment in the uapi header promises EINVAL here. */
	return mode <= KFDABI_OVERRIDE_REPLACE ? 0 : -EPERM;
}

static int op_override(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	struct kfdabi_dbg_args *a = call->arg;
	uint32_t request = a->launch_override.support_request_mask, supported = UINT32_MAX;
	uint32_t enable = a->launch_override.enable_mask, previous = 0;
	int r;

	for (size_t i = 0; i < p->n_devices; i++) {
		const struct gpu_profile *g = p->devices[i].gpu->profile;

		r = check_override_mode(g, a->launch_override.override_mode);
		if (r)
			return r;
		supported &= g->trap_mask;
	}
	/* The caller hears what is supported also when it is refused. */
	a->launch_override.support_request_mask = supported;
	if (request & ~supported)
		return -EACCES;
	r = check_hardware(p);
	if (r)
		return r;
	for (size_t i = 0; i < p->n_devices; i++) {
		struct sim_device *d = &p->devices[i];

		previous = d->override;
		d->override = (enable & request) | (previous & ~request);
	}
	a->launch_override.enable_mask = previous;
	return 0;
}

static int op_launch_mode(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	const struct kfdabi_dbg_args *a = call->arg;
	uint8_t mode = (uint8_t)a->launch_mode.launch_mode; /* The driver keeps eight bits. */

	if (mode != KFDABI_LAUNCH_MODE_NORMAL && mode != KFDABI_LAUNCH_MODE_HALT &&
	    mode != KFDABI_LAUNCH_MODE_DEBUG)
		return -EINVAL;
	for (size_t i = 0; i < p->n_devices; i++) {
		if (p->devices[i].gpu->resetting || p->devices[i].gpu->lost)
			return -EIO;
		p->devices[i].launch_mode = mode;
	}
	return 0;
}

static int op_watch(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	struct kfdabi_dbg_args *a = call->arg;
	struct sim_device *d = sim_device_find(p, a->set_watch.gpu_id);
	uint32_t shift;

	a->set_watch.id = KFDABI_WATCH_ID_NONE;
	if (d->gpu->resetting || d->gpu->lost)
		return -EIO;
	for (uint32_t i = 0; i < KFDABI_WATCH_IDS; i++) {
		struct sim_watch *w = &d->gpu->watch[i];

		if (w->owner)
			continue;
		shift = d->gpu->profile->debug_prop & 0xf;
		*w = (struct sim_watch){
			.owner = p,
			.address = a->set_watch.address & UINT64_C(0xffffffffffff),
			.mode = a->set_watch.mode,
			.mask = a->set_watch.mask >> shift << shift,
		};
		a->set_watch.id = i;
		return 0;
	}
	return -ENOMEM;
}

static int op_unwatch(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	const struct kfdabi_dbg_args *a = call->arg;
	struct sim_device *d = sim_device_find(p, a->clear_watch.gpu_id);
	uint32_t id = a->clear_watch.id;

	if (id >= KFDABI_WATCH_IDS || d->gpu->watch[id].owner != p)
		return -EINVAL;
	d->gpu->watch[id] = (struct sim_watch){ 0 };
	return 0;
}

/* Whether a GPU and the kernel have what the flags ask for. */
static bool flags_supported(const struct sim *s, const struct gpu_profile *g, uint32_t flags)
{
	if ((flags & KFDABI_FLAG_SINGLE_MEM_OP) && !g->precise_memory)
		return false;
	if ((flags & KFDABI_FLAG_SINGLE_ALU_OP) && !g->precise_alu)
		return false;
	/* No profile has the hardware for this flag; older kernels do not look at it. */
	return !((flags & KFDABI_FLAG_LDS_OUT_OF_ADDR_RANGE) && s->kernel->lds_flag);
}

static int op_flags(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	struct kfdabi_dbg_args *a = call->arg;
	uint32_t flags = a->set_flags.flags;
	int r;

	for (size_t i = 0; i < p->n_devices; i++)
		if (!flags_supported(s, p->devices[i].gpu->profile, flags)) {
			a->set_flags.flags = p->flags;
			return -EACCES;
		}
	a->set_flags.flags = p->flags;
	r = check_hardware(p);
	if (r)
		return r;
	p->flags = flags;
	return 0;
}

/* ---- the ladder ---- */

static const struct {
	const char *op;
	int (*run)(struct sim *, struct sim_call *, struct sim_process *);
} operations[KFDABI_DBG_OP_COUNT] = {
	[KFDABI_DBG_ENABLE] = { "enable", op_enable },
	[KFDABI_DBG_DISABLE] = { "disable", op_disable },
	[KFDABI_DBG_SEND_RUNTIME_EVENT] = { "send", op_send },
	[KFDABI_DBG_SET_EXCEPTIONS_ENABLED] = { "exceptions", op_exceptions },
	[KFDABI_DBG_SET_WAVE_LAUNCH_OVERRIDE] = { "override", op_override },
	[KFDABI_DBG_SET_WAVE_LAUNCH_MODE] = { "launch-mode", op_launch_mode },
	[KFDABI_DBG_SUSPEND_QUEUES] = { "suspend", sim_queues_suspend },
	[KFDABI_DBG_RESUME_QUEUES] = { "resume", sim_queues_resume },
	[KFDABI_DBG_SET_NODE_ADDRESS_WATCH] = { "watch", op_watch },
	[KFDABI_DBG_CLEAR_NODE_ADDRESS_WATCH] = { "unwatch", op_unwatch },
	[KFDABI_DBG_SET_FLAGS] = { "flags", op_flags },
	[KFDABI_DBG_QUERY_DEBUG_EVENT] = { "query", sim_query_event },
	[KFDABI_DBG_QUERY_EXCEPTION_INFO] = { "info", sim_query_info },
	[KFDABI_DBG_GET_QUEUE_SNAPSHOT] = { "queues", sim_queue_snapshot },
	[KFDABI_DBG_GET_DEVICE_SNAPSHOT] = { "devices", sim_device_snapshot },
};

/*
 * Find the target.  ENABLE makes the process if its tracer asks, even if it never opened the
 * device.
 */
static struct sim_process *find_target(struct sim *s, const struct sim_call *call,
				       const struct sim_task *task, uint32_t op, int *ret_error)
{
	struct sim_process *p = sim_process_find(s, task->tgid);

	*ret_error = -ESRCH;
	if (!p && op == KFDABI_DBG_ENABLE && task->tracer == call->tid)
		p = sim_process_create(s, task->tgid, ret_error);
	return p;
}

/* Whether the caller may use an operation on the target. */
static bool may_debug(const struct sim *s, const struct sim_call *call,
		      const struct sim_task *task, const struct sim_process *p, uint32_t op)
{
	/* It is the tracer of the context's own process that counts. */
	int tracer = p->tgid == task->tgid ? task->leader_tracer : s->os->leader_tracer(p->tgid);

	if (p == call->file->process || tracer == call->tid)
		return true;
	if (s->process_bound)
		return p->debugger == call->file->process;
	/* Older kernels let every process that can open the device end every session. */
	return op == KFDABI_DBG_DISABLE;
}

/* The checks that depend on the operation, in the driver's order. */
static int check_operation(struct sim_process *p, const struct kfdabi_dbg_args *a)
{
	bool hardware = a->op >= HARDWARE_OP_FIRST && a->op <= HARDWARE_OP_LAST;
	uint32_t gpu_id;

	if (a->op != KFDABI_DBG_ENABLE && !p->debugged)
		return -EINVAL;
	if (hardware && p->runtime.runtime_state != KFDABI_RUNTIME_STATE_ENABLED)
		return -EPERM;
	if (a->op == KFDABI_DBG_SET_NODE_ADDRESS_WATCH ||
	    a->op == KFDABI_DBG_CLEAR_NODE_ADDRESS_WATCH) {
		gpu_id = a->op == KFDABI_DBG_SET_NODE_ADDRESS_WATCH ? a->set_watch.gpu_id
								    : a->clear_watch.gpu_id;
		if (!gpu_id || !sim_device_find(p, gpu_id))
			return -ENODEV;
	}
	return a->op < KFDABI_DBG_OP_COUNT ? 0 : -EINVAL;
}

int sim_trap(struct sim *s, struct sim_call *call)
{
	struct kfdabi_dbg_args *a = call->arg;
	struct sim_process *p;
	struct sim_task task;
	int r;

	if (call->file->process->context != SIM_CONTEXT_PRIMARY)
		return -EOPNOTSUPP;
	if (s->no_hws)
		return -EINVAL;
	if (s->os->task_find(call->tid, a->pid, &task) || !task.has_mm)
		return -ESRCH;
	/* Whoever lets calls begin again goes on with the process that they waited for: that does not end here. */
	if (!call->again)
		sim_check_target(s, task.tgid);
	if (call->file->process->gone)
		return -EBADF;
	p = find_target(s, call, &task, a->op, &r);
	if (!p)
		return r;
	if (!may_debug(s, call, &task, p, a->op))
		return -EPERM;
	r = check_operation(p, a);
	if (r)
		return r;
	return sim_call_locked(s, call, p, operations[a->op].op, operations[a->op].run);
}
