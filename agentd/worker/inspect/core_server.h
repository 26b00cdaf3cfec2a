/* SPDX-License-Identifier: MIT */
#ifndef WORKER_INSPECT_CORE_SERVER_H
#define WORKER_INSPECT_CORE_SERVER_H

/**
 * @file core_server.h
 * A worker without a daemon: gpu-agentctl starts it to have a core file read by a process that can
 * do nothing else, and talks to it as it would to the agent.
 *
 * Standard input is the file, standard output the socket to the client, a stream.  session.attach
 * opens the one session there is, whatever process it asks for.  Methods of a session that change
 * something, and those of the daemon, are answered with `unsupported`.
 */

/**
 * Serve until the client is gone.
 * @param name  The file's name, for people.
 * @return exit status.
 */
int core_server_run(const char *name);

#endif /* WORKER_INSPECT_CORE_SERVER_H */
