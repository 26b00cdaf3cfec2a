/* SPDX-License-Identifier: MIT */
#ifndef HOOK_TREE_H
#define HOOK_TREE_H

/**
 * @file tree.h
 * All processes below this one.  It must be a child subreaper (prctl(2)): whatever a descendant does
 * to get away, its orphans become children of this process.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/** The kernel tells whose children there are (CONFIG_PROC_CHILDREN). */
bool tree_is_known(void);

/**
 * Send a signal to all children and to their process groups, which stops those from growing.  Nobody
 * else reaps them, so their numbers cannot be somebody else's by now; that is not so for their own
 * children, which come here when their parent is dead.  To end all, call again until waitpid() says
 * ECHILD.
 * @return how many children were found.
 */
size_t tree_signal(int sig);

/** Processes and threads of a user on the whole machine, as RLIMIT_NPROC counts them. */
size_t tree_count_user(uid_t uid);

#endif /* HOOK_TREE_H */
