/* SPDX-License-Identifier: MIT */
/* Lets a traced thread go, and looks whether a call that somebody else began has ended. */
#include <errno.h>
#include <stdint.h>
#include <time.h>

#include "base/clock.h"
#include "libcudbgshim/src/inferior/inferior.h"

#define STOP_MS 500u

int inferior_set_registers(const struct cudbgshim_tracer *t, pid_t tid, const struct inferior_registers *regs)
{
	return t->set(t->ctx, tid, CUDBGSHIM_PART_REGISTERS, &regs->user, sizeof(regs->user));
}

/* Let a system call go on that only our looking interrupted. */
static void forgive(const struct cudbgshim_tracer *t, const struct inferior_thread *seen)
{
	struct inferior_registers regs = { .is_32bit = false };

	if (inferior_get_registers(t, seen->tid, &regs) == 0 && inferior_forgive_interruption(&regs, seen))
		inferior_set_registers(t, seen->tid, &regs);
}

/* As inferior_let_go(), for a stop that was looked at. */
static bool let_go_from(const struct cudbgshim_tracer *t, const struct inferior_thread *seen, struct cudbgshim_stop s)
{
	if (s.kind == CUDBGSHIM_STOP_NONE)
		return false;
	if (s.kind == CUDBGSHIM_STOP_ASKED || s.kind == CUDBGSHIM_STOP_GROUP)
		forgive(t, seen);
	if (s.kind != CUDBGSHIM_STOP_GONE)
		t->go(t->ctx, seen->tid, CUDBGSHIM_GO_FREE, s.kind == CUDBGSHIM_STOP_SIGNAL ? s.sig : 0);
	return true;
}

bool inferior_let_go(const struct cudbgshim_tracer *t, const struct inferior_thread *seen)
{
	return let_go_from(t, seen, t->look(t->ctx, seen->tid));
}

int cudbgshim_inferior_is_running(const struct cudbgshim_inferior_record *record,
			      const struct cudbgshim_memory *memory,
			      const struct cudbgshim_tracer *t)
{
	uint64_t patience = clock_deadline_ms(STOP_MS), cookie = 0;
	const struct inferior_thread seen = { .tid = record->tid, .nr = -1 };
	struct inferior_registers regs;
	bool is_above = true;
	struct cudbgshim_stop s = { CUDBGSHIM_STOP_NONE, 0 };
	int rc;

	if (!__atomic_load_n(&record->is_active, __ATOMIC_ACQUIRE))
		return 0;
	/* The cookie is overwritten when the thread uses that part of its stack again. */
	if (memory->read(memory->ctx, record->cookie_addr, &cookie, sizeof(cookie)) < 0 ||
	    cookie != record->cookie)
		return 0;
	rc = t->seize(t->ctx, record->tid);
	/* The thread may be ours already: it did not stop when it was asked last. */
	if (rc < 0 && (rc != -EPERM || t->look(t->ctx, record->tid).kind == CUDBGSHIM_STOP_GONE))
		return rc == -ESRCH ? 0 : rc;
	if (rc == 0)
		t->interrupt(t->ctx, record->tid);
	while ((s = t->look(t->ctx, record->tid)).kind == CUDBGSHIM_STOP_NONE && clock_left_ms(patience))
		nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
	if (s.kind == CUDBGSHIM_STOP_NONE)
		return 1; /* The next look, or our exit, lets it go. */
	if (s.kind == CUDBGSHIM_STOP_LOST)
		return -EIO;
	/* A program that was executed meanwhile has nothing of the call. */
	if (s.kind != CUDBGSHIM_STOP_GONE && s.kind != CUDBGSHIM_STOP_EXEC)
		is_above = inferior_get_registers(t, record->tid, &regs) < 0 || inferior_sp(&regs) > record->frame + 8;
	let_go_from(t, &seen, s);
	return !is_above;
}
