/* SPDX-License-Identifier: MIT */
/*
 * Sets of registers of aarch64: arch/arm64/kernel/ptrace.c, include/uapi/linux/elf.h.  Not all are in the elf.h of
 * a C library that is older than the kernel.
 */
#include <elf.h>
#include <errno.h>
#include <stdint.h>

#include "tracer.h"
#include "libcudbgshim/src/inferior/vectors_aarch64.h"

#define SET_TLS		0x401
#define SET_SYSTEM_CALL 0x404
#define SET_SVE		0x405
#define SET_SSVE	0x40b
#define SET_ZA		0x40c
#define SET_GCS		0x410

/* Is a set there, and does it say that its registers are in use? */
static bool has_matrices(int tid)
{
	struct vectors_head head;
	size_t size = sizeof(head);

	if (tracer_get(tid, SET_SSVE, &head, &size) == 0 && size == sizeof(head) && (head.flags & VECTORS_SVE))
		return true;
	size = sizeof(head);
	return tracer_get(tid, SET_ZA, &head, &size) == 0 && size == sizeof(head) && head.size > sizeof(head);
}

static bool has_shadow_stack(int tid)
{
	uint64_t words[3] = { 0 };
	size_t size = sizeof(words);

	return tracer_get(tid, SET_GCS, words, &size) == 0 && (words[0] & 1);
}

/* The set of SVE holds what processors without it have in the one of floating point (fpsimd). */
int tracer_get_vectors(int tid, void *buf, size_t *size)
{
	struct vectors_head *head = buf;
	size_t room = *size;
	int r;

	if (has_matrices(tid) || has_shadow_stack(tid))
		return -EOPNOTSUPP;
	r = tracer_get(tid, SET_SVE, buf, size);
	if (r == 0 || r == -ESRCH)
		return r;
	if (room < sizeof(*head))
		return -EINVAL;
	*size = room - sizeof(*head);
	r = tracer_get(tid, NT_FPREGSET, head + 1, size);
	*size += sizeof(*head);
	*head = (struct vectors_head){ .size = (uint32_t)*size };
	return r;
}

int tracer_set_vectors(int tid, const void *buf, size_t size)
{
	const struct vectors_head *head = buf;

	if (size < sizeof(*head))
		return -EINVAL;
	return head->length ? tracer_set(tid, SET_SVE, buf, size) :
			      tracer_set(tid, NT_FPREGSET, head + 1, size - sizeof(*head));
}

int tracer_get_thread_pointer(int tid, void *buf, size_t *size)
{
	return tracer_get(tid, SET_TLS, buf, size);
}

int tracer_set_call(int tid, const void *buf, size_t size)
{
	return size == sizeof(int) ? tracer_set(tid, SET_SYSTEM_CALL, buf, size) : -EINVAL;
}
