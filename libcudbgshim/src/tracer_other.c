/* SPDX-License-Identifier: MIT */
/* Sets of registers of processors on which no call in the debuggee can be prepared. */
#include <errno.h>

#include "tracer.h"

int tracer_get_vectors(int tid, void *buf, size_t *size)
{
	return -EOPNOTSUPP;
}

int tracer_set_vectors(int tid, const void *buf, size_t size)
{
	return -EOPNOTSUPP;
}

int tracer_get_thread_pointer(int tid, void *buf, size_t *size)
{
	return -EOPNOTSUPP;
}

int tracer_set_call(int tid, const void *buf, size_t size)
{
	return -EOPNOTSUPP;
}
