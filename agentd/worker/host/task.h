/* SPDX-License-Identifier: MIT */
#ifndef WORKER_HOST_TASK_H
#define WORKER_HOST_TASK_H

/** @file task.h  The threads of a process as the kernel tells them in /proc/PID/task. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "hoststack/native/registers.h"

#define TASKS_MAX 4096

/** One thread. */
struct task {
	uint32_t tid, ns_tid; /**< The second as the process itself sees it. */
	char name[16];
	char state; /**< As in /proc/PID/stat. */
	/* What task_look() found last. */
	uint64_t switches; /**< How often it was put on a processor; 0: the kernel does not count that. */
	bool is_off;	   /**< It was on none. */
	bool is_refused;   /**< The kernel would not tell more than whether it waits, and that not of all. */
	bool has_call;	   /**< It was in a system call, and which one is known: */
	int64_t call;
	uint64_t first_argument, second_argument, third_argument, fourth_argument;
	bool has_registers; /**< These two are known: */
	uint64_t stack_pointer, instruction;
	const struct native_registers *registers; /**< All of them; NULL: only those two. */
};

struct tasks {
	int fd; /**< /proc/PID/task, owned; -1: not open. */
	struct task *list; /**< malloc'ed, by tid. */
	size_t n, capacity;
	bool is_cut; /**< There are more. */
	uint16_t machine; /**< What they run on: EM_... */
	bool is_still; /**< From a core, in which nothing moves. */
};

/** @return 0 or -errno. */
int tasks_open(struct tasks *t, pid_t pid);
/**
 * List the threads and look at each of them once.
 * @param is_nested  The process lives in a pid namespace of its own.
 * @return 0 or -errno.
 */
int tasks_list(struct tasks *t, bool is_nested);
void tasks_close(struct tasks *t);
/** Put them in the order of their ids. */
void tasks_sort(struct tasks *t);
/** Read names and states, which the process itself chooses: not with rights that it has not. */
void tasks_describe(struct tasks *t);
/**
 * Find the child processes of the threads.
 * @param ret  At most @p max, ascending.
 * @return how many there are, or -ENOENT: the kernel does not tell (CONFIG_PROC_CHILDREN).
 */
ssize_t tasks_children(const struct tasks *t, uint32_t *ret, size_t max);
/** @return the thread that has this id in the process's own namespace, or NULL. */
struct task *tasks_find(const struct tasks *t, uint64_t ns_tid);

/** @return the state of a thread now, as in /proc/PID/stat; X: it has ended. */
char task_state(const struct tasks *t, const struct task *task);
/**
 * See whether a thread is off the processors.  The kernel may refuse to tell the system call; then what an earlier
 * look has found holds as long as the thread was not scheduled.
 */
void task_look(const struct tasks *t, struct task *task);
/** Take what /proc/PID/task/TID/syscall says.  @param text  Ends with NUL. */
void task_take_call(struct task *task, const char *text);
/** Has it not been put on a processor since the last look, and was it on none then? */
bool task_has_rested(const struct tasks *t, const struct task *task);
/** A number that stays the same as long as the thread does not run; 0: not known. */
uint64_t task_moment(const struct tasks *t, const struct task *task);

#endif /* WORKER_HOST_TASK_H */
