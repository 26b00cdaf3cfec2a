/* SPDX-License-Identifier: MIT */
#ifndef CTL_DOCUMENT_DOCUMENT_H
#define CTL_DOCUMENT_DOCUMENT_H

/**
 * @file document.h
 * Reads snapshots that were saved with `snapshot -j -o FILE`, and merged ones.
 *
 * A document may come from anywhere: it is checked against the schema like a reply of the agent.
 * Members that this client does not know are skipped, so that a newer minor version can be read;
 * another major version is refused.
 */

#include <stdbool.h>
#include <stddef.h>

#include "rpc_gen.h"

/** Larger files are refused: a flat list of 100 000 waves takes about half of this. */
#define DOCUMENT_SIZE_MAX ((size_t)64 << 20)
/** Bytes that one decoded document may need; callers set the limit of their arena by it. */
#define DOCUMENT_MEMORY_MAX ((size_t)256 << 20)

/** Kind and major version of the documents that this client reads and writes. */
#define DOCUMENT_SNAPSHOT   "gpu-agent.snapshot/1"
#define DOCUMENT_COMPARISON "gpu-agent.comparison/1"
/** The `source.kind` of a merged document. */
#define DOCUMENT_MERGED "merged"

/** A document that was read; there is nothing to release but the arena. */
struct document {
	const char *name; /**< Name for messages, borrowed from the caller. */
	bool merged;
	struct rpc_gpu_snapshot_result snapshot; /**< In the arena. */
};

/**
 * Parse the text of a document, or of a stored record, as `cores info -j` prints it, which has one in it.
 * @param name  Name of the file, for messages.
 * @return 0, or negative with @p err: invalid_params (not such a document; the message names the
 *         file and the place in it), too_large, internal (memory).
 */
int document_parse(const char *name, const char *text, size_t size, struct rpc_arena *arena,
		   struct document *ret, struct agent_err *err);
/**
 * Read the text of a file that has a document, or another one.
 * @param path      "-" is standard input.
 * @param ret_name  Its name for messages: @p path, or a constant.
 * @param ret_text  Release with free().
 * @return 0, or negative with @p err: too_large, failed (the file cannot be read).
 */
int document_read_text(const char *path, const char **ret_name, char **ret_text, size_t *ret_size,
		       struct agent_err *err);
/**
 * Read a file with a document.
 * @param path  "-" is standard input.
 * @return as document_parse(); also with the code failed (the file cannot be read).
 */
int document_read(const char *path, struct rpc_arena *arena, struct document *ret,
		  struct agent_err *err);

#endif /* CTL_DOCUMENT_DOCUMENT_H */
