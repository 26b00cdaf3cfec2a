/* SPDX-License-Identifier: MIT */
#ifndef TESTS_PASSED_H
#define TESTS_PASSED_H

/** @file passed.h  Arguments of a simulated launch, laid out as a compiler does it. */

#include <stddef.h>
#include <stdint.h>

/** Most bytes of the arguments of a kernel: NVIDIA's compiler allows 32,764. */
#define PASSED_MAX 32768u

/**
 * Lay arguments out: `p:0x7f0010000000,i:160,f:1.5,x:0102`.  The letter is the type: p and l have 8
 * bytes, i 4, s 2, c 1; f and d are floating point of 4 and 8; x has the bytes that it says, and
 * lies at a multiple of 4.
 * @param buf       PASSED_MAX bytes; zeroed between the arguments.
 * @param ret_size  Bytes of all.
 * @return 0, -EINVAL, -E2BIG.
 */
int passed_encode(const char *text, uint8_t *buf, size_t *ret_size);

#endif /* TESTS_PASSED_H */
