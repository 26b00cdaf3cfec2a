/* SPDX-License-Identifier: MIT */
#ifndef CUDBGSHIM_INFERIOR_H
#define CUDBGSHIM_INFERIOR_H

/**
 * @file inferior.h
 * Parts of a call in the debuggee: its thread's stops, the frame, the choice of a thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "cudbgshim_target.h"

/** Most bytes of a thread's vector state; more than any XSAVE area of today (AMX: 11008), and SVE of 2048 bits. */
#define INFERIOR_XSTATE_MAX 16384u
#define INFERIOR_FRAME_MAX  (INFERIOR_XSTATE_MAX + 1024u)
/** Room below the frame for the function itself, in bytes. */
#define INFERIOR_STACK_ROOM (UINT64_C(128) << 10)

/** A thread as /proc shows it. */
struct inferior_thread {
	pid_t tid;
	char state;
	pid_t tracer;
	bool has_shadow_stack;
	bool is_running; /**< It is on a processor, and nothing below is known. */
	long nr;	 /**< Number of the system call that it is in; -1: none. */
	uint64_t args[6], sp, pc;
};

/* ------------------------------------------------------------------ a stopped thread --------- */

/** The registers of a stopped thread. */
struct inferior_registers {
	struct user_regs_struct user;
	uint64_t thread_pointer; /**< Of the thread library; only read. */
	bool is_32bit;
};

/** The state of a thread before we touched it. */
struct inferior_saved {
	struct inferior_registers regs;
	uint64_t mask;
	size_t xstate_size;
	_Alignas(64) uint8_t xstate[INFERIOR_XSTATE_MAX];
};

/**
 * A frame that is to be written at @c addr; the function is entered with the stack pointer there.
 */
struct inferior_frame {
	uint64_t addr;
	uint64_t cookie_addr;
	size_t size;
	_Alignas(64) uint8_t bytes[INFERIOR_FRAME_MAX];
};

/**
 * Detach from a thread that has stopped.
 * @param seen  The thread as it was before it was asked to stop; nr is -1 where that is not known.
 * @return false when it still runs: ask again.
 */
bool inferior_let_go(const struct cudbgshim_tracer *t, const struct inferior_thread *seen);

/** Set the registers of a stopped thread.  @return 0, -errno. */
int inferior_set_registers(const struct cudbgshim_tracer *t, pid_t tid, const struct inferior_registers *regs);

/**
 * Find a piece of code that calls rt_sigreturn.
 * @return 0, -ENOENT, -errno.
 */
int inferior_find_restorer(const struct cudbgshim_memory *memory, const char *maps, size_t size,
			   uint64_t *ret_addr);

/* ------------------------------------------------------------------ the processor ------------ */

/*
 * All that is known of one processor: x86_64.c, aarch64.c, and what a tracer needs
 * to know of it, tracer_x86_64.c and tracer_aarch64.c (libcudbgshim/src/tracer.h).
 */

/** Read the registers of a stopped thread.  @return 0, -errno. */
int inferior_get_registers(const struct cudbgshim_tracer *t, pid_t tid, struct inferior_registers *ret);
uint64_t inferior_pc(const struct inferior_registers *regs);
uint64_t inferior_sp(const struct inferior_registers *regs);

/** @return the number of the newer call that does the same with the same arguments, or @p nr itself. */
long inferior_newer_call(long nr);
/** Do the registers of a stopped thread tell all of the call that it was stopped in? */
bool inferior_stop_tells_call(void);
/** Is it a call that only this processor has, with a time limit that starts again when the call does? */
bool inferior_has_own_limit(const struct inferior_thread *t);

/**
 * Does a stopped thread wait in a system call, or has it just ended one?
 * @param seen  As for inferior_let_go().
 */
bool inferior_is_in_call(const struct inferior_registers *regs, const struct inferior_thread *seen);
/**
 * Mend the result of a system call that failed with EINTR because a tracer looked at it: the thread makes
 * it again, unless a handler runs.
 * @param seen  As for inferior_let_go().
 * @return whether anything changed.
 */
