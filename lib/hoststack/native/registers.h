/* SPDX-License-Identifier: MIT */
#ifndef HOSTSTACK_NATIVE_REGISTERS_H
#define HOSTSTACK_NATIVE_REGISTERS_H

/** @file registers.h  Those registers of a frame that are known. */

#include <stdbool.h>

#include "hoststack/native/rules.h"

struct native_registers {
	uint64_t values[NATIVE_REGISTERS];
	uint64_t known; /**< A bit for each. */
};

static inline bool native_registers_has(const struct native_registers *r, uint64_t number)
{
	return number < NATIVE_REGISTERS && r->known >> number & 1;
}

static inline void native_registers_set(struct native_registers *r, unsigned number, uint64_t value)
{
	r->values[number] = value;
	r->known |= UINT64_C(1) << number;
}

#endif /* HOSTSTACK_NATIVE_REGISTERS_H */
