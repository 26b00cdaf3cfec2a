/* SPDX-License-Identifier: MIT */
#ifndef DAP_H
#define DAP_H

/**
 * @file dap.h
 * A debug adapter: what an editor asks in the Debug Adapter Protocol, answered through the agent.
 *
 * One thread of the editor's is one group of waves.  A process runs until the editor says `pause`;
 * what is shown while it runs is the last snapshot.  In a core file nothing runs.  The connection
 * to the agent is the only thing that holds anything: however this ends, the agent lets the process
 * go.
 */

#include <stddef.h>
#include <stdint.h>

#include "protocol/agent_err.h"

struct rpc_client;

/**
 * Functions of the program that give the adapter a client for a core file; what they open answers
 * as the agent does for a process.
 */
struct dap_core_source {
	/** @param ret  Borrowed until close.  @return 0, or negative with @p err. */
	int (*open)(void *data, const char *path, struct rpc_client **ret, struct agent_err *err);
	void (*close)(void *data);
	/** A call has failed: improve the error if the source is gone. */
	void (*explain)(void *data, struct agent_err *err);
	void *data;
};

/** What the program that runs the adapter knows. */
struct dap_options {
	const char *socket;	/**< Path of the agent's socket. */
	uint32_t timeout_ms;	/**< Time for each request to the agent. */
	uint32_t max_stop_ms;	/**< Longest stop; an editor may change it.  0: the default. */
	int in_fd, out_fd;	/**< Borrowed; @p out_fd does not block while this runs. */
	const void *early;	/**< What the editor has sent already; borrowed. */
	size_t early_size;
	const struct dap_core_source *core; /**< Borrowed; NULL: core files are not opened. */
	const char *nvdisasm; /**< Path of NVIDIA's disassembler; NULL: it is not started. */
	/** Connects, once, in place of rpc_client_open(); NULL for that. */
	int (*connect)(const char *socket, struct rpc_client **ret, struct agent_err *err);
};

/**
 * Serve one editor until it disconnects or closes its end; everything that it held is let go then.
 * @return 0, or negative with @p err: what the editor sent cannot be followed, or it does not read.
 */
int dap_run(const struct dap_options *o, struct agent_err *err);

#endif /* DAP_H */
