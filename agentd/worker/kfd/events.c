/* SPDX-License-Identifier: MIT */
/*
 * Exceptions: announcing them, and forwarding them to the application.
 *
 * There are two ways of listening.  Without `hold` events are consumed: QUERY_DEBUG_EVENT clears
 * what is announced, and the fault is forwarded right away.  With `hold` latched bits stay for the
 * client's own exception.query and exception.info.  Since a latched event hides later sources from
 * the query (kfd_dbg_ev_query_debug_event() in kfd_debug.c), snapshots that clear nothing are then
 * compared with what was announced.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentd/worker/kfd/kfd.h"
#include "base/cleanup.h"
#include "base/vec.h"

#define SEND_AGAIN_MS 20

int kfd_event_drain(struct target *t)
{
	char bytes[256];

	for (;;) {
		ssize_t n = read(t->event_fd, bytes, sizeof(bytes));

		if (n == 0)
			return -EPIPE;
		if (n < 0 && errno != EINTR)
			return errno == EAGAIN ? 0 : -EPIPE;
	}
}

/* ------------------------------------------------------------------ sending ------------------ */

/*
 * The application learns of a fault only by this command, so a refusal is tried again.  After an
 * event whose tries have all failed, the next ones are tried once only: together they may not take
 * longer than one.
 */
static int send_event(struct target_kfd *k, uint64_t exceptions, uint32_t gpu_id, uint32_t queue_id)
{
	for (int i = 1;; i++) {
		int r = kfdtrap_send_runtime_event(k->kt, exceptions, gpu_id, queue_id);

		if (r >= 0 || r == -ESRCH || r == -ENODEV || i == KFD_TRIES || k->send_fails) {
			k->send_fails = r < 0 && r != -ENODEV;
			return r;
		}
		poll(NULL, 0, SEND_AGAIN_MS);
	}
}

/*
 * The journal's entry is struck out only after the fault was sent.  If the worker dies between the
 * two, the fault is sent twice, which the application can live with better than with never: the
 * kernel sets the same bit and the same event once more.
 */
static int send_source(struct target_kfd *k, bool is_queue, uint32_t id, uint64_t exceptions)
{
	int r = send_event(k, exceptions, is_queue ? KFDTRAP_ID_NONE : id, is_queue ? id : KFDTRAP_ID_NONE);

	/* ENODEV: the target has no such device any more, so there is nobody left to tell. */
	if (r >= 0 || r == -ENODEV)
		kfd_journal_erase(k->journal, is_queue, id, exceptions);
	return r;
}

/* ------------------------------------------------------------------ the runtime -------------- */

/* @return 1 if the runtime changed and the target now waits for an answer, 0, negative. */
static int take_runtime_event(struct target_kfd *k, struct agent_err *err)
{
	struct kfdtrap_runtime_info info;
	int r = kfdtrap_query_runtime_info(k->kt, true, &info);

	if (r == -ENODATA)
		return 0;
	if (r < 0)
		return kfd_error(k, r, "KFD QUERY_EXCEPTION_INFO", err);
	k->handshake_open = true;
	kfd_set_runtime(k, &info);
	return 1;
}

int kfd_send_handshake(struct target_kfd *k, struct agent_err *err)
{
	int r = send_event(k, KFD_RUNTIME_MASK, KFDTRAP_ID_NONE, KFDTRAP_ID_NONE);

	return r < 0 ? kfd_give_up(k, r, "KFD SEND_RUNTIME_EVENT", err) : 0;
}

/* Answer exactly once for each event, since the kernel counts; a failed answer is still owed. */
static int send_handshake(struct target_kfd *k, struct agent_err *err)
{
	int r = kfd_send_handshake(k, err);

	k->handshake_open = r < 0;
	return r;
}

int kfd_answer_handshake(struct target_kfd *k, struct agent_err *err)
{
	struct kfdtrap_runtime_info info;
	int r = kfdtrap_query_runtime_info(k->kt, true, &info);

	if (r < 0 && r != -ENODATA)
		kfd_undo_error(k, r, "KFD QUERY_EXCEPTION_INFO", err);
	if (r == 0)
		k->handshake_open = true;
	if (!k->handshake_open || r == -ESRCH)
		return 0;
	return send_handshake(k, err);
}

/* ------------------------------------------------------------------ what is held ------------- */

