/* SPDX-License-Identifier: MIT */
/*
 * Registers, system calls and signal frames of x86-64.  The frame's layout is the kernel's:
 * arch/x86/kernel/signal_64.c and fpu/signal.c, struct rt_sigframe, struct _fpx_sw_bytes.
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "libcudbgshim/src/inferior/x86_64.h"

#define RED_ZONE 128u
#define SEGMENT_64 0x33
#define EFLAGS_DF_TF_RF 0x10500ull

/*
 * The kernel's own numbers for "restart me" (include/linux/errno.h); no header of user space has
 * them.
 */
#define ERESTARTSYS	      512
#define ERESTARTNOINTR	      513
#define ERESTARTNOHAND	      514
#define ERESTART_RESTARTBLOCK 516

struct sigframe_context {
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15, di, si, bp, bx, dx, ax, cx, sp, ip, flags;
	uint16_t cs, gs, fs, ss;
	uint64_t err, trapno, oldmask, cr2, fpstate, reserved[8];
};

struct sigframe {
	uint64_t return_to;
	struct {
		uint64_t flags, link;
		struct {
			uint64_t sp;
			int32_t flags, pad;
			uint64_t size;
		} stack;
		struct sigframe_context context;
		uint64_t mask;
	} uc;
	uint8_t siginfo[128];
};
_Static_assert(sizeof(struct sigframe_context) == 256, "struct sigcontext_64");
_Static_assert(offsetof(struct sigframe, uc.mask) == 8 + 296, "struct ucontext");
_Static_assert(sizeof(struct sigframe) == 440, "struct rt_sigframe");

#define UC_FP_XSTATE	     UINT64_C(1)
#define UC_SIGCONTEXT_SS     UINT64_C(2)
#define UC_STRICT_RESTORE_SS UINT64_C(4)
/*
 * This is no mode of sigaltstack(): it is refused, which rt_sigreturn ignores, so the thread's
 * alternate stack stays as it is.
 */
#define SS_NO_MODE 64

/* The software bytes behind the 464 bytes of FXSAVE that the processor defines. */
struct sw_bytes {
	uint32_t magic1, extended_size;
	uint64_t features;
	uint32_t xstate_size, pad[7];
};
_Static_assert(sizeof(struct sw_bytes) == 48, "struct _fpx_sw_bytes");
#define SW_BYTES_AT  464u
#define XHEADER_AT   512u
#define XSTATE_MIN   576u
#define SW_MAGIC1    UINT32_C(0x46505853)
#define SW_MAGIC2    UINT32_C(0x46505845)
#define XFEATURE_AMX (UINT64_C(1) << 18)

static bool is_restart(long long rax)
{
	return rax == -ERESTARTSYS || rax == -ERESTARTNOINTR || rax == -ERESTARTNOHAND ||
	       rax == -ERESTART_RESTARTBLOCK;
}

struct user_regs_struct inferior_restarted(const struct user_regs_struct *regs)
{
	struct user_regs_struct r = *regs;

	if ((long long)r.orig_rax >= 0 && is_restart((long long)r.rax)) {
		r.rax = r.orig_rax;
		r.rip -= 2; /* The instruction syscall is two bytes long. */
	}
	r.orig_rax = ~0ull;
	return r;
}

int inferior_get_registers(const struct cudbgshim_tracer *t, pid_t tid, struct inferior_registers *ret)
{
	size_t size = sizeof(ret->user);
	int r = t->get(t->ctx, tid, CUDBGSHIM_PART_REGISTERS, &ret->user, &size);

	ret->thread_pointer = ret->user.fs_base;
	ret->is_32bit = ret->user.cs != SEGMENT_64;
	return r;
}

uint64_t inferior_pc(const struct inferior_registers *regs)
{
	return regs->user.rip;
}

uint64_t inferior_sp(const struct inferior_registers *regs)
{
	return regs->user.rsp;
}

long inferior_newer_call(long nr)
{
	return nr == SYS_epoll_wait ? SYS_epoll_pwait : nr;
}

