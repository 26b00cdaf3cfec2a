/* SPDX-License-Identifier: MIT */
#ifndef CUDASIM_SERVER_H
#define CUDASIM_SERVER_H

/** @file server.h  Connections of the simulated GPU: frames in, frames out, one thread. */

#include "sim.h"

/** @param path Socket to make; an old one is replaced.  @return 0 or -errno. */
int server_open(const char *path, const char *script);
/** Serve until *stop becomes true (set by a signal handler).  @return 0 or -errno. */
int server_run(volatile const bool *stop);
void server_close(void);

#endif /* CUDASIM_SERVER_H */
