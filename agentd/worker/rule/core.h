/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RULE_CORE_H
#define WORKER_RULE_CORE_H

/**
 * @file core.h
 * The core file of an exception, on its way to the store, one of a session at a time.
 *
 * What waves do was copied when it was begun.  The rest of a core is memory of the process, which may
 * be gone as soon as that has got its fault: so the fault waits, and with it those that come behind
 * it, until all is read or its time is over.  Everything else goes on meanwhile.
 */

#include "agentd/worker/rule/hold.h"
#include "agentd/worker/rule/hook.h"
#include "agentd/worker/rule/host.h"

struct event;
struct out;
struct rule_engine;
struct store_meta;

/**
 * Stop budget of the capture that a record is made of: the application waits for its fault
 * meanwhile.
 */
#define RULE_STOP_MS 200

/** Tell what became of a record.  @param hook  The callee takes its descriptor. */
typedef void (*rule_stored_fn)(struct rule_engine *w, struct rule_hook hook, int status,
			       const char *id);

/** Starts as RULE_CORE_NULL, then rule_core_init(). */
struct rule_core {
	const struct rule_host *host;
	const struct ipc_rule *rule;
	rule_stored_fn stored; /**< Called with engine, once for each record. */
	struct rule_engine *engine;
	int store_fd; /**< To this core's own store process, which answers at the end; -1: none. */
	int fd;	      /**< Where the core's bytes go; -1: no more will come. */
	struct event *answered, *writable;
	struct rule_hook hook;
	struct rule_hold *hold;
	bool is_taken; /**< The target has begun one, which is not on its way yet. */
	uint64_t bytes, position, lost_bytes;
	uint8_t *piece;
	size_t piece_at, piece_size;
};

#define RULE_CORE_NULL { .store_fd = -1, .fd = -1 }

/** Connect the core to its rule; the pointers are borrowed for its life. */
void rule_core_init(struct rule_core *b, const struct rule_host *host, const struct ipc_rule *rule,
		    struct rule_hold *hold, rule_stored_fn stored, struct rule_engine *engine);

/** @return whether the target may be asked for a core. */
bool rule_core_is_free(const struct rule_core *b);
/** Note that the target has begun a core for the rule. */
void rule_core_take(struct rule_core *b, const struct target_core *core);
/**
 * Send the record and its core to the store, after rule_core_take().
 * @param hook  The callee takes its descriptor.
 * @return 0, and exceptions are kept back from now on; negative when there is no store.
 */
int rule_core_send(struct rule_core *b, const struct store_meta *m, const struct out *json,
		   struct rule_hook hook);
/** The core needs no exceptions kept back any more. */
void rule_core_let_go(struct rule_core *b);
/** Stop reading the core; the store drops one that is not whole. */
void rule_core_stop(struct rule_core *b);
/** The store has answered, or its process has ended: take the answer. */
void rule_core_answered(struct rule_core *b);
/** The answer did not come in time: count the core and its record as lost. */
void rule_core_give_up(struct rule_core *b);
/** Release all; nobody waits for the answer any more. */
void rule_core_deinit(struct rule_core *b);

#endif /* WORKER_RULE_CORE_H */