/* Find the source's entry.  @param add  Make one if there is none.  @return NULL: there is none. */
static struct kfd_held *held_of(struct target_kfd *k, bool is_queue, uint32_t id, bool add)
{
	for (size_t i = 0; i < k->n_held; i++)
		if (k->held[i].is_queue == is_queue && k->held[i].id == id)
			return &k->held[i];
	if (!add || vec_reserve(&k->held, k->n_held, 1, &k->held_capacity, sizeof(*k->held)) < 0)
		return NULL;
	k->held[k->n_held] = (struct kfd_held){ .is_queue = is_queue, .id = id };
	return &k->held[k->n_held++];
}

/*
 * Is the device's exception report that of an earlier memory violation?
 *
 * The kernel hands the report to the runtime when the violation is sent on, and frees it only
 * together with the latched bit (kfd_dbg_send_exception_to_runtime(),
 * kfd_dbg_trap_query_exception_info() in kfd_debug.c).  So the bit is cleared alone.  If it were
 * cleared together with the report before the violation is sent, the application would miss the
 * address; if after, a violation raised meanwhile would be lost.  The next violation of the device
 * therefore seems to have that same report.  It is freed then, and no address is announced.
 */
static bool is_stale(const struct target_kfd *k, uint32_t gpu_id)
{
	for (size_t i = 0; i < k->n_stale; i++)
		if (k->stale[i] == gpu_id)
			return true;
	return false;
}

void kfd_set_stale(struct target_kfd *k, uint32_t gpu_id, bool stale)
{
	size_t kept = 0;

	for (size_t i = 0; i < k->n_stale; i++)
		if (k->stale[i] != gpu_id)
			k->stale[kept++] = k->stale[i];
	k->n_stale = kept;
	if (stale && kept < KFD_GPUS_MAX)
		k->stale[k->n_stale++] = gpu_id;
}

int kfd_send(struct target_kfd *k, bool is_queue, uint32_t id, uint64_t exceptions)
{
	struct kfd_held *h;
	int r;

	exceptions &= is_queue ? KFD_FORWARD_QUEUE : KFD_FORWARD_DEVICE;
	if (!exceptions)
		return 0;
	r = send_source(k, is_queue, id, exceptions);
	if (r == -ENODEV)
		return 0;
	h = held_of(k, is_queue, id, r < 0);
	if (h)
		h->held = r < 0 ? h->held | exceptions : h->held & ~exceptions;
	return r;
}

/* Only subscribed bits are withheld: the others have reached the runtime already. */
static uint64_t withheld(const struct target_kfd *k, bool is_queue, uint64_t exceptions)
{
	return exceptions & k->subscribed & (is_queue ? KFD_FORWARD_QUEUE : KFD_FORWARD_DEVICE);
}

/*
 * Note the latched bits of a source that a snapshot shows.
 * @param lost  Gets bits for which there was no memory.
 * @return the bits that were not announced yet.
 */
static uint64_t note_latched(struct target_kfd *k, uint64_t mask, bool is_queue, uint32_t id,
			     uint64_t latched, uint64_t *lost)
{
	uint64_t fresh = latched & mask;
	struct kfd_held *h = held_of(k, is_queue, id, fresh != 0);

	if (!h) {
		*lost |= fresh;
		return 0;
	}
	/* A bit that the client has cleared may be announced again. */
	h->reported &= latched;
	fresh &= ~h->reported;
	h->reported |= fresh;
	h->held |= fresh;
	kfd_journal_append(k->journal, is_queue, id,
			   fresh & (is_queue ? KFD_FORWARD_QUEUE : KFD_FORWARD_DEVICE));
	return fresh;
}

/* One pass over all sources by snapshots. */
struct scan {
	uint64_t mask, clear; /**< The bits looked for; the bits that the snapshots clear. */
	bool only_first; /**< Note nothing after the first source with news. */
	bool found;
	struct target_source source;
};

static void scan_source(struct target_kfd *k, struct scan *s, bool is_queue, uint32_t queue_id,
			uint32_t gpu_id, uint64_t latched)
{
	uint64_t lost = 0, fresh;

	if (s->found && s->only_first)
		return;
	if (!is_queue && latched & s->clear & KFD_VIOLATION_MASK)
		kfd_set_stale(k, gpu_id, true);
	fresh = note_latched(k, s->mask, is_queue, is_queue ? queue_id : gpu_id, latched, &lost);
	/* Without memory to note the fault, the application gets it now rather than never. */
	if (lost)
		kfd_send(k, is_queue, is_queue ? queue_id : gpu_id, lost);
	if (!fresh || s->found)
		return;
	s->found = true;
	s->source = (struct target_source){ .exceptions = latched,
					    .has_gpu = true,
					    .gpu_id = gpu_id,
					    .has_queue = is_queue,
					    .queue_id = queue_id };
}

