/* SPDX-License-Identifier: MIT */
#ifndef WORKER_RULE_RATE_LIMIT_H
#define WORKER_RULE_RATE_LIMIT_H

/**
 * @file rate_limit.h
 * How many records a watch rule makes of the exceptions of one process: no more than its rate, and
 * one for exceptions that are alike.  Pure functions; the caller has the clock.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agentd/ipc/monitor_worker.h"

/** Kinds of exceptions that are told apart at a time; the one that was recorded first is forgotten. */
#define RATE_LIMIT_KEYS_MAX 64
#define RATE_LIMIT_KEY_SIZE 256

struct rate_limit_key {
	char text[RATE_LIMIT_KEY_SIZE];
	uint64_t since_ns; /**< Its last record. */
	uint64_t repeats;  /**< Since then. */
};

/** Starts zeroed. */
struct rate_limit {
	uint64_t period_ns; /**< Beginning of the period that the rate is for. */
	uint32_t n_recorded; /**< In that period. */
	struct rate_limit_key keys[RATE_LIMIT_KEYS_MAX];
	size_t n_keys;
	uint64_t untold; /**< Limited, and repeats of forgotten keys: in no record yet. */
};

/** Within the rate?  Otherwise it is counted as untold. */
bool rate_limit_allows(struct rate_limit *s, const struct ipc_rule *r, uint64_t now_ns);
/** Was one like this recorded a short time ago?  Then it is counted there. */
bool rate_limit_is_repeat(struct rate_limit *s, const struct ipc_rule *r, const char *key,
			  uint64_t now_ns);
/** A record is made.  @return exceptions that it stands for: itself, and repeats since the last one. */
uint64_t rate_limit_recorded(struct rate_limit *s, const struct ipc_rule *r, const char *key,
			     uint64_t now_ns);
/** The end.  @return exceptions that are in no record. */
uint64_t rate_limit_untold(const struct rate_limit *s);

#endif /* WORKER_RULE_RATE_LIMIT_H */
