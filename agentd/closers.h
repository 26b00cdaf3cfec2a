/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_CLOSERS_H
#define AGENTD_CLOSERS_H

/**
 * @file closers.h
 * Processes that close what may block, once each, and for which nobody waits.
 *
 * The last close of a file can take as long as the file's maker likes, also in the process that only
 * closes a socket in which the file was sent, and then SIGKILL may not end that process either.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct closer;

#define CLOSERS_NOBODY ((int64_t)-1)

struct closers {
	struct closer *first;
	int gate_fd; /**< The newest one closes when this does; -1: all of them do. */
	uid_t uid;   /**< Who they are, when this process may become others. */
	gid_t gid;
};

/**
 * Start one for a Unix socket, which must not be closed last by anybody else.
 * @param take_fd  Closed here unless this fails.
 * @param uid      For closers_reaped().
 * @return 0; it waits for closers_go().  -errno: none could be made.
 */
int closers_start(struct closers *c, int take_fd, int64_t uid);
/** No other process has that socket any more. */
void closers_go(struct closers *c);
/** A socket that only we have: both at once.  @param take_fd  Stays open when there is no closer. */
void closers_close(struct closers *c, int take_fd);
/**
 * Close a Unix socket that only we have, in whose queue may be anything.  The process that does it has nothing else of
 * ours, however long it takes.
 * @param take_fd  Stays open when there is no such process.
 */
void closers_close_socket(int take_fd);
/**
 * Close any descriptor that came from a less trusted process, by whatever name: a memory file here,
 * another in a process that shares our descriptors.
 */
void closers_close_foreign(int take_fd);
/** @return true when the child was a closer; one of closers_close() has CLOSERS_NOBODY. */
bool closers_reaped(struct closers *c, pid_t pid, int64_t *ret_uid);
/** Let all of them close, and forget them; they are not waited for. */
void closers_deinit(struct closers *c);

#endif /* AGENTD_CLOSERS_H */
