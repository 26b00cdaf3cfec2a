/* SPDX-License-Identifier: MIT */
#ifndef PROCESS_NETWORK_H
#define PROCESS_NETWORK_H

/** @file network.h  Which network namespace a worker's connections are made in (agentd/ipc/connect.h). */

#include <stdbool.h>
#include <sys/types.h>

/** Look at what this process may not look at later; call it before rights are given up. */
void network_look(void);
/** @return 0; -errno: the process's namespaces, or those of the connect broker, may not be looked at. */
int network_reaches(pid_t pid, bool *ret);

#endif /* PROCESS_NETWORK_H */
