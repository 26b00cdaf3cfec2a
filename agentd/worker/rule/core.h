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

#include "agentd/worker/rule/hook.h"
#include "agentd/worker/rule/host.h"

struct event;
struct out;
struct rule_engine;
struct store_meta;

/** Of the capture that a record is made of: the application waits for its fault meanwhile. */
#define RULE_STOP_MS 200
/** More at a time end the wait of all. */
#define RULE_CORE_HELD_MAX 64

/**
 * What became of a record.
 * @param hook  Its descriptor is taken.
 */
typedef void (*rule_stored_fn)(struct rule_engine *w, struct rule_hook hook, int status,
			       const char *id);

/** Starts as RULE_CORE_NULL, then rule_core_init(). */
struct rule_core {
	const struct rule_host *host;
	const struct ipc_rule *rule;
	rule_stored_fn stored; /**< Called with watch once for each record. */
	struct rule_engine *engine;
	int store_fd; /**< Its own store's process, which answers when all is on disk; -1: nothing is under way. */
	int fd;	      /**< Where the bytes go; -1: no more will come. */
	struct event *answered, *writable, *patience;
	struct rule_hook hook;
	bool holds; /**< The application gets no exceptions now; those, later. */
	struct target_event held[RULE_CORE_HELD_MAX];
	size_t n_held;
	uint64_t bytes, position, lost_bytes;
	uint8_t *piece;
	size_t piece_at, piece_size;
};

#define RULE_CORE_NULL { .store_fd = -1, .fd = -1 }

/** All but the record are borrowed for its life. */
void rule_core_init(struct rule_core *b, const struct rule_host *host, const struct ipc_rule *rule,
		    rule_stored_fn stored, struct rule_engine *engine);

/** May the target be asked for one? */
bool rule_core_is_free(const struct rule_core *b);
/** That one was begun, for the rule. */
void rule_core_take(struct rule_core *b, const struct target_core *core);
/**
 * Record and core to the store, after rule_core_take().
 * @param hook  Its descriptor is taken.
 * @return 0, exceptions are kept back from now on; negative when there is no store.
 */
int rule_core_send(struct rule_core *b, const struct store_meta *m, const struct out *json,
		   struct rule_hook hook);
/** @return whether that exception is kept back for now. */
bool rule_core_keeps_back(struct rule_core *b, const struct target_event *e);
/** The application gets what is kept back. */
void rule_core_let_go(struct rule_core *b);
/** No more will be read; what is not whole the store drops. */
void rule_core_stop(struct rule_core *b);
/** Its answer is there, or no store. */
void rule_core_answered(struct rule_core *b);
/** The answer did not come in time: what is under way counts as lost. */
void rule_core_give_up(struct rule_core *b);
/** Nobody waits for the answer any more. */
void rule_core_deinit(struct rule_core *b);

#endif /* WORKER_RULE_CORE_H */
