/* SPDX-License-Identifier: MIT */
#ifndef CUDBGSHIM_VECTORS_AARCH64_H
#define CUDBGSHIM_VECTORS_AARCH64_H

/**
 * @file vectors_aarch64.h
 * Vector state as the kernel gives it (NT_ARM_SVE, arch/arm64/include/uapi/asm/ptrace.h).
 */

#include <stdint.h>

/** struct user_sve_header; without SVE, @c length is 0. */
struct vectors_head {
	uint32_t size, max_size;
	uint16_t length, max_length; /**< Bytes of a vector. */
	uint16_t flags, reserved;
};
_Static_assert(sizeof(struct vectors_head) == 16, "struct user_sve_header");
/** In flags: the registers of SVE follow, and not those of floating point. */
#define VECTORS_SVE 1u

/** struct user_fpsimd_state, behind the head where there are no registers of SVE. */
struct vectors_fpsimd {
	uint8_t v[32][16];
	uint32_t fpsr, fpcr, reserved[2];
};
_Static_assert(sizeof(struct vectors_fpsimd) == 528, "struct user_fpsimd_state");

#endif /* CUDBGSHIM_VECTORS_AARCH64_H */
