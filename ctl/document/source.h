/* SPDX-License-Identifier: MIT */
#ifndef CTL_DOCUMENT_SOURCE_H
#define CTL_DOCUMENT_SOURCE_H

/**
 * @file source.h
 * Where documents come from when there is no process to ask: a core file, which gpu-agent-worker
 * reads in a sandbox, or a saved document.
 *
 * The worker answers as the agent does, and lives no longer than the connection to it.
 */

#include <sys/types.h>

#include "ctl/document/document.h"
#include "protocol/rpc_client.h"

/** A core file and the worker that reads it. */
struct source_core {
	const char *path;	   /**< Path of the core file; borrowed. */
	pid_t pid;		   /**< The worker; 0: there is none. */
	struct rpc_client *client; /**< Connection to the worker, owned by this object. */
};

/**
 * Start a worker on a core file.
 * @param path  Borrowed until source_core_close().
 * @return 0, or negative with @p err (the file, or the program, cannot be opened).
 */
int source_core_open(struct source_core *s, const char *path, struct agent_err *err);
/**
 * Close the connection and wait for the worker, which is killed if it does not end in two seconds.
 * A zeroed object is accepted.
 */
void source_core_close(struct source_core *s);
/**
 * Improve the error of a call that has failed: when the worker is gone, say how it ended.  It is
 * reaped then.
 */
void source_core_explain(struct source_core *s, struct agent_err *err);

/** Whether a file is a core, compressed or not, by its first bytes; documents are text. */
bool source_is_core(const char *path);
/**
 * Read a saved document, or take the snapshot that a core file holds.
 * @param path   "-" is a document on standard input.
 * @param waves  Whether the snapshot of a core has the list of its waves too.
 * @return as document_parse().
 */
int source_read(const char *path, bool waves, uint32_t timeout_ms, struct rpc_arena *arena,
		struct document *ret, struct agent_err *err);

#endif /* CTL_DOCUMENT_SOURCE_H */
