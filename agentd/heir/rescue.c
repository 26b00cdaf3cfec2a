/* SPDX-License-Identifier: MIT */
#include "agentd/heir/rescue.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/child.h"
#include "agentd/heir/release.h"
#include "agentd/ipc/child.h"
#include "agentd/privileges.h"
#include "agentd/ipc/undo_record.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

#define RESCUE_MS	    10000
#define RESCUE_SECONDS_MAX  20
/* It gives up first, and then puts back what it can; this is for one that hangs. */
#define RESCUE_WAIT_MS	    15000
/* A thread that waits is given its answer, or stopped, within a second. */
#define RESCUE_ANSWER_MS    150
#define RESCUE_DEATH_MS	    1000
/* A thread may be on its way in while the rescuer is on its way out. */
#define RESCUES_MAX	    16
#define RESCUE_PAUSE_MS	    50
#define RESCUE_PAUSE_MS_MAX 3200

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

/*
 * In the child: what the worker wrote into the target, or owes it, is put right by another one.  It works for
 * the agent itself: that the dead worker was allowed there is enough.
 */
static _Noreturn void exec_worker(const struct rescue_host *h, const struct orphan *o)
{
	static const int to[] = { IPC_FD_TARGET, IPC_FD_UNDO };
	const int from[] = { o->pidfd, o->undo_fd };
	char pid[12], session[12], timeout[12], uid[12];
	const char *const argv[] = { h->worker, "--kind", "rescue", "--pid", pid, "--session", session,
				     "--timeout-ms", timeout, "--peer-uid", uid, "--peer-gid", "0", "--admin",
				     "--kfd", h->kfd_device, "--kfd-sysfs", h->kfd_sysfs,
				     "--cuda-library", h->cuda_library, h->verbose ? "--verbose" : NULL, NULL };

	alarm(RESCUE_SECONDS_MAX);
	snprintf(pid, sizeof(pid), "%d", (int)o->target);
	snprintf(session, sizeof(session), "%u", o->session);
	snprintf(timeout, sizeof(timeout), "%u", RESCUE_MS);
	snprintf(uid, sizeof(uid), "%u", o->owner);
	child_place_fds(from, to, ARRAY_SIZE(to));
	/* SIGTERM waits until the worker can undo what it does. */
	child_exec(h->worker, argv, SIGTERM);
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
	/* What is written down already does not wait for more than one look. */
	int looks = owed ? 1 : o->ended ? RELEASE_LOOKS_ENDED : RELEASE_LOOKS;

	privileges_raise();
	keep_only(o->pidfd, o->undo_fd);
	alarm(RESCUE_LIFE_S);
	for (int i = 0; i < RESCUES_MAX && done; i++, owed = false, looks = RELEASE_LOOKS) {
		waits = owes_answer(h, o, looks);
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
	_exit(IPC_EXIT_OWED);
}
