/* SPDX-License-Identifier: MIT */
/* The numbers of the states are those of cudadebugger.h of CUDA 12.9 and 13.1. */
#include "waits/cbu.h"

#include <errno.h>
#include <stdbool.h>

/* CUDBGCbuThreadState.  What the other two blocked states wait for is documented nowhere. */
enum { READY = 1, READY_AT_NEXT = 5, BLOCKED_PLUS = 6, BLOCKED_ALL = 7, BLOCKED_COLLECTIVE = 8, BLOCKED_AT_FIRST = 9 };

enum { ACTIVE, EXITED, COLLECTIVE, MASKS, STATES = MASKS + WAITS_CBU_BARRIERS };

static bool is_at_barrier(uint32_t state)
{
	return state >= BLOCKED_AT_FIRST && state - BLOCKED_AT_FIRST < WAITS_CBU_BARRIERS;
}

/* Add a lane that has not exited.  @return whether its state goes together with the masks. */
static bool add_lane(const uint32_t *words, uint32_t lane, struct waits_cbu *c)
{
	const uint32_t state = words[STATES + lane], bit = UINT32_C(1) << lane;

	if (state >= READY && state <= READY_AT_NEXT) {
		c->ready |= bit;
		return true;
	}
	/* Who is blocked does not execute. */
	if (words[ACTIVE] & bit)
		return false;
	if (state == BLOCKED_COLLECTIVE) {
		c->in_collective |= bit;
		return words[COLLECTIVE] & bit;
	}
	if (is_at_barrier(state)) {
		c->blocked[state - BLOCKED_AT_FIRST] |= bit;
		return words[MASKS + state - BLOCKED_AT_FIRST] & bit;
	}
	return state == BLOCKED_PLUS || state == BLOCKED_ALL;
}

/* A lane that is not there, and has not exited either, cannot be waited for. */
static bool find_missing(const uint32_t *words, uint32_t lanes, struct waits_cbu *c)
{
	for (uint32_t i = 0; i < WAITS_CBU_BARRIERS; i++) {
		const uint32_t living = words[MASKS + i] & ~words[EXITED];

		if (!c->blocked[i])
			continue;
		if (living & ~lanes)
			return false;
		c->missing[i] = living & ~c->blocked[i];
	}
	c->collective = words[COLLECTIVE] & ~words[EXITED];
	return !c->in_collective || !(c->collective & ~lanes);
}

int waits_cbu_read(const uint32_t *words, size_t n, uint32_t lanes, struct waits_cbu *ret)
{
	struct waits_cbu c = { .lanes = lanes };

	if (n != WAITS_CBU_WORDS)
		return -EINVAL;
	if (words[EXITED] & lanes || words[ACTIVE] & ~lanes)
		return -EBADMSG;
	for (uint32_t lane = 0; lane < WAITS_CBU_LANES; lane++)
		if (lanes >> lane & 1 && !add_lane(words, lane, &c))
			return -EBADMSG;
	if (!find_missing(words, lanes, &c))
		return -EBADMSG;
	*ret = c;
	return 0;
}

uint32_t waits_cbu_barrier_of(const struct waits_cbu *c, uint32_t lanes)
{
	uint32_t i = 0;

	while (i < WAITS_CBU_BARRIERS && (!lanes || lanes & ~c->blocked[i]))
		i++;
	return i;
}
