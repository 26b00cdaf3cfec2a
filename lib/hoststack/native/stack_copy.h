/* SPDX-License-Identifier: MIT */
#ifndef HOSTSTACK_NATIVE_STACK_COPY_H
#define HOSTSTACK_NATIVE_STACK_COPY_H

/** @file stack_copy.h  A copy of one thread's stack, as much of it as is looked at. */

#include <stdbool.h>

#include "hoststack/memory.h"

/** Most bytes that are copied of a stack; what lies beyond is read word by word. */
#define NATIVE_COPY_MAX (UINT64_C(1) << 20)

struct native_stack_copy {
	struct hoststack_memory *memory;
	uint64_t begin; /**< The stack pointer. */
	bool is_whole;	/**< Nothing else of the stack is of the same moment: there is only the copy. */
	bool was_left;	/**< Something was looked for beyond it. */
	uint8_t *bytes; /**< malloc'ed, and kept for the next thread. */
	size_t size, capacity;
};

/** Forget what was copied, and begin at another stack pointer. */
void native_stack_copy_begin(struct native_stack_copy *c, uint64_t stack_pointer);
/**
 * Take a copy that somebody else has made while the thread stood still; nothing beyond it is read.
 * @param begin  Address of its first byte.
 * @return 0, -ENOMEM.
 */
int native_stack_copy_take(struct native_stack_copy *c, uint64_t begin, const void *bytes, size_t size);
/** @return 0, -EFAULT, -ENOMEM, what hoststack_read() returns. */
int native_stack_copy_read(struct native_stack_copy *c, uint64_t address, void *buf, size_t size);
void native_stack_copy_free(struct native_stack_copy *c);

#endif /* HOSTSTACK_NATIVE_STACK_COPY_H */
