/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_SANDBOX_H
#define AGENTD_SANDBOX_H

/**
 * @file sandbox.h
 * System-call filters for the processes that read what strangers wrote.  A call that is not on the
 * list fails with EPERM: a surprise becomes an error message, not a killed worker with a stopped
 * target.  Needs no-new-privileges (privileges_become() sets it).
 */

#include <stdbool.h>

/** front: its sockets, memory and time; no file is opened any more. */
int sandbox_front(void);
/** worker without a target: a bounded address space; besides, opening files for reading, ioctl on the device. */
int sandbox_look(void);
/**
 * worker of a session: what sandbox_look() allows, reading other processes' memory, and of ptrace what
 * seizes, stops for a moment and lets go.
 * @param registers  Those of threads, too: only where the kernel gave the tracer no more than the
 *                   target's user has (struct target, `is_own`).
 */
int sandbox_worker(bool registers);
/**
 * worker with a vendor's closed driver library in it: besides what sandbox_worker() allows, threads,
 * its devices and files, calls in the target, sockets to others of this machine; it cannot listen,
 * and there is no network (EAFNOSUPPORT).  No other program can be started, nothing mounted or loaded into
 * the kernel; the address space has no bound, since drivers reserve terabytes of it.
 */
int sandbox_worker_driver(void);
/**
 * worker that reads a core: bounded memory; nothing but opening files for reading, of which it needs
 * those that the core names.
 */
int sandbox_core(void);
/**
 * adapter: a bounded address space; besides, opening files for reading, and a child that runs the
 * disassembler.
 */
int sandbox_adapter(void);
/** store: besides, changing the files of the directory that it has open. */
int sandbox_store(void);

#endif /* AGENTD_SANDBOX_H */
