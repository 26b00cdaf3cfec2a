/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RULE_THREADS_H
#define WORKER_RULE_THREADS_H

/**
 * @file threads.h
 * What the threads of the process do on the processors, for a record, one of a session at a time.
 *
 * Somebody else reads that (agentd/worker/host), whom the monitor starts: a stack may lie in memory that never
 * answers, and this process has queues that it must be able to resume.
 */

#include "agentd/ipc/link.h"
#include "agentd/worker/rule/host.h"
#include "rpc_gen.h"

struct event;
struct rule_engine;

/**
 * The reader has answered, or will not.
 * @param text  Of host.stacks's result, to be parsed; NULL: there is none, and @p why says why.
 */
typedef void (*rule_threads_fn)(struct rule_engine *w, const char *text, size_t size, const char *why);

/**
 * Ask the monitor for a reader of threads, and that one a question.
 * @param monitor  The socket to it.
 * @param ret      Where the answer comes; release it also after a failure.
 * @return 0, -errno.
 */
int rule_threads_send(int monitor, const struct rpc_host_stacks_params *p, struct ipc_link *ret);
/**
 * Wait for the answer of such a reader.
 * @param late_ns  Until then.
 * @param a        Holds the answer, or why there is none.
 * @return NULL, or why there is none.
 */
const char *rule_threads_receive(struct ipc_link *link, uint64_t late_ns, struct rpc_arena *a,
				 struct rpc_host_stacks_result *ret);

/** Starts as RULE_THREADS_NULL, then rule_threads_init(). */
struct rule_threads {
	const struct rule_host *host;
	rule_threads_fn done; /**< Called with engine, once for each question. */
	struct rule_engine *engine;
	struct ipc_link link; /**< To the reader; closed: nothing is asked. */
	struct event *answered, *patience;
};

#define RULE_THREADS_NULL { .link = IPC_LINK_NULL }

/** Connect it to its rule; the pointers are borrowed for its life. */
void rule_threads_init(struct rule_threads *t, const struct rule_host *host, rule_threads_fn done,
		       struct rule_engine *engine);
/**
 * Ask, after the queues run again.
 * @param seen  What was seen of the GPUs: threads are told which of its queues they wait for.
 * @return 0, and `done` follows; -errno.
 */
int rule_threads_ask(struct rule_threads *t, const struct rpc_gpu_snapshot_result *seen, bool native,
		     uint32_t timeout_ms);
/** Whether something is asked. */
bool rule_threads_are_asked(const struct rule_threads *t);
/** If something is asked, it is `done` now, without an answer. */
void rule_threads_give_up(struct rule_threads *t, const char *why);
/** Release all, without a further call. */
void rule_threads_deinit(struct rule_threads *t);

#endif /* WORKER_RULE_THREADS_H */