bool inferior_stop_tells_call(void)
{
	return true;
}

bool inferior_has_own_limit(const struct inferior_thread *t)
{
	return t->nr == SYS_poll && (int32_t)t->args[2] > 0;
}

bool inferior_is_in_call(const struct inferior_registers *regs, const struct inferior_thread *seen)
{
	return (long long)regs->user.orig_rax >= 0;
}

bool inferior_forgive_interruption(struct inferior_registers *regs, const struct inferior_thread *seen)
{
	if ((long long)regs->user.rax != -EINTR || !inferior_is_interrupted_by_a_look((long)regs->user.orig_rax))
		return false;
	regs->user.rax = (unsigned long long)-ERESTARTNOHAND;
	return true;
}

/* The kernel decides about restarting when the thread leaves the stop in which it gets its registers. */
void inferior_resume_waiting(struct inferior_registers *regs, const struct inferior_thread *seen, bool forgotten)
{
	struct user_regs_struct *r = &regs->user;

	if (forgotten && (long long)r->orig_rax >= 0 && (long long)r->rax == -ERESTART_RESTARTBLOCK)
		r->rax = (unsigned long long)-ERESTARTNOHAND;
}

void inferior_enter(struct inferior_registers *regs, uint64_t function, uint64_t argument,
		    const struct inferior_frame *frame, uint64_t restorer)
{
	/* The return address is the frame's first word. */
	regs->user.rip = function;
	regs->user.rdi = argument;
	regs->user.rsp = frame->addr;
	regs->user.rax = 0;
	regs->user.orig_rax = ~0ull;
	regs->user.eflags &= ~EFLAGS_DF_TF_RF;
}

void inferior_leave(struct inferior_registers *regs, const struct inferior_frame *frame, uint64_t restorer)
{
	regs->user.rip = restorer;
	regs->user.rsp = frame->addr + 8;
	regs->user.orig_rax = ~0ull;
}

int inferior_skip_call(const struct cudbgshim_tracer *t, pid_t tid)
{
	return 0; /* The registers that inferior_leave() made have no call. */
}

long inferior_call_at_stop(const struct inferior_registers *regs)
{
	return (long)regs->user.orig_rax;
}

bool inferior_is_returning(const struct inferior_registers *regs, const struct inferior_frame *frame)
{
	return (long)regs->user.orig_rax == SYS_rt_sigreturn && (long long)regs->user.rax == -ENOSYS &&
	       regs->user.rsp == frame->addr + 8;
}

/* No pending x87 state, and the control words after a reset. */
void inferior_clean_vectors(uint8_t *xstate, size_t size)
{
	uint16_t control = 0x37f;
	uint32_t mxcsr = 0x1f80;

	if (size < XSTATE_MIN)
		return;
	memset(xstate, 0, 416);
	memcpy(xstate, &control, sizeof(control));
	memcpy(xstate + 24, &mxcsr, sizeof(mxcsr));
	xstate[512] |= 3; /* x87 and SSE state are present. */
}

static void cpuid(uint32_t leaf, uint32_t sub, uint32_t out[4])
{
	__asm__ volatile("cpuid"
			 : "=a"(out[0]), "=b"(out[1]), "=c"(out[2]), "=d"(out[3])
			 : "a"(leaf), "c"(sub));
}

/*
 * Find out which features the frame may name, and how many bytes they take.  The kernel refuses a
 * frame that is larger than the thread's own buffer, which has no room for AMX tiles before their
 * first use.
 */
static int xstate_shape(const struct inferior_saved *s, uint64_t *ret_features, size_t *ret_size)
{
	uint64_t features, in_use;
	size_t size = XSTATE_MIN;

	if (s->xstate_size < XSTATE_MIN)
		return -EBADMSG;
	/* The kernel leaves the mask of enabled features here (NT_X86_XSTATE). */
	memcpy(&features, s->xstate + SW_BYTES_AT, sizeof(features));
	memcpy(&in_use, s->xstate + XHEADER_AT, sizeof(in_use));
	if (!(in_use & XFEATURE_AMX))
		features &= ~XFEATURE_AMX;
	for (unsigned i = 2; i < 63; i++) {
		uint32_t r[4];

		if (!(features & UINT64_C(1) << i))
			continue;
		cpuid(0xd, i, r);
		if ((size_t)r[0] + r[1] > size)
			size = (size_t)r[0] + r[1];
	}
	if (size > s->xstate_size)
		return -EBADMSG;
	*ret_features = features;
	*ret_size = size;
	return 0;
}

