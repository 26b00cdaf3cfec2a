/* SPDX-License-Identifier: MIT */
#ifndef WORKER_KFD_FAULT_JOURNAL_H
#define WORKER_KFD_FAULT_JOURNAL_H

/**
 * @file fault_journal.h
 * Faults that this worker withholds from the application, in memory that outlives it (IPC_FD_UNDO).
 *
 * When a debugger dies, the kernel forgets every latched exception and tells the application
 * nothing.  So the worker writes each fault into the journal before it takes the fault from the
 * kernel, and strikes it out when it has sent the fault on.  A rescue worker sends what is still in
 * the journal of a dead worker.  The application gets such a fault at least once, and twice if the
 * worker died in SEND_RUNTIME_EVENT, which, once entered, finishes even if its caller dies.  Twice
 * does little harm: the kernel sets a bit of the queue that is set already, and the event once
 * more.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agentd/ipc/child.h"

/* No undo memory of another vendor begins with this word. */
#define KFD_JOURNAL_MAGIC UINT64_C(0x47444c4b41504700)
#define KFD_JOURNAL_ENTRIES 253

/** The faults of one source. */
struct kfd_journal_entry {
	uint64_t exceptions; /**< 0: the entry is free. */
	uint32_t id;	     /**< queue_id or gpu_id. */
	uint32_t is_queue;
};

/** The whole memory behind IPC_FD_UNDO. */
struct kfd_journal {
	uint64_t magic;       /**< KFD_JOURNAL_MAGIC while there is any entry, else 0. */
	uint64_t start_ticks; /**< target.start_ticks: tells a later process with the same pid. */
	struct kfd_journal_entry entries[KFD_JOURNAL_ENTRIES];
	uint64_t program; /**< target_read_program(), 0: not known.  Tells what the process executed later. */
	uint64_t unused;
	uint64_t suspended; /**< Always 0: IPC_UNDO_SUSPENDED, which says something of other vendors. */
	uint64_t answer; /**< The monitor writes this word: IPC_UNDO_ANSWER. */
};

/* The monitor reads and writes this memory at offsets that agentd/ipc/child.h names. */

_Static_assert(sizeof(struct kfd_journal) == IPC_UNDO_BYTES, "the record fits");
_Static_assert(offsetof(struct kfd_journal, answer) == IPC_UNDO_ANSWER, "where monitor writes it");
_Static_assert(offsetof(struct kfd_journal, suspended) == IPC_UNDO_SUSPENDED, "nobody else's word is written");

/**
 * Map the journal that this worker was given.
 * @return NULL if there is none; release with kfd_journal_close().
 */
struct kfd_journal *kfd_journal_open(void);
/** Unmap the journal; accepts NULL. */
void kfd_journal_close(struct kfd_journal *l);

/**
 * Write faults of a source into the journal.  A full journal loses what does not fit.
 * @param l  NULL: nothing is written.
 */
void kfd_journal_append(struct kfd_journal *l, bool is_queue, uint32_t id, uint64_t exceptions);
/** Strike out faults of a source.  @param l  NULL: nothing is struck out. */
void kfd_journal_erase(struct kfd_journal *l, bool is_queue, uint32_t id, uint64_t exceptions);
/** Note that the target has got the answer to RUNTIME_ENABLE that a dead worker owed it. */
void kfd_journal_answered(struct kfd_journal *l);

#endif /* WORKER_KFD_FAULT_JOURNAL_H */
