/* SPDX-License-Identifier: MIT */
#ifndef CTL_RECORD_RECORDING_H
#define CTL_RECORD_RECORDING_H

/**
 * @file recording.h
 * What the captures of one process have seen: stacks, and how many captures each had.
 *
 * Every capture counts the same, and is divided among the places where its waves were.  Texts are what the process
 * chose: writers make them harmless.  Memory is bounded, whatever is captured: what no longer fits counts as
 * "(other places)".
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/out.h"
#include "ctl/record/interval.h"
#include "rpc_gen.h"

/** What a capture counts, so that its parts are whole numbers. */
#define RECORDING_CAPTURE UINT64_C(1000000)
/** Frames of a stack: of a deeper one, the outermost functions are left out. */
#define RECORDING_DEPTH_MAX 80
/** Most different stacks, and most different frames. */
#define RECORDING_STACKS_MAX 65536

enum recording_kind {
	RECORDING_ROOT,	    /**< The process, or its threads. */
	RECORDING_KERNEL,   /**< A kernel. */
	RECORDING_FUNCTION, /**< A function of it, or of a thread. */
	RECORDING_PLACE,    /**< A line or an address within the frame in front of it, or what a thread does there. */
	RECORDING_STATE,    /**< Why there is no place: few words, which there is always room for. */
};

struct recording_frame {
	enum recording_kind kind;
	uint32_t id; /**< Position in the order in which frames were seen, from 0 on. */
	const char *name;
	const char *file; /**< As the compiler wrote it; "" where it is not known. */
	uint32_t line;	  /**< Of a place; 0: not known. */
};

struct recording_stack {
	bool threads;				 /**< Of threads on the processors, and not of waves. */
	uint32_t depth;				 /**< At least 2. */
	const struct recording_frame **frames; /**< Outermost first; frames[0] is the root. */
	uint64_t weight;			 /**< In parts of captures: RECORDING_CAPTURE is a whole one. */
};

struct recording {
	struct rpc_arena arena; /**< Frames, stacks and their texts. */
	const char *process;
	struct recording_frame **frames; /**< Sorted, to find them. */
	size_t n_frames, frames_capacity;
	struct recording_stack **stacks; /**< Sorted, to find them. */
	size_t n_stacks, stacks_capacity;
	uint32_t captures;	  /**< Of waves. */
	uint32_t thread_captures; /**< Of threads. */
	bool full;		  /**< Something counts as "(other places)". */
};

/** Begin.  @param process  What the process is called; copied.  @return 0, -ENOMEM. */
int recording_init(struct recording *r, const char *process);
/** Free everything; a zeroed object is accepted. */
void recording_deinit(struct recording *r);
/** Forget all captures, and keep the process.  @return 0, -ENOMEM. */
int recording_reset(struct recording *r);

/** Count a capture: what waves do, or that there are none.  @return 0, -ENOMEM. */
int recording_add_waves(struct recording *r, const struct rpc_gpu_snapshot_result *s);
/** Count a capture of threads.  @return 0, -ENOMEM. */
int recording_add_threads(struct recording *r, const struct rpc_host_stacks_result *h);

/* For sample.c: the parts of a stack. */

/** Find a frame, or add it; a long name is cut.  @return NULL: there is no room, it is to count as another place. */
const struct recording_frame *recording_frame(struct recording *r, enum recording_kind kind, const char *name,
					      const char *file, uint32_t line);
/** Add to the weight of a stack; one with a NULL among its frames is another place.  @return 0, -ENOMEM. */
int recording_add(struct recording *r, bool threads, const struct recording_frame *const *frames, size_t depth,
		  uint64_t weight);

/** A stack and what is known of its share. */
struct recording_share {
	const struct recording_stack *stack;
	double share;
	struct interval interval;
};

/** The share of captures that a weight is, and its interval. */
struct recording_share recording_share(const struct recording *r, bool threads, uint64_t weight);
/**
 * The stacks with their shares, largest first.
 * @param a    Holds the list.
 * @param ret  One for each stack.
 * @return 0, -ENOMEM, -EFBIG (arena).
 */
int recording_shares(const struct recording *r, struct rpc_arena *a, struct recording_share **ret);
/**
 * The stacks in an order in which all that begin with the same frames are neighbours, those of waves first.
 * @return as above.
 */
int recording_sorted(const struct recording *r, struct rpc_arena *a, const struct recording_stack *const **ret);

/** What a recording was like, for those who read the files. */
struct recording_facts {
	uint64_t begin_us;    /**< Microseconds since 1970. */
	uint64_t duration_us; /**< How long it went on. */
	uint64_t stopped_us;  /**< How long queues stood still in that time, as the agent has measured. */
	uint64_t unmeasured_us; /**< For so long at most in calls that failed; not in stopped_us. */
	uint32_t budget_ppm;  /**< What was allowed of that, in millionths of the duration. */
	uint32_t measured_ppm; /**< What it was. */
};

/** Append what a recording was like as a sentence without a full stop: its rate, and what it cost. */
void recording_put_facts(struct out *o, const struct recording *r, const struct recording_facts *f);

/*
 * The files.  Each appends one; what a process has put into its names cannot break their form.  They return 0, -ENOMEM
 * or -EFBIG.
 */

/** collapsed.c: a line for each stack, `process;kernel;function;file:line N`; a capture counts 1000. */
int recording_write_collapsed(struct out *o, const struct recording *r);
/** flame.c: a flame graph as SVG. */
int recording_write_flame(struct out *o, const struct recording *r, const struct recording_facts *f);
/** speedscope.c: a frame as an element of a list of JSON, which is also how the verbs show one. */
void recording_put_frame(struct out *o, const struct recording_frame *f);
/** speedscope.c: for www.speedscope.app; a weight of 1 is a capture. */
int recording_write_speedscope(struct out *o, const struct recording *r, const struct recording_facts *f);
/** pprof.c: for pprof, not compressed; thousandths of captures, and as a share of the time that it went on. */
int recording_write_pprof(struct out *o, const struct recording *r, const struct recording_facts *f);

#endif /* CTL_RECORD_RECORDING_H */
