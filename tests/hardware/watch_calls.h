/* SPDX-License-Identifier: MIT */
#ifndef HARDWARE_WATCH_CALLS_H
#define HARDWARE_WATCH_CALLS_H

/**
 * @file watch_calls.h
 * Which system calls a process makes, itself and what it loads: what the filter of a worker has to let through.
 */

/**
 * From now on a child listens to every system call of this process and its threads, lets it through, and writes at the
 * end to path, as lines of JSON, how often each was made and with what of its arguments.  x86-64 only.
 * @param refused  Which calls fail instead, words with commas between them: inet (sockets of the internet and of
 *                 netlink: EAFNOSUPPORT), datagram (Unix sockets for datagrams), path (connecting to a socket that has
 *                 a path), symlink, unlink, bind (but of our own label), listen, accept (EPERM).  NULL: none.
 * @return 0, or -1: it cannot be done here, or only with this process left without an answer to some call.
 */
int watch_calls(const char *path, const char *refused);

#endif /* HARDWARE_WATCH_CALLS_H */
