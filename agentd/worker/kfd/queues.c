/* SPDX-License-Identifier: MIT */
/* Devices and queues from the kernel's snapshots; suspend and resume for clients with a lease. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agentd/worker/kfd/kfd.h"
#include "agentd/worker/snapshot/convert.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"

static int too_many(struct agent_err *err, const char *op)
{
	return agent_err_set(err, RPC_ERROR_FAILED, E2BIG, op, NULL, "at most %u queues at once",
			     KFDTRAP_QUEUES_MAX);
}

uint64_t kfd_snapshot_clear(const struct target_kfd *k)
{
	return KFD_NEW_MASK & ~k->subscribed;
}

/* @param known  The device has a name already that is better than the kernel's. */
static void fill_from_node(struct rpc_device *d, struct rpc_arena *a,
			   const struct kfdtrap_node *node, bool known)
{
	uint64_t bytes = node->vram_bytes ? node->vram_bytes : node->local_bytes;

	d->node = node->node_id;
	if (node->marketing_name[0])
		d->name = rpc_arena_strdup(a, node->marketing_name);
	/* The name "ip discovery" only says how the driver found the parts of the device. */
	else if (!known && node->name[0] && strcmp(node->name, "ip discovery"))
		d->name = rpc_arena_strdup(a, node->name);
	d->pci = rpc_arena_printf(a, "%04x:%02x:%02x.%x", node->pci.domain, node->pci.bus,
				  node->pci.device, node->pci.function);
	d->render_node = node->render_node[0] ? rpc_arena_strdup(a, node->render_node) : NULL;
	d->has_memory_bytes = bytes != 0;
	d->memory_bytes = bytes;
}

/* The members that the schema has for AMD devices only.  Without a topology the node is 0. */
static void fill_kfd_facts(struct rpc_device *d, const struct kfdtrap_device *s)
{
	d->has_node = d->has_gfx_target_version = d->has_fw_version = true;
	d->has_simd_count = d->has_max_waves_per_simd = true;
	d->has_lds_base = d->has_lds_limit = d->has_scratch_base = d->has_scratch_limit = true;
	d->has_gpuvm_base = d->has_gpuvm_limit = d->has_capability = d->has_debug_prop = true;
	d->gfx_target_version = s->gfx_target_version;
	d->fw_version = s->fw_version;
	d->simd_count = s->simd_count;
	d->max_waves_per_simd = s->max_waves_per_simd;
	d->lds_base = s->lds_base;
	d->lds_limit = s->lds_limit;
	d->scratch_base = s->scratch_base;
	d->scratch_limit = s->scratch_limit;
	d->gpuvm_base = s->gpuvm_base;
	d->gpuvm_limit = s->gpuvm_limit;
	d->capability = s->capability;
	d->debug_prop = s->debug_prop;
	d->has_capability2 = s->has_capability2;
	d->capability2 = s->capability2;
}

void kfd_fill_device(struct target_device *ret, struct rpc_arena *a, const struct kfdtrap_device *s,
		     const struct kfdtrap_topology *topology)
{
	const struct kfdtrap_node *node =
		topology ? kfdtrap_topology_find_gpu(topology, s->gpu_id) : NULL;
	uint32_t need = KFDTRAP_CAP_DEBUG | KFDTRAP_CAP_DEBUG_FIRMWARE;
	struct rpc_device *d = &ret->rpc;
	const char *name;
	char arch[16];

	kfdtrap_gfx_name(s->gfx_target_version, arch, sizeof(arch));
	*ret = (struct target_device){
		.no_topology = !node || node->error,
		.shader_engines = s->simd_arrays_per_engine ?
					  s->array_count / s->simd_arrays_per_engine : 0,
	};
	*d = (struct rpc_device){
		.gpu_id = s->gpu_id,
		.arch = rpc_arena_strdup(a, arch),
		.pci = rpc_arena_printf(a, "0000:%02x:%02x.%x", s->location_id >> 8 & 0xff,
					s->location_id >> 3 & 0x1f, s->location_id & 7),
		.vendor_id = s->vendor_id,
		.has_device_id = true,
		.device_id = s->device_id,
		.has_revision_id = true,
		.revision_id = s->revision_id,
		.units = s->num_xcc,
		.max_waves = s->simd_count * s->max_waves_per_simd,
		.debuggable = (s->capability & need) == need,
	};
	name = kfd_marketing_name(a, s->device_id, s->revision_id);
	d->name = name ? name : d->arch;
	if (s->capability & KFDTRAP_CAP_WATCH_POINTS)
		d->watchpoints = UINT32_C(1)
				 << ((s->capability & KFDTRAP_CAP_WATCH_COUNT_LOG2_MASK) >>
				     KFDTRAP_CAP_WATCH_COUNT_SHIFT);
	d->exceptions = convert_exceptions(a, s->exceptions, &d->n_exceptions);
	fill_kfd_facts(d, s);
	if (!ret->no_topology)
		fill_from_node(d, a, node, name != NULL);
}

