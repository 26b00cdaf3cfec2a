/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_COREFILE_H
#define COREFILE_COREFILE_H

/**
 * @file corefile.h
 * What the core formats of both vendors share: the bytes that a core holds, and the problems of a
 * core.
 *
 * This module knows formats, buffers and one output descriptor.  It has no policy and knows no
 * target and no device: `cudacore_` is NVIDIA's format, `amdcore_` AMD's, `corefile_` serves both.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** Bytes of a core, which are either in memory or fetched when they are written. */
struct corefile_blob {
	const void *data; /**< Borrowed; NULL when the source has to be asked for @c key. */
	uint64_t key;	  /**< Names the bytes to the source; nobody else interprets it. */
	uint64_t size;
};

/** Gives the bytes of blobs that have no data. */
struct corefile_source {
	/**
	 * Read bytes of a blob into @p buf.
	 * @return bytes given, from @p offset on; fewer than asked, or a negative number, where the
	 *         rest cannot be read.
	 */
	ssize_t (*fetch)(void *arg, uint64_t key, uint64_t offset, void *buf, size_t size);
	void *arg;
};

/** Section number of a problem that concerns the file as a whole. */
#define COREFILE_NO_SECTION UINT32_MAX

/** Offset of a problem that has no place in the file. */
#define COREFILE_NO_OFFSET UINT64_MAX

/** One thing that is wrong with a core. */
struct corefile_problem {
	uint32_t section; /**< Section number, or COREFILE_NO_SECTION. */
	/** Offset in the file; of a core that is about to be written, the row of its table. */
	uint64_t offset;
	char text[116];
};

/**
 * The agent's own note in a core that it writes, which is the text of a gpu.snapshot document
 * without waves.  It is a note of this name and type where the format has notes, else a section.
 * Other readers pass it over.
 */
#define COREFILE_AGENT_NOTE	 "gpu-agent"
#define COREFILE_AGENT_NOTE_TYPE 1u
#define COREFILE_AGENT_SECTION	 ".gpu-agent"
/**
 * The type of more notes of that name, each with a code object out of a file that readers would not find: its URI
 * with the NUL, then its bytes.  A debugger takes small numbers for notes of the system's own.
 */
#define COREFILE_AGENT_CODE_TYPE 0x45444f43u

/** Most problems that are kept; all of them are counted. */
#define COREFILE_PROBLEMS_MAX 64

/** The problems of a core. */
struct corefile_problems {
	/** Owned; the first COREFILE_PROBLEMS_MAX of them, NULL when there is none. */
	struct corefile_problem *list;
	size_t n, total;
};

/**
 * Add a problem with a formatted text.  When there is no memory, or the list is full, it is only
 * counted.
 */
void corefile_problem_add(struct corefile_problems *p, uint32_t section, uint64_t offset,
			  const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/**
 * Fill one problem with a formatted text, which is cut to the size of the member.
 * @param p  NULL is allowed when the problem is of no interest.
 */
void corefile_problem_set(struct corefile_problem *p, uint32_t section, uint64_t offset,
			  const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/** Free the list.  Accepts a zeroed object. */
void corefile_problems_deinit(struct corefile_problems *p);

#endif /* COREFILE_COREFILE_H */
