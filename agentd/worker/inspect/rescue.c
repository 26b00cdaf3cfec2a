/* SPDX-License-Identifier: MIT */
#include "agentd/worker/inspect/rescue.h"

#include "agentd/worker/target/target.h"

int rescue_run(const struct worker_options *o)
{
	int r = TARGET_NOT_MINE;

	for (size_t i = 0; target_list[i] && r == TARGET_NOT_MINE; i++)
		if (target_list[i]->rescue)
			r = target_list[i]->rescue(o);
	return r != 0;
}