int kfd_devices(struct target *t, struct rpc_arena *a, struct target_device **ret, size_t *ret_n,
		struct agent_err *err)
{
	struct target_kfd *k = kfd_of(t);
	auto_free struct kfdtrap_device *snapshot = NULL;
	struct target_device *devices;
	size_t n;
	int r = kfdtrap_device_snapshot_alloc(k->kt, 0, &snapshot, &n);

	if (r < 0)
		return kfd_error(k, r, "KFD GET_DEVICE_SNAPSHOT", err);
	devices = rpc_arena_array(a, n, sizeof(*devices));
	if (!devices)
		return agent_err_no_memory(err, "gpu.devices");
	for (size_t i = 0; i < n; i++)
		kfd_fill_device(&devices[i], a, &snapshot[i], k->topology);
	if (rpc_arena_error(a) < 0)
		return agent_err_no_memory(err, "gpu.devices");
	*ret = devices;
	*ret_n = n;
	return 0;
}

/* @return the queue's position in k->suspended; t.n_suspended if it is not suspended. */
static size_t find_suspended(const struct target_kfd *k, uint32_t id)
{
	size_t i = 0;

	while (i < k->t.n_suspended && k->suspended[i] != id)
		i++;
	return i;
}

void kfd_fill_queue(struct target_kfd *k, struct rpc_arena *a, struct rpc_queue *q,
		    const struct kfdtrap_queue *s)
{
	*q = (struct rpc_queue){
		.queue_id = s->queue_id,
		.gpu_id = s->gpu_id,
		.type = s->type <= KFDTRAP_QUEUE_TYPE_SDMA_XGMI ? (enum rpc_queue_type)s->type :
								  RPC_QUEUE_TYPE_UNKNOWN,
		.has_ring_base = true,
		.ring_base = s->ring_base_address,
		.has_ring_bytes = true,
		.ring_bytes = s->ring_size,
		.has_read_pointer = true,
		.read_pointer = s->read_pointer_address,
		.has_write_pointer = true,
		.write_pointer = s->write_pointer_address,
		.has_save_area = true,
		.save_area = s->ctx_save_restore_address,
		.has_save_area_bytes = true,
		.save_area_bytes = s->ctx_save_restore_area_size,
		.suspended = find_suspended(k, s->queue_id) < k->t.n_suspended,
	};
	q->exceptions = convert_exceptions(a, s->exceptions, &q->n_exceptions);
	q->has_read_index = memory_read_exact(&k->t.memory, q->read_pointer, &q->read_index,
					      sizeof(q->read_index)) == 0;
	q->has_write_index = memory_read_exact(&k->t.memory, q->write_pointer, &q->write_index,
					       sizeof(q->write_index)) == 0;
}

int kfd_queues(struct target *t, struct rpc_arena *a, struct rpc_queue **ret, size_t *ret_n,
	       struct agent_err *err)
{
	struct target_kfd *k = kfd_of(t);
	auto_free struct kfdtrap_queue *snapshot = NULL;
	struct rpc_queue *queues;
	size_t n;
	int r = kfdtrap_queue_snapshot_alloc(k->kt, kfd_snapshot_clear(k), &snapshot, &n);

	if (r < 0)
		return kfd_error(k, r, "KFD GET_QUEUE_SNAPSHOT", err);
	queues = rpc_arena_array(a, n, sizeof(*queues));
	if (!queues)
		return agent_err_no_memory(err, "gpu.queues");
	for (size_t i = 0; i < n; i++)
		kfd_fill_queue(k, a, &queues[i], &snapshot[i]);
	if (rpc_arena_error(a) < 0)
		return agent_err_no_memory(err, "gpu.queues");
	*ret = queues;
	*ret_n = n;
	return 0;
}

