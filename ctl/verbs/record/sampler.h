/* SPDX-License-Identifier: MIT */
#ifndef CTL_VERBS_RECORD_SAMPLER_H
#define CTL_VERBS_RECORD_SAMPLER_H

/**
 * @file sampler.h
 * One small capture of a process after the other, in one session and under a budget: what `record` and `top` share.
 *
 * Each capture is one call of the agent, which stops queues and lets them run before it answers, whatever becomes of
 * this program meanwhile: between two captures nobody here has anything stopped.
 */

#include "ctl/record/budget.h"
#include "ctl/record/recording.h"

struct ctl;

/** Why no more captures are taken. */
enum sampler_end {
	SAMPLER_GOES_ON,      /**< The time that sampler_run() had is over. */
	SAMPLER_SIGNAL,	      /**< A signal; see sampler.signo. */
	SAMPLER_KEY,	      /**< Something was typed; see sampler.keys_fd. */
	SAMPLER_EXITED,	      /**< The process ended. */
	SAMPLER_LOST,	      /**< The session or the agent is gone; ctl.err says why. */
	SAMPLER_FAILED,	      /**< This program failed, as with its memory; ctl.err says why. */
};

/** What the user asked for; see sampler_parse(). */
struct sampler_options {
	const char *overhead, *rate;
	bool host;
};

struct sampler {
	struct ctl *c;
	struct recording recording;
	struct budget budget;
	struct rpc_arena answers; /**< Of one capture. */
	uint64_t random;
	uint64_t begin_us; /**< Microseconds since 1970. */
	uint64_t begin_ns, begin_stopped_ns; /**< The same on the clock of the budget, and what it had paid for. */
	int signal_fd; /**< Of signals_hold(). */
	int keys_fd;   /**< Ends sampler_run() when it can be read; -1: there is none. */
	int signo;     /**< The signal that ends it; 0: none yet. */
	bool host;	/**< Threads, too. */
	bool on_screen; /**< A page is on the terminal: what is missing is told there alone. */
	uint64_t shortest_us, longest_us; /**< Stop of a capture; the first one is 0 where there was none. */
	uint32_t incomplete; /**< Captures that lacked something, and count nevertheless. */
	uint32_t cut;	     /**< Captures that do not count: their stop budget ended before all waves were seen. */
	uint32_t refused;    /**< Times that nothing might be stopped. */
	uint32_t failed;     /**< Calls that failed, and were tried again. */
	uint64_t unmeasured_ns; /**< What calls that failed have stopped at most; the budget has paid for it. */
	char missing[240];   /**< The first thing that was missing; "" if nothing was. */
};

/** The options of both verbs as rows of their tables. */
#define SAMPLER_OPTIONS(o)                                                                                   \
	{ "overhead", 0, ARGV_STRING, &(o).overhead, "PERCENT",                                              \
	  "queues stand still for at most so much of the time (default 1%)" },                               \
	{ "rate", 0, ARGV_STRING, &(o).rate, "N", "at most N captures a second (default 100)" },             \
	{ "host", 0, ARGV_FLAG, &(o).host, NULL, "also what its threads do on the processors" }

/**
 * Attach to a process, and be ready for sampler_run(); the options are looked at first.
 * @param ret  Release with sampler_end(), also after a failure.
 * @return 0, or negative with ctl.err.
 */
int sampler_begin(struct ctl *c, const struct sampler_options *o, const char *pid_text, struct sampler *ret);
/** Leave the session. */
void sampler_end(struct sampler *s);
/**
 * Take captures.
 * @param until_ns   Come back then, in nanoseconds of clock_now_ns().
 * @param end_ns     When the whole recording ends, whose share of stopped time is kept; 0: that is not known.
 */
enum sampler_end sampler_run(struct sampler *s, uint64_t until_ns, uint64_t end_ns);
/** Forget what was seen, so that what follows is a recording of its own; the budget goes on.  @return as above. */
int sampler_next(struct sampler *s);
/** What the recording was like so far. */
struct recording_facts sampler_facts(const struct sampler *s);
/** The first thing that is missing; "" if every capture was whole and counts, and there is one. */
const char *sampler_missing(const struct sampler *s);
/** Whether nothing is missing. */
bool sampler_is_complete(const struct sampler *s);
/**
 * Append the shares as tables, the largest first: those of waves, and those of threads.
 * @param most  Rows of each; 0: all.
 * @return 0, or negative with ctl.err.
 */
int sampler_show(struct sampler *s, size_t most);
/** Append everything as one JSON document, with why it ended.  @return as above. */
int sampler_print_json(struct sampler *s, const struct recording_facts *f, enum sampler_end end);

#endif /* CTL_VERBS_RECORD_SAMPLER_H */
