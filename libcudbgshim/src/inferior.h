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

/** Most bytes of a thread's vector state; more than any XSAVE area of today (AMX: 11008). */
#define INFERIOR_XSTATE_MAX 16384u
#define INFERIOR_FRAME_MAX  (INFERIOR_XSTATE_MAX + 1024u)
/** Room below the frame for the function itself, in bytes. */
#define INFERIOR_STACK_ROOM (UINT64_C(128) << 10)

/**
 * Detach from a thread that has stopped.
 * @return false when it still runs: ask again.
 */
bool inferior_let_go(const struct cudbgshim_tracer *t, pid_t tid);
/** Read the registers of a stopped thread.  @return 0, -errno. */
int inferior_get_registers(const struct cudbgshim_tracer *t, pid_t tid, struct user_regs_struct *ret);
/** Set them.  @return 0, -errno. */
int inferior_set_registers(const struct cudbgshim_tracer *t, pid_t tid,
			   const struct user_regs_struct *regs);

/** The state of a thread before we touched it. */
struct inferior_saved {
	struct user_regs_struct regs;
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
 * @return the registers with which the thread repeats the system call that was interrupted, as the
 *         kernel would; outside of a system call they are unchanged.
 */
struct user_regs_struct inferior_restarted(const struct user_regs_struct *regs);
/**
 * Mend the result of a system call that failed with EINTR because a tracer looked at it.  It
 * becomes one with which the kernel restarts the call unless a handler runs.
 */
void inferior_forgive_interruption(struct user_regs_struct *regs);
/** Make a call that restart_syscall() was to continue start with its whole time limit again. */
void inferior_restart_from_beginning(struct user_regs_struct *regs);

/**
 * Build the frame that restores a thread.
 * @param restorer  Address of `mov $15, %eax; syscall` in the debuggee.
 * @param low       Lowest address that may be used.
 * @return 0, -ENOSPC (does not fit above @p low), -EBADMSG (XSAVE area of an unknown shape).
 */
int inferior_frame_build(const struct inferior_saved *saved, uint64_t restorer, uint64_t cookie,
			 uint64_t low, struct inferior_frame *ret_frame);

/**
 * Find a piece of code that calls rt_sigreturn.
 * @return 0, -ENOENT, -errno.
 */
int inferior_find_restorer(const struct cudbgshim_memory *memory, const char *maps, size_t size,
			   uint64_t *ret_addr);

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
 * @param ret_low  Lowest address of its stack that may be used; see inferior_frame_build().
 * @return NULL, or why not.
 */
const char *inferior_check_place(const struct user_regs_struct *regs, const char *maps, size_t size,
				 const struct cudbgshim_inferior_options *o, uint64_t *ret_low);

#endif /* CUDBGSHIM_INFERIOR_H */
