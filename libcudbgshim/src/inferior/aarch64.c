/* SPDX-License-Identifier: MIT */
/*
 * Registers, system calls and signal frames of aarch64.  The frame's layout is the kernel's:
 * arch/arm64/kernel/signal.c, struct rt_sigframe; arch/arm64/include/uapi/asm/sigcontext.h.
 *
 * When a thread stops because a tracer asked it to, the kernel has prepared the repetition of its system call
 * already (do_signal()): the program counter is at the call, x0 is its first argument again, and the number is
 * forgotten.  So what a thread waits for is known only from before it was asked to stop.
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "libcudbgshim/src/inferior/inferior.h"
#include "libcudbgshim/src/inferior/vectors_aarch64.h"

#define CALL_SIZE 4u /* The instruction svc. */
#define X_ARGUMENT 0
#define X_CALL	   8
#define X_PHASE	   7 /* In stops at system calls the kernel shows 0 at the entry here, and 1 at the exit. */
#define X_LINK	   30
/* PSTATE: a jump has to land where one may (BTYPE), one instruction at a time (SS). */
#define PSTATE_BTYPE UINT64_C(0xc00)
#define PSTATE_SS    (UINT64_C(1) << 21)

int inferior_get_registers(const struct cudbgshim_tracer *t, pid_t tid, struct inferior_registers *ret)
{
	size_t size = sizeof(ret->user), pointer = sizeof(ret->thread_pointer);
	int r = t->get(t->ctx, tid, CUDBGSHIM_PART_REGISTERS, &ret->user, &size);

	/* A thread that runs 32-bit code has fewer registers. */
	ret->is_32bit = r == 0 && size != sizeof(ret->user);
	ret->thread_pointer = 0;
	if (r < 0 || ret->is_32bit)
		return r;
	return t->get(t->ctx, tid, CUDBGSHIM_PART_THREAD_POINTER, &ret->thread_pointer, &pointer);
}

uint64_t inferior_pc(const struct inferior_registers *regs)
{
	return regs->user.pc;
}

uint64_t inferior_sp(const struct inferior_registers *regs)
{
	return regs->user.sp;
}

/* ------------------------------------------------------------------ system calls ------------- */

long inferior_newer_call(long nr)
{
	return nr;
}

bool inferior_stop_tells_call(void)
{
	return false;
}

bool inferior_has_own_limit(const struct inferior_thread *t)
{
	return false; /* Of poll(2) there is only ppoll(2), which writes back what is left. */
}

/* It stands where the kernel left it: at the call that it is to make again. */
static bool is_repeating(const struct inferior_registers *regs, const struct inferior_thread *seen)
{
	return seen->nr >= 0 && regs->user.sp == seen->sp && regs->user.pc == seen->pc - CALL_SIZE &&
	       regs->user.regs[X_CALL] == (uint64_t)seen->nr;
}

static bool has_returned(const struct inferior_registers *regs, const struct inferior_thread *seen)
{
	return seen->nr >= 0 && regs->user.sp == seen->sp && regs->user.pc == seen->pc &&
	       regs->user.regs[X_CALL] == (uint64_t)seen->nr;
}

bool inferior_is_in_call(const struct inferior_registers *regs, const struct inferior_thread *seen)
{
	return is_repeating(regs, seen) || has_returned(regs, seen);
}

bool inferior_forgive_interruption(struct inferior_registers *regs, const struct inferior_thread *seen)
{
	if (!has_returned(regs, seen) || (int64_t)regs->user.regs[X_ARGUMENT] != -EINTR ||
	    !inferior_is_interrupted_by_a_look(seen->nr))
		return false;
	/* The other arguments are where they were, or it is not the call that was seen. */
	for (size_t i = 1; i < ARRAY_SIZE(seen->args); i++)
		if (regs->user.regs[i] != seen->args[i])
			return false;
	regs->user.regs[X_ARGUMENT] = seen->args[0];
	regs->user.pc -= CALL_SIZE;
	return true;
}

