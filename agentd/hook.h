/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_HOOK_H
#define AGENTD_HOOK_H

/**
 * @file hook.h
 * What spawn tells gpu-agent-hook, and what that one answers.
 *
 * spawn starts one runner for each run of a hook, or one for a look at the files of all hooks.  It
 * finds the document as descriptor 0, a sealed memfd with jobs (struct hook_job[]) as HOOK_FD_JOB,
 * and a SOCK_SEQPACKET pair as HOOK_FD_LINK, on which it sends a struct hook_report for each job and
 * whose end of file tells it to stop.
 */

#include <stdint.h>
#include <sys/types.h>

#define HOOK_FD_JOB  3
#define HOOK_FD_LINK 4

#define HOOK_RULE_MAX	64
#define HOOK_PATH_MAX	1024
#define HOOK_USER_MAX	33
#define HOOK_ENV_MAX	8192
#define HOOK_WHY_MAX	200
#define HOOK_OUTPUT_MAX 16384

/** Where a hook is stopped.  Each process has the memory and processor time for itself. */
struct hook_limits {
	uint32_t timeout_ms;
	uint32_t output_bytes; /**< Kept of standard output and error; at most HOOK_OUTPUT_MAX. */
	uint64_t memory_bytes; /**< Address space. */
};

#define HOOK_TIMEOUT_MS_DEFAULT	  10000
#define HOOK_TIMEOUT_MS_MAX	  300000
#define HOOK_MEMORY_BYTES_DEFAULT ((uint64_t)1 << 30)

struct hook_job {
	char path[HOOK_PATH_MAX];
	char user[HOOK_USER_MAX]; /**< To become; "": uid and gid. */
	uint8_t check;		  /**< Look at the file only. */
	uint8_t root_allowed;	  /**< uid 0 is what the administrator wants. */
	uint32_t uid, gid;
	struct hook_limits limits;
	uint32_t env_size;	/**< NUL-terminated NAME=VALUE strings. */
	char env[HOOK_ENV_MAX];
};

/** How a run ended. */
enum hook_end {
	HOOK_END_EXIT = 0, /**< By itself: exit status. */
	HOOK_END_SIGNAL,   /**< By a signal that the agent did not send. */
	HOOK_END_TIMEOUT,  /**< Killed at its deadline. */
	HOOK_END_REFUSED,  /**< The file or the user is not acceptable: `why`. */
	HOOK_END_FAILED,   /**< It could not be started: `why`. */
	HOOK_END_STOPPED,  /**< The agent stopped. */
	HOOK_END_COUNT,
};

struct hook_report {
	uint32_t end;	      /**< enum hook_end. */
	int32_t status;	      /**< Exit status or signal number. */
	uint32_t uid;	      /**< It ran, or would run, as this user. */
	uint32_t left;	      /**< Processes that it left behind, and that were killed. */
	uint64_t duration_us;
	uint64_t output_total; /**< Bytes written; more than output_size: the rest was dropped. */
	uint32_t output_size;
	char why[HOOK_WHY_MAX]; /**< Of refusals and failures, or "". */
	char output[HOOK_OUTPUT_MAX];
};

/** Since the start of the agent. */
struct hook_counts {
	uint64_t runs;	   /**< Ended, in whatever way. */
	uint64_t failures; /**< Of those: all but exit status 0. */
	uint64_t timeouts; /**< Of those: killed at the deadline. */
	uint64_t dropped;  /**< Not run: too many waited. */
};

/** One rule's hook: what it is, whether its file is in order, how it went. */
struct hook_info {
	char rule[HOOK_RULE_MAX];
	char path[HOOK_PATH_MAX];
	char user[HOOK_USER_MAX];
	uint32_t timeout_ms;
	uint32_t checked_uid; /**< The file was judged for this user. */
	uint32_t check;	      /**< enum hook_end: HOOK_END_EXIT is in order, else `why`. */
	char why[HOOK_WHY_MAX];
	struct hook_counts counts;
	uint32_t running, waiting;
	uint32_t last_end;    /**< Of the last run, when counts.runs says that there was one. */
	int32_t last_status;
	uint64_t last_us;     /**< When it ended, microseconds since 1970. */
	uint64_t last_duration_us;
};

/** A word for it: "exit", "signal", "timeout", ...; "unknown". */
const char *hook_end_name(uint32_t end);

#endif /* AGENTD_HOOK_H */
