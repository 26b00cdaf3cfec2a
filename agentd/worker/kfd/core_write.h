/* SPDX-License-Identifier: MIT */
#ifndef WORKER_KFD_CORE_WRITE_H
#define WORKER_KFD_CORE_WRITE_H

/**
 * @file core_write.h
 * A core of a process while a client fetches it, as core_*.c share it.  No other directory includes
 * it.
 */

#include "agentd/worker/kfd/waves.h"
#include "agentd/worker/process/mappings.h"
#include "agentd/worker/process/thread_pool.h"
#include "corefile/amdgpu/write.h"

/* Most bytes of copies: the worker's address space ends at 2 GiB (agentd/sandbox.c). */
#define KFD_CORE_COPIED_MAX (UINT64_C(1) << 30)

/** Pages that belong into the core. */
struct kfd_core_piece {
	uint64_t address, size;
	uint8_t *data; /**< The copy, made while the queue stood still; NULL: to be read later. */
};

struct kfd_core_job;

/** One core. */
struct kfd_core {
	struct target_kfd *k;
	struct amdcore core;
	struct amdcore_image *image;
	size_t segments_capacity;
	struct kfd_core_piece *pieces;
	size_t n_pieces, capacity;
	bool too_much, no_memory; /**< Copies did not fit into `store`; a list could not grow. */
	uint32_t ticket; /**< The undo entry that forgets this core when its client leaves. */
	uint8_t runtime[AMDCORE_RUNTIME_SIZE];
	void *devices, *queues;
	/** Notes of the agent's own; what they point to is owned. */
	struct amdcore_note *notes;
	size_t n_notes, notes_capacity;
	bool estimate; /**< Nothing is kept, only counted. */

	/* The copies lie in this mapping, one behind the other. */
	uint8_t *store;
	uint64_t store_size, store_used;
	struct memory copies; /**< Reads from the copies. */
	/* These members are those of the copying under way. */
	struct kfd_core_job *jobs;
	size_t n_jobs, jobs_capacity;
	uint64_t deadline_ns;
	bool late; /**< Atomic. */
	bool shares_stop; /**< The waves are wanted whatever becomes of the core: some time is left for them. */

	/* The answer to the caller; these are valid only as long as kfd_core_begin() runs. */
	struct rpc_arena *arena;
	struct target_core *told;
	size_t missing_capacity;

	uint8_t *list; /**< A copy of the pages of the list of code objects. */
	struct kfd_core_host *host; /**< The host's half of a unified core; NULL: it has none. */
};

/* core_write.c */

/**
 * Add a sentence about what the core lacks.
 * @param text  NULL adds nothing: the arena is exhausted then, which it remembers itself.
 */
void kfd_core_missing(struct kfd_core *c, const char *text);
/**
 * Add a note of the agent's own.
 * @param desc  Released with the core, and on failure.
 * @return 0, -ENOMEM.
 */
int kfd_core_add_note(struct kfd_core *c, uint32_t type, void *desc, size_t size);
/** Is the mapping readable memory?  Of the mappings of devices only those of a GPU's memory are. */
bool kfd_core_is_memory(const struct mapping *m);

/* core_code.c */

/**
 * Add the code objects and all else that explains the waves, to be read later, but code objects in files that
 * readers would not find, which are read now; list what of it is not in the core.
 * @param full  The core gets all mappings besides, so that only what none of them has is missing.
 */
void kfd_core_add_code(struct kfd_core *c, const struct target_waves_from *from,
		       const struct target_waves *waves, bool full);

/* core_threads.c */

/** What became of the target's threads. */
struct kfd_core_threads {
	uint32_t n, n_missed; /**< Threads in the core; threads that run and are not in it. */
	uint64_t stopped_us; /**< The longest stop of one of them. */
};

/**
 * Add the host's half: registers and stacks of all threads, each stopped for a moment of its own,
 * and what a debugger needs to know of the process.  Whatever is still stopped runs again when this
 * returns or the worker dies, because the thread that seized it ends then.
 * @param deadline_ns  For all threads together; monotonic.
 * @return 0, -ENOMEM, -ENOTSUP (not on this architecture).
 */
int kfd_core_add_host(struct kfd_core *c, uint64_t deadline_ns, struct kfd_core_threads *ret);
/**
 * Add what the host's half would add, without a stop, to learn how large it is.
 * @return its bytes besides those of memory that is read later.
 */
uint64_t kfd_core_estimate_host(struct kfd_core *c);
/**
 * @param h  NULL: no files are known.
 * @return the next address behind @p after where a mapping begins with the first byte of a file; UINT64_MAX if there
 *         is none.
 */
uint64_t kfd_core_next_file(const struct kfd_core_host *h, uint64_t after);
/** Free the host's half; accepts NULL. */
void kfd_core_host_free(struct kfd_core_host *h);

/* core_memory.c */

/**
 * Add a copy of whole pages, without pages that are in the core already.
 * @param data  Borrowed.
 */
void kfd_core_add_copy(struct kfd_core *c, uint64_t address, uint64_t size, uint8_t *data);

/** Add the pages of a range, to be read later, without pages that are in the core already. */
void kfd_core_add(struct kfd_core *c, uint64_t address, uint64_t size);
/**
 * Guess how many bytes of the save area of one die a suspend will fill.
 * @param size  Bytes of the area.
 * @return what the queue's last suspend filled and a quarter more, at most @p size; @p size if the
 *         queue was never suspended; 0 if it had no waves then.
 */
uint64_t kfd_core_likely_size(const struct kfd_core *c, uint64_t area, uint64_t size);
/**
 * Make room for what the queues' waves can have saved, and let the kernel provide the pages that
 * are likely to be needed.  Called before the stop.
 */
void kfd_core_make_room(struct kfd_core *c, const struct target_waves_from *from);
/** Give back the room that was not needed. */
void kfd_core_trim(struct kfd_core *c);
/**
 * wave_capture.take, with the core as ctx: copy counters, packets and saved waves of a round.
 * @return a memory that reads from the copies, borrowed.
 */
const struct memory *kfd_core_copy_round(struct wave_capture *w, uint32_t round);
/** Sort the pieces by address. */
void kfd_core_sort_pieces(struct kfd_core *c);

#endif /* WORKER_KFD_CORE_WRITE_H */
