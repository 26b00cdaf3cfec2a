/* SPDX-License-Identifier: MIT */
#ifndef CTL_DOCUMENT_SOURCE_H
#define CTL_DOCUMENT_SOURCE_H

/**
 * @file source.h
 * Where documents come from when no process is there to ask: a core file, which a program of ours
 * reads in a sandbox; or a saved document.
 *
 * The program speaks as the agent does, and lives no longer than the connection to it.
 */

#include <sys/types.h>

#include "ctl/document/document.h"
#include "protocol/rpc_client.h"

struct source_core {
	const char *path;	   /**< Borrowed. */
	pid_t pid;		   /**< Of the program; 0: none. */
	struct rpc_client *client;
};

/** @return 0, or negative with @p err (the file, or the program, cannot be opened). */
int source_core_open(struct source_core *s, const char *path, struct agent_err *err);
/** Accepts a zeroed object. */
void source_core_close(struct source_core *s);
/**
 * A call has failed.  When that is because the program is gone, say how it ended; it does not run
 * any more then.
 */
void source_core_explain(struct source_core *s, struct agent_err *err);

/**
 * A saved document, or what a core says.
 * @param path   "-" is a document on standard input.
 * @param waves  Of a core, also the list of its waves.
 * @return as document_parse().
 */
int source_read(const char *path, bool waves, uint32_t timeout_ms, struct rpc_arena *arena,
		struct document *ret, struct agent_err *err);

#endif /* CTL_DOCUMENT_SOURCE_H */
