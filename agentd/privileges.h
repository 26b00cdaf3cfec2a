/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_PRIVILEGES_H
#define AGENTD_PRIVILEGES_H

/** @file privileges.h  Giving rights up, each step checked. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/**
 * Keep only what spawn and its workers need (CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_SETUID,
 * CAP_SETGID, CAP_KILL), also in the bounding set.  Does nothing for an unprivileged process.
 * @return 0 or -errno.
 */
int privileges_keep_attach(void);

/**
 * Become @p uid for good: no supplementary groups, no capability, no way back.  Does nothing when
 * the process has no privileges and is that user already.
 */
int privileges_become(uid_t uid, gid_t gid);

/** The same, but CAP_SYS_PTRACE stays, if it is there. */
int privileges_become_tracer(uid_t uid, gid_t gid);

/**
 * The same, but without effect: the kernel judges as for the user, until privileges_take_up_tracer()
 * gives the capability its effect back.
 */
int privileges_lay_down_tracer(uid_t uid, gid_t gid);
/** @return 0, -EPERM when there is none to take up, -errno. */
int privileges_take_up_tracer(void);

/** The same, but with the user's supplementary groups. */
int privileges_become_login(uid_t uid, gid_t gid, const gid_t *groups, size_t n_groups);

/** Stay who we are, but keep no capability except CAP_KILL, if it is there. */
int privileges_keep_kill(void);

/** The process has the right to become any user. */
bool privileges_may_become(void);

/** The process has the right to trace other users' processes. */
bool privileges_may_trace(void);

/** Nobody of the same user may attach to this process or read its memory. */
int privileges_hide(void);

#endif /* AGENTD_PRIVILEGES_H */
