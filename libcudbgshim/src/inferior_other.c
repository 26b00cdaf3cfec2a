/* SPDX-License-Identifier: MIT */
/* Processors on which no call in the debuggee can be prepared. */
#include <errno.h>
#include <stdlib.h>

#include "cudbgshim_target.h"

struct cudbgshim_call {
	struct cudbgshim_call_error err;
};

int cudbgshim_call_create(const struct cudbgshim_call_options *options,
			  struct cudbgshim_call **ret_call)
{
	struct cudbgshim_call *c = malloc(sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->err = (struct cudbgshim_call_error){ .what = "calls in the target need an x86-64 machine" };
	*ret_call = c;
	return 0;
}

void cudbgshim_call_destroy(struct cudbgshim_call *call)
{
	free(call);
}

int cudbgshim_call_step(struct cudbgshim_call *call)
{
	return -EOPNOTSUPP;
}

int cudbgshim_call_run(struct cudbgshim_call *call)
{
	return -EOPNOTSUPP;
}

uint64_t cudbgshim_call_deadline_ns(const struct cudbgshim_call *call)
{
	return 0;
}

const struct cudbgshim_call_error *cudbgshim_call_error(const struct cudbgshim_call *call)
{
	return &call->err;
}

int cudbgshim_call_is_running(const struct cudbgshim_call_record *record,
			      const struct cudbgshim_memory *memory)
{
	return 0;
}
