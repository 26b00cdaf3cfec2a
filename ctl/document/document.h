/* SPDX-License-Identifier: MIT */
#ifndef CTL_DOCUMENT_DOCUMENT_H
#define CTL_DOCUMENT_DOCUMENT_H

/**
 * @file document.h
 * Snapshots that were saved with `snapshot -j -o FILE`, and merged ones, read back.
 *
 * A document may come from anywhere: it is checked against the schema like a reply of the agent.
 * Members that this client does not know are skipped, so that a newer minor version can be read;
 * another major version is refused.
 */

#include <stdbool.h>
#include <stddef.h>

#include "rpc_gen.h"

/** Larger files are refused: a flat list of 100 000 waves has about half of this. */
#define DOCUMENT_SIZE_MAX ((size_t)64 << 20)
/** What one document may need decoded; for the limit of the arena. */
#define DOCUMENT_MEMORY_MAX ((size_t)256 << 20)

/** Kind and major version of the documents that this client reads and writes. */
#define DOCUMENT_SNAPSHOT   "gpu-agent.snapshot/1"
#define DOCUMENT_COMPARISON "gpu-agent.comparison/1"
/** Kind of source of a merged document. */
#define DOCUMENT_MERGED "merged"

struct document {
	const char *name; /**< Borrowed from the caller. */
	bool merged;
	struct rpc_gpu_snapshot_result snapshot; /**< In the arena. */
};

/**
 * @param name  Of the file, for messages.
 * @return 0, or negative with @p err: invalid_params (no such document; the message names the file
 *         and the place in it), too_large, internal (memory).
 */
int document_parse(const char *name, const char *text, size_t size, struct rpc_arena *arena,
		   struct document *ret, struct agent_err *err);
/** @param path  "-" is standard input.  @return as document_parse(); failed (cannot be read). */
int document_read(const char *path, struct rpc_arena *arena, struct document *ret,
		  struct agent_err *err);

#endif /* CTL_DOCUMENT_DOCUMENT_H */
