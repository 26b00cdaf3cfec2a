/* SPDX-License-Identifier: MIT */
#ifndef DAP_H
#define DAP_H

/**
 * @file dap.h
 * A debug adapter: what an editor asks in the Debug Adapter Protocol, answered through the agent.
 *
 * One thread of the editor's is one group of waves.  A process runs until the editor says `pause`;
 * what is shown while it runs is the last snapshot.  In a core file nothing runs.  The connection to
 * the agent is the only thing that holds anything: however this ends, the agent lets the process go.
 */

#include <stddef.h>
#include <stdint.h>

#include "protocol/agent_err.h"

struct rpc_client;

/** What answers for a core file as the agent does for a process. */
struct dap_core_source {
	/** @param ret  Borrowed until close.  @return 0, or negative with @p err. */
	int (*open)(void *data, const char *path, struct rpc_client **ret, struct agent_err *err);
	void (*close)(void *data);
	/** A call has failed: say why, if it is because the source is gone. */
	void (*explain)(void *data, struct agent_err *err);
	void *data;
};

struct dap_options {
	const char *socket;	/**< Of the agent. */
	uint32_t timeout_ms;	/**< Of each request to it. */
	uint32_t max_stop_ms;	/**< Unless the editor says otherwise; 0: the agent's default. */
	int in_fd, out_fd;	/**< Borrowed; @p out_fd does not block while this runs. */
	const void *early;	/**< What the editor has sent already; borrowed. */
	size_t early_size;
	const struct dap_core_source *core; /**< Borrowed; NULL: core files are not opened. */
	const char *nvdisasm; /**< Program that knows NVIDIA's instructions; NULL: none is started. */
	/** Connects, once; NULL for rpc_client_open(). */
	int (*connect)(const char *socket, struct rpc_client **ret, struct agent_err *err);
};

/**
 * Serve one editor until it disconnects or closes its end.
 * @return 0, or negative with @p err: what came cannot be followed, or nobody reads.
 */
int dap_run(const struct dap_options *o, struct agent_err *err);

#endif /* DAP_H */
