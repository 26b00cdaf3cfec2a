/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_HOOK_H
#define AGENTD_HOOK_H

/**
 * @file hook.h
 * What the rules process tells gpu-agent-hook, the runner of hooks, and what the runner answers.
 *
 * The rules process starts one runner for each run of a hook, or one runner that checks the files of all hooks.
 * The runner finds the document as descriptor 0, a sealed memfd with jobs (struct hook_job[]) as
 * HOOK_FD_JOB, and its end of a SOCK_SEQPACKET pair as HOOK_FD_LINK.  On that link the runner sends
 * a struct hook_report for each job; the end of file on it tells the runner to stop.
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

/**
 * Limits of a hook.  Those of memory and processor time hold for each process of the hook alone,
 * not for all of them together.
 */
struct hook_limits {
	uint32_t timeout_ms;
	uint32_t output_bytes; /**< Bytes of output and errors that are kept, to HOOK_OUTPUT_MAX. */
	uint64_t memory_bytes; /**< Address space of each process. */
};

#define HOOK_TIMEOUT_MS_DEFAULT	  10000
#define HOOK_TIMEOUT_MS_MAX	  300000
#define HOOK_MEMORY_BYTES_DEFAULT ((uint64_t)1 << 30)

/** One run of a hook, or one check of its file. */
struct hook_job {
	char path[HOOK_PATH_MAX];
	char user[HOOK_USER_MAX]; /**< The user that the hook runs as; "": uid and gid say it. */
	uint8_t check;		  /**< Check the file, run nothing. */
	uint8_t root_allowed;	  /**< The administrator wants uid 0. */
	uint32_t uid, gid;
	struct hook_limits limits;
	uint32_t env_size;	/**< Bytes of `env`: NUL-terminated NAME=VALUE strings. */
	char env[HOOK_ENV_MAX];
};

/** How a run ended. */
enum hook_end {
	HOOK_END_EXIT = 0, /**< The hook exited: exit status. */
	HOOK_END_SIGNAL,   /**< A signal that the agent did not send killed it. */
	HOOK_END_TIMEOUT,  /**< The runner killed it at its deadline. */
	HOOK_END_REFUSED,  /**< The file or the user is not acceptable: `why`. */
	HOOK_END_FAILED,   /**< The hook could not be started: `why`. */
	HOOK_END_STOPPED,  /**< The agent stopped, and the runner ended the hook. */
	HOOK_END_COUNT,
};

/** What the runner answers to one job. */
struct hook_report {
	uint32_t end;	      /**< enum hook_end. */
	int32_t status;	      /**< Exit status or signal number. */
	uint32_t uid;	      /**< The user as which the hook ran or, for a check, would run. */
	uint32_t left;	      /**< Processes that the hook left behind, and that were killed. */
	uint64_t duration_us;
	uint64_t output_total; /**< Bytes written; those above output_size were dropped. */
	uint32_t output_size;
	char why[HOOK_WHY_MAX]; /**< The reason of a refusal or failure, or "". */
	char output[HOOK_OUTPUT_MAX];
};

/** Counts of one hook's runs since the start of the agent. */
struct hook_counts {
	uint64_t runs;	   /**< Runs that ended, in whatever way. */
	uint64_t failures; /**< Those of `runs` that ended with anything but exit status 0. */
	uint64_t timeouts; /**< Those of `runs` that were killed at the deadline. */
	uint64_t dropped;  /**< Runs that were not started, because too many waited. */
};

/** One rule's hook: what it is, whether its file is in order, how its runs went. */
struct hook_info {
	char rule[HOOK_RULE_MAX];
	char path[HOOK_PATH_MAX];
	char user[HOOK_USER_MAX];
	uint32_t timeout_ms;
	uint32_t checked_uid; /**< The file was judged for this user. */
	uint32_t check;	      /**< enum hook_end: HOOK_END_EXIT for a file in order, else `why`. */
	char why[HOOK_WHY_MAX];
	struct hook_counts counts;
	uint32_t running, waiting;
	uint32_t last_end;    /**< enum hook_end of the last run, if counts.runs is not 0. */
	int32_t last_status;
	uint64_t last_us;     /**< When the last run ended, in microseconds since 1970. */
	uint64_t last_duration_us;
};

/** @return a word for an enum hook_end: "exit", "signal", "timeout", ...; else "unknown". */
const char *hook_end_name(uint32_t end);

#endif /* AGENTD_HOOK_H */
