/* SPDX-License-Identifier: MIT */
#ifndef RULES_HOOKS_H
#define RULES_HOOKS_H

/**
 * @file hooks.h
 * Hooks: programs of the administrator that run when a watch rule has something to tell.
 *
 * Each hook runs under a gpu-agent-hook of its own (agentd/hook/), which judges the file, becomes
 * the user, bounds time, memory and output, and ends whatever the hook has started.  The queue
 * opens no path of a hook, asks no user database and never waits: hooks_run() queues, the result
 * comes later.
 * docs/HOOKS.md says what a hook finds.
 *
 * Single-threaded; every callback is called from hooks_readable(), hooks_deadlines(),
 * hooks_reaped() or hooks_deinit(), never from hooks_run().
 */

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/hook.h"
#include "agentd/rules/hooks/hook_rules.h"

/** Hooks that run at a time, and that wait for their turn, with what their documents take. */
#define HOOKS_RUNNING_MAX 8
#define HOOKS_WAITING_MAX 64
#define HOOKS_WAITING_BYTES_MAX ((uint64_t)64 << 20)

/** @param result Valid during the call. */
typedef void (*hook_done_fn)(void *ctx, const struct hook_report *result);

/** @param list  Of all rules that have one, in the order of the configuration; valid during the call. */
typedef void (*hooks_list_fn)(void *ctx, const struct hook_info *list, size_t n);

struct hook_task;

struct hooks {
	const char *program; /**< Path of gpu-agent-hook. */
	struct hook_rules rules;
	struct hook_task *first; /**< Running and waiting ones, oldest first. */
	bool stopping;
};

/** @param program  Borrowed. */
void hooks_init(struct hooks *h, const char *program);
/** Calls back what is left, as HOOK_END_STOPPED; runners see our end of file and end their hooks. */
void hooks_deinit(struct hooks *h);

/**
 * Take over the rules of a configuration that was (re)read; counts of a rule stay with its name, and
 * hooks that run or wait keep the rule they were asked with.  Rules without a path are left out.
 * @return 0, -E2BIG (HOOKS_RULES_MAX), -ENOMEM; then nothing changed.
 */
int hooks_configure(struct hooks *h, const struct hook_rule *rules, size_t n);

/**
 * Run the hook of a rule as soon as there is room.
 * @param done  Called exactly once after a 0; may be NULL.
 * @return 0, -ENOENT (no such rule, or it has no hook), -ENOBUFS (too many wait; counted and
 *         logged), -EINVAL (a field's name), -E2BIG (too many fields), -ESHUTDOWN (the agent
 *         stops), -ENOMEM, -errno.
 */
int hooks_run(struct hooks *h, const struct hook_event *e, hook_done_fn done, void *ctx);

/**
 * Have the files of all hooks looked at, and tell how they did so far.
 * @param uid, gid  For whom to judge the file of a hook that runs as the target's user.
 * @param by_rule   Rather for a user that the rule names, if it names one.
 * @return 0, -ENOENT (there are no hooks), -ENOBUFS, -ESHUTDOWN, -ENOMEM, -errno.
 */
int hooks_list(struct hooks *h, uid_t uid, gid_t gid, bool by_rule, hooks_list_fn done, void *ctx);

/**
 * Tell at once how hooks did so far; nothing is said of their files.
 * @param ret  h->rules.n of them.
 */
void hooks_count(const struct hooks *h, struct hook_info *ret);

/* For the loop of the rules process. */

/** @param fds  Room for HOOKS_RUNNING_MAX + 1.  @return how many were filled in. */
size_t hooks_poll(const struct hooks *h, struct pollfd *fds);
/** One of these descriptors is readable, or at its end. */
void hooks_readable(struct hooks *h, int fd);
/** Kill runners that passed their deadline.  @return next deadline (monotonic ns), 0: none. */
uint64_t hooks_deadlines(struct hooks *h);
/** @return false when that child was no runner. */
bool hooks_reaped(struct hooks *h, pid_t pid, int wait_status);
/** No new ones; those that wait are called back, those that run are told to end (within 2 s). */
void hooks_stop(struct hooks *h);
/** Some have not been called back. */
bool hooks_is_busy(const struct hooks *h);

#endif /* RULES_HOOKS_H */
