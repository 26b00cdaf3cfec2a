/* SPDX-License-Identifier: MIT */
#ifndef WORKER_KFD_WAVES_H
#define WORKER_KFD_WAVES_H

/**
 * @file waves.h
 * One capture of all waves, as the files of this directory share it.  No other directory includes
 * it.
 */

#include <string.h>

#include <kfdtrap_wave.h>

#include "agentd/worker/kfd/kfd.h"
#include "symbols/aql.h"

/* Most waves of one capture: several times what the largest nodes can hold. */
#define WAVES_MAX  (UINT32_C(1) << 18)
/* How many waves one thread copies at a time, which takes about 0.1 ms. */
#define WAVES_SHARE 256u
#define XCCS_MAX   32u
/* Most bytes of all control stacks together. */
#define STACKS_MAX ((size_t)32 << 20)
/*
 * Most packets that are copied of a ring, from the oldest one on that is not done: waves come from
 * the first few.
 */
#define PACKETS_MAX 64u
/*
 * Arguments are copied of so many dispatches, of the oldest ones of each queue; so many bytes of
 * each.  Waves of others, and longer arguments, are rare: those are read afterwards.
 */
#define ARGUMENT_COPIES_MAX	    64u
#define ARGUMENT_COPIES_OF_QUEUE  2u
#define ARGUMENT_COPY_BYTES	    512u

/* What the stop has done to a queue. */
enum capture_state {
	CAPTURE_RUNNING, /* The queue has not been stopped yet. */
	CAPTURE_OFF,     /* The queue is off the hardware, and its waves are saved. */
	CAPTURE_SKIPPED, /* The kernel did not stop it: see why_skipped(). */
	CAPTURE_FAILED,  /* Its preemption failed. */
};

/* A queue whose waves are wanted. */
struct queue_capture {
	const struct rpc_queue *queue;
	const struct target_device *device;
	const struct kfdtrap_wave_arch *arch;
	struct target_queue_stop *stop; /* Its entry in the result. */
	enum capture_state state;
	bool must_resume; /* It was stopped for this capture and is not under a lease. */
	uint32_t round;
	uint64_t read, write; /* The packet counters. */
	bool has_read, has_write;
	uint8_t *packets; /* Room for PACKETS_MAX packets. */
	uint32_t n_packets, n_straight; /* All packets; those in front of the end of the ring. */
	bool has_straight, has_wrapped; /* Whether either part was copied. */
	/* How many waves name a packet that cannot be theirs, and why the first cannot. */
	uint32_t n_lost;
	enum kfdtrap_wave_problem lost;
};

/* The arguments of a packet that is not done. */
struct argument_copy {
	const struct queue_capture *capture;
	uint64_t dispatch;
	bool got;
};

enum save_area_state {
	SAVE_AREA_NOT_READ,
	SAVE_AREA_HEADER_UNREADABLE,
	SAVE_AREA_STACK_TOO_LARGE,
	SAVE_AREA_STACK_UNREADABLE,
	SAVE_AREA_BROKEN, /* The member `problem` says why. */
	SAVE_AREA_READ,
};

/* The saved waves of a queue on one compute die. */
struct save_area {
	struct queue_capture *capture;
	uint64_t address;
	uint32_t xcc;
	enum save_area_state state;
	bool got; /* The last copy that was asked for it succeeded. */
	enum kfdtrap_wave_problem problem;
	uint8_t raw_header[KFDTRAP_WAVE_HEADER_SIZE];
	struct kfdtrap_wave_header header;
	size_t stack; /* Offset of its control stack in wave_capture.stacks. */
	size_t first; /* Number of its first wave in wave_capture.hot. */
	size_t first_named; /* Number of its first copy in wave_capture.named. */
};

/* The states of the named barriers of a workgroup (gfx12.5). */
struct named_copy {
	uint64_t address;
	size_t wave; /* Number of its first wave in wave_capture.hot; they ascend. */
	bool got;
	uint32_t words[KFDTRAP_WAVE_NAMED_BARRIERS];
};

/*
 * One capture.
 *
 * All queues stop at once.  They are let go in rounds, as soon as their waves are copied: one round
 * for each device, because a resume interrupts what runs on that device (resume_queues()).  The
 * last round is for queues under a lease, which nobody waits for.
 */
struct wave_capture {
	struct target_kfd *k;
	struct rpc_arena *arena;
	const struct target_waves_from *from;
	struct target_queue_stop *stops; /* One for each queue. */
	uint64_t begin_ns, deadline_ns;
	uint64_t kernel_ns; /* Time spent in suspend and resume. */
	uint32_t n_rounds;
	_Atomic bool late; /* The deadline has passed, so nothing more is copied. */

	struct queue_capture *captures;
	size_t n_captures;
	struct save_area *areas;
	size_t n_areas;

	/* This memory is allocated before the stop; pages that are never touched cost nothing. */
	uint8_t *stacks;	     /* STACKS_MAX bytes. */
	size_t stacks_size;
	uint8_t *packets; /* The packets of all captures. */
	uint8_t *hot; /* KFDTRAP_WAVE_HOT_SIZE bytes for each wave found, WAVES_MAX at most. */
	uint64_t *places; /* The address of those bytes in the target, for each wave. */
	bool *copied; /* Whether those bytes were copied, for each wave. */
	size_t n_hot;
	struct named_copy *named; /* WAVES_MAX; NULL: no device of the capture saves any. */
	size_t n_named;
	struct argument_copy arguments[ARGUMENT_COPIES_MAX];
	uint8_t *argument_bytes; /* ARGUMENT_COPY_BYTES for each of them, in the arena. */
	size_t n_arguments;

