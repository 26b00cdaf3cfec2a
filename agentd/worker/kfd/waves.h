/* SPDX-License-Identifier: MIT */
#ifndef WORKER_KFD_WAVES_H
#define WORKER_KFD_WAVES_H

/** @file waves.h  One look at all waves: shared by waves*.c, for nobody else. */

#include <string.h>

#include <kfdtrap_wave.h>

#include "agentd/worker/kfd/kfd.h"
#include "symbols/aql.h"

/* Several times what the largest nodes can hold. */
#define WAVES_MAX  (UINT32_C(1) << 18)
/* Those that one thread fetches at a time: about 0.1 ms. */
#define WAVES_SHARE 256u
#define XCCS_MAX   32u
#define STACKS_MAX ((size_t)32 << 20)
/* Copied of a ring, from the oldest one on that is not done: waves come from the first few. */
#define PACKETS_MAX 64u

enum capture_state {
	CAPTURE_RUNNING, /* not stopped yet */
	CAPTURE_OFF,     /* its waves are saved */
	CAPTURE_SKIPPED,
	CAPTURE_FAILED,
};

/* A queue whose waves are wanted. */
struct queue_capture {
	const struct target_queue *queue;
	const struct target_device *device;
	const struct kfdtrap_wave_arch *arch;
	struct target_queue_stop *stop; /* what the result says of it */
	enum capture_state state;
	bool must_resume; /* stopped for this look, not under a lease */
	uint32_t round;
	uint64_t read, write; /* packets */
	bool has_read, has_write;
	uint8_t *packets; /* room for PACKETS_MAX */
	uint32_t n_packets, n_straight; /* all; those in front of the end of the ring */
	bool has_straight, has_wrapped;
	/* Waves that name a packet which is none, and what is wrong with the first. */
	uint32_t n_lost;
	enum kfdtrap_wave_problem lost;
};

enum save_area_state {
	SAVE_AREA_NOT_READ,
	SAVE_AREA_HEADER_UNREADABLE,
	SAVE_AREA_STACK_TOO_LARGE,
	SAVE_AREA_STACK_UNREADABLE,
	SAVE_AREA_BROKEN, /* see problem */
	SAVE_AREA_READ,
};

/* The saved waves of a queue on one compute die. */
struct save_area {
	struct queue_capture *capture;
	uint64_t address;
	uint32_t xcc;
	enum save_area_state state;
	bool got; /* what was asked for last */
	enum kfdtrap_wave_problem problem;
	uint8_t raw_header[KFDTRAP_WAVE_HEADER_SIZE];
	struct kfdtrap_wave_header header;
	size_t stack; /* where its control stack is in wave_capture.stacks */
	size_t first; /* its waves in wave_capture.hot */
};

/*
 * Queues stop all at once and are let go in rounds, as soon as their waves are copied: a device for
 * each round, because a resume interrupts what runs on that device (resume_queues()).  The last round
 * is for queues under a lease, which nobody waits for.
 */
struct wave_capture {
	struct target_kfd *k;
	struct rpc_arena *arena;
	const struct target_waves_from *from;
	struct target_queue_stop *stops; /* one for each queue */
	uint64_t begin_ns, deadline_ns;
	uint64_t kernel_ns; /* spent in suspend and resume */
	uint32_t n_rounds;
	_Atomic bool late;

	struct queue_capture *captures;
	size_t n_captures;
	struct save_area *areas;
	size_t n_areas;

	/* Memory is had before the stop; what is never touched costs nothing. */
	uint8_t *stacks;	     /* STACKS_MAX */
	size_t stacks_size;
	uint8_t *packets; /* of all captures */
	uint8_t *hot; /* KFDTRAP_WAVE_HOT_SIZE for each wave found, WAVES_MAX */
	uint64_t *places; /* for each of them: the address of those bytes */
	bool *copied; /* for each of them */
	size_t n_hot;

	const char **missing;
	size_t n_missing, missing_capacity;

	/*
	 * Before the waves of a round are fetched: copies all of them, and tells where they are to be
	 * read now.  NULL: from the target.
	 */
	const struct memory *(*take)(struct wave_capture *w, uint32_t round);
	void *take_ctx;
	/* Behind wave_capture_copy(), while the queues of the round still stand.  NULL: nothing
	 * more. */
	void (*more)(struct wave_capture *w, uint32_t round);
	void *more_ctx;
};

static inline uint32_t device_dies(const struct target_device *d)
{
	return d->units && d->units <= XCCS_MAX ? d->units : 1;
}

static inline bool save_area_is_wanted(const struct save_area *a)
{
	return a->capture->state == CAPTURE_OFF;
}

static inline bool queue_capture_is_in(const struct queue_capture *l, uint32_t round)
{
	return l->state == CAPTURE_OFF && l->round == round;
}

/**
 * A packet that was copied, as the dispatch that it was: the device marks what it has taken as
 * invalid, and a wave comes from nothing but a dispatch.
 * @param i  From the read counter on.
 * @return false: it was not copied.
 */
static inline bool queue_capture_packet(const struct queue_capture *l, uint64_t i,
					uint8_t ret[SYMBOLS_AQL_PACKET_SIZE])
{
	if (i >= l->n_packets || !(i < l->n_straight ? l->has_straight : l->has_wrapped))
		return false;
	memcpy(ret, l->packets + i * SYMBOLS_AQL_PACKET_SIZE, SYMBOLS_AQL_PACKET_SIZE);
	ret[0] = SYMBOLS_AQL_KERNEL_DISPATCH;
	return true;
}

static inline void wave_capture_walk(const struct wave_capture *w, const struct save_area *a,
				     struct kfdtrap_wave_iter *iter)
{
	kfdtrap_wave_iter_init(iter, a->capture->arch, &a->header, w->stacks + a->stack,
			       a->header.control_stack_size, (uint32_t)(WAVES_MAX - a->first));
}

/* waves.c */

/**
 * All of it: stop, copy, let go, decode.
 * @param w  With k, arena and from, and more if wanted; wave_capture_deinit() it, failed or not.
 */
int wave_capture_run(struct wave_capture *w, struct target_waves *ret, struct agent_err *err);
void wave_capture_deinit(struct wave_capture *w);

/** @param text  NULL adds nothing: the arena is exhausted, which it remembers itself. */
void wave_capture_add_missing(struct wave_capture *w, const char *text);

/* waves_copy.c */

/** The deadline has passed: copy no more.  Remembered in late. */
bool wave_capture_is_late(struct wave_capture *w);
/** What decoding needs of the queues of a round that are off, until the deadline. */
void wave_capture_copy(struct wave_capture *w, uint32_t round);

/* waves_decode.c */

/** What decoding the waves of an area needs to know. */
struct kfdtrap_wave_context wave_capture_context(const struct wave_capture *w,
						 const struct save_area *a);
/** What was copied becomes waves, what was not is told.  @return 0, -ENOMEM. */
int wave_capture_decode(struct wave_capture *w, struct target_waves *ret);

#endif /* WORKER_KFD_WAVES_H */
