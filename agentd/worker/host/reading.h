/* SPDX-License-Identifier: MIT */
#ifndef WORKER_HOST_READING_H
#define WORKER_HOST_READING_H

/**
 * @file reading.h
 * Reading all stacks of a process, in a bounded time.
 *
 * A page of the process may be one that nobody ever brings: a file that does not answer, or one whose faults the
 * program handles itself.  A read then waits in the kernel, and no signal but SIGKILL ends that.  So a thread reads,
 * and this process goes on with what that has published when the time is over, and ends.
 */

#include <pthread.h>

#include "agentd/worker/host/asyncio.h"
#include "agentd/worker/host/core_memory.h"
#include "agentd/worker/host/event_wait.h"
#include "agentd/worker/host/memory_guard.h"
#include "agentd/worker/host/native.h"
#include "agentd/worker/host/task.h"
#include "agentd/worker/process/rank.h"
#include "hoststack/stack.h"
#include "protocol/rpc_arena.h"

#define READING_PYTHONS_MAX 8
#define READING_NOTES_MAX   16
#define READING_CHILDREN_MAX 256

/** One frame with its interpreter. */
struct reading_frame {
	struct hoststack_place place;
	uint32_t interpreter;
};

/** What a thread waits for on a GPU. */
struct reading_wait {
	struct event_wait asked; /**< Of none: it waits for something else. */
	bool has_queue;		 /**< This packet is what it waits for: */
	struct event_packet packet;
	bool is_over; /**< The packet's signal says that the work is done, but the thread was not woken. */
};

/** What was read of one thread; it does not change once it is published. */
struct reading_row {
	bool is_done; /**< It is published. */
	bool is_python;
	bool is_cut, holds_lock;
	bool has_no_lock; /**< Its interpreter runs without one. */
	enum hoststack_proof proof;
	struct reading_frame *frames; /**< malloc'ed. */
	size_t n;
	uint32_t elided, elided_after;
	uint64_t switches; /**< How often it had been on a processor when it was read; 0: not proven. */
	bool has_held_lock; /**< It has not run since before the lock's holder was looked up, so that it still is. */
	/* Published on their own, later. */
	struct native_stack native;
	struct reading_wait wait;
};

/** One interpreter. */
struct reading_python {
	uint32_t version; /**< PY_VERSION_HEX; 0: not known. */
	bool free_threaded;
	uint32_t interpreters;
	uint32_t holder; /**< Thread; 0: none. */
	const char *why; /**< Static; NULL: its frames were read. */
};

/** What is read, and what else the caller knows; all of it is borrowed. */
struct reading_from {
	const struct memory *memory;
	struct core_memory *core; /**< In place of `memory`: that of a core. */
	bool is_mixed;		  /**< The core's memory is of later moments than its threads. */
	int maps_fd, environment_fd, root_fd; /**< Each may be -1: there is none. */
	struct tasks *tasks;
	const struct event_queue *queues; /**< Of the process; may be none. */
	size_t n_queues;
	bool children; /**< List child processes, too. */
	bool frames;   /**< Read more than what threads are blocked in and wait for. */
	bool native;   /**< Read native frames, too. */
	struct stops *stops; /**< NULL: no thread is stopped for them. */
};

struct reading {
	struct reading_from from;
	struct tasks *tasks;
	struct memory_guard guard;
	struct hoststack_memory memory;
	/* Written by the thread that reads, under the mutex, and read when it is done or late. */
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool is_done;
	bool is_naming; /**< Only debug files are still read. */
	struct reading_row *rows; /**< malloc'ed, one for each of the tasks. */
	struct reading_python pythons[READING_PYTHONS_MAX];
	size_t n_pythons;
	bool pythons_tasks[READING_PYTHONS_MAX]; /**< Their tasks of asyncio were looked for. */
	struct reading_tasks async;
	char notes[READING_NOTES_MAX][160]; /**< What is missing. */
	size_t n_notes;
	struct rank rank;
	uint32_t *children; /**< malloc'ed; NULL: they were not asked for, or the kernel does not tell. */
	size_t n_children;
	int error; /**< 0; -ESRCH: the process is gone, or is another program by now. */
	/* Of the thread. */
	struct hoststack_reader readers[READING_PYTHONS_MAX];
	struct hoststack_python python[READING_PYTHONS_MAX];
	uint64_t bases[READING_PYTHONS_MAX]; /**< Where their files are mapped. */
	struct native_reader native;
};

/** Say that something is missing. */
void reading_note(struct reading *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/**
 * Take the frames that a call asks for, and the queues that it names.
 * @param a  Holds these.
 * @return 0, -ENOMEM.
 */
int reading_take_params(struct reading_from *from, struct rpc_arena *a, const struct rpc_host_stacks_params *p);
/** @return 0 or -errno. */
int reading_init(struct reading *r, const struct reading_from *from);
/**
 * Read.  @return true: the thread has ended; false: it is late, and hangs.  All that is published may be used, and
 *         this process must end without reading_deinit().
 */
bool reading_run(struct reading *r);
void reading_deinit(struct reading *r);

#endif /* WORKER_HOST_READING_H */
