/* SPDX-License-Identifier: MIT */
/* Lets a traced thread go, and looks whether a call that somebody else began has ended. */
#include <errno.h>
#include <stdint.h>
#include <time.h>

#include "base/clock.h"
#include "inferior.h"

#define STOP_MS 500u

int inferior_get_registers(const struct cudbgshim_tracer *t, pid_t tid, struct user_regs_struct *ret)
{
	size_t size = sizeof(*ret);

	return t->get(t->ctx, tid, CUDBGSHIM_PART_REGISTERS, ret, &size);
}

int inferior_set_registers(const struct cudbgshim_tracer *t, pid_t tid,
			   const struct user_regs_struct *regs)
{
	return t->set(t->ctx, tid, CUDBGSHIM_PART_REGISTERS, regs, sizeof(*regs));
}

/* Let a system call go on that only our looking interrupted. */
static void forgive(const struct cudbgshim_tracer *t, pid_t tid)
{
	struct user_regs_struct regs = { 0 }, before;

	if (inferior_get_registers(t, tid, &regs) < 0)
		return;
	before = regs;
	inferior_forgive_interruption(&regs);
	if (regs.rax != before.rax)
		inferior_set_registers(t, tid, &regs);
}

/* As inferior_let_go(), for a stop that was looked at. */
static bool let_go_from(const struct cudbgshim_tracer *t, pid_t tid, struct cudbgshim_stop s)
{
	if (s.kind == CUDBGSHIM_STOP_NONE)
		return false;
	if (s.kind == CUDBGSHIM_STOP_ASKED || s.kind == CUDBGSHIM_STOP_GROUP)
		forgive(t, tid);
	if (s.kind != CUDBGSHIM_STOP_GONE)
		t->go(t->ctx, tid, CUDBGSHIM_GO_FREE, s.kind == CUDBGSHIM_STOP_SIGNAL ? s.sig : 0);
	return true;
}

bool inferior_let_go(const struct cudbgshim_tracer *t, pid_t tid)
{
	return let_go_from(t, tid, t->look(t->ctx, tid));
}

int cudbgshim_inferior_is_running(const struct cudbgshim_inferior_record *record,
			      const struct cudbgshim_memory *memory,
			      const struct cudbgshim_tracer *t)
{
	uint64_t patience = clock_deadline_ms(STOP_MS), cookie = 0;
	struct user_regs_struct regs = { .rsp = UINT64_MAX };
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
		inferior_get_registers(t, record->tid, &regs);
	let_go_from(t, record->tid, s);
	return regs.rsp <= record->frame + 8;
}
