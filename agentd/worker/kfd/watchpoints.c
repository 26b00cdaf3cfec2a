/* SPDX-License-Identifier: MIT */
/* Watchpoints of the devices, and the trap by which waves stop at them. */
#include <errno.h>
#include <inttypes.h>

#include "agentd/worker/kfd/kfd.h"
#include "base/cleanup.h"

static const char set_op[] = "KFD SET_NODE_ADDRESS_WATCH";

int kfd_watch_check(uint32_t gpu_id, uint32_t debug_prop, uint64_t address, uint64_t size,
		    struct agent_err *err)
{
	unsigned lo = debug_prop & KFDTRAP_DEBUG_PROP_WATCH_LO_MASK;
	unsigned hi = (debug_prop & KFDTRAP_DEBUG_PROP_WATCH_HI_MASK) >>
		      KFDTRAP_DEBUG_PROP_WATCH_HI_SHIFT;

	if (!size || size & (size - 1))
		return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, EINVAL, NULL, NULL,
				     "params.size: must be a power of two, not %" PRIu64, size);
	if (address & (size - 1))
		return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, EINVAL, NULL, NULL,
				     "params.address: 0x%" PRIx64 " is not a multiple of the size",
				     address);
	/* If hi is 0, the driver does not tell which mask bits the hardware compares. */
	if (!hi || hi > 31 || lo > hi)
		return agent_err_set(err, RPC_ERROR_UNSUPPORTED, EOPNOTSUPP, set_op, NULL,
				     "device %u has no usable watch points", gpu_id);
	if (size < UINT64_C(1) << lo || size > UINT64_C(1) << hi)
		return agent_err_set(err, RPC_ERROR_UNSUPPORTED, ERANGE, set_op,
				     "choose a size in that range; a larger one includes yours",
				     "device %u watches %u to %" PRIu64 " bytes, not %" PRIu64,
				     gpu_id, 1u << lo, UINT64_C(1) << hi, size);
	return 0;
}

/*
 * EINVAL also means that the watchpoint is not this session's any more, as it is after a clear that
 * failed late.  So the command is given twice, and only a second EINVAL means that.
 */
static int clear_twice(struct target_kfd *k, const struct kfd_watch *w)
{
	int r = kfdtrap_clear_node_address_watch(k->kt, w->w.gpu_id, w->w.id);

	return r == -EINVAL ? kfdtrap_clear_node_address_watch(k->kt, w->w.gpu_id, w->w.id) : r;
}

/* Remove one watchpoint.  @param arg  Its slot in k->watches. */
static int undo_watch(void *ctx, uint64_t arg, struct agent_err *err)
{
	struct target_kfd *k = ctx;
	struct kfd_watch *w = &k->watches[arg];
	int r = w->set ? clear_twice(k, w) : 0;

	if (r != -EINVAL)
		r = kfd_undo_error(k, r, "KFD CLEAR_NODE_ADDRESS_WATCH", err);
	if (r == 0 || r == -EINVAL)
		*w = (struct kfd_watch){ .ticket = UNDO_NONE };
	return r == -EINVAL ? 0 : r;
}

static bool any_watch(const struct target_kfd *k)
{
	for (size_t i = 0; i < KFD_WATCHES_MAX; i++)
		if (k->watches[i].set)
			return true;
	return false;
}

/* Turn on the address-watch trap: a watchpoint does nothing until waves trap on it. */
static int trap_on(struct target_kfd *k, struct agent_err *err)
{
	uint32_t previous, supported;
	int r;

	if (k->watch_trap)
		return 0;
	r = kfd_launch_override(&k->t, RPC_OVERRIDE_MODE_OR, 0, 0, &previous, &supported, err);
	if (r < 0 || previous & KFDTRAP_TRAP_ADDRESS_WATCH)
		return r;
	r = kfd_launch_override(&k->t, RPC_OVERRIDE_MODE_OR, KFDTRAP_TRAP_ADDRESS_WATCH,
				KFDTRAP_TRAP_ADDRESS_WATCH, &previous, &supported, err);
	k->watch_trap = r == 0;
	return r;
}

/* Turn the trap off again after the last watchpoint, unless a client had turned it on before. */
static int trap_off(struct target_kfd *k, struct agent_err *err)
{
	uint32_t previous, supported;
	int r;

	if (!k->watch_trap || any_watch(k))
		return 0;
	r = kfd_launch_override(&k->t, RPC_OVERRIDE_MODE_OR, 0, KFDTRAP_TRAP_ADDRESS_WATCH,
				&previous, &supported, err);
	if (r == 0)
		k->watch_trap = false;
	return r;
}

static int trap_off_surely(struct target_kfd *k, struct agent_err *err)
{
	unsigned tries = 0;
	int r;

	do
		r = trap_off(k, err);
	while (r < 0 && !k->t.ended && undo_again(&tries));
	return r;
}

static int watch_error(struct target_kfd *k, int r, uint32_t gpu_id, struct agent_err *err)
{
	if (r == -ENOMEM)
		return agent_err_set(err, RPC_ERROR_LIMIT, ENOMEM, set_op,
				     "clear one; other processes on this device share them",
				     "all watch points of device %u are taken", gpu_id);
	if (r == -ENODEV)
		return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, ENODEV, set_op,
				     "gpu.devices lists them",
				     "params.gpu_id: the process has no device %u", gpu_id);
	return kfd_hw_error(k, r, set_op, err);
}

