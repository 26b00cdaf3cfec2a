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

#endif /* AGENTD_SANDBOX_H */
