/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "agentd/worker/target_kfd.h"
#include "base/log.h"

/* @return faults sent, or the first error after trying all. */
static int send_all(struct target_kfd *k, struct kfd_ledger *l)
{
	int first = 0, n = 0;

	for (size_t i = 0; i < KFD_LEDGER_ENTRIES; i++) {
		const struct kfd_ledger_entry e = l->entries[i];
		int r = e.exceptions ? kfd_send(k, e.is_queue, e.id, e.exceptions) : 0;

		if (r < 0 && first == 0)
			first = r;
		n += e.exceptions && r == 0;
	}
	return first < 0 ? first : n;
}

static bool is_ours(void)
{
	struct kfd_ledger *l = kfd_ledger_open();
	bool ours = l && l->magic == KFD_LEDGER_MAGIC;

	kfd_ledger_close(l);
	return ours;
}

int kfd_rescue(const struct worker_options *o)
{
	struct agent_err err = { 0 };
	struct target *t;
	int r;

	if (!is_ours())
		return TARGET_NOT_MINE;
	r = target_attach(o, &t, &err);
	if (r == 0) {
		kfd_of(t)->ledger = kfd_ledger_open();
		r = kfd_of(t)->ledger ? send_all(kfd_of(t), kfd_of(t)->ledger) : -ENOMEM;
		undo_run(&t->undo, 0, &err);
		target_destroy(t);
	}
	if (r < 0 && r != -ESRCH)
		log_warning("process %d: faults that the dead worker held are lost: %s", (int)o->pid,
			    err.message[0] ? err.message : strerror(-r));
	else if (r > 0)
		log_info("process %d: sent on what the dead worker held of %d queue(s) or device(s)",
			 (int)o->pid, r);
	return r < 0 && r != -ESRCH ? r : 0;
}
