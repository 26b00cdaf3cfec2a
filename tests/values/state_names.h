/* SPDX-License-Identifier: MIT */
#ifndef STATE_NAMES_H
#define STATE_NAMES_H

/** @file state_names.h  Words for what is known of a value. */

#include "values/place.h"

/** @return "ok", "optimised_out", ... */
static inline const char *state_name(enum values_state s)
{
	static const char *const names[] = {
		"ok", "partial", "optimised_out", "unavailable", "not_saved", "unreadable",
		"inactive", "prologue",
	};

	return names[s];
}

#endif /* STATE_NAMES_H */
