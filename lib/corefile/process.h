/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_PROCESS_H
#define COREFILE_PROCESS_H

/**
 * @file process.h
 * The notes that a process's own core has about it, its threads and its files (elf(5), the kernel's
 * linux/elfcore.h and fs/binfmt_elf.c).
 *
 * The file is not trusted: each function takes the bytes of one note.
 */

#include <stddef.h>
#include <stdint.h>

#include "corefile/processor.h"

/** Bytes that our unified cores have of each thread's stack at least, from its stack pointer on. */
#define COREFILE_AGENT_STACK_BYTES UINT64_C(65536)

/** NT_PRPSINFO: who it was. */
struct corefile_process {
	uint32_t uid, pid;
	char comm[17];
};

/** @return 0, -EBADMSG (too short). */
int corefile_process_read(const void *note, size_t size, struct corefile_process *ret);

/** NT_PRSTATUS: a thread. */
struct corefile_thread {
	uint32_t tid;
	uint64_t registers[COREFILE_WORDS_MAX]; /**< As the processor's note has them. */
};

/** @return 0, -EBADMSG (too short). */
int corefile_thread_read(const struct corefile_processor *processor, const void *note, size_t size,
			 struct corefile_thread *ret);

/** A part of a file that was mapped. */
struct corefile_mapping {
	uint64_t begin, end; /**< Addresses; never empty. */
	uint64_t offset;     /**< In the file, in bytes. */
	const char *path;    /**< Borrowed from the note. */
};

/** NT_FILE: all of them. */
struct corefile_mappings {
	struct corefile_mapping *list; /**< malloc'ed; by address. */
	size_t n;
};

/**
 * Read them.  What makes no sense is left out.
 * @param ret  Free its list.
 * @return 0, -EBADMSG (the note makes no sense), -ENOMEM.
 */
int corefile_mappings_read(const void *note, size_t size, struct corefile_mappings *ret);

#endif /* COREFILE_PROCESS_H */