/* Scan the queues, then the devices, each with one snapshot.  @return 0 or -errno. */
static int scan_latched(struct target_kfd *k, struct scan *s)
{
	auto_free struct kfdtrap_queue *queues = NULL;
	auto_free struct kfdtrap_device *devices = NULL;
	size_t n_queues, n_devices;
	int r = kfdtrap_queue_snapshot_alloc(k->kt, s->clear & KFDTRAP_EC_MASK_QUEUE, &queues,
					     &n_queues);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n_queues; i++)
		scan_source(k, s, true, queues[i].queue_id, queues[i].gpu_id, queues[i].exceptions);
	r = kfdtrap_device_snapshot_alloc(k->kt, s->clear & KFDTRAP_EC_MASK_DEVICE, &devices,
					  &n_devices);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n_devices; i++)
		scan_source(k, s, false, 0, devices[i].gpu_id, devices[i].exceptions);
	return 0;
}

/* ------------------------------------------------------------------ events ------------------- */

/* Add the address of a memory violation, unless the exception report is an earlier one's. */
static void add_fault_address(struct target_kfd *k, uint32_t gpu_id, struct target_event *e)
{
	struct kfdtrap_memory_violation v;

	if (is_stale(k, gpu_id) || kfdtrap_query_memory_violation(k->kt, gpu_id, false, &v) != 1)
		return;
	e->has_address = true;
	e->address = v.va;
	e->has_access = true;
	e->not_present = v.not_present != 0;
	e->read_only = v.read_only != 0;
	e->no_execute = v.no_execute != 0;
}

static int next_held(struct target_kfd *k, struct target_event *ret, struct agent_err *err)
{
	struct scan s = { .mask = k->subscribed, .only_first = true };
	int r = scan_latched(k, &s);

	if (r < 0)
		return kfd_error(k, r, "KFD GET_QUEUE_SNAPSHOT", err);
	if (!s.found)
		return 0;
	*ret = (struct target_event){ .kind = TARGET_EVENT_EXCEPTION, .source = s.source };
	ret->held = withheld(k, s.source.has_queue, s.source.exceptions) != 0;
	if (s.source.exceptions & KFD_VIOLATION_MASK)
		add_fault_address(k, s.source.gpu_id, ret);
	return 1;
}

static void source_of(const struct kfdtrap_event *e, struct target_source *ret)
{
	enum kfdtrap_source source = kfdtrap_exceptions_source(e->exceptions);

	*ret = (struct target_source){ .exceptions = e->exceptions,
				       .has_gpu = source == KFDTRAP_SOURCE_QUEUE ||
						  source == KFDTRAP_SOURCE_DEVICE,
				       .has_queue = source == KFDTRAP_SOURCE_QUEUE,
				       .gpu_id = e->gpu_id,
				       .queue_id = e->queue_id };
}

static void note_withheld(struct target_kfd *k, const struct kfdtrap_event *e)
{
	bool is_queue = kfdtrap_exceptions_source(e->exceptions) == KFDTRAP_SOURCE_QUEUE;

	kfd_journal_append(k->journal, is_queue, is_queue ? e->queue_id : e->gpu_id,
			   withheld(k, is_queue, e->exceptions));
}

/*
 * Free the exception report of an earlier violation, and clear the bit of the new one with it.
 * @return 1: @p e is taken, without an address; -errno.
 */
static int take_stale(struct target_kfd *k, struct kfdtrap_event *e)
{
	struct kfdtrap_memory_violation v;
	int r = kfdtrap_query_memory_violation(k->kt, e->gpu_id, true, &v);

	kfd_set_stale(k, e->gpu_id, false);
	e->exceptions = KFD_VIOLATION_MASK;
	return r < 0 ? r : 1;
}

/*
 * Take the next event: look at it, write it into the journal, then clear it.  The look comes first,
 * because a cleared event is lost if the worker dies.  The second query may answer with another
 * source; the one seen before is then still latched, and comes later.
 * @param event  Gets what is known of a memory violation.
 */
