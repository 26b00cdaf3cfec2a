/* SPDX-License-Identifier: MIT */
#ifndef WORKER_KFD_CORE_WRITE_H
#define WORKER_KFD_CORE_WRITE_H

/** @file core_write.h  A core of a process: shared by core_*.c, for nobody else. */

#include "agentd/worker/kfd/waves.h"
#include "agentd/worker/process/mappings.h"
#include "agentd/worker/process/thread_pool.h"
#include "corefile/amdgpu_write.h"

/* Copies at most: the worker's address space ends at 2 GiB (agentd/sandbox.c). */
#define KFD_CORE_COPIED_MAX (UINT64_C(1) << 30)

/** Pages that belong into the core. */
struct kfd_core_piece {
	uint64_t address, size;
	uint8_t *data; /**< Copied while its queue stood still; NULL: still to be read. */
};

struct kfd_core_job;

struct kfd_core {
	struct target_kfd *k;
	struct amdcore core;
	struct amdcore_image *image;
	struct kfd_core_piece *pieces;
	size_t n_pieces, capacity;
	bool too_much, no_memory;
	uint32_t ticket;
	uint8_t runtime[AMDCORE_RUNTIME_SIZE];
	void *devices, *queues;
	struct amdcore_note head;
	void *head_text;

	/* What copies lie in, one behind the other. */
	uint8_t *store;
	uint64_t store_size, store_used;
	struct memory copies; /* reads from them */
	/* Of the copying under way. */
	struct kfd_core_job *jobs;
	size_t n_jobs, jobs_capacity;
	uint64_t deadline_ns;
	bool late; /**< Atomic. */

	/* As long as kfd_core_begin() lasts: what the caller is told. */
	struct rpc_arena *arena;
	struct target_core *told;
	size_t missing_capacity;

	uint8_t *list; /**< Pages of the list of code objects. */
	struct kfd_core_host *host; /**< Of a unified core, or NULL. */
};

/* core_write.c */

/** @param text  NULL adds nothing: the arena is exhausted, which it remembers itself. */
void kfd_core_missing(struct kfd_core *c, const char *text);
/** Can it be read, and is it memory?  Mappings of devices are, of a GPU's memory only. */
bool kfd_core_is_memory(const struct mapping *m);

/* core_code.c */

/**
 * Code objects and what else explains the waves, to be read later.  What of it is not in the core
 * is told; of a full core, only what no mapping tells.
 */
void kfd_core_add_code(struct kfd_core *c, const struct target_waves_from *from,
		       const struct target_waves *waves, bool full);

/* core_threads.c */

struct kfd_core_threads {
	uint32_t n, n_missed; /**< In the core; not in it although they run. */
	uint64_t stopped_us; /**< The longest stop of one of them. */
};

/**
 * The half of the host: registers and stacks of all threads, each stopped for a moment of its own,
 * and what a debugger needs to know of the process.  Whatever is still stopped runs again when this
 * returns or the worker dies: threads are seized by a thread that ends here.
 * @return 0, -ENOMEM, -ENOTSUP (not on this architecture).
 */
int kfd_core_add_host(struct kfd_core *c, uint64_t deadline_ns, struct kfd_core_threads *ret);
/** What that would be, without a stop.  @return bytes beside memory that is read later. */
uint64_t kfd_core_estimate_host(struct kfd_core *c);
/** NULL is allowed. */
void kfd_core_host_free(struct kfd_core_host *h);

/* core_memory.c */

/** A copy, borrowed, of whole pages, without those that are there already. */
void kfd_core_add_copy(struct kfd_core *c, uint64_t address, uint64_t size, uint8_t *data);

/** The pages of a range, without those that are there already: to be read later. */
void kfd_core_add(struct kfd_core *c, uint64_t address, uint64_t size);
/**
 * Of the save area of one die, at most @p size: what its queue left there when it was last suspended, and a
 * quarter more; all, if it never was; 0, if it had no waves.
 */
uint64_t kfd_core_likely_size(const struct kfd_core *c, uint64_t area, uint64_t size);
/** Room for what the queues' waves can have saved, as far as possible in memory already. */
void kfd_core_make_room(struct kfd_core *c, const struct target_waves_from *from);
/** What was not needed of it goes back. */
void kfd_core_trim(struct kfd_core *c);
/** wave_capture.take, with the core as take_ctx: counters, packets and saved waves of a round. */
const struct memory *kfd_core_copy_round(struct wave_capture *w, uint32_t round);
/** By address. */
void kfd_core_sort_pieces(struct kfd_core *c);

#endif /* WORKER_KFD_CORE_WRITE_H */
