/* SPDX-License-Identifier: MIT */
#ifndef HARDWARE_WORDS_H
#define HARDWARE_WORDS_H

/**
 * @file words.h
 * What the kernels, the programs that start them and tests/hardware/programs.py agree on.
 */

#include <stdint.h>

#define HARDWARE_MAGIC 0x43575248u /* "HRWC" */
#define SLOTS	       256	   /* progress counters, one for each block */

/* The file of --status-file, mapped shared. */
struct hardware_status {
	uint32_t magic;
	int32_t pid;
	uint64_t beats;
	uint64_t max_gap_ns; /* largest time between two beats; a reader may set it to 0 */
	uint64_t progress;   /* sum of what the blocks have counted */
	int32_t kernel_error; /* of the kernel once it has ended; -1 before */
	uint32_t reserved;
};

/* Host memory that the GPU writes while the kernel runs. */
struct shared_words {
	volatile uint32_t stop;	 /* 1: end the kernel */
	volatile uint32_t fault; /* 1: do the wrong thing */
	volatile uint64_t shared_address, local_address; /* of what thread 0 planted */
	volatile uint64_t progress[SLOTS];
	volatile uint32_t tags[1024]; /* what each thread keeps in a register */
};

struct pair {
	int32_t first;
	float second;
};

/* Arguments of the kernel spin(); PLANTED of programs.py has them as text. */
#define PLANTED_NUMBER (-12345)
#define PLANTED_RATIO  1.5f
#define PLANTED_WIDE   0x123456789abcdef0ull
#define PLANTED_PAIR   { 77, 0.125f }

#endif /* HARDWARE_WORDS_H */