static int take_event(struct target_kfd *k, uint64_t clear, struct kfdtrap_event *ret,
		      struct target_event *event)
{
	uint32_t seen;
	int r = kfdtrap_query_debug_event(k->kt, 0, ret);

	if (r != 1)
		return r;
	seen = ret->gpu_id;
	note_withheld(k, ret);
	if (ret->exceptions & clear & KFD_VIOLATION_MASK) {
		if (is_stale(k, ret->gpu_id))
			return take_stale(k, ret);
		add_fault_address(k, ret->gpu_id, event);
	}
	r = kfdtrap_query_debug_event(k->kt, clear, ret);
	if (r != 1)
		return r;
	note_withheld(k, ret);
	if (ret->exceptions & clear & KFD_VIOLATION_MASK)
		kfd_set_stale(k, ret->gpu_id, true);
	if (!(ret->exceptions & clear & KFD_VIOLATION_MASK) || ret->gpu_id != seen)
		*event = (struct target_event){ .kind = TARGET_EVENT_EXCEPTION };
	return 1;
}

static int next_consumed(struct target_kfd *k, struct target_event *ret, struct agent_err *err)
{
	/*
	 * The runtime's event is cleared when its info is read; clearing it here would destroy
	 * that.
	 */
	uint64_t clear = k->subscribed & ~KFD_RUNTIME_MASK;
	struct kfdtrap_event e;
	int r;

	*ret = (struct target_event){ .kind = TARGET_EVENT_EXCEPTION };
	r = take_event(k, clear, &e, ret);
	if (r < 0)
		return kfd_error(k, r, "KFD QUERY_DEBUG_EVENT", err);
	/* A wake-up without event is normal (debug_event_write_work_handler(), kfd_debug.c). */
	if (r == 0)
		return 0;
	if (e.exceptions & KFD_RUNTIME_MASK) {
		*ret = (struct target_event){ .kind = TARGET_EVENT_RUNTIME };
		return take_runtime_event(k, err);
	}
	source_of(&e, &ret->source);
	ret->withheld = withheld(k, ret->source.has_queue, e.exceptions);
	ret->forwarded = ret->withheld != 0;
	return 1;
}

static int next(struct target_kfd *k, struct target_event *ret, struct agent_err *err)
{
	int r;

	if (!k->hold)
		return next_consumed(k, ret, err);
	r = take_runtime_event(k, err);
	if (r == 1)
		*ret = (struct target_event){ .kind = TARGET_EVENT_RUNTIME };
	return r ? r : next_held(k, ret, err);
}

/* A failure is tried again: no other wake-up comes for the event, and the target waits for it. */
int kfd_event_next(struct target *t, struct target_event *ret, struct agent_err *err)
{
	struct target_kfd *k = kfd_of(t);
	int r = next(k, ret, err);

	for (int i = 1; i < KFD_TRIES && r < 0 && !t->ended; i++) {
		poll(NULL, 0, SEND_AGAIN_MS);
		r = next(k, ret, err);
	}
	if (r < 0)
		kfd_give_up(k, r, NULL, err);
	return r;
}

int kfd_event_done(struct target *t, const struct target_event *e, struct agent_err *err)
{
	struct target_kfd *k = kfd_of(t);
	int r;

	if (e->kind == TARGET_EVENT_RUNTIME)
		return k->handshake_open ? send_handshake(k, err) : 0;
	r = kfd_send(k, e->source.has_queue,
		     e->source.has_queue ? e->source.queue_id : e->source.gpu_id, e->withheld);
	return r < 0 ? kfd_give_up(k, r, "KFD SEND_RUNTIME_EVENT", err) : 0;
}

/* ------------------------------------------------------------------ subscription ------------- */

/* Send all that is withheld.  Sources stay known, so that another try sends only what failed. */
static int send_held(struct target_kfd *k)
{
	int first = 0;

	for (size_t i = 0; i < k->n_held; i++) {
		int r = kfd_send(k, k->held[i].is_queue, k->held[i].id, k->held[i].held);

		if (first == 0)
			first = r;
	}
	return first;
}

