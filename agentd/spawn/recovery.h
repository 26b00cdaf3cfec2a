/* SPDX-License-Identifier: MIT */
#ifndef SPAWN_RECOVERY_H
#define SPAWN_RECOVERY_H

/**
 * @file recovery.h
 * Who looks after targets when spawn itself dies.
 *
 * What a session worker writes down for whoever cleans up behind it (IPC_FD_UNDO) is a file of a
 * directory that only the agent may enter; a worker holds a lock on its own as long as it lives.  The
 * recovery process (gpu-agent-heir) is a child of spawn that sleeps until spawn is gone: it gives the
 * workers a moment to undo what they did, kills those that do not, and rescues their targets.  Where a
 * service manager kills it as well, the next start of the agent does the same.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "agentd/spawn/workers.h"

/**
 * A new record for @p target, empty.  Where there can be no file it is memory, which nobody inherits.
 * @param ret_name  Of the file; "" for memory.
 * @return 0 or -errno.
 */
int recovery_record_create(const char *directory, pid_t target, char ret_name[WORKER_RECORD_NAME_MAX],
		       int *ret_fd);
/** The record is of no use any more; "" is allowed. */
void recovery_record_remove(const char *directory, const char *name);
/** Is anything written in it?  @param record  -1: no. */
bool recovery_record_owes(int record);
/** In any record of @p target: of a worker that died, or of one who looks after what others left? */
bool recovery_owes(const char *directory, pid_t target);
/** Write in @p record (-1: nowhere) that @p target waits for an answer, unless another one says so. */
int recovery_owe_answer(const char *directory, pid_t target, int record);

/** Do what an agent left undone that was killed with its recovery process.  Blocks as long as that takes. */
void recovery_take_over(const struct workers *w);

/**
 * Look after every GPU process that waits for a debugger and that nobody traces, record or not.  Each
 * has a child, for which this does not wait unless there are very many.
 */
void recovery_release_leftovers(const struct workers *w);

/** Fork the recovery process of the calling one.  Without one, the next start does its work. */
void recovery_start(const struct workers *w);

#endif /* SPAWN_RECOVERY_H */
