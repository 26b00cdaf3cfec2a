/* SPDX-License-Identifier: MIT */
#ifndef FUZZLIB_H
#define FUZZLIB_H

/**
 * @file fuzzlib.h
 * A fuzz target is LLVMFuzzerTestOneInput() in tests/fuzz/fuzz_<parser>.c; its seeds are
 * tests/fuzz/corpus/fuzz_<parser>/.  Built with gcc it links fuzzlib.c, which replays the corpus
 * and then runs a bounded number of deterministic mutations; built with clang and
 * -fsanitize=fuzzer it is a libFuzzer target, as scripts/fuzz-farm builds it.
 */

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif /* FUZZLIB_H */
