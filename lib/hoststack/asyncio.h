/* SPDX-License-Identifier: MIT */
#ifndef HOSTSTACK_ASYNCIO_H
#define HOSTSTACK_ASYNCIO_H

/**
 * @file asyncio.h
 * Tasks of asyncio (3.14 on): what each coroutine waits in, although no thread runs it.
 *
 * Each thread state has a list of the tasks of its loop.  Where the members of a task are says a table in the variables
 * of the module _asyncio, which has no symbol; it is told by what it says.
 */

#include "hoststack/stack.h"

/** Tasks of one thread that are read; coroutines of one task, and tasks that await it. */
#define HOSTSTACK_TASKS_MAX   4096
#define HOSTSTACK_AWAITS_MAX  64
#define HOSTSTACK_WAITERS_MAX 16

/** Offsets that the table tells. */
struct hoststack_asyncio {
	uint32_t task_name, task_coroutine, task_node;
	uint32_t task_waiters, task_has_set; /**< Who awaits it, and whether that is a set of such. */
	uint32_t thread_running, thread_tasks;
};

/**
 * Look for the table in a loaded file.
 * @param base  Where the file's first byte is mapped.
 * @return 0; -ENOENT (it has none, or this interpreter is older); what hoststack_read() returns.
 */
int hoststack_asyncio_find(struct hoststack_memory *m, const struct hoststack_python *p, uint64_t base,
			   struct hoststack_asyncio *ret);

/** One task. */
struct hoststack_task {
	uint64_t address;
	char *name; /**< malloc'ed. */
	struct hoststack_place *places; /**< malloc'ed; the coroutine that waits first, the task's own last. */
	size_t n;
	uint64_t waiters[HOSTSTACK_WAITERS_MAX]; /**< Addresses of tasks that await it. */
	size_t n_waiters;
	bool has_more_waiters; /**< Than these. */
	bool is_running; /**< Its thread runs it now. */
	bool is_cut;	 /**< Of its coroutines some make no sense, or there are more. */
};

/** Those of one thread. */
struct hoststack_tasks {
	struct hoststack_task *list; /**< malloc'ed. */
	size_t n, capacity;
	bool is_cut;	/**< The list could not be followed to its end. */
	bool is_certain; /**< The thread has not run meanwhile. */
};

/**
 * Read the tasks of a thread.  Names of places are those of the reader.
 * @return 0; -ENOMEM; what hoststack_read() returns if nothing more can be read.
 */
int hoststack_tasks_read(struct hoststack_reader *r, const struct hoststack_asyncio *a,
			 const struct hoststack_thread *thread, struct hoststack_tasks *ret);
void hoststack_tasks_free(struct hoststack_tasks *t);

#endif /* HOSTSTACK_ASYNCIO_H */
