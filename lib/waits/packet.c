/* SPDX-License-Identifier: MIT */
#include "waits/packet.h"

static bool holds(const struct symbols_aql_packet *p, int64_t value)
{
	int64_t v = value & p->mask;

	switch (p->condition) {
	case SYMBOLS_AQL_EQ:
		return v == p->value;
	case SYMBOLS_AQL_NE:
		return v != p->value;
	case SYMBOLS_AQL_LT:
		return v < p->value;
	case SYMBOLS_AQL_GTE:
		return v >= p->value;
	case SYMBOLS_AQL_CONDITION_COUNT:
		break;
	}
	return false;
}

static enum waits_packet value_state(const struct symbols_aql_packet *p, const struct waits_signal *s, uint32_t *ret)
{
	if (!p->dependencies[0])
		return WAITS_PACKET_GOES_ON;
	if (!s->known || p->condition == SYMBOLS_AQL_CONDITION_COUNT)
		return WAITS_PACKET_UNKNOWN;
	if (holds(p, s->value))
		return WAITS_PACKET_GOES_ON;
	*ret = 1;
	return WAITS_PACKET_VALUE;
}

enum waits_packet waits_packet_state(const struct symbols_aql_packet *p,
				     const struct waits_signal signals[SYMBOLS_AQL_DEPENDENCIES], uint32_t *ret_open)
{
	uint32_t used = 0, open = 0, unknown = 0;
	bool any = p->type == SYMBOLS_AQL_BARRIER_OR;

	*ret_open = 0;
	if (p->type == SYMBOLS_AQL_BARRIER_VALUE)
		return value_state(p, signals, ret_open);
	if (p->type != SYMBOLS_AQL_BARRIER_AND && !any)
		return WAITS_PACKET_GOES_ON;
	for (unsigned i = 0; i < SYMBOLS_AQL_DEPENDENCIES; i++) {
		if (!p->dependencies[i])
			continue;
		used++;
		if (!signals[i].known)
			unknown++;
		else if (signals[i].value)
			open |= UINT32_C(1) << i;
	}
	if (!used || (any && used > unknown + (unsigned)__builtin_popcount(open)))
		return WAITS_PACKET_GOES_ON;
	/* A signal that is not there keeps an AND; an OR may be let go by one that could not be read. */
	if (any ? unknown != 0 : !open && unknown)
		return WAITS_PACKET_UNKNOWN;
	*ret_open = open;
	return !open ? WAITS_PACKET_GOES_ON : any ? WAITS_PACKET_ANY : WAITS_PACKET_ALL;
}
