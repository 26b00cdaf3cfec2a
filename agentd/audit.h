/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_AUDIT_H
#define AGENTD_AUDIT_H

/**
 * @file audit.h
 * Journal records of who was let do what, as the monitor and the judge write them.
 *
 * Each fact has one writer: the monitor writes down whom it let attach, the judge who was refused, and
 * who does what in a session or to records of others, which the session's worker or the store says.
 * gpu-agentd(8) lists the fields.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/ipc/monitor_frontend.h"
#include "agentd/ipc/monitor_worker.h"

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
/**
 * Refusals without a record of their own.
 * @param uid    ACCESS_NOBODY: of several users.
 * @param kinds  What was refused, with blanks between.
 */
void audit_refusals(uid_t uid, uint32_t n, const char *kinds, uint32_t seconds);
/** What a client does with the target of a session. */
struct audit_use {
	const char *method;
	uint32_t session, pid;
	uid_t uid;    /**< Whose process it is. */
	uint32_t n;   /**< Calls that the record stands for. */
};

/** @param client  NULL: it has gone, and nobody knows any more who it was. */
void audit_control(const struct audit_client *client, const struct audit_use *use);
/** It reads what a process of another user does.  @param client  As audit_control() has it. */
void audit_read(const struct audit_client *client, const struct audit_use *use);
/**
 * It gets the writer lease, which another client had.
 * @param why      One of IPC_USE_TAKEN_...
 * @param idle_ms  Since the other one last asked for something.
 */
void audit_taken(const struct audit_client *client, const struct audit_client *from, const struct audit_use *use,
		 enum ipc_use why, uint64_t idle_ms);
/**
 * It reads or changes a record of another user.
 * @param record  "": several.
 * @param uid     Whose it is; ACCESS_NOBODY: there are several.
 * @param n       Calls that this stands for.
 */
void audit_record_use(const struct audit_client *client, const char *method, const char *record, uid_t uid, uint32_t n);
/**
 * Uses without a record of their own, by users of their own processes.
 * @param uid      As audit_refusals() has it.
 * @param methods  Of these calls, with blanks between.
 */
void audit_own_uses(uid_t uid, uint32_t n, const char *methods, uint32_t seconds);
/** The same, of processes and records of others. */
void audit_other_uses(uid_t uid, uint32_t n, const char *methods, uint32_t seconds);
/** The frontend spoke for a client that it has not.  @param what  What it asked for. */
void audit_lie(const char *what, uint64_t client);

#endif /* AGENTD_AUDIT_H */
