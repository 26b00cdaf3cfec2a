/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_AUDIT_H
#define AGENTD_AUDIT_H

/**
 * @file audit.h
 * Journal records of who was let do what, as the monitor and the judge write them.
 *
 * Each fact has one writer, which knows it for itself: the monitor writes down whom it let attach, the
 * judge who was refused.  gpu-agentd(8) lists the fields.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/ipc/monitor_frontend.h"

/** A client, as it was when it connected. */
struct audit_client {
	pid_t pid;
	uid_t uid;
};

/**
 * A client asked for a session.
 * @param pid     The process that it asked for.
 * @param joined  The process has a session already, of which the client is now another one.
 */
void audit_attach(const struct audit_client *client, uint32_t pid, enum ipc_verdict verdict, bool joined);
/** Refusals without a record of their own.  @param uid  ACCESS_NOBODY: of several users. */
void audit_refusals(uid_t uid, uint32_t n, uint32_t seconds);
/** The frontend spoke for a client that it has not.  @param what  What it asked for. */
void audit_lie(const char *what, uint64_t client);

#endif /* AGENTD_AUDIT_H */
