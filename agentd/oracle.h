/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_ORACLE_H
#define AGENTD_ORACLE_H

/**
 * @file oracle.h
 * The kernel's own judgement of who may look into a process.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** A child that asks the kernel, for a caller who does not wait. */
struct oracle {
	pid_t child;	   /**< The caller reaps it; 0: there is none. */
	uint64_t deadline; /**< Monotonic ns; half a second after the beginning. */
};

/**
 * Begin to ask, as oracle_ask() does.
 * @param ret  When the child was reaped, oracle_answer() knows its answer; after the deadline
 *             oracle_give_up() ends it.
 * @return 0, -errno.
 */
int oracle_begin(int proc_fd, uid_t uid, gid_t gid, const gid_t *groups, size_t n_groups, struct oracle *ret);
/** @return what oracle_ask() would return for a child that ended like that. */
int oracle_answer(int wait_status);
/** Kill the child, which may still have to be reaped.  @return -ETIMEDOUT. */
int oracle_give_up(struct oracle *o);

/**
 * May a user with these ids, in the user namespace of this process and without any capability, read
 * what PTRACE_MODE_READ protects?  A child becomes that user and tries; the caller waits half a
 * second for it at most.
 * @param proc_fd  Directory of the process in /proc.
 * @return 1 (yes), 0 (no), -ESRCH (the process is gone), -EPERM (this process cannot become that
 *         user), -ETIMEDOUT, other -errno.
 */
int oracle_ask(int proc_fd, uid_t uid, gid_t gid, const gid_t *groups, size_t n_groups);
/** Ask the same for this process, with the ids and capabilities that it has. */
int oracle_ask_self(int proc_fd);

#endif /* AGENTD_ORACLE_H */
