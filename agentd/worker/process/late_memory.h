/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PROCESS_LATE_MEMORY_H
#define WORKER_PROCESS_LATE_MEMORY_H

/**
 * @file late_memory.h
 * Reading addresses that the target chose, in a bounded time.
 *
 * A page of the target may be one that does not come.  A read then waits in the kernel, perhaps beyond any signal.
 * So a thread reads, and whoever asked goes on without it when the time is over.  Pages whose faults the program
 * handles itself, by userfaultfd, give EIO (measured on Linux 6.18).
 *
 * Context: one thread makes, uses and ends a reader.
 */

#include <stddef.h>
#include <stdint.h>

#include "agentd/worker/process/memory.h"

struct late_memory;

/**
 * Start the thread.
 * @param m  Open; it is not needed any more afterwards.
 * @return NULL: there is no memory, thread or descriptor.
 */
struct late_memory *late_memory_create(const struct memory *m);
/** End the thread; one that hangs goes on and ends by itself, or with this process.  NULL is allowed. */
void late_memory_destroy(struct late_memory *l);

/**
 * Read all of it.
 * @param deadline_ns  Monotonic.
 * @return 0; -ETIMEDOUT: it was late, and so is everything that is asked until the thread is back; -ENOMEM; what
 *         memory_read_exact() says.
 */
int late_memory_read(struct late_memory *l, uint64_t address, void *buf, size_t size, uint64_t deadline_ns);

#endif /* WORKER_PROCESS_LATE_MEMORY_H */
