/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_ACCESS_H
#define AGENTD_ACCESS_H

/**
 * @file access.h
 * Who may debug whom: the project's own rule, applied before the kernel is asked.
 *
 * Allowed are root; the owner of a process (his uid equals all of the target's uids, the target is
 * dumpable, has no capability that he lacks, and lives in his user namespace or one below);
 * members of the admin group; and, for reading only, members of the observer group.  Credentials
 * come from the client's socket.  The kernel's own rule is not asked: the worker is privileged.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/ipc.h"

#define ACCESS_NO_GROUP ((gid_t)-1)

/** Groups that may do more than owners; ACCESS_NO_GROUP where there is none. */
struct access_rules {
	gid_t admin_gid;
	gid_t observer_gid;
};

struct access_peer {
	pid_t pid;
	uid_t uid;
	gid_t gid;
	bool admin;    /**< Root or in the admin group. */
	bool observer; /**< In the observer group. */
	int pidfd;     /**< Of the peer where the kernel has SO_PEERPIDFD, else -1.  Owned. */
};

/** Facts from /proc/PID; nothing here needs privileges. */
struct access_target {
	pid_t pid; /**< Thread-group leader. */
	pid_t ns_pid; /**< In the innermost pid namespace. */
	pid_t tracer_pid; /**< 0 when not traced. */
	uid_t uids[4]; /**< Real, effective, saved, file system. */
	gid_t gids[4];
	uint64_t permitted; /**< Capabilities, of its own user namespace. */
	bool dumpable; /**< Meaningless for targets of uid 0: only root reaches those. */
	bool kernel_thread;
	char state; /**< As in /proc/PID/status: R, S, D, Z, T, t, X. */
	char comm[16];
};

/** @return 0 or -errno.  Release with access_peer_deinit(). */
int access_peer_read(int client_sock, const struct access_rules *rules, struct access_peer *ret);
void access_peer_deinit(struct access_peer *p);
/** Supplementary groups of the peer.  @param ret  malloc'ed.  @return 0 or -errno. */
int access_peer_groups(int client_sock, gid_t **ret, size_t *ret_n);
/** Does the peer live in the user namespace of this process? */
bool access_peer_is_near(const struct access_peer *p);

/** @return 0, -ESRCH (no such process, or a mere thread id), -errno. */
int access_target_read(pid_t pid, struct access_target *ret);
/** Parse the text of a /proc/PID/status file.  @return 0, -EBADMSG. */
int access_status_parse(const char *text, size_t size, struct access_target *ret);

/** Judge.  @param ret_rights Set when the verdict is IPC_VERDICT_OK. */
enum ipc_verdict access_decide(const struct access_peer *peer, const struct access_target *target,
			       enum ipc_right *ret_rights);

#endif /* AGENTD_ACCESS_H */
