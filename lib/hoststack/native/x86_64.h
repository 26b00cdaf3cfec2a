/* SPDX-License-Identifier: MIT */
#ifndef HOSTSTACK_NATIVE_X86_64_H
#define HOSTSTACK_NATIVE_X86_64_H

/** @file x86_64.h  Registers by their numbers in DWARF (psABI of x86-64, 3.6.2); the last is the return address. */

#define NATIVE_RBX 3
#define NATIVE_RBP 6
#define NATIVE_RSP 7
#define NATIVE_R12 12
#define NATIVE_R15 15
#define NATIVE_RIP 16

#endif /* HOSTSTACK_NATIVE_X86_64_H */
