/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_UNDO_RECORD_H
#define AGENTD_UNDO_RECORD_H

/**
 * @file undo_record.h
 * What a session worker writes down for whoever cleans up behind it (IPC_FD_UNDO): a file of a directory
 * that only the agent may enter, named MONITOR.TARGET.NUMBER.  A worker holds a lock on its own as long as
 * it lives.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define UNDO_RECORD_NAME_MAX 48

/** The directory: beside the agent's socket, so alone in its namespace, and gone after a restart of the machine. */
void undo_record_place(const char *socket, char *ret, size_t size);

/**
 * A new record for @p target, empty.  Where there can be no file it is memory, which nobody inherits.
 * @param ret_name  Of the file; "" for memory.
 * @return 0 or -errno.
 */
int undo_record_create(const char *directory, pid_t target, char ret_name[UNDO_RECORD_NAME_MAX],
		       int *ret_fd);
/**
 * Take over the record by which a GPU of @p target is left suspended, under a name of this process.
 * @return 0, -ENOENT: there is none; -errno.
 */
int undo_record_reuse(const char *directory, pid_t target, char ret_name[UNDO_RECORD_NAME_MAX], int *ret_fd);
/** The record is of no use any more; "" is allowed. */
void undo_record_remove(const char *directory, const char *name);
/** The same, unless it tells of a GPU that is left suspended.  @param record  Of that name; -1: none. */
void undo_record_drop(const char *directory, const char *name, int record);
/** Is anything written in it?  @param record  -1: no. */
bool undo_record_owes(int record);
/** Does it tell of a GPU that is left suspended?  @param record  -1: no. */
bool undo_record_is_suspended(int record);
/**
 * @param but_of  Leave records of this monitor out; 0: of none.
 * @return a process whose record says so, greater than @p after; 0: there is none.
 */
pid_t undo_record_next_suspended(const char *directory, pid_t after, pid_t but_of);
/** In any record of @p target: of a worker that died, or of one who looks after what others left? */
bool undo_record_any_owes(const char *directory, pid_t target);
/** Write in @p record (-1: nowhere) that @p target waits for an answer, unless another one says so. */
int undo_record_owe_answer(const char *directory, pid_t target, int record);

/** @return a descriptor, -EPERM (others could write there), -errno. */
int undo_record_directory(const char *path);
/** @return false when no record has such a name. */
bool undo_record_parse_name(const char *name, pid_t *ret_monitor, pid_t *ret_target);

#endif /* AGENTD_UNDO_RECORD_H */
