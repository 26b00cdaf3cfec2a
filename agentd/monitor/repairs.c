/* SPDX-License-Identifier: MIT */
#include "agentd/monitor/repairs.h"

#include <errno.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agentd/access.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

/* To attach, with the patience of a driver that is busy; the guard kills it after that, if it hangs. */
#define REPAIR_MS 10000
/* While an earlier agent's heir is at work. */
#define AGAIN_MS  1000

static void tell_failed(pid_t target, const char *why)
{
	log_warning("the GPU of process %d is left stopped%s: attach to it, which lets it run, or end the process",
		    (int)target, why);
}

static int start(struct workers *w, struct rescue_left *left)
{
	/* It works for the agent itself: that the dead worker was allowed there is enough. */
	const struct ipc_identity client = { .uid = left->owner, .gid = 0, .admin = true };
	const struct ipc_start start = { .kind = IPC_KIND_REPAIR, .pid = (uint32_t)left->target,
					 .timeout_ms = REPAIR_MS };
	struct worker *k;
	int channel = -1, r;

	r = workers_start_with(w, &start, &client, &left->pidfd, &left->undo_fd, left->record, &k, &channel);
	if (r == 0)
		close(channel);
	return r;
}

void repairs_after(struct workers *w, struct rescue_left *take_left)
{
	auto_close int pidfd = -1, undo = -1;
	int r;

	if (!take_left->target)
		return;
	if (!access_is_alive(take_left->pidfd))
		undo_record_remove(w->setup.records, take_left->record);
	else if (take_left->is_repair)
		tell_failed(take_left->target, ", and letting it run has failed");
	else if (w->are_left)
		tell_failed(take_left->target, " until the next start of the agent");
	else if ((r = start(w, take_left)) < 0)
		tell_failed(take_left->target, strerror(-r));
	pidfd = take_left->pidfd;
	undo = take_left->undo_fd;
}

/* Heirs lock the directory for as long as they rescue. */
static bool is_heir_at_work(const char *records)
{
	auto_close int dir = undo_record_directory(records);

	return dir >= 0 && flock(dir, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

/*
 * What an heir leaves while it is looked for is there when it has ended.
 * @param own  What this agent itself has left is tried no second time; 0: there is nothing of it yet.
 */
static void look(struct workers *w, pid_t own)
{
	const bool again = is_heir_at_work(w->setup.records);
	pid_t target = 0;

	while ((target = undo_record_next_suspended(w->setup.records, target, own)) > 0) {
		struct rescue_left left = { .target = target };

		if (workers_find_target(w, target) || repairs_has(w, target) || rescues_owe(&w->rescues, target) ||
		    undo_record_reuse(w->setup.records, target, left.record, &left.undo_fd) < 0)
			continue;
		left.pidfd = (int)syscall(SYS_pidfd_open, target, 0);
		repairs_after(w, &left);
	}
	w->repairs_at = again ? clock_deadline_ms(AGAIN_MS) : 0;
}

void repairs_begin(struct workers *w)
{
	look(w, 0);
}

uint64_t repairs_deadline(struct workers *w)
{
	if (w->repairs_at && w->repairs_at <= clock_now_ns())
		look(w, getpid());
	return w->repairs_at;
}

void repairs_ended(const struct worker *k)
{
	if (undo_record_is_suspended(k->undo_fd))
		tell_failed(k->target, ", and letting it run has failed");
}

bool repairs_has(const struct workers *w, pid_t target)
{
	for (const struct worker *k = w->first; k; k = k->next)
		if (k->kind == IPC_KIND_REPAIR && k->target == target)
			return true;
	return false;
}