/* Those that the kernel continues with restart_syscall(2). */
static bool has_memory(const struct inferior_thread *seen)
{
	switch (seen->nr) {
	case SYS_nanosleep:
		return true;
	case SYS_clock_nanosleep:
		return !(seen->args[1] & 1); /* TIMER_ABSTIME */
	case SYS_futex:
		return (seen->args[1] & 0x7f) == 0 && seen->args[3]; /* FUTEX_WAIT, with a limit */
	default:
		return false;
	}
}

void inferior_resume_waiting(struct inferior_registers *regs, const struct inferior_thread *seen, bool forgotten)
{
	if (!forgotten && is_repeating(regs, seen) && has_memory(seen))
		regs->user.regs[X_CALL] = SYS_restart_syscall;
}

/* The kernel took the number from x8 already. */
int inferior_skip_call(const struct cudbgshim_tracer *t, pid_t tid)
{
	const int none = -1;

	return t->set(t->ctx, tid, CUDBGSHIM_PART_CALL, &none, sizeof(none));
}

long inferior_call_at_stop(const struct inferior_registers *regs)
{
	return (long)regs->user.regs[X_CALL];
}

bool inferior_is_returning(const struct inferior_registers *regs, const struct inferior_frame *frame)
{
	return regs->user.regs[X_CALL] == SYS_rt_sigreturn && !regs->user.regs[X_PHASE] && regs->user.sp == frame->addr;
}

/* ------------------------------------------------------------------ the function ------------- */

void inferior_enter(struct inferior_registers *regs, uint64_t function, uint64_t argument,
		    const struct inferior_frame *frame, uint64_t restorer)
{
	regs->user.regs[X_ARGUMENT] = argument;
	regs->user.regs[X_LINK] = restorer;
	regs->user.sp = frame->addr;
	regs->user.pc = function;
	regs->user.pstate &= ~(PSTATE_BTYPE | PSTATE_SS);
}

void inferior_leave(struct inferior_registers *regs, const struct inferior_frame *frame, uint64_t restorer)
{
	regs->user.sp = frame->addr;
	regs->user.pc = restorer;
	regs->user.pstate &= ~(PSTATE_BTYPE | PSTATE_SS);
}

/* ------------------------------------------------------------------ vector state ------------- */

/*
 * Of a vector of so many bytes: the registers z, p (an eighth) and ffr.  The words fpsr and fpcr follow at a
 * multiple of 16 (SVE_PT_SVE_FPSR_OFFSET), but not in a signal frame.
 */
static size_t sve_bytes(uint16_t length)
{
	return (size_t)length * 32 + (size_t)length / 8 * 17;
}

static size_t status_at(const struct vectors_head *head)
{
	return sizeof(*head) + ((head->flags & VECTORS_SVE) ? (sve_bytes(head->length) + 15) & ~(size_t)15 :
							      offsetof(struct vectors_fpsimd, fpsr));
}

/* @return whether the bytes hold what their head says. */
static bool is_whole(const struct vectors_head *head, size_t size)
{
	return size >= sizeof(*head) && head->length % 16 == 0 && head->length <= 256 &&
	       (!(head->flags & VECTORS_SVE) || head->length) && status_at(head) + 8 <= size;
}

void inferior_clean_vectors(uint8_t *xstate, size_t size)
{
	struct vectors_head head;

	memcpy(&head, xstate, sizeof(head));
	if (is_whole(&head, size))
		memset(xstate + status_at(&head), 0, 8);
}

/* ------------------------------------------------------------------ the frame ---------------- */

/*
 * This is no mode of sigaltstack(): it is refused, which rt_sigreturn ignores, so the thread's
 * alternate stack stays as it is.
 */
#define SS_NO_MODE 64
#define RECORDS_SIZE 4096u

