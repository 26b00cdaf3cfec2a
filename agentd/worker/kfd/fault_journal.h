/* SPDX-License-Identifier: MIT */
#ifndef WORKER_KFD_FAULT_JOURNAL_H
#define WORKER_KFD_FAULT_JOURNAL_H

/**
 * @file fault_journal.h
 * Faults that this worker keeps from the application, in memory that outlives it (IPC_FD_UNDO).
 *
 * When a debugger dies, the kernel forgets every latched exception and tells the application
 * nothing.  So each fault is noted before it is taken, and struck out when it was sent on.  What is
 * still noted when a worker dies, a rescue worker sends: at least once, and twice if the worker died
 * in SEND_RUNTIME_EVENT, which, once entered, finishes whatever becomes of its caller.  Twice does
 * little harm: the kernel sets a bit of the queue that is set already, and an event once more.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agentd/ipc.h"

/* Not how a record of another vendor begins. */
#define KFD_JOURNAL_MAGIC UINT64_C(0x47444c4b41504700)
#define KFD_JOURNAL_ENTRIES 254

struct kfd_journal_entry {
	uint64_t exceptions; /**< 0: free. */
	uint32_t id;	     /**< queue_id or gpu_id. */
	uint32_t is_queue;
};

struct kfd_journal {
	uint64_t magic;       /**< KFD_JOURNAL_MAGIC while anything is noted, else 0. */
	uint64_t start_ticks; /**< Of the process (target/target.h): it may be gone and its pid another's. */
	struct kfd_journal_entry entries[KFD_JOURNAL_ENTRIES];
	uint64_t reserved;
	uint64_t answer; /**< IPC_UNDO_ANSWER */
};

_Static_assert(sizeof(struct kfd_journal) == IPC_UNDO_BYTES, "the record fits");
_Static_assert(offsetof(struct kfd_journal, answer) == IPC_UNDO_ANSWER, "where spawn writes it");

/**
 * Map the record that this worker was given; NULL when there is none.  Release with
 * kfd_journal_close().
 */
struct kfd_journal *kfd_journal_open(void);
/** NULL is allowed. */
void kfd_journal_close(struct kfd_journal *l);

/** Both accept NULL: then nothing is remembered.  A full record forgets what does not fit. */
void kfd_journal_append(struct kfd_journal *l, bool is_queue, uint32_t id, uint64_t exceptions);
void kfd_journal_erase(struct kfd_journal *l, bool is_queue, uint32_t id, uint64_t exceptions);
/** What the dead worker owed to RUNTIME_ENABLE was given. */
void kfd_journal_answered(struct kfd_journal *l);

#endif /* WORKER_KFD_FAULT_JOURNAL_H */
