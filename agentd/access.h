/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_ACCESS_H
#define AGENTD_ACCESS_H

/**
 * @file access.h
 * Who may debug whom: the project's own rule, applied before the kernel is asked.
 *
 * These clients are allowed: root, if it has CAP_SYS_PTRACE and lives in the agent's namespaces;
 * members of the admin group in those namespaces; members of the observer group there, for reading
 * only; and the owner of the target.  A client is the owner if its uid, real and effective, equals all
 * of the target's uids, it lives in the target's pid namespace or above it, and the kernel would let
 * it look.
 *
 * To ask the kernel, a child becomes the client's user and tries to read what ptrace(2) calls
 * PTRACE_MODE_READ.  Yama has no say in that mode; the agent's capability is there to overrule
 * Yama.  The kernel cannot be asked for a client in a user namespace of its own: whatever is not
 * certain about the target of such a client is refused.
 *
 * The client's socket says who the client is, and its process says where it lives, as long as a
 * pidfd proves that the process is the client's.  A client without such a proof has no rights.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/ipc/monitor_frontend.h"
#include "agentd/oracle.h"

#define ACCESS_NO_GROUP ((gid_t)-1)
/** Charged for clients of whom nothing proves where they live: all of them count as one user. */
#define ACCESS_NOBODY ((uid_t)-1)

/** Groups that may do more than owners; ACCESS_NO_GROUP where there is none. */
struct access_rules {
	gid_t admin_gid;
	gid_t observer_gid;
};

/** The client at the other end of a socket. */
struct access_peer {
	pid_t pid;
	uid_t uid;
	gid_t gid;
	gid_t *groups; /**< Supplementary groups, owned. */
	size_t n_groups;
	bool admin;    /**< Root or in the admin group. */
	bool observer; /**< In the observer group. */
	int pidfd;     /**< The peer's pidfd, owned; -1: nothing proves which process it is. */
	bool pidfd_is_guess; /**< It was opened by pid: the kernel has no SO_PEERPIDFD. */
	/* access_peer_look() fills in the members below. */
	bool known;	   /**< The peer was alive, so the members below are about it. */
	bool near_user;	   /**< Its user namespace is that of this process. */
	bool near_pid;	   /**< Its pid namespace is that of this process. */
	bool is_unchanged; /**< It has the ids it connected with, and is dumpable. */
	/** Its real ids, by which the kernel judges who traces, are not those it connected with. */
	bool has_other_uid, has_other_gid;
	uint64_t effective, permitted; /**< Capabilities, in its user namespace. */
	uint64_t user_ns; /**< Number of its user namespace; 0: not known. */
	/**
	 * Whose quotas it uses up: its user's, or the user's who owns the outermost of the user
	 * namespaces around it, so that all the ids that a user has in there count as one.
	 */
	uid_t charge;
};

#define ACCESS_PEER_NULL { .pidfd = -1 }

/** Facts from /proc/PID; nothing here needs privileges. */
struct access_target {
	pid_t pid; /**< Thread-group leader. */
	pid_t ns_pid; /**< Its number in its innermost pid namespace. */
	pid_t tracer_pid; /**< 0 when not traced. */
	uid_t uids[4]; /**< Real, effective, saved, file system. */
	gid_t gids[4];
	uint64_t permitted, effective; /**< Capabilities, in its own user namespace. */
	bool dumpable; /**< Meaningless for targets of uid 0: only root reaches those. */
	bool kernel_thread;
	char state; /**< As in /proc/PID/status: R, S, D, Z, T, t, X. */
	char comm[16];
};

/**
 * Read what the kernel says about the peer of a socket: its ids, its groups and its pidfd.
 * @param ret  Release with access_peer_deinit(); untouched on failure.
 * @return 0 or -errno.
 */
int access_peer_read(int client_sock, const struct access_rules *rules, struct access_peer *ret);
/**
 * Look at the peer's process, and take from the peer the rights that it may not use: `admin` and
 * `observer` are for clients that live in the namespaces of this process.  If this process has no
 * CAP_SYS_PTRACE it can do no more than its own user, and both rights stay.
 */
void access_peer_look(struct access_peer *p);
/** Set `admin` and `observer` by other rules, and by what is known about the peer. */
void access_peer_set_rights(const struct access_rules *rules, struct access_peer *p);
/** @return whether it certainly lives in the namespaces of this process, so that /proc shows both the same. */
bool access_peer_is_near(const struct access_peer *p);
/** A peer that was looked at earlier may have ended since: take from it what it had by proof of its process. */
void access_peer_check(struct access_peer *p);
/** Close the peer's pidfd and free its groups. */
void access_peer_deinit(struct access_peer *p);
/** Read the supplementary groups of the peer.  @param ret  malloc'ed.  @return 0 or -errno. */
int access_peer_groups(int client_sock, gid_t **ret, size_t *ret_n);

/**
 * Read the facts about a process.
 * @return 0, -ESRCH (there is no such process, or @p pid is a thread but no leader), other -errno.
 */
int access_target_read(pid_t pid, struct access_target *ret);
/** The process of a pidfd (-1: no) has not ended: what was read under its number is about it. */
bool access_is_alive(int pidfd);
/** Parse the text of a /proc/PID/status file.  @return 0, -EBADMSG. */
int access_status_parse(const char *text, size_t size, struct access_target *ret);

/** What access_judge() is told when the kernel has not been asked: no value of oracle_ask(). */
#define ACCESS_NOT_ASKED 2
/** In place of a verdict: only the kernel knows. */
#define ACCESS_VERDICT_ASK IPC_VERDICT_COUNT

/**
 * Decide whether the peer may debug the target, and wait for nobody.
 * @param kernel      ACCESS_NOT_ASKED, or what came of access_ask(), as oracle_ask() returns it.
 * @param ret_rights  Set when the verdict is IPC_VERDICT_OK.
 * @return a verdict; ACCESS_VERDICT_ASK, if the kernel has not been asked and must be.
 */
enum ipc_verdict access_judge(const struct access_peer *peer, const struct access_target *target, int kernel,
			      enum ipc_right *ret_rights);
/** Begin to ask the kernel whether the peer may look at the target.  @return 0, -ESRCH, other -errno. */
int access_ask(const struct access_peer *peer, const struct access_target *target, struct oracle *ret);

/**
 * Decide whether the peer may debug the target.  The call waits for a child, which takes half a
 * second in the worst case.
 * @param ret_rights  Set when the verdict is IPC_VERDICT_OK.
 */
enum ipc_verdict access_decide(const struct access_peer *peer, const struct access_target *target,
			       enum ipc_right *ret_rights);

#endif /* AGENTD_ACCESS_H */
