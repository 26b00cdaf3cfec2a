/* SPDX-License-Identifier: MIT */
#ifndef HOSTSTACK_NATIVE_EXPRESSION_H
#define HOSTSTACK_NATIVE_EXPRESSION_H

/** @file expression.h  Expressions in unwind tables: procedure linkage tables, realigned stacks, frames of signals. */

#include "hoststack/native/registers.h"
#include "hoststack/native/stack_copy.h"

/**
 * Evaluate an expression (DWARF 5, 2.5).
 * @param begin   On the stack before the first operation; NULL: nothing is.
 * @param ret_missing  Set to the register that is not known, if that is why it cannot be evaluated.
 * @return 0; -ENODATA (a register is not known); -EBADMSG; what native_stack_copy_read() returns.
 */
int native_expression(const uint8_t *bytes, size_t size, const struct native_registers *registers,
		      struct native_stack_copy *stack, const uint64_t *begin, uint64_t *ret, unsigned *ret_missing);

#endif /* HOSTSTACK_NATIVE_EXPRESSION_H */