/* ------------------------------------------------------------------ suspend, resume ---------- */

static void note_suspended(struct target_kfd *k, uint32_t id, bool failed)
{
	size_t i = find_suspended(k, id);

	/* There is room: ids are unique among live queues, and a process has at most 1024. */
	if (i == k->t.n_suspended && i < KFDTRAP_QUEUES_MAX) {
		k->suspended[k->t.n_suspended++] = id;
		k->suspend_failed[i] = false;
	}
	/*
	 * A failure is never taken back: a second SUSPEND of the queue answers success although
	 * nothing happens (suspend_queues()).
	 */
	if (i < KFDTRAP_QUEUES_MAX)
		k->suspend_failed[i] |= failed;
}

bool kfd_is_off(const struct target_kfd *k, uint32_t queue_id)
{
	size_t i = find_suspended(k, queue_id);

	return i < k->t.n_suspended && !k->suspend_failed[i];
}

static void note_resumed(struct target_kfd *k, uint32_t id)
{
	size_t i = find_suspended(k, id);

	if (i < k->t.n_suspended) {
		k->suspended[i] = k->suspended[--k->t.n_suspended];
		k->suspend_failed[i] = k->suspend_failed[k->t.n_suspended];
	}
	if (!k->t.n_suspended) {
		undo_drop(&k->t.undo, k->suspend_ticket);
		k->suspend_ticket = UNDO_NONE;
	}
}

static bool is_listed(const struct kfdtrap_queue *queues, size_t n, uint32_t id)
{
	size_t i = 0;

	while (i < n && queues[i].queue_id != id)
		i++;
	return i < n;
}

/*
 * Correct the verdicts of a resume.  A queue that the answer marks is gone, or the kernel did not
 * reach it; a snapshot tells which.  If the answer counts more or fewer queues than it names, none
 * of it is believed.
 */
static void judge_answer(struct target_kfd *k, uint32_t *ids, size_t n, uint32_t counted)
{
	auto_free struct kfdtrap_queue *queues = NULL;
	size_t n_queues = 0, named = 0;
	bool known;

	for (size_t i = 0; i < n; i++)
		named += !(ids[i] & KFDTRAP_QUEUE_VERDICT_MASK);
	if (named == n && counted == n)
		return;
	known = kfdtrap_queue_snapshot_alloc(k->kt, 0, &queues, &n_queues) == 0;
	for (size_t i = 0; i < n; i++) {
		uint32_t id = ids[i] & ~KFDTRAP_QUEUE_VERDICT_MASK;

		if (known && !is_listed(queues, n_queues, id))
			ids[i] = id | KFDTRAP_QUEUE_GONE;
		else if (counted != named || ids[i] != id)
			ids[i] = id | KFDTRAP_QUEUE_HW_FAILED;
	}
}

int kfd_let_run(struct target_kfd *k, uint32_t *ids, size_t n, struct agent_err *err)
{
	static const char op[] = "KFD RESUME_QUEUES";
	uint32_t counted = 0;
	int r;

	for (size_t i = 0; i < n; i++)
		ids[i] &= ~KFDTRAP_QUEUE_VERDICT_MASK;
	r = n ? kfdtrap_resume_queues(k->kt, ids, n, &counted) : 0;
	if (r < 0) {
		r = kfd_undo_error(k, r, op, err);
		for (size_t i = 0; r < 0 && i < n; i++)
			ids[i] |= KFDTRAP_QUEUE_HW_FAILED;
		return r;
	}
	judge_answer(k, ids, n, counted);
	for (size_t i = 0; i < n; i++)
		if (ids[i] & KFDTRAP_QUEUE_HW_FAILED)
			return agent_err_set(err, RPC_ERROR_FAILED, EIO, op,
					     "the GPU may hang: look at the kernel log",
					     "queue %u could not be resumed",
					     ids[i] & ~KFDTRAP_QUEUE_VERDICT_MASK);
	return 0;
}

/* Try once.  Queues that run afterwards do not count as suspended any more. */
static int resume_mine(struct target_kfd *k, uint32_t *ids, size_t n, struct agent_err *err)
{
	int r = kfd_let_run(k, ids, n, err);

	for (size_t i = 0; i < n; i++)
		if (!(ids[i] & KFDTRAP_QUEUE_HW_FAILED))
			note_resumed(k, ids[i] & ~KFDTRAP_QUEUE_VERDICT_MASK);
	return r;
}

