/* SPDX-License-Identifier: MIT */
#ifndef CTL_MCP_MCP_H
#define CTL_MCP_MCP_H

/**
 * @file mcp.h
 * A server of the Model Context Protocol on two descriptors: what an assistant calls as tools are verbs of
 * gpu-agentctl.
 *
 * Each call runs the verb in a process of its own, which has the only connection to the agent: when the call is
 * cancelled, late, or the client is gone, that process ends, and the agent lets the target go as for any client.
 */

#include <stdbool.h>
#include <stdint.h>

#include "protocol/agent_err.h"

/** What the program that runs the server knows. */
struct mcp_options {
	const char *program;   /**< Path of gpu-agentctl, to be executed for each call. */
	const char *socket;    /**< Of the agent. */
	uint32_t max_stop_ms;  /**< Longest stop that a call may ask for; 0: MCP_STOP_MAX_MS. */
	uint32_t timeout_ms;   /**< For each request to the agent; 0: MCP_TIMEOUT_MS. */
	bool allow_control;    /**< Also offer the tools that stop queues and write files. */
	const char *directory; /**< Absolute path of where files are written; NULL: nowhere. */
	const char *guide;     /**< Path of the file that is served as gpu-agent://guide; NULL: none. */
	int in_fd, out_fd;     /**< Borrowed; @p out_fd does not block while this runs. */
};

/** Milliseconds of a request to the agent, less than a call may take, so that the verb can say what was late. */
#define MCP_TIMEOUT_MS 15000
/** Milliseconds of the longest stop of queues that one look may ask for, unless --max-stop says more. */
#define MCP_STOP_MAX_MS 1000

/**
 * Serve one client until it closes its end; all that calls have held is let go then.
 * @return 0, or negative with @p err.
 */
int mcp_run(const struct mcp_options *o, struct agent_err *err);

#endif /* CTL_MCP_MCP_H */