bool inferior_forgive_interruption(struct inferior_registers *regs, const struct inferior_thread *seen);
/**
 * Let a thread that waited with a time limit wait for what is left of it.
 * @param forgotten  The kernel does not know any more what is left: it starts again with its whole limit.
 */
void inferior_resume_waiting(struct inferior_registers *regs, const struct inferior_thread *seen, bool forgotten);

/**
 * Build the frame that restores a thread.
 * @param restorer  What inferior_find_restorer() found.
 * @param low       Lowest address that may be used.
 * @return 0, -ENOSPC (does not fit above @p low), -EBADMSG (vector state of an unknown shape).
 */
int inferior_frame_build(const struct inferior_saved *saved, uint64_t restorer, uint64_t cookie,
			 uint64_t low, struct inferior_frame *ret_frame);
/** Make registers those at the entry of a function that returns into the restorer. */
void inferior_enter(struct inferior_registers *regs, uint64_t function, uint64_t argument,
		    const struct inferior_frame *frame, uint64_t restorer);
/** Make registers those at the restorer, when the function has returned. */
void inferior_leave(struct inferior_registers *regs, const struct inferior_frame *frame, uint64_t restorer);
/** Let the system call that a thread is about to make not happen.  @return 0, -errno. */
int inferior_skip_call(const struct cudbgshim_tracer *t, pid_t tid);
/** @return the number of the system call at whose entry or exit the thread stands. */
long inferior_call_at_stop(const struct inferior_registers *regs);
/** Is the thread about to make the call that ends the function's frame? */
bool inferior_is_returning(const struct inferior_registers *regs, const struct inferior_frame *frame);
/** Make vector state what the kernel gives a signal handler: default rounding and masks, nothing pending. */
void inferior_clean_vectors(uint8_t *xstate, size_t size);

/** Code that calls rt_sigreturn, up to 16 bytes. */
struct inferior_code {
	const uint8_t *bytes;
	size_t size;
};
extern const struct inferior_code inferior_restorers[];
extern const size_t inferior_n_restorers;

/* ------------------------------------------------------------------ the choice --------------- */

/**
 * Parse `status` and `syscall` of /proc/PID/task/TID.
 * @return 0, -EBADMSG.
 */
int inferior_thread_parse(const char *status, const char *syscall, struct inferior_thread *ret);
/**
 * Tell how well a thread suits.
 * @param ret_why  Static text for -1.
 * @return 0 for the best, more for worse ones, -1 when it does not suit at all.
 */
int inferior_thread_rank(const struct inferior_thread *t, const char *maps, size_t size,
			 const struct cudbgshim_inferior_options *o, const char **ret_why);
/** Is that thread gone, or is it only still to be collected? */
bool inferior_thread_has_ended(int proc_fd, pid_t tid);
/** Does this call fail with EINTR although nothing happened but that a tracer stopped the thread? */
bool inferior_is_interrupted_by_a_look(long nr);
/**
 * Choose a thread among all.
 * @param skip  Threads to leave out.
 * @param ret   The best; tid 0 when none fits.
 * @return 0, -EBUSY, -EOPNOTSUPP (for the process as a whole, with @p ret_why), -ESRCH, -errno.
 */
int inferior_thread_choose(const struct cudbgshim_inferior_options *o, const char *maps,
			   size_t size, const pid_t *skip, size_t n_skip,
			   struct inferior_thread *ret, const char **ret_why);

/**
 * Tell whether a stopped thread may be used.
 * @param seen     As for inferior_let_go().
 * @param ret_low  Lowest address of its stack that may be used; see inferior_frame_build().
 * @return NULL, or why not.
 */
const char *inferior_check_place(const struct inferior_registers *regs, const struct inferior_thread *seen,
				 const char *maps, size_t size, const struct cudbgshim_inferior_options *o,
				 uint64_t *ret_low);

#endif /* CUDBGSHIM_INFERIOR_H */
