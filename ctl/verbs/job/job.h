/* SPDX-License-Identifier: MIT */
#ifndef CTL_VERBS_JOB_JOB_H
#define CTL_VERBS_JOB_JOB_H

/** @file job.h  What the verb job and its ways to find processes share. */

#include "ctl/ctl.h"
#include "ctl/document/merge.h"
#include "ctl/job/collect.h"

#define JOB_DEADLINE_MIN_MS 100
#define JOB_ARGUMENTS_MAX   24 /**< Most words of a program that is asked. */

/** What the functions of one job work on. */
struct job {
	struct ctl *c;
	struct merge *merge;
	uint64_t deadline_ns;
	bool waits; /**< Also what waits, by two samples. */
	bool ras;   /**< With that: also what NCCL says of itself. */
	struct collect_task *tasks; /**< One for each that is asked. */
	uint32_t *pids; /**< For each task: the process of this machine that it looks at; 0: it is none. */
	size_t n;
	struct rpc_arena answer; /**< One at a time. */
	struct kubernetes *kubernetes; /**< Whom the pods of a job are asked of. */
};

/** Note that something was not seen, and why; the first reason is the error in case nothing was. */
int job_miss(struct job *j, const char *name, const char *why);
/** Make room for so many tasks. */
int job_make_room(struct job *j, size_t n);
/** Ask the agent for the processes of this machine, and make room for them. */
int job_list(struct job *j, struct rpc_process_list_result *ret);
/** Ask somebody.  @param argv  NULL: made when it is started, as it depends on the time that is left. */
int job_add_task(struct job *j, const char *name, const char *const *argv);
/** Look at a process of this machine. */
int job_add_process(struct job *j, uint32_t pid);
/** A copy of the words that lives as long as the job; NULL when memory is exhausted, also for one of the words. */
const char *const *job_keep_argv(struct job *j, const char *const *argv, size_t n);
/** The part of a host or node in the time that is left, without some for the way there and back. */
uint32_t job_remote_ms(const struct job *j);

/** What one program prints. */
struct printed {
	struct ctl *c;
	const char *op; /**< What it is asked for, for an error. */
	char *text;
	size_t size;
};

/** Run a program that knows of the job, for at most half of the time that there is. */
int job_ask(struct job *j, const char *op, const char *const *argv, struct printed *ret);

#endif /* CTL_VERBS_JOB_JOB_H */
