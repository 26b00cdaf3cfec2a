/* SPDX-License-Identifier: MIT */
/* Settings for waves that are launched later: traps, launch mode, flags. */
#include <errno.h>
#include <stdio.h>

#include "agentd/worker/kfd/kfd.h"
#include "base/out.h"

void kfd_forget_hardware(struct target_kfd *k)
{
	struct undo *u = &k->t.undo;

	undo_drop(u, k->suspend_ticket);
	undo_drop(u, k->launch_mode_ticket);
	undo_drop(u, k->flags_ticket);
	undo_drop(u, k->override_ticket);
	k->suspend_ticket = k->launch_mode_ticket = UNDO_NONE;
	k->flags_ticket = k->override_ticket = UNDO_NONE;
	k->t.n_suspended = 0;
	k->launch_mode = RPC_LAUNCH_MODE_NORMAL;
	k->override_changed = 0;
	k->watch_trap = false;
	for (size_t i = 0; i < KFD_WATCHES_MAX; i++) {
		undo_drop(u, k->watches[i].ticket);
		k->watches[i] = (struct kfd_watch){ .ticket = UNDO_NONE };
	}
}

/* ------------------------------------------------------------------ trap override ------------ */

static int undo_override(void *ctx, uint64_t arg, struct agent_err *err)
{
	struct target_kfd *k = ctx;
	uint32_t changed = k->override_changed;
	int r = kfdtrap_set_wave_launch_override(k->kt, KFDTRAP_OVERRIDE_OR,
						 k->override_before & changed, changed, NULL, NULL);

	(void)arg;
	r = kfd_undo_error(k, r, "KFD SET_WAVE_LAUNCH_OVERRIDE", err);
	if (r < 0)
		return r;
	k->override_ticket = UNDO_NONE;
	k->override_changed = 0;
	k->watch_trap = false;
	return 0;
}

static void list_traps(char *buf, size_t size, uint32_t mask)
{
	auto_out struct out o;

	out_init(&o, size - 1);
	for (unsigned bit = 0; bit < 32; bit++) {
		const char *name = mask >> bit & 1 ? rpc_trap_name(INT64_C(1) << bit) : NULL;

		if (name)
			out_fmt(&o, "%s%s", o.size ? ", " : "", name);
	}
	snprintf(buf, size, "%s", o.data && !out_error(&o) ? o.data : "none");
}

static int override_error(struct target_kfd *k, int r, uint32_t supported, struct agent_err *err)
{
	static const char op[] = "KFD SET_WAVE_LAUNCH_OVERRIDE";
	char names[200];

	list_traps(names, sizeof(names), supported);
	if (r == -EACCES)
		return agent_err_set(err, RPC_ERROR_UNSUPPORTED, EACCES, op,
				     "ask without `request` what is supported",
				     "the devices support only these traps: %s", names);
	/*
	 * A device that lacks the mode answers EINVAL if it is older, EPERM if it is newer
	 * (amdgpu_amdkfd_gfx_v*.c).
	 */
	if (r == -EINVAL || r == -EPERM) {
		kfd_hw_error(k, r, op, err);
		if (k->t.ended)
			return -ESRCH;
		return agent_err_set(err, RPC_ERROR_UNSUPPORTED, -r, op, "use the other mode",
				     "a device does not support this override mode");
	}
	return kfd_hw_error(k, r, op, err);
}

int kfd_launch_override(struct target *t, enum rpc_override_mode mode, uint32_t enable,
			uint32_t request, uint32_t *ret_previous, uint32_t *ret_supported,
			struct agent_err *err)
{
	struct target_kfd *k = kfd_of(t);
	uint32_t previous = 0, supported = 0;
	int r = kfd_need_runtime(k, "KFD SET_WAVE_LAUNCH_OVERRIDE", err);

