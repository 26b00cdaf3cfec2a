/* SPDX-License-Identifier: MIT */
#ifndef MANAGER_WATCHDOG_H
#define MANAGER_WATCHDOG_H

/**
 * @file watchdog.h
 * When to ask the frontend whether it still works, and what its answer, or silence, means.
 *
 * The service manager's watchdog is fed on nothing but a fresh answer.  Times are those of
 * clock_now_ns().
 */

#include <stdbool.h>
#include <stdint.h>

/** Longest time that an answer may take. */
#define WATCHDOG_ANSWER_MS 2000
/** Answers missing one after the other, after which the frontend is broken. */
#define WATCHDOG_MISSES 2

struct watchdog {
	uint64_t at; /**< Something is due then; 0: never. */
	uint64_t asked_ns;
	uint32_t every_ms;
	uint32_t number; /**< Of the last question. */
	unsigned missed;
	bool asked; /**< It is unanswered. */
};

enum watchdog_act { WATCHDOG_WAIT, WATCHDOG_ASK, WATCHDOG_STUCK };

/** The frontend works from now on.  @param every_ms  0: nobody watches, and nothing will ever be due. */
void watchdog_begin(struct watchdog *w, uint32_t every_ms, uint64_t now);
/** What is to be done now: to ask with `number`, or to give the frontend up. */
enum watchdog_act watchdog_due(struct watchdog *w, uint64_t now);
/** @return true: the frontend answered in time, and the manager may hear of it. */
bool watchdog_answered(struct watchdog *w, uint32_t number, uint64_t now);

#endif /* MANAGER_WATCHDOG_H */
