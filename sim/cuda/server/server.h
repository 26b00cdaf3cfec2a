/* SPDX-License-Identifier: MIT */
#ifndef CUDASIM_SERVER_H
#define CUDASIM_SERVER_H

/** @file server.h  Connections of the simulated GPU: frames in, frames out, one thread. */

#include "sim/cuda/gpu/sim.h"

/**
 * Start to listen.
 * @param path    Socket to make; an old one is replaced.
 * @param script  Commands for every new process; NULL for none.
 * @return 0 or -errno.
 */
int server_open(const char *path, const char *script);
/** Serve until *stop becomes true, which a signal handler does.  @return 0 or -errno. */
int server_run(volatile const bool *stop);
/** Close all connections, end all processes, and remove the socket. */
void server_close(void);

#endif /* CUDASIM_SERVER_H */
