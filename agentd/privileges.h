/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_PRIVILEGES_H
#define AGENTD_PRIVILEGES_H

/** @file privileges.h  Giving up privileges: each function checks that the kernel obeyed. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/**
 * Keep only the capabilities that the monitor and its workers need (CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH,
 * CAP_SETUID, CAP_SETGID, CAP_KILL), also in the bounding set.  Does nothing for an unprivileged
 * process.
 * @return 0 or -errno.
 */
int privileges_keep_attach(void);

/**
 * Keep only the capabilities that the judge needs, to look at processes and to ask the kernel as their users
 * (CAP_SYS_PTRACE, CAP_SETUID, CAP_SETGID, CAP_KILL), also in the bounding set.
 * @return 0 or -errno.
 */
int privileges_keep_judge(void);

/**
 * Lay the capabilities down: they stay permitted, and none is effective until privileges_raise().  What
 * this process then does by mistake it does with the rights of a user without capabilities.
 * @return 0 or -errno.
 */
int privileges_lower(void);
/**
 * Take up what privileges_lower() of this process, or of the one that forked it, laid down.  Any
 * privileges_become() does that first.
 * @return whether it was laid down.
 */
bool privileges_raise(void);
/** Lower again what `raised` says was raised; for auto_lower. */
void privileges_lower_again(const bool *raised);
/** To raise for the rest of a block: `auto_lower bool raised = privileges_raise();`. */
#define auto_lower __attribute__((cleanup(privileges_lower_again), unused))
/** As kill(2), with the right to signal processes of other users. */
int privileges_kill(pid_t pid, int sig);

/** No capability any more, and no way back; the ids stay as they are.  @return 0, -errno. */
int privileges_give_up(void);
/**
 * Become @p uid for good: no supplementary groups, no capability, no way back.  A process that is
 * that user already and has no privileges keeps its groups, and loses only the right to gain
 * privileges by exec.
 * @return 0, -EPERM (the process has another uid and may not change it), other -errno.
 */
int privileges_become(uid_t uid, gid_t gid);

/** As privileges_become(), but a process that has CAP_SYS_PTRACE keeps it. */
int privileges_become_tracer(uid_t uid, gid_t gid);

/**
 * As privileges_become(), but a process that has CAP_SYS_PTRACE keeps it, permitted and not effective:
 * the kernel judges the process as it judges the user, until privileges_take_up_tracer() makes the
 * capability effective again.
 */
int privileges_lay_down_tracer(uid_t uid, gid_t gid);
/**
 * Make CAP_SYS_PTRACE effective again.
 * @return 0, -EPERM (the process does not have that capability), other -errno.
 */
int privileges_take_up_tracer(void);

/**
 * Keep the user, and of the capabilities CAP_SYS_PTRACE, if it is there.  Files are opened as another
 * user and without supplementary groups.
 * @return 0, -EPERM (this process may not open files as that user), other -errno.
 */
int privileges_keep_trace(uid_t files_uid, gid_t files_gid);

/** As privileges_become(), but with the user's supplementary groups. */
int privileges_become_login(uid_t uid, gid_t gid, const gid_t *groups, size_t n_groups);

/** Keep the user, but no capability except CAP_KILL, if it is there.  @return 0 or -errno. */
int privileges_keep_kill(void);

/**
 * Keep the user, and of the capabilities those that finding the configuration and running hooks
 * need: CAP_DAC_READ_SEARCH, CAP_SETUID, CAP_SETGID, CAP_KILL.  No program that is executed has more.
 * @return 0 or -errno.
 */
int privileges_keep_hooks(void);

/** @return whether this process has the right to become any user, also if it is laid down. */
bool privileges_may_become(void);

/** @return whether this process has the right to trace other users' processes, also if it is laid down. */
bool privileges_may_trace(void);

/** Is the other end of a Unix socket root's, or our own user's?  @return 0, -EACCES, other -errno. */
int privileges_check_peer(int sock);

/**
 * Forbid other processes of the same user to attach to this process or to read its memory.
 * @return 0 or -errno.
 */
int privileges_hide(void);

#endif /* AGENTD_PRIVILEGES_H */