static int undo_suspend(void *ctx, uint64_t arg, struct agent_err *err)
{
	struct target_kfd *k = ctx;
	uint32_t ids[KFDTRAP_QUEUES_MAX];
	size_t n = k->t.n_suspended;
	int r;

	(void)arg;
	memcpy(ids, k->suspended, n * sizeof(*ids));
	r = resume_mine(k, ids, n, err);
	if (r == 0)
		k->suspend_ticket = UNDO_NONE;
	return r;
}

static enum rpc_queue_verdict verdict_of(uint32_t id, enum rpc_queue_verdict success)
{
	if (id & KFDTRAP_QUEUE_HW_FAILED)
		return RPC_QUEUE_VERDICT_FAILED;
	return id & KFDTRAP_QUEUE_GONE ? RPC_QUEUE_VERDICT_SKIPPED : success;
}

static struct rpc_queue_result *results_of(struct rpc_arena *a, const uint32_t *ids, size_t n,
					   enum rpc_queue_verdict success)
{
	struct rpc_queue_result *results = rpc_arena_array(a, n, sizeof(*results));

	for (size_t i = 0; results && i < n; i++)
		results[i] = (struct rpc_queue_result){
			.queue_id = ids[i] & ~KFDTRAP_QUEUE_VERDICT_MASK,
			.verdict = verdict_of(ids[i], success)
		};
	return results;
}

/*
 * Choose the ids to suspend, in the arena.  The snapshot comes first: the kernel refuses to suspend
 * a new queue, and a snapshot makes new queues old.
 */
static int choose_queues(struct target_kfd *k, const uint32_t *wanted, size_t n_wanted,
			 struct rpc_arena *a, uint32_t **ret, size_t *ret_n, struct agent_err *err)
{
	auto_free struct kfdtrap_queue *queues = NULL;
	uint32_t *ids;
	size_t n;
	int r = kfdtrap_queue_snapshot_alloc(k->kt, KFD_NEW_MASK, &queues, &n);

	if (r < 0)
		return kfd_error(k, r, "KFD GET_QUEUE_SNAPSHOT", err);
	if (wanted)
		n = n_wanted;
	if (n > KFDTRAP_QUEUES_MAX)
		return too_many(err, "gpu.suspend");
	ids = rpc_arena_array(a, n, sizeof(*ids));
	if (!ids)
		return agent_err_no_memory(err, "gpu.suspend");
	for (size_t i = 0; i < n; i++)
		ids[i] = wanted ? wanted[i] : queues[i].queue_id;
	*ret = ids;
	*ret_n = n;
	return 0;
}

/* An id with a verdict bit in it cannot exist; the kernel would misread it as another one. */
static bool ids_are_sane(const uint32_t *ids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (ids[i] & KFDTRAP_QUEUE_VERDICT_MASK)
			return false;
	return true;
}

static int bad_id(struct agent_err *err)
{
	return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, EINVAL, NULL, NULL,
			     "params.queues: a queue id is too large");
}

/* Let the queues run; if that fails, end the session, so that the kernel lets them run. */
static int resume_surely(struct target_kfd *k, uint32_t *ids, size_t n, struct agent_err *err)
{
	unsigned tries = 0;
	int r;

	do
		r = resume_mine(k, ids, n, err);
	while (r < 0 && undo_again(&tries));
	return r < 0 ? target_undo_failed(&k->t, r) : 0;
}

static bool is_among(const uint32_t *ids, size_t n, uint32_t id)
{
	size_t i = 0;

	while (i < n && ids[i] != id)
		i++;
	return i < n;
}

/*
 * Undo a suspend that failed, since some queues may have stopped before it failed.  Queues that an
 * earlier call suspended stay suspended.
 */
static void take_back(struct target_kfd *k, uint32_t *ids, size_t n)
{
	size_t n_new = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t id = ids[i] & ~KFDTRAP_QUEUE_VERDICT_MASK;

		if (find_suspended(k, id) == k->t.n_suspended && !is_among(ids, n_new, id))
			ids[n_new++] = id;
	}
	resume_surely(k, ids, n_new, NULL);
}

int kfd_suspend(struct target *t, const uint32_t *ids, size_t n, uint32_t grace,
		struct rpc_arena *a, struct rpc_queue_result **ret, size_t *ret_n,
		struct agent_err *err)
{
	static const char op[] = "KFD SUSPEND_QUEUES";
	struct target_kfd *k = kfd_of(t);
	struct rpc_queue_result *results;
	uint32_t *chosen = NULL;
	int r = kfd_need_runtime(k, op, err);

