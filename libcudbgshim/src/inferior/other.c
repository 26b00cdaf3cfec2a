/* SPDX-License-Identifier: MIT */
/* The functions for processors on which no call in the debuggee can be prepared. */
#include <errno.h>
#include <stdlib.h>

#include "cudbgshim_target.h"

struct cudbgshim_inferior {
	struct cudbgshim_inferior_error err;
};

int cudbgshim_inferior_create(const struct cudbgshim_inferior_options *options,
			  struct cudbgshim_inferior **ret_call)
{
	struct cudbgshim_inferior *c = malloc(sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->err = (struct cudbgshim_inferior_error){
		.what = "calls in the target need an x86-64 or aarch64 machine"
	};
	*ret_call = c;
	return 0;
}

void cudbgshim_inferior_destroy(struct cudbgshim_inferior *call)
{
	free(call);
}

int cudbgshim_inferior_step(struct cudbgshim_inferior *call)
{
	return -EOPNOTSUPP;
}

int cudbgshim_inferior_run(struct cudbgshim_inferior *call)
{
	return -EOPNOTSUPP;
}

uint64_t cudbgshim_inferior_deadline_ns(const struct cudbgshim_inferior *call)
{
	return 0;
}

const struct cudbgshim_inferior_error *
cudbgshim_inferior_error(const struct cudbgshim_inferior *call)
{
	return &call->err;
}

int cudbgshim_inferior_is_running(const struct cudbgshim_inferior_record *record,
			      const struct cudbgshim_memory *memory,
			      const struct cudbgshim_tracer *tracer)
{
	return 0;
}
