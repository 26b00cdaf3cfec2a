/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_COREFILE_H
#define COREFILE_COREFILE_H

/**
 * @file corefile.h
 * What the core formats of both vendors share: bytes that a core holds, and what is wrong with one.
 *
 * This module knows formats, buffers and one output descriptor.  No policy, no target, no device:
 * `cudacore_` is NVIDIA's format, `corefile_` what serves any.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** Bytes of a core: at hand, or fetched when they are written. */
struct corefile_blob {
	const void *data; /**< Borrowed; NULL: ask the source for @c key. */
	uint64_t key;	  /**< Means something to the source only. */
	uint64_t size;
};

/** Where bytes that are not at hand come from. */
struct corefile_source {
	/**
	 * @return bytes given, from @p offset on; fewer than asked, or negative, where the rest
	 *         cannot be read.
	 */
	ssize_t (*fetch)(void *arg, uint64_t key, uint64_t offset, void *buf, size_t size);
	void *arg;
};

/** A section number that says: the file as a whole. */
#define COREFILE_NO_SECTION UINT32_MAX

/** An offset that says: nowhere in particular. */
#define COREFILE_NO_OFFSET UINT64_MAX

struct corefile_problem {
	uint32_t section; /**< Or COREFILE_NO_SECTION. */
	uint64_t offset;  /**< In the file; in a table that is about to be written, the row. */
	char text[116];
};

/**
 * What the agent itself notes in a core that it writes, the text of a gpu.snapshot document without
 * waves: a note of that name and type, where there are notes; else a section.  Other readers pass it
 * over.
 */
#define COREFILE_AGENT_NOTE	 "gpu-agent"
#define COREFILE_AGENT_NOTE_TYPE 1u
#define COREFILE_AGENT_SECTION	 ".gpu-agent"

/** Problems that are kept; all are counted. */
#define COREFILE_PROBLEMS_MAX 64

struct corefile_problems {
	struct corefile_problem *list; /**< The first COREFILE_PROBLEMS_MAX; NULL when none. */
	size_t n, total;
};

/** Without memory the problem is only counted. */
void corefile_problem_add(struct corefile_problems *p, uint32_t section, uint64_t offset,
			  const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void corefile_problem_set(struct corefile_problem *p, uint32_t section, uint64_t offset,
			  const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void corefile_problems_deinit(struct corefile_problems *p);

#endif /* COREFILE_COREFILE_H */
