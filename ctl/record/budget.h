/* SPDX-License-Identifier: MIT */
#ifndef CTL_RECORD_BUDGET_H
#define CTL_RECORD_BUDGET_H

/**
 * @file budget.h
 * When the next capture may begin, so that queues stand still for no more than an allowed share of the time.
 *
 * Nobody knows what a capture will cost: a suspend may take a hundred times as long as the one before.  So each is
 * paid for afterwards, by a slot of time that is as long as the time it stopped divided by the allowed share, and the
 * next one begins at a random place in that slot.  Captures at equal distances would see the same moment of a loop
 * again and again; one at a random place of each slot sees every moment with the same chance.
 *
 * There is no clock in here: all times are nanoseconds of the caller's.
 */

#include <stdbool.h>
#include <stdint.h>

/** The share of the time that is all of it, in millionths. */
#define BUDGET_WHOLE 1000000u

struct budget {
	uint32_t share_ppm;   /**< Allowed, in millionths; not 0. */
	uint64_t interval_ns; /**< A slot is never shorter, however little a capture costs. */
	uint64_t begin_ns;
	uint64_t slot_ns;      /**< Where the next slot begins. */
	uint64_t slot_size_ns; /**< How long it is. */
	uint64_t stopped_ns;   /**< What all captures have cost. */
	uint64_t last_ns;      /**< What the last one has cost. */
};

/** Begin: the first slot is as long as the interval. */
void budget_init(struct budget *b, uint32_t share_ppm, uint64_t interval_ns, uint64_t now_ns);
/** When the next capture may begin.  @param random  Any number; the same one gives the same time. */
uint64_t budget_due(const struct budget *b, uint32_t random);
/** Pay for a capture that has ended now.  @param stopped_ns  How long the queues stood still for it. */
void budget_pay(struct budget *b, uint64_t stopped_ns, uint64_t now_ns);
/** Begin the next slot at a time that somebody else has named. */
void budget_delay(struct budget *b, uint64_t until_ns);
/**
 * Whether one more capture, if it costs as much as the last one, keeps the share of the whole time until @p end_ns:
 * after the last one no slot can make up for it.
 */
bool budget_has_room(const struct budget *b, uint64_t end_ns);
/** The share of a time that queues stood still, in millionths. */
uint32_t budget_share_ppm(uint64_t stopped_ns, uint64_t time_ns);

#endif /* CTL_RECORD_BUDGET_H */