static void put_xstate(const struct inferior_saved *s, uint64_t features, size_t size, uint8_t *to)
{
	struct sw_bytes sw = { .magic1 = SW_MAGIC1, .features = features,
			       .extended_size = (uint32_t)size + 4, .xstate_size = (uint32_t)size };
	uint32_t magic2 = SW_MAGIC2;
	uint64_t in_use;

	memcpy(to, s->xstate, size);
	memcpy(to + SW_BYTES_AT, &sw, sizeof(sw));
	memcpy(&in_use, to + XHEADER_AT, sizeof(in_use));
	in_use &= features;
	memcpy(to + XHEADER_AT, &in_use, sizeof(in_use));
	memset(to + XHEADER_AT + 8, 0, 56);
	memcpy(to + size, &magic2, sizeof(magic2));
}

static struct sigframe_context context_of(const struct user_regs_struct *r, uint64_t fpstate)
{
	return (struct sigframe_context){
		.r8 = r->r8, .r9 = r->r9, .r10 = r->r10, .r11 = r->r11, .r12 = r->r12,
		.r13 = r->r13, .r14 = r->r14, .r15 = r->r15, .di = r->rdi, .si = r->rsi,
		.bp = r->rbp, .bx = r->rbx, .dx = r->rdx, .ax = r->rax, .cx = r->rcx,
		.sp = r->rsp, .ip = r->rip, .flags = r->eflags, .cs = (uint16_t)r->cs,
		.ss = (uint16_t)r->ss, .fpstate = fpstate,
	};
}

int inferior_frame_build(const struct inferior_saved *saved, uint64_t restorer, uint64_t cookie,
			 uint64_t low, struct inferior_frame *ret_frame)
{
	struct user_regs_struct regs = inferior_restarted(&saved->regs.user);
	struct sigframe f = { .return_to = restorer };
	uint64_t features, fpstate, addr;
	size_t size;
	int rc = xstate_shape(saved, &features, &size);

	if (rc < 0)
		return rc;
	if (saved->regs.user.rsp < low || saved->regs.user.rsp - low < RED_ZONE + size + sizeof(f) + 128)
		return -ENOSPC;
	fpstate = (saved->regs.user.rsp - RED_ZONE - size - 4) & ~UINT64_C(63);
	/* A function is entered with the stack pointer 8 below a multiple of 16. */
	addr = ((fpstate - sizeof(f)) & ~UINT64_C(15)) - 8;
	f.uc.flags = UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS;
	f.uc.stack.flags = SS_NO_MODE;
	f.uc.context = context_of(&regs, fpstate);
	f.uc.mask = saved->mask;
	memcpy(f.siginfo, &cookie, sizeof(cookie));

	memset(ret_frame, 0, sizeof(*ret_frame));
	ret_frame->addr = addr;
	ret_frame->cookie_addr = addr + offsetof(struct sigframe, siginfo);
	ret_frame->size = (size_t)(fpstate - addr) + size + 4;
	memcpy(ret_frame->bytes, &f, sizeof(f));
	put_xstate(saved, features, size, ret_frame->bytes + (fpstate - addr));
	return 0;
}

/* mov $15, %rax; syscall (glibc), mov $15, %eax; syscall (musl and others). */
static const uint8_t glibc[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
static const uint8_t musl[] = { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05 };
const struct inferior_code inferior_restorers[] = { { glibc, sizeof(glibc) }, { musl, sizeof(musl) } };
const size_t inferior_n_restorers = ARRAY_SIZE(inferior_restorers);