	if (r < 0)
		return r;
	/* This only asks: the undo must know the setting before the change. */
	r = kfdtrap_set_wave_launch_override(k->kt, (uint32_t)mode, 0, 0, &previous, &supported);
	if (r < 0)
		return override_error(k, r, supported, err);
	/*
	 * A trap that is not supported is not even tried: the undo asks for all traps that were
	 * ever changed, and the kernel would refuse it as a whole.
	 */
	if (request & ~supported)
		return override_error(k, -EACCES, supported, err);
	if (request) {
		if (!k->override_ticket) {
			r = undo_push(&t->undo, "restore traps", undo_override, k, 0,
				      &k->override_ticket, err);
			if (r < 0)
				return r;
			k->override_before = previous;
		}
		k->override_changed |= request;
		r = kfdtrap_set_wave_launch_override(k->kt, (uint32_t)mode, enable, request,
						     &previous, &supported);
		if (r < 0)
			return override_error(k, r, supported, err);
	}
	*ret_previous = previous;
	*ret_supported = supported;
	return 0;
}

/* ------------------------------------------------------------------ launch mode -------------- */

static int undo_launch_mode(void *ctx, uint64_t arg, struct agent_err *err)
{
	struct target_kfd *k = ctx;
	int r = kfdtrap_set_wave_launch_mode(k->kt, KFDTRAP_LAUNCH_NORMAL);

	(void)arg;
	r = kfd_undo_error(k, r, "KFD SET_WAVE_LAUNCH_MODE", err);
	if (r < 0)
		return r;
	k->launch_mode_ticket = UNDO_NONE;
	k->launch_mode = RPC_LAUNCH_MODE_NORMAL;
	return 0;
}

int kfd_launch_mode(struct target *t, enum rpc_launch_mode mode,
		    enum rpc_launch_mode *ret_previous, struct agent_err *err)
{
	static const char op[] = "KFD SET_WAVE_LAUNCH_MODE";
	struct target_kfd *k = kfd_of(t);
	enum rpc_launch_mode previous = k->launch_mode;
	int r = kfd_need_runtime(k, op, err);

	if (r < 0)
		return r;
	if (!k->launch_mode_ticket) {
		r = undo_push(&t->undo, "launch mode normal", undo_launch_mode, k, 0,
			      &k->launch_mode_ticket, err);
		if (r < 0)
			return r;
	}
	r = kfdtrap_set_wave_launch_mode(k->kt, (uint32_t)mode);
	/* After a failure some devices have the new mode: the undo entry stays. */
	if (r < 0)
		return kfd_hw_error(k, r, op, err);
	k->launch_mode = mode;
	if (mode == RPC_LAUNCH_MODE_NORMAL) {
		undo_drop(&t->undo, k->launch_mode_ticket);
		k->launch_mode_ticket = UNDO_NONE;
	}
	*ret_previous = previous;
	return 0;
}

/* ------------------------------------------------------------------ flags -------------------- */

static int undo_flags(void *ctx, uint64_t arg, struct agent_err *err)
{
	struct target_kfd *k = ctx;
	int r = kfdtrap_set_flags(k->kt, k->flags_before, NULL);

	(void)arg;
	r = kfd_undo_error(k, r, "KFD SET_FLAGS", err);
	if (r == 0)
		k->flags_ticket = UNDO_NONE;
	return r;
}

int kfd_flags(struct target *t, uint32_t flags, uint32_t *ret_previous, struct agent_err *err)
{
	static const char op[] = "KFD SET_FLAGS";
	struct target_kfd *k = kfd_of(t);
	bool first = !k->flags_ticket;
	uint32_t previous = 0;
	int r = kfd_need_runtime(k, op, err);

	if (r < 0)
		return r;
	if (first) {
		k->flags_before = 0;
		r = undo_push(&t->undo, "restore flags", undo_flags, k, 0, &k->flags_ticket, err);
		if (r < 0)
			return r;
	}
	r = kfdtrap_set_flags(k->kt, flags, &previous);
	/*
	 * A failure leaves the old flags (kfd_dbg_trap_set_flags()): if this was the first change,
	 * there is nothing to undo.
	 */
	if (r < 0 && first) {
		undo_drop(&t->undo, k->flags_ticket);
		k->flags_ticket = UNDO_NONE;
	}
	if (r == -EACCES)
		return agent_err_set(err, RPC_ERROR_UNSUPPORTED, EACCES, op,
				     "the capability bits in gpu.devices tell what each device can",
				     "a device of the process does not support one of the flags");
	if (r < 0)
		return kfd_hw_error(k, r, op, err);
	if (first)
		k->flags_before = previous;
	*ret_previous = previous;
	return 0;
}