	if (r < 0)
		return r;
	if (!ids_are_sane(ids, ids ? n : 0))
		return bad_id(err);
	r = choose_queues(k, ids, n, a, &chosen, &n, err);
	if (r < 0)
		return r;
	if (!k->suspend_ticket) {
		r = undo_push(&t->undo, "resume queues", undo_suspend, k, 0, &k->suspend_ticket,
			      err);
		if (r < 0)
			return r;
	}
	/* The time counts from before the command, which may take long. */
	if (!t->n_suspended)
		t->suspended_since_ns = clock_now_ns();
	r = kfdtrap_suspend_queues(k->kt, 0, chosen, n, grace, NULL);
	/* For the kernel a queue whose preemption failed counts as suspended (suspend_queues()). */
	for (size_t i = 0; r == 0 && i < n; i++)
		if (!(chosen[i] & KFDTRAP_QUEUE_GONE) || chosen[i] & KFDTRAP_QUEUE_HW_FAILED)
			note_suspended(k, chosen[i] & ~KFDTRAP_QUEUE_VERDICT_MASK,
				       chosen[i] & KFDTRAP_QUEUE_HW_FAILED);
	if (r < 0)
		kfd_hw_error(k, r, op, err);
	if (r < 0 && !t->ended)
		take_back(k, chosen, n);
	if (!t->n_suspended) {
		undo_drop(&t->undo, k->suspend_ticket);
		k->suspend_ticket = UNDO_NONE;
	}
	if (r < 0)
		return r;
	results = results_of(a, chosen, n, RPC_QUEUE_VERDICT_SUSPENDED);
	if (!results)
		return agent_err_no_memory(err, "gpu.suspend");
	*ret = results;
	*ret_n = n;
	return 0;
}

size_t kfd_suspended(const struct target *t, uint32_t *ids, size_t max)
{
	const struct target_kfd *k = (const struct target_kfd *)t;
	size_t n = t->n_suspended < max ? t->n_suspended : max;

	memcpy(ids, k->suspended, n * sizeof(*ids));
	return n;
}

/* Choose each queue once, and only queues that this session has suspended.  @return how many. */
static size_t choose_mine(const struct target_kfd *k, const uint32_t *ids, size_t n, uint32_t *mine)
{
	bool taken[KFDTRAP_QUEUES_MAX] = { false };
	size_t n_mine = 0;

	for (size_t i = 0; i < n; i++) {
		size_t at = find_suspended(k, ids[i]);

		if (at == k->t.n_suspended || taken[at])
			continue;
		taken[at] = true;
		mine[n_mine++] = ids[i];
	}
	return n_mine;
}

int kfd_resume(struct target *t, const uint32_t *ids, size_t n, struct rpc_arena *a,
	       struct rpc_queue_result **ret, size_t *ret_n, struct agent_err *err)
{
	struct target_kfd *k = kfd_of(t);
	struct rpc_queue_result *results;
	uint32_t mine[KFDTRAP_QUEUES_MAX], *all;
	size_t n_mine;
	int r;

	if (!ids_are_sane(ids, ids ? n : 0))
		return bad_id(err);
	if (!ids)
		n = t->n_suspended;
	if (n > KFDTRAP_QUEUES_MAX)
		return too_many(err, "gpu.resume");
	all = rpc_arena_array(a, n, sizeof(*all));
	if (!all)
		return agent_err_no_memory(err, "gpu.resume");
	memcpy(all, ids ? ids : k->suspended, n * sizeof(*all));
	n_mine = choose_mine(k, all, n, mine);
	r = resume_surely(k, mine, n_mine, err);
	if (r < 0)
		return r;
	for (size_t i = 0, m = 0; i < n; i++) {
		if (m < n_mine && all[i] == (mine[m] & ~KFDTRAP_QUEUE_VERDICT_MASK))
			all[i] = mine[m++];
		else
			all[i] |= KFDTRAP_QUEUE_GONE;
	}
	results = results_of(a, all, n, RPC_QUEUE_VERDICT_RESUMED);
	if (!results)
		return agent_err_no_memory(err, "gpu.resume");
	*ret = results;
	*ret_n = n;
	return 0;
}