struct sigframe {
	uint8_t siginfo[128];
	uint64_t flags, link;
	struct {
		uint64_t sp;
		int32_t flags, pad;
		uint64_t size;
	} stack;
	uint64_t mask;
	uint8_t unused[128]; /* And what aligns the rest. */
	uint64_t fault, regs[31], sp, pc, pstate, pad;
	uint8_t records[RECORDS_SIZE];
};
_Static_assert(offsetof(struct sigframe, regs) == 312, "struct rt_sigframe");
_Static_assert(offsetof(struct sigframe, records) == 592, "struct rt_sigframe");
_Static_assert(sizeof(struct sigframe) == 4688, "struct rt_sigframe");

#define MAGIC_FPSIMD UINT32_C(0x46508001)
#define MAGIC_SVE    UINT32_C(0x53564501)

struct record {
	uint32_t magic, size;
};

/* Rt_sigreturn kills a thread whose frame has no such record. */
static void put_fpsimd(const struct inferior_saved *s, const struct vectors_head *head, uint8_t *to)
{
	const struct record r = { MAGIC_FPSIMD, sizeof(r) + 8 + 32 * 16 };
	const uint8_t *from = s->xstate + sizeof(*head);
	const size_t step = (head->flags & VECTORS_SVE) ? head->length : 16;

	memcpy(to, &r, sizeof(r));
	memcpy(to + sizeof(r), s->xstate + status_at(head), 8);
	/* The registers v are the lower parts of those of SVE. */
	for (size_t i = 0; i < 32; i++)
		memcpy(to + sizeof(r) + 8 + 16 * i, from + step * i, 16);
}

static int put_sve(const struct inferior_saved *s, const struct vectors_head *head, uint8_t *to, size_t room)
{
	const size_t size = sve_bytes(head->length);
	const struct record r = { MAGIC_SVE, (uint32_t)((16 + size + 15) & ~(size_t)15) };

	/* A longer one is put behind the frame, which no processor of today needs. */
	if (r.size + sizeof(r) > room)
		return -EBADMSG;
	memcpy(to, &r, sizeof(r));
	memcpy(to + sizeof(r), &head->length, sizeof(head->length));
	memcpy(to + 16, s->xstate + sizeof(*head), size);
	return 0;
}

int inferior_frame_build(const struct inferior_saved *saved, uint64_t restorer, uint64_t cookie,
			 uint64_t low, struct inferior_frame *ret_frame)
{
	const struct user_regs_struct *r = &saved->regs.user;
	const size_t fpsimd = sizeof(struct record) + 8 + 32 * 16;
	struct sigframe f = { .stack.flags = SS_NO_MODE, .mask = saved->mask, .sp = r->sp, .pc = r->pc,
			      .pstate = r->pstate };
	struct vectors_head head;
	int rc = 0;

	memcpy(&head, saved->xstate, sizeof(head));
	if (!is_whole(&head, saved->xstate_size))
		return -EBADMSG;
	if (r->sp < low || r->sp - low < sizeof(f) + 128)
		return -ENOSPC;
	memcpy(f.siginfo, &cookie, sizeof(cookie));
	memcpy(f.regs, r->regs, sizeof(f.regs));
	put_fpsimd(saved, &head, f.records);
	if (head.flags & VECTORS_SVE)
		rc = put_sve(saved, &head, f.records + fpsimd, RECORDS_SIZE - fpsimd);
	memset(ret_frame, 0, sizeof(*ret_frame));
	ret_frame->addr = (r->sp - sizeof(f)) & ~UINT64_C(15);
	ret_frame->cookie_addr = ret_frame->addr + offsetof(struct sigframe, siginfo);
	ret_frame->size = sizeof(f);
	memcpy(ret_frame->bytes, &f, sizeof(f));
	return rc;
}

/* mov x8, #139; svc #0: __kernel_rt_sigreturn of the vDSO, which every process has. */
static const uint8_t vdso[] = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4 };
const struct inferior_code inferior_restorers[] = { { vdso, sizeof(vdso) } };
const size_t inferior_n_restorers = ARRAY_SIZE(inferior_restorers);