/*
 * Leave only @p keep subscribed.  First, new faults of other kinds go their normal way again; then
 * those that are latched or withheld are sent on, so that no fault is left of which the application
 * never learns.  The first scan notes what is latched already, before the second one clears it.
 *
 * The kernel latches a fault also when it tells the application itself (kfd_dbg_ev_raise() in
 * kfd_debug.c).  So the second scan cannot tell a fault that was raised just before the kinds were
 * narrowed, which is owed, from one raised just after.  It is sent on: twice does little harm.
 */
static int narrow(struct target_kfd *k, uint64_t keep)
{
	uint64_t gone = k->subscribed & ~keep;
	struct scan before = { .mask = gone }, s = { .mask = gone, .clear = gone };
	int first = scan_latched(k, &before), r;

	r = kfdtrap_set_exceptions_enabled(k->kt, keep | KFD_RUNTIME_MASK);
	if (first == 0)
		first = r;
	r = scan_latched(k, &s);
	if (first == 0)
		first = r;
	r = send_held(k);
	if (first == 0)
		first = r;
	if (first < 0)
		return first;
	k->n_held = 0;
	k->subscribed = keep;
	return 0;
}

static int enable(struct target_kfd *k, uint64_t exceptions, struct agent_err *err)
{
	const uint64_t more = exceptions & ~k->subscribed & (KFD_FORWARD_QUEUE | KFD_FORWARD_DEVICE);
	const char *op = "KFD SET_EXCEPTIONS_ENABLED";
	int r;

	if (more)
		r = kfd_subscribe_afresh(k, exceptions | KFD_RUNTIME_MASK, more, &op);
	else
		r = kfdtrap_set_exceptions_enabled(k->kt, exceptions | KFD_RUNTIME_MASK);
	if (r < 0)
		return kfd_error(k, r, op, err);
	k->subscribed = exceptions;
	return 0;
}

static int undo_subscribe(void *ctx, uint64_t arg, struct agent_err *err)
{
	static const char op[] = "KFD SEND_RUNTIME_EVENT";
	struct target_kfd *k = ctx;
	int r = 0;

	(void)arg;
	/* Each try does what the one before could not. */
	for (int i = 0; i < KFD_TRIES; i++) {
		r = kfd_undo_error(k, narrow(k, 0), op, err);
		if (r == 0)
			break;
	}
	k->subscribed = 0;
	k->hold = false;
	k->subscribe_ticket = UNDO_NONE;
	return r < 0 ? kfd_give_up(k, r, op, err) : 0;
}

/* Change a subscription so that no exception is missed that was subscribed to and still is. */
static int change(struct target_kfd *k, uint64_t exceptions, struct agent_err *err)
{
	int r = k->subscribed & ~exceptions ? narrow(k, k->subscribed & exceptions) : 0;

	if (r < 0)
		return kfd_error(k, r, "KFD SET_EXCEPTIONS_ENABLED", err);
	return enable(k, exceptions, err);
}

/*
 * Only a change from one subscription without `hold` to another is seamless.  Any other one ends
 * the old subscription first, which forwards what it withholds.
 */
int kfd_subscribe(struct target *t, uint64_t exceptions, bool hold, struct agent_err *err)
{
	struct target_kfd *k = kfd_of(t);
	int r;

	exceptions &= ~KFD_RUNTIME_MASK;
	if (exceptions && k->subscribed && !hold && !k->hold)
		return change(k, exceptions, err);
	r = undo_run_one(&t->undo, k->subscribe_ticket, err);
	if (r < 0 || !exceptions)
		return r;
	r = undo_push(&t->undo, "end the subscription", undo_subscribe, k, 0, &k->subscribe_ticket,
		      err);
	if (r < 0)
		return r;
	/* Others may listen when the writer leaves: between two subscriptions they would miss a fault. */
	undo_keep(&t->undo, k->subscribe_ticket);
	k->hold = hold;
	if (!k->journal)
		k->journal = kfd_journal_open();
	if (k->journal) {
		k->journal->start_ticks = t->start_ticks;
		k->journal->program = k->program;
	}
	r = enable(k, exceptions, err);
	if (r == 0)
		return 0;
	undo_drop(&t->undo, k->subscribe_ticket);
	k->subscribe_ticket = UNDO_NONE;
	k->hold = false;
	return r;
}

/* ------------------------------------------------------------------ by hand ------------------ */

