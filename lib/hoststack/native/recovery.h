/* SPDX-License-Identifier: MIT */
#ifndef HOSTSTACK_NATIVE_RECOVERY_H
#define HOSTSTACK_NATIVE_RECOVERY_H

/**
 * @file recovery.h
 * Searching a stack for the frame pointer (%rbp, x29), which the kernel does not tell.
 *
 * A function that keeps one has its caller's where its own points to, and the return address above that.  So each
 * such pair in the stack is tried, and one that leads to the outermost frame is taken.
 */

#include "hoststack/native/unwind.h"

/**
 * Go on with a walk that has ended for want of the frame pointer; another one stays as it is.
 *
 * If the return address is behind a call of the very function that lacks it, frames count as certain.  All else is
 * a guess, and marked so.  If several guesses reach the outermost frame, those frames stay in which they agree.
 * @param registers  Of the last frame.
 * @return 0, what native_walk_on() returns.
 */
int native_recover(struct native_unwinder *u, struct native_walk *w, const struct native_registers *registers);

#endif /* HOSTSTACK_NATIVE_RECOVERY_H */
