/* SPDX-License-Identifier: MIT */
/* A rescue worker: it gives a target what a session worker that died owed it. */
#include <errno.h>
#include <string.h>

#include "agentd/worker/kfd/kfd.h"
#include "agentd/worker/process/facts.h"
#include "base/log.h"

/* @return of how many sources faults were sent, or the first error after all were tried. */
static int send_all(struct target_kfd *k, struct kfd_journal *l)
{
	int first = 0, n = 0;

	for (size_t i = 0; i < KFD_JOURNAL_ENTRIES; i++) {
		const struct kfd_journal_entry e = l->entries[i];
		int r = e.exceptions ? kfd_send(k, e.is_queue, e.id, e.exceptions) : 0;

		if (r < 0 && first == 0)
			first = r;
		n += e.exceptions && r == 0;
	}
	return first < 0 ? first : n;
}

/*
 * A thread that still waited when this worker attached has got its answer (answer_left()).  If a
 * signal ended the wait before, the answer is still owed: the kernel takes the program's next call
 * under a debugger for the one that was interrupted, raises no event for it, and lets it wait
 * (is_runtime_retry in kfd_chardev.c).  That call then finds the answer that is sent here.
 */
static int send_answer(struct target_kfd *k, struct kfd_journal *l, struct agent_err *err)
{
	int r = l->answer && !k->n_left ? kfd_send_handshake(k, err) : 0;

	if (r == 0)
		kfd_journal_answered(l);
	return r;
}

static int send_owed(struct target_kfd *k, struct kfd_journal *l, struct agent_err *err)
{
	int answer = send_answer(k, l, err), r = l->magic ? send_all(k, l) : 0;

	return answer < 0 ? answer : r;
}

/*
 * Another program that the process has executed since knows nothing of what was owed, and may have rights
 * that its predecessor had not.
 */
static bool is_replaced(const struct kfd_journal *l, uint64_t program)
{
	return l->program && program && l->program != program;
}

/* Which program it is may be hidden for a moment, for want of memory: it is asked again later. */
static bool is_unknown(const struct kfd_journal *l, uint64_t program)
{
	return l->program && !program;
}

/* @param l  Closed in any case. */
static int attach_and_send(const struct worker_options *o, struct kfd_journal *l,
			   struct agent_err *err)
{
	struct target *t;
	uint64_t start;
	uint64_t program = target_read_program(o->pid);
	bool look; /* Not used: the monitor, which started this worker, looks in any case. */
	int r = process_facts_start(o->pid, &start);

	if (r == 0 && !l->start_ticks)
		l->start_ticks = start;
	/* Another process that has the pid now must not even be attached to. */
	if (r == -ENOENT || (r == 0 && start != l->start_ticks))
		r = -ESRCH;
	if (r == 0 && is_unknown(l, program))
		r = -EAGAIN;
	if (r == 0 && is_replaced(l, program)) {
		log_info("process %d: the program was replaced; nothing of ours is in it", (int)o->pid);
		r = -ESRCH;
	}
	if (r == 0)
		r = target_attach(o, &t, &look, err);
	if (r < 0) {
		kfd_journal_close(l);
		return r;
	}
	kfd_of(t)->journal = l;
	program = kfd_of(t)->program;
	if (t->start_ticks != l->start_ticks || is_replaced(l, program))
		r = -ESRCH;
	else
		r = is_unknown(l, program) ? -EAGAIN : send_owed(kfd_of(t), l, err);
	undo_run(&t->undo, 0, err);
	target_destroy(t);
	return r;
}

int kfd_rescue(const struct worker_options *o)
{
	struct kfd_journal *l = kfd_journal_open();
	struct agent_err err = { 0 };
	int r;

	if (!l || (l->magic ? l->magic != KFD_JOURNAL_MAGIC : !l->answer)) {
		kfd_journal_close(l);
		return TARGET_NOT_MINE;
	}
	r = attach_and_send(o, l, &err);
	if (r < 0 && r != -ESRCH)
		log_warning("process %d: what the dead worker owed it is not given yet: %s",
			    (int)o->pid, err.message[0] ? err.message : strerror(-r));
	else if (r > 0)
		log_info(
			"process %d: sent on what the dead worker held of %d queue(s) or device(s)",
			(int)o->pid, r);
	return r < 0 && r != -ESRCH ? r : 0;
}
