/* SPDX-License-Identifier: MIT */
#ifndef HOSTSTACK_NATIVE_LEAF_H
#define HOSTSTACK_NATIVE_LEAF_H

/**
 * @file leaf.h
 * Who called a function that keeps its return address in a register, which the kernel does not tell.
 *
 * On aarch64 that is each function that calls no other; ioctl() of the C library is one.  Its caller does have a return
 * address in the stack, behind a call of itself.  So each address in the stack is tried: the function that is called
 * in front of it must have its own return address just there, by its unwind table, and must call the leaf.
 */

#include "hoststack/native/unwind.h"

/**
 * Go on with a walk that has ended for want of a return address; another one stays as it is.
 *
 * A caller that calls the leaf at several places is certain, and its instruction is a guess.  One that was called by
 * a pointer is not found.  A search that would read too much ends as one that finds nothing, and so does one for a leaf
 * whose table does not tell its caller's stack pointer.
 * @param registers  Of the last frame; those of the frame at which it ends afterwards.
 * @return 0, what native_walk_on() returns.
 */
int native_leaf_recover(struct native_unwinder *u, struct native_walk *w, struct native_registers *registers);

#endif /* HOSTSTACK_NATIVE_LEAF_H */