int kfd_query(struct target *t, uint64_t clear, struct target_source *ret, struct agent_err *err)
{
	struct target_kfd *k = kfd_of(t);
	struct kfdtrap_event e;
	/* The worker answers the handshake: a client that clears it would hang the target. */
	int r = kfdtrap_query_debug_event(k->kt, clear & ~KFD_RUNTIME_MASK, &e);

	if (r < 0)
		return kfd_error(k, r, "KFD QUERY_DEBUG_EVENT", err);
	if (r != 1)
		return r;
	if (e.exceptions & clear & KFD_VIOLATION_MASK)
		kfd_set_stale(k, e.gpu_id, true);
	source_of(&e, ret);
	return 1;
}

static int violation_info(struct target_kfd *k, uint32_t gpu_id, bool clear,
			  struct target_exception_info *ret)
{
	struct kfdtrap_memory_violation v;
	int r = kfdtrap_query_memory_violation(k->kt, gpu_id, clear, &v);

	if (r == 1)
		*ret = (struct target_exception_info){ .latched = true,
						       .details = true,
						       .not_present = v.not_present != 0,
						       .read_only = v.read_only != 0,
						       .no_execute = v.no_execute != 0,
						       .address = v.va };
	if (r >= 0 && clear)
		kfd_set_stale(k, gpu_id, false);
	return r < 0 ? r : 0;
}

int kfd_info(struct target *t, enum rpc_exception code, uint32_t source_id, bool clear,
	     struct target_exception_info *ret, struct agent_err *err)
{
	static const char op[] = "KFD QUERY_EXCEPTION_INFO";
	struct target_kfd *k = kfd_of(t);
	struct kfdtrap_runtime_info runtime;
	int r;

	*ret = (struct target_exception_info){ .latched = true };
	if (code == RPC_EXCEPTION_PROCESS_RUNTIME)
		r = kfdtrap_query_runtime_info(k->kt, false, &runtime);
	else if (code == RPC_EXCEPTION_DEVICE_MEMORY_VIOLATION)
		r = violation_info(k, source_id, clear, ret);
	else
		r = kfdtrap_query_exception_info(k->kt, (uint32_t)code, source_id, clear, NULL, 0,
						 NULL);
	if (code == RPC_EXCEPTION_PROCESS_RUNTIME)
		ret->details = r == 0;
	if (r == -ENODATA) {
		*ret = (struct target_exception_info){ 0 };
		return 0;
	}
	if (r == -EINVAL) {
		kfd_error(k, r, op, err);
		if (k->t.ended)
			return -ESRCH;
		return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, EINVAL, op,
				     "gpu.queues and gpu.devices list them",
				     "params.source_id: the process has no queue or device %u",
				     source_id);
	}
	return r < 0 ? kfd_error(k, r, op, err) : 0;
}

int kfd_forward(struct target *t, const struct target_source *what, struct agent_err *err)
{
	static const char op[] = "KFD SEND_RUNTIME_EVENT";
	struct target_kfd *k = kfd_of(t);
	uint64_t queue_bits = what->exceptions & KFDTRAP_EC_MASK_QUEUE;
	uint64_t device_bits = what->exceptions & KFDTRAP_EC_MASK_DEVICE;
	bool is_queue = queue_bits != 0;
	struct kfd_held *h;
	uint32_t id;
	int r;

	if (what->exceptions & KFDTRAP_EC_MASK_PROCESS)
		return agent_err_set(
			err, RPC_ERROR_INVALID_PARAMS, EINVAL, op, NULL,
			"params.exceptions: the agent itself answers process exceptions");
	if ((queue_bits && device_bits) || !(queue_bits | device_bits))
		return agent_err_set(
			err, RPC_ERROR_INVALID_PARAMS, EINVAL, op, NULL,
			"params.exceptions: name those of one queue, or of one device");
	if (is_queue ? !what->has_queue : !what->has_gpu)
		return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, EINVAL, op, NULL,
				     "params.%s: missing", is_queue ? "queue_id" : "gpu_id");
	id = is_queue ? what->queue_id : what->gpu_id;
	r = send_source(k, is_queue, id, what->exceptions);
	if (r == -ENODEV)
		return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, ENODEV, op,
				     "gpu.devices lists them",
				     "params.gpu_id: the process has no device %u", id);
	if (r < 0)
		return kfd_error(k, r, op, err);
	h = held_of(k, is_queue, id, false);
	if (h)
		h->held &= ~what->exceptions;
	return 0;
}
