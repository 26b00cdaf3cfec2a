/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_BUDGET_H
#define SYMBOLS_BUDGET_H

/**
 * @file budget.h
 * Bounds the work for one question about hostile debug information.  Internal.
 *
 * What is read once and kept (units, scopes, lines) may take long, answers of what is known may
 * not.  So there is an amount to begin with, for steps and for processor time, and each question
 * adds a little again: an image may be asked without end, and each question ends in time.
 */

#include <stdbool.h>
#include <stdint.h>

/** What may still be spent. */
struct budget {
	uint32_t steps;
	uint64_t cpu_ns;
	uint64_t entered_ns; /**< Processor time when the question began. */
	uint32_t since;	     /**< Steps since that was read last. */
	bool spent;	     /**< Nothing more is read for this question. */
};

/** Begin with all that there is. */
void budget_init(struct budget *b);
/** Begin a question, which adds to what is left. */
void budget_enter(struct budget *b);
/** End a question. */
void budget_leave(struct budget *b);
/**
 * Charge one step.  Everything that loops over the target's data pays here.
 * @return false when nothing is left.
 */
bool budget_spend(struct budget *b);
/** Is half of all that there was at first still left? */
bool budget_has_half(struct budget *b);

#endif /* SYMBOLS_BUDGET_H */