	const char **missing;
	size_t n_missing, missing_capacity;

	/*
	 * Who wants more of the waves than their states: a core, or the registers and the memory of
	 * some.  Both functions run while the queues of the round stand still, and may be NULL.
	 */

	/*
	 * Called when the waves of a round have been found: it may copy all of their saved bytes,
	 * and returns the memory from which the waves are read then.  NULL: from the target.
	 */
	const struct memory *(*take)(struct wave_capture *w, uint32_t round);
	/* Called after wave_capture_copy(). */
	void (*more)(struct wave_capture *w, uint32_t round);
	void *ctx; /* For these functions. */
};

/** @return the number of compute dies, 1 if the device's own number makes no sense. */
static inline uint32_t device_dies(const struct target_device *d)
{
	return d->rpc.units && d->rpc.units <= XCCS_MAX ? d->rpc.units : 1;
}

/** @return whether the area has waves: its queue is off the hardware. */
static inline bool save_area_is_wanted(const struct save_area *a)
{
	return a->capture->state == CAPTURE_OFF;
}

/** @return whether the queue's waves are copied in this round. */
static inline bool queue_capture_is_in(const struct queue_capture *l, uint32_t round)
{
	return l->state == CAPTURE_OFF && l->round == round;
}

/**
 * Get a packet that was copied, as the dispatch that it was: the device marks packets that it has
 * taken as invalid, and a wave comes from nothing but a dispatch.
 * @param i  Number of the packet, from the read counter on.
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

/** Begin a walk over the waves of an area, by its copied control stack. */
static inline void wave_capture_walk(const struct wave_capture *w, const struct save_area *a,
				     struct kfdtrap_wave_iter *iter)
{
	kfdtrap_wave_iter_init(iter, a->capture->arch, &a->header, w->stacks + a->stack,
			       a->header.control_stack_size, (uint32_t)(WAVES_MAX - a->first));
}

/* waves.c */

/**
 * Do all of a capture: stop the queues, copy, let them go, decode.
 * @param w    The caller has set k, arena and from, and take, more and ctx if wanted; release it with
 *             wave_capture_deinit(), also after a failure.
 * @param ret  Filled in on failure, too: which queues were stopped, and how long.
 * @return 0 or negative with @p err.
 */
int wave_capture_run(struct wave_capture *w, struct target_waves *ret, struct agent_err *err);
/** Free the memory of a capture. */
void wave_capture_deinit(struct wave_capture *w);

/** Add a sentence about what the result lacks. */
void wave_capture_missing(struct wave_capture *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* waves_copy.c */

/** @return whether the deadline has passed, so that nothing more is copied; noted in `late`. */
bool wave_capture_is_late(struct wave_capture *w);

/** Collects pieces until there are enough for one system call.  The others are 0 at first. */
struct wave_batch {
	struct wave_capture *w;
	const struct memory *memory;
	size_t n;
	struct memory_piece pieces[WAVES_SHARE];
	bool *done[WAVES_SHARE]; /* Set when the piece was read. */
};

/** Add a piece.  @param done  Cleared, and set once the piece has been read. */
void wave_batch_add(struct wave_batch *b, uint64_t address, void *buf, uint32_t size, bool *done);
/** Read what was added; when it is late, nothing. */
void wave_batch_flush(struct wave_batch *b);

/** Copy what decoding needs of those queues of a round that are off, until the deadline. */
void wave_capture_copy(struct wave_capture *w, uint32_t round);

/* waves_decode.c */

/**
 * A walk over the waves of an area that were found, with the states of those that were copied.
 * It needs nothing but the copies, so it may run while the queues stand still.
 */
struct wave_cursor {
	const struct wave_capture *capture;
	const struct save_area *area;
	struct kfdtrap_wave_iter iter;
	struct kfdtrap_wave_context context;
	size_t at; /* Number of the next wave in wave_capture.hot. */
	struct kfdtrap_wave_layout layout;
	bool copied;
	const uint8_t *hot; /* Its KFDTRAP_WAVE_HOT_SIZE bytes; meaningful when copied. */
	enum kfdtrap_wave_problem problem; /* Why there is no state; meaningful when copied. */
	struct kfdtrap_wave_state state;
	size_t next_named;
	const uint32_t *named; /* Of a first wave whose named barriers were copied; else NULL.  In the capture. */
};

/** Begin in front of the first wave of an area whose control stack was read. */
void wave_cursor_init(struct wave_cursor *c, const struct wave_capture *w,
		      const struct save_area *a);
/** Go on to the next wave.  @return false: there is none. */
bool wave_cursor_next(struct wave_cursor *c);

/** @return the facts about target and device with which the waves of an area are decoded. */
struct kfdtrap_wave_context wave_capture_context(const struct wave_capture *w,
						 const struct save_area *a);
/** Decode the waves that were copied, and list what was not.  @return 0, -ENOMEM. */
int wave_capture_decode(struct wave_capture *w, struct target_waves *ret);

#endif /* WORKER_KFD_WAVES_H */
