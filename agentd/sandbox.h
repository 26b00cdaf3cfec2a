/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_SANDBOX_H
#define AGENTD_SANDBOX_H

/**
 * @file sandbox.h
 * System-call filters for the processes that read what strangers wrote.
 *
 * A call that is not on the list fails with EPERM: a surprise becomes an error message, not a
 * killed worker with a stopped target.  The process must have set no-new-privileges;
 * privileges_become() sets it.  Each function installs a filter for good and returns 0 or -errno.
 */

#include <stdbool.h>

/**
 * Confine the monitor and all that it starts, hooks included: no new privileges, and no call that changes
 * the machine or its kernel.  It holds also where no service manager has a filter of its own.
 */
int sandbox_agent(void);
/**
 * Confine the judge: it may accept connections, read files, and start processes that become other
 * users; it executes, traces and opens for writing nothing.
 */
int sandbox_judge(void);
/** Confine the frontend to its sockets, memory and time; it can open no file any more. */
int sandbox_front(void);
/**
 * Confine a worker that has no target: its address space is bounded, and it may also open files for
 * reading, start threads, and use ioctl on the device.
 */
int sandbox_look(void);
/** Confine a worker that reads one process and has no session: as sandbox_look(), and it may read its memory. */
int sandbox_host(void);
/**
 * Confine the worker of a session: it may do what sandbox_look() allows, read other processes'
 * memory, and use the requests of ptrace that seize, stop for a moment and let go.
 * @param registers  The worker may also read the registers of threads.  True only where the kernel
 *                   gave the tracer no more than the target's user has (struct target, `is_own`).
 */
int sandbox_worker(bool registers);
/**
 * Confine a worker that has a vendor's closed driver library in it.  Besides what sandbox_worker()
 * allows, the library may start threads, and use its devices and files.  It
 * has stream sockets of this machine, but it cannot listen, and it has no network (EAFNOSUPPORT).  It
 * can start no other program, mount nothing and load nothing into the kernel.  The address space has
 * no bound, since drivers reserve terabytes of it.
 *
 * @param traces  The worker makes calls in the target by itself; else it has nothing of ptrace, and a
 *                tracer does that (sandbox_tracer()).
 * @param permissive  No call is refused for not being on the list: the broker is told of it as it is of
 *                those that it answers, and lets it pass.  The calls of which sandbox_agent() speaks stay refused.
 *                Only with @p ret_notify.
 * @param ret_notify  The descriptor on which the kernel tells of the calls of sandbox_asks_broker(), which
 *                    wait for whoever has it: give it to the connect broker and close it.  They fail with
 *                    ENOSYS once it is closed everywhere.  NULL: the worker has no sockets but its own
 *                    (EPERM).
 * @return 0, -EOPNOTSUPP (Linux before 5.0), -EBUSY (something above this process is told of system
 *         calls already), other -errno.
 */
int sandbox_worker_driver(bool traces, bool permissive, int *ret_notify);
/** @return whether the connect broker answers a system call of a worker with a driver in it: socket(2) and others. */
bool sandbox_asks_broker(int call);
/**
 * Confine a tracer: it may trace as a call in the target needs it, read files and memory of processes, duplicate
 * descriptors of the target, and talk to its worker; it has no other call, not even for memory of its own.
 */
int sandbox_tracer(void);
/**
 * Confine a worker that reads a core file: its memory is bounded, and it may do nothing but open
 * files for reading; it needs those that the core names.  Where the kernel has Landlock, nothing is
 * written, and no program executed, also by a call that the filter does not know.
 */
int sandbox_core(void);
/**
 * Confine an adapter: its address space is bounded, and it may also open files for reading and
 * start a child that runs the disassembler.
 */
int sandbox_adapter(void);
/** Confine the parser of the configuration: it has its memory and the descriptors it was given, and can open none. */
int sandbox_parser(void);
/** Confine the connect broker: it may answer its worker's calls, and make Unix sockets. */
int sandbox_connect(void);
/**
 * Confine the store: it may also change the files of its directory, and open none elsewhere where the kernel
 * has Landlock.
 * @param dir_fd  The directory; -1: there is none, and nothing can be opened.
 */
int sandbox_store(int dir_fd);

#endif /* AGENTD_SANDBOX_H */
