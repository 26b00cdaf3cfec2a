/* SPDX-License-Identifier: MIT */
/* Sets of registers of x86-64; what other processors have apart is in the general ones here. */
#include <elf.h>
#include <errno.h>

#include "tracer.h"

int tracer_get_vectors(int tid, void *buf, size_t *size)
{
	/* With everything that the processor has. */
	return tracer_get(tid, NT_X86_XSTATE, buf, size);
}

int tracer_set_vectors(int tid, const void *buf, size_t size)
{
	return tracer_set(tid, NT_X86_XSTATE, buf, size);
}

int tracer_get_thread_pointer(int tid, void *buf, size_t *size)
{
	return -EINVAL;
}

int tracer_set_call(int tid, const void *buf, size_t size)
{
	return -EINVAL;
}
