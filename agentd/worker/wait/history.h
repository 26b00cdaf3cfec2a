/* SPDX-License-Identifier: MIT */
#ifndef WORKER_WAIT_HISTORY_H
#define WORKER_WAIT_HISTORY_H

/** @file history.h  What earlier looks saw: for each thing that matters its name, and how it was, hashed. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** One look. */
struct past;
/** The looks of a session. */
struct history;

/**
 * Begin to remember a look; the oldest of eight is forgotten.
 * @param h           Made when it is NULL.
 * @param stood_ns    For how long queues had stood still by then, whoever wanted that.
 * @param ret_number  Its number, from 1 on.
 * @return NULL: there is no memory.
 */
struct past *history_begin(struct history **h, uint64_t now_ns, uint64_t stood_ns, uint32_t *ret_number);
/** @return an earlier look; NULL: it is not there, or not any more. */
const struct past *history_find(const struct history *h, uint32_t number);
void history_free(struct history *h);

/** When the look was. */
uint64_t past_time_ns(const struct past *p);
/** For how long queues had stood still by then. */
uint64_t past_stood_ns(const struct past *p);
/** The look has read all that it reads. */
void past_finish(struct past *p, uint64_t now_ns);
/** When it had; 0: it has not. */
uint64_t past_finish_ns(const struct past *p);
/** Remember something.  @return 0, -ENOMEM (also when there is too much). */
int past_add(struct past *p, uint64_t name, uint64_t state);
/** @return whether it was there at all. */
bool past_knows(const struct past *p, uint64_t name);
/** @return whether it was there in the same state. */
bool past_has(const struct past *p, uint64_t name, uint64_t state);

#endif /* WORKER_WAIT_HISTORY_H */
