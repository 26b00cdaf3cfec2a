/* SPDX-License-Identifier: MIT */
#ifndef HOOK_TREE_H
#define HOOK_TREE_H

/**
 * @file tree.h
 * All processes below this one.  This process must be a child subreaper (prctl(2)): whatever a
 * descendant does to get away, its orphans become children of this process.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/** @return whether the kernel tells which children a process has (CONFIG_PROC_CHILDREN). */
bool tree_is_known(void);

/**
 * Send a signal to all children and to their process groups, which stops those from growing.
 *
 * Only this process reaps its children, so that their pids cannot be those of strangers by now.
 * That is not so for their own children, which become children of this process when their parent is
 * dead.  To end all, call again until waitpid() says ECHILD.
 * @return how many children were found.
 */
size_t tree_signal(int sig);

/** Count a user's processes and threads on the whole machine, as RLIMIT_NPROC counts them. */
size_t tree_count_user(uid_t uid);

#endif /* HOOK_TREE_H */
