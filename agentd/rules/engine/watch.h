/* SPDX-License-Identifier: MIT */
#ifndef RULES_WATCH_H
#define RULES_WATCH_H

/**
 * @file watch.h
 * Which processes are watched by which rule: finding them, starting and re-starting workers for
 * them, letting them go.
 *
 * Nothing is polled.  A look (a worker of its own lists the processes that use GPUs) follows when
 * somebody opens a device node, when a client attaches or lists, at start, at a reload, and a few
 * times after a look came to nothing, or after a watch ended although its process lives.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/rules/engine/discover.h"
#include "agentd/rules/engine/rules.h"
#include "agentd/rules/engine/rules_monitor.h"

/** So many processes that were not read to the end are told one by one. */
#define WATCH_CUT_MAX 32

struct watched;

struct watches {
	const struct rules_monitor *monitor;
	void *ctx; /**< For it. */
	const struct rules *rules;
	const char *kfd_device;
	struct discover discover;
	struct watched *first;
	size_t n;
	uint64_t look_at;   /**< The next one, monotonic; 0: none. */
	uint64_t looked_at; /**< The last one began then. */
	uint32_t looker;    /**< Worker that looks; 0: none. */
	bool look_again;    /**< Something happened meanwhile. */
	unsigned look_failures; /**< In a row. */
	struct {
		pid_t pid;
		int pidfd;
	} cut[WATCH_CUT_MAX]; /**< Those that were told. */
	size_t n_cut;
};

/** All pointers are borrowed; nothing happens before watches_configure(). */
void watches_init(struct watches *w, const struct rules *rules, const char *kfd_device,
		  const struct rules_monitor *monitor, void *ctx);
/** Rules were read: at start, and again.  Processes that were released are judged anew. */
void watches_configure(struct watches *w);
void watches_deinit(struct watches *w);

/** discover.fd is readable. */
void watches_readable(struct watches *w);
/** Something happened that may have to do with a GPU process. */
void watches_hint(struct watches *w);
/** Begin a look that is due.  @return next deadline (monotonic ns), 0: none. */
uint64_t watches_deadlines(struct watches *w);
/** A look found a process, and not one of the agent.  @return whether a rule watches it now. */
bool watches_found(struct watches *w, pid_t pid, enum ipc_vendor vendor);
/**
 * A look did not read all that a process has mapped: no rule finds out whether it uses a GPU.  The log
 * says so once for each, as long as they are few.
 * @return whether it does now.
 */
bool watches_cut(struct watches *w, pid_t pid);
/** A worker was reaped.  @param clean  Not killed, no error: a look has seen everything. */
void watches_worker_ended(struct watches *w, uint32_t worker, bool clean);
/** No rule is to watch this worker's process again, until watches_configure(). */
void watches_release(struct watches *w, uint32_t worker);

#endif /* RULES_WATCH_H */