static int set_one(struct target_kfd *k, uint32_t gpu_id, uint64_t address, uint64_t size,
		   enum rpc_watch_mode mode, struct agent_err *err)
{
	struct kfd_watch *w = k->watches;
	int r;

	while (w < k->watches + KFD_WATCHES_MAX && w->ticket != UNDO_NONE)
		w++;
	if (w == k->watches + KFD_WATCHES_MAX)
		return watch_error(k, -ENOMEM, gpu_id, err);
	*w = (struct kfd_watch){ .w = { .gpu_id = gpu_id, .address = address, .size = size,
					.mode = mode } };
	r = undo_push(&k->t.undo, "clear watch point", undo_watch, k, (uint64_t)(w - k->watches),
		      &w->ticket, err);
	if (r < 0)
		return r;
	/*
	 * The hardware compares the address bits that are set in the mask: the low 32 bits of -size
	 * (kfd_dbg_trap_set_dev_address_watch()).
	 */
	r = kfdtrap_set_node_address_watch(k->kt, gpu_id, address, (uint32_t)(0 - size),
					   (uint32_t)mode, &w->w.id);
	w->set = r == 0;
	return r < 0 ? watch_error(k, r, gpu_id, err) : 0;
}

/* List the devices to watch on, all or the one asked for, and check that each can. */
static int choose_devices(struct target *t, const uint32_t *gpu_id, uint64_t address, uint64_t size,
			  struct rpc_arena *a, struct target_device **ret, size_t *ret_n,
			  struct agent_err *err)
{
	struct target_device *devices = NULL;
	size_t n, kept = 0;
	int r = kfd_devices(t, a, &devices, &n, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		const struct rpc_device *d = &devices[i].rpc;

		if (gpu_id && d->gpu_id != *gpu_id)
			continue;
		r = kfd_watch_check(d->gpu_id, (uint32_t)d->debug_prop, address, size, err);
		if (r < 0)
			return r;
		devices[kept++] = devices[i];
	}
	if (!kept)
		return gpu_id ? watch_error(kfd_of(t), -ENODEV, *gpu_id, err) :
				agent_err_set(err, RPC_ERROR_UNSUPPORTED, ENODEV, set_op, NULL,
					      "the process has no device");
	*ret = devices;
	*ret_n = kept;
	return 0;
}

int kfd_watch_set(struct target *t, const uint32_t *gpu_id, uint64_t address, uint64_t size,
		  enum rpc_watch_mode mode, struct rpc_arena *a, struct rpc_watchpoint **ret,
		  size_t *ret_n, struct agent_err *err)
{
	struct target_kfd *k = kfd_of(t);
	struct target_device *devices = NULL;
	struct rpc_watchpoint *out;
	uint32_t mark;
	size_t n = 0;
	int r = kfd_need_runtime(k, set_op, err);

	if (r < 0)
		return r;
	r = choose_devices(t, gpu_id, address, size, a, &devices, &n, err);
	if (r < 0)
		return r;
	out = rpc_arena_array(a, n, sizeof(*out));
	if (!out)
		return agent_err_no_memory(err, set_op);
	r = trap_on(k, err);
	mark = undo_mark(&t->undo);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = set_one(k, devices[i].rpc.gpu_id, address, size, mode, err);
	if (r < 0) {
		target_undo(t, mark, NULL);
		trap_off_surely(k, NULL);
		return r;
	}
	/* The entries just pushed are the newest n, in this order. */
	for (size_t i = 0; i < n; i++)
		out[i] = k->watches[t->undo.entries[t->undo.n - n + i].arg].w;
	*ret = out;
	*ret_n = n;
	return 0;
}

int kfd_watch_clear(struct target *t, const uint32_t *gpu_id, const uint32_t *id, uint32_t *ret_n,
		    struct agent_err *err)
{
	struct target_kfd *k = kfd_of(t);
	uint32_t cleared = 0;
	int first = 0;

	for (size_t i = 0; i < KFD_WATCHES_MAX; i++) {
		struct kfd_watch *w = &k->watches[i];
		struct agent_err later = { 0 };
		int r;

		if (!w->set || (gpu_id && w->w.gpu_id != *gpu_id) || (id && w->w.id != *id))
			continue;
		r = undo_run_one(&t->undo, w->ticket, first ? &later : err);
		cleared += r == 0;
		if (r < 0 && !first)
			first = r;
	}
	/* An earlier call may have cleared the last watchpoint and not been able to do this. */
	if (first == 0)
		first = trap_off_surely(k, err);
	if (first < 0)
		return first;
	*ret_n = cleared;
	return 0;
}

/* List the watchpoints in the order of their creation, which is that of the undo entries. */
int kfd_watch_list(struct target *t, struct rpc_arena *a, struct rpc_watchpoint **ret,
		   size_t *ret_n, struct agent_err *err)
{
	struct target_kfd *k = kfd_of(t);
	struct rpc_watchpoint *out = rpc_arena_array(a, KFD_WATCHES_MAX, sizeof(*out));
	size_t n = 0;

	if (!out)
		return agent_err_no_memory(err, "watchpoint.list");
	for (size_t i = 0; i < t->undo.n; i++)
		if (t->undo.entries[i].fn == undo_watch)
			out[n++] = k->watches[t->undo.entries[i].arg].w;
	*ret = out;
	*ret_n = n;
	return 0;
}
