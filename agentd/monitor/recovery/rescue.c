/* SPDX-License-Identifier: MIT */
#include "agentd/monitor/recovery/rescue.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/child.h"
#include "agentd/monitor/recovery/release.h"
#include "agentd/monitor/recovery/undo_record.h"
#include "agentd/privileges.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"

#define RESCUE_MS	    10000
#define RESCUE_SECONDS_MAX  20
/* It gives up first, and then puts back what it can; this is for one that hangs. */
#define RESCUE_WAIT_MS	    15000
/* A thread that waits is given its answer, or stopped, within a second. */
#define RESCUE_ANSWER_MS    150
#define RESCUE_DEATH_MS	    1000
/* A thread may be on its way in while the rescuer is on its way out. */
#define RESCUES_MAX	    16
#define EXIT_OWED	    1
#define RESCUE_PAUSE_MS	    50
#define RESCUE_PAUSE_MS_MAX 3200

struct rescue {
	struct rescue *next;
	pid_t pid, target;
	int undo_fd;
	char record[UNDO_RECORD_NAME_MAX];
};

/* The frontend and workers must see the end of our sockets when we die, even while this child lives. */
static void keep_only(int a, int b /* or -1 */)
{
	int low = b < 0 || a < b ? a : b, high = a < b ? b : a;

	if (low > STDERR_FILENO + 1)
		close_range(STDERR_FILENO + 1, (unsigned)low - 1, 0);
	if (high > low + 1)
		close_range((unsigned)low + 1, (unsigned)high - 1, 0);
	close_range((unsigned)high + 1, ~0u, 0);
}

/* In the child: what the worker wrote into the target, or owes it, is put right by another one. */
static _Noreturn void exec_worker(const struct rescue_host *h, const struct orphan *o)
{
	alarm(RESCUE_SECONDS_MAX);
	h->exec(h->ctx, o, RESCUE_MS);
	_exit(127);
}

/* @return whether that is done. */
static bool run_worker(const struct rescue_host *h, const struct orphan *o, int ms)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0)
		exec_worker(h, o);
	if (pid < 0)
		return false;
	if (child_wait(pid, clock_deadline_ms((uint64_t)ms), &status) == 0)
		return WIFEXITED(status) && WEXITSTATUS(status) == 0;
	/* It traces the target: who waits there could not be stopped. */
	kill(pid, SIGKILL);
	child_wait(pid, clock_deadline_ms(RESCUE_DEATH_MS), &status);
	return false;
}

/*
 * Whether anybody waits neither the dead worker nor a rescuer may see of every process; we do.  The answer is
 * noted before anything else can end the wait.
 * @param looks  As for release_look().
 */
static bool owes_answer(const struct rescue_host *h, const struct orphan *o, int looks)
{
	int n = release_look(o->target, o->pidfd, looks), r;

	if (n < 0)
		log_warning("process %d: whether it waits for a debugger cannot be seen: %s",
			    (int)o->target, strerror(-n));
	r = n > 0 ? undo_record_owe_answer(h->records, o->target, o->undo_fd) : 0;
	if (r < 0)
		log_warning("process %d: that it waits cannot be written down: %s",
			    (int)o->target, strerror(-r));
	return n > 0;
}

static void stop_who_waits(const struct orphan *o)
{
	int n = release_stop(o->target, o->pidfd);

	if (n > 0)
		log_info("process %d: stopped %d thread(s) waiting for an answer that nobody gives",
			 (int)o->target, n);
}

_Noreturn void rescue_run(const struct rescue_host *h, const struct orphan *o)
{
	bool owed = undo_record_owes(o->undo_fd), waits = false, done = true;

	privileges_raise();
	keep_only(o->pidfd, o->undo_fd);
	alarm(RESCUE_LIFE_S);
	for (int i = 0; i < RESCUES_MAX && done; i++, owed = false) {
		/* What is written down already does not wait for more than one look. */
		waits = owes_answer(h, o, owed ? 1 : RELEASE_LOOKS);
		if (!waits && !owed)
			break;
		/*
		 * What was not written down a rescuer does not know of; where a worker hung, most of
		 * the time is over.
		 */
		done = undo_record_owes(o->undo_fd) && (!waits || !o->stuck) &&
		       run_worker(h, o, waits ? RESCUE_ANSWER_MS : RESCUE_WAIT_MS);
	}
	if (waits && !done)
		stop_who_waits(o);
	for (int ms = RESCUE_PAUSE_MS; !done && undo_record_owes(o->undo_fd) && ms <= RESCUE_PAUSE_MS_MAX;
	     ms *= 2) {
		poll(NULL, 0, ms);
		done = run_worker(h, o, RESCUE_WAIT_MS);
	}
	if (done || !undo_record_owes(o->undo_fd))
		_exit(0);
	log_error("process %d: what its dead worker owed it could not be given: it misses a fault, or waits at its next RUNTIME_ENABLE under a debugger",
		  (int)o->target);
	_exit(EXIT_OWED);
}

/* ------------------------------------------------------------------ children ----------------- */

int rescues_start(struct rescues *r, const struct rescue_host *h, struct orphan *o, const char *record)
{
	struct rescue *added = malloc(sizeof(*added));
	pid_t pid = added ? fork() : -1;

	if (pid == 0)
		rescue_run(h, o);
	if (pid < 0) {
		int e = -errno;

		free(added);
		return e;
	}
	*added = (struct rescue){ .next = r->first, .pid = pid, .target = o->target,
				  .undo_fd = TAKE_FD(o->undo_fd) };
	str_copy(added->record, sizeof(added->record), record);
	r->first = added;
	return 0;
}

bool rescues_owe(const struct rescues *r, pid_t target)
{
	for (const struct rescue *i = r->first; i; i = i->next)
		if (i->target == target && undo_record_owes(i->undo_fd))
			return true;
	return false;
}

static void free_rescue(const struct rescue_host *h, struct rescue *i)
{
	undo_record_remove(h->records, i->record);
	if (i->undo_fd >= 0)
		close(i->undo_fd);
	free(i);
}

bool rescues_reaped(struct rescues *r, const struct rescue_host *h, pid_t pid, int wait_status)
{
	struct rescue **link = &r->first, *found;
	bool owed;

	while (*link && (*link)->pid != pid)
		link = &(*link)->next;
	found = *link;
	if (!found)
		return false;
	*link = found->next;
	owed = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) == EXIT_OWED
				      : undo_record_owes(found->undo_fd);
	free_rescue(h, found);
	return owed;
}

void rescues_deinit(struct rescues *r, const struct rescue_host *h)
{
	while (r->first) {
		struct rescue *i = r->first;

		r->first = i->next;
		/* Its child may be killed with us: the next start finds what is owed then. */
		if (undo_record_owes(i->undo_fd))
			i->record[0] = '\0';
		free_rescue(h, i);
	}
}
