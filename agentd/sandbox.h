/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_SANDBOX_H
#define AGENTD_SANDBOX_H

/**
 * @file sandbox.h
 * System-call filters for the processes that read what strangers wrote.  A call that is not on the
 * list fails with EPERM: a surprise becomes an error message, not a killed worker with a stopped
 * target.  Needs no-new-privileges (privileges_become() sets it).
 */

/** front: its sockets, memory and time; no file is opened any more. */
int sandbox_front(void);
/**
 * worker: a bounded address space; besides, ioctl on the device, ptrace, reading other processes' memory, opening files for
 * reading.
 */
int sandbox_worker(void);
/**
 * worker with a vendor's closed driver library in it: besides what sandbox_worker() allows, threads,
 * sockets, its devices and files.  No other program can be started, nothing mounted or loaded into
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
