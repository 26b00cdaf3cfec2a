/* SPDX-License-Identifier: MIT */
#include "agentd/worker/host/join.h"

#include <string.h>

#define EVALUATE "_PyEval_EvalFrameDefault"

static bool is_evaluation(const struct native_place *p)
{
	return p->function && !p->frame.is_guessed && !strcmp(p->function, EVALUATE);
}

/* All frames are there, and both were read while the thread did not run. */
static bool may_join(const struct reading_row *row)
{
	return row->n && !row->is_cut && !row->elided && row->native.end == RPC_NATIVE_END_OUTERMOST &&
	       row->switches && row->switches == row->native.switches;
}

bool join_frames(const struct reading_row *row, uint32_t *ret)
{
	const struct native_stack *native = &row->native;
	size_t at = 0, i;

	if (!may_join(row))
		return false;
	for (i = 0; i < native->n; i++) {
		if (!is_evaluation(&native->places[i]))
			continue;
		/* A call runs the frames up to the one that it was made for. */
		while (at < row->n) {
			ret[i]++;
			if (row->frames[at++].place.is_entry)
				break;
		}
		if (!ret[i])
			break;
	}
	if (i == native->n && at == row->n)
		return true;
	memset(ret, 0, native->n * sizeof(*ret));
	return false;
}
