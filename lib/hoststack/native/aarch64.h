/* SPDX-License-Identifier: MIT */
#ifndef HOSTSTACK_NATIVE_AARCH64_H
#define HOSTSTACK_NATIVE_AARCH64_H

/** @file aarch64.h  Registers by their numbers in DWARF (DWARF for the Arm 64-bit Architecture, 4.1). */

#define NATIVE_X19 19
#define NATIVE_X29 29
#define NATIVE_X30 30
#define NATIVE_SP  31
#define NATIVE_PC  32

#endif /* HOSTSTACK_NATIVE_AARCH64_H */
