/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_ACCESS_H
#define AGENTD_ACCESS_H

/**
 * @file access.h
 * Who may debug whom: the project's own rule, applied before the kernel is asked.
 *
 * Allowed are root, if it has CAP_SYS_PTRACE and lives in the agent's namespaces; members of the admin
 * group there; members of the observer group there, for reading only; and the owner of a process: his
 * uid equals all of the target's uids, he lives in the target's pid namespace or above it, and the
 * kernel would let him look.
 *
 * The kernel is asked, by a child that becomes the owner, whether he may read what ptrace(2) calls
 * PTRACE_MODE_READ; Yama, which the agent's capability is there to overrule, has no say in that.  Of
 * clients in user namespaces of their own it cannot be asked: what is not certain about their targets
 * is refused.
 *
 * Who a client is comes from his socket, and where he lives from his process, as long as a pidfd
 * proves that it is his.  Without such a proof nobody has any right.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

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
	gid_t *groups; /**< Supplementary.  Owned. */
	size_t n_groups;
	bool admin;    /**< Root or in the admin group. */
	bool observer; /**< In the observer group. */
	int pidfd;     /**< Of the peer; -1: there is no proof of who that is.  Owned. */
	bool pidfd_is_guess; /**< Opened by number: the kernel has no SO_PEERPIDFD. */
	/* From access_peer_look(): */
	bool known;	   /**< The rest is about the peer, who was alive. */
	bool near_user;	   /**< Its user namespace is that of this process. */
	bool near_pid;	   /**< Its pid namespace is that of this process. */
	bool is_unchanged; /**< It has the ids it connected with, and is dumpable. */
	uint64_t effective, permitted; /**< Capabilities, in its user namespace. */
};

#define ACCESS_PEER_NULL { .pidfd = -1 }

/** Facts from /proc/PID; nothing here needs privileges. */
struct access_target {
	pid_t pid; /**< Thread-group leader. */
	pid_t ns_pid; /**< In the innermost pid namespace. */
	pid_t tracer_pid; /**< 0 when not traced. */
	uid_t uids[4]; /**< Real, effective, saved, file system. */
	gid_t gids[4];
	uint64_t permitted, effective; /**< Capabilities, of its own user namespace. */
	bool dumpable; /**< Meaningless for targets of uid 0: only root reaches those. */
	bool kernel_thread;
	char state; /**< As in /proc/PID/status: R, S, D, Z, T, t, X. */
	char comm[16];
};

/** Is this an end that was accepted from the socket bound to @p own? */
bool access_is_client(int sock, const struct sockaddr_un *own);

/**
 * What the socket says of itself.
 * @return 0 or -errno.  Release with access_peer_deinit().
 */
int access_peer_read(int client_sock, const struct access_rules *rules, struct access_peer *ret);
/**
 * Look at the peer's process, with CAP_SYS_PTRACE, and take from the peer what he has no right to:
 * `admin` and `observer` are for those who live in the namespaces of this process.  Without that
 * capability, with which this process can do no more than its user, they stay.
 */
void access_peer_look(struct access_peer *p);
void access_peer_deinit(struct access_peer *p);
/** Supplementary groups of the peer.  @param ret  malloc'ed.  @return 0 or -errno. */
int access_peer_groups(int client_sock, gid_t **ret, size_t *ret_n);

/** @return 0, -ESRCH (no such process, or a mere thread id), -errno. */
int access_target_read(pid_t pid, struct access_target *ret);
/** The process of a pidfd (-1: no) has not ended: what was read under its number is about it. */
bool access_is_alive(int pidfd);
/** Parse the text of a /proc/PID/status file.  @return 0, -EBADMSG. */
int access_status_parse(const char *text, size_t size, struct access_target *ret);

/**
 * Judge.  May take half a second in the worst case: a child is waited for.
 * @param ret_rights Set when the verdict is IPC_VERDICT_OK. */
enum ipc_verdict access_decide(const struct access_peer *peer, const struct access_target *target,
			       enum ipc_right *ret_rights);

#endif /* AGENTD_ACCESS_H */
