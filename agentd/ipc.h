/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_IPC_H
#define AGENTD_IPC_H

/**
 * @file ipc.h
 * Messages between the three processes of the daemon (picture: docs/ARCHITECTURE.md).
 *
 *	front  <-> spawn    struct ipc_start, ipc_started, ipc_ended, ipc_note, ipc_watch, ipc_rule_name, ipc_limits,
 *	                    ipc_drop, ipc_closer, ipc_ping
 *	front  <-> worker   struct ipc_head + text; text above IPC_INLINE_MAX as a sealed memfd; with
 *	                    IPC_FLAG_FD and a short text a socket made by front
 *	worker  -> spawn    struct ipc_guard
 *	spawn   -> worker   struct ipc_rule
 *	front  <-> store    as front <-> worker
 *	front  <-> adapter  a stream: JSON-RPC, the adapter being the client
 *	front  <-> spawn    besides, struct ipc_hooks, ipc_hooked
 *	worker <-> store    struct ipc_add, ipc_added
 *
 * All others are SOCK_SEQPACKET pairs made by spawn.  A message of another size or type than expected is a
 * protocol error: the receiver closes that link.  No side trusts a number that says who the
 * client is: spawn reads the credentials from the client's own socket, passed as a descriptor.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/hook.h"

/* Descriptor numbers a child finds after exec. */
#define IPC_FD_LISTEN 3 /**< front: listening socket. */
#define IPC_FD_SPAWN  4 /**< front, worker: the socket pair to spawn. */
#define IPC_FD_FRONT  5 /**< worker: the socket pair to front. */
#define IPC_FD_TARGET 6 /**< session and rescue worker: pidfd of the target. */
/**
 * session and rescue worker: memory of IPC_UNDO_BYTES that outlives the worker.  Its first word is zero as
 * long as there is nothing in the target that the kernel would not undo.  Its last one is spawn's own: not
 * zero when the worker died and the target was seen to wait for its answer to RUNTIME_ENABLE; the rescue
 * worker that gives the answer clears it.  Spawn looks at no more than those two.
 */
#define IPC_FD_UNDO 7
#define IPC_UNDO_BYTES 4096
#define IPC_UNDO_ANSWER (IPC_UNDO_BYTES - sizeof(uint64_t))
#define IPC_FD_EDITOR 6 /**< adapter: the editor's socket. */
#define IPC_FD_EARLY  7 /**< adapter: sealed memory with what was read from it. */

#define IPC_INLINE_MAX (48 * 1024)
/** Longest stop of a target's queues, unless the configuration says otherwise. */
#define IPC_MAX_SUSPENDED_MS 600000
/** Largest text in one message; what a memfd may hold. */
#define IPC_TEXT_MAX ((size_t)256 << 20)

/** RESCUE: clean up behind a dead session worker; LOOK: find GPU processes.  Spawn's own ideas, both. */
enum ipc_kind {
	IPC_KIND_SESSION = 1,
	IPC_KIND_INSPECT = 2,
	IPC_KIND_RESCUE = 3,
	IPC_KIND_STORE = 4,
	IPC_KIND_LOOK = 5,
	IPC_KIND_ADAPTER = 6,
};
enum ipc_right { IPC_RIGHT_NONE = 0, IPC_RIGHT_READ = 1, IPC_RIGHT_CONTROL = 2 };

/** Outcome of the authorisation; everything but IPC_VERDICT_OK is a refusal. */
enum ipc_verdict {
	IPC_VERDICT_OK = 0,
	IPC_VERDICT_NO_PROCESS,
	IPC_VERDICT_KERNEL_THREAD,
	IPC_VERDICT_OTHER_USER,
	IPC_VERDICT_NOT_DUMPABLE,
	IPC_VERDICT_USER_NAMESPACE,
	IPC_VERDICT_PID_NAMESPACE, /**< The client cannot see the target. */
	IPC_VERDICT_CAPABILITIES, /**< The target has capabilities that the client has not. */
	IPC_VERDICT_OTHER_GROUP, /**< The target has group ids that the client has not. */
	IPC_VERDICT_KERNEL,	  /**< The kernel would not let the client, for a reason of its own. */
	IPC_VERDICT_UNKNOWN_PEER, /**< Nothing proves who the client is. */
	IPC_VERDICT_OWN_PROCESS, /**< One of the agent's own processes. */
	IPC_VERDICT_LIMIT,	 /**< Too many workers (of this user). */
	IPC_VERDICT_RESCUE,	 /**< What a dead worker did to the target is being undone. */
	IPC_VERDICT_FAILED,	 /**< See status. */
	IPC_VERDICT_COUNT,
};

enum ipc_type {
	/* front -> spawn */
	IPC_START = 1, /**< struct ipc_start; the client's socket; for an adapter, what IPC_FD_EARLY is. */
	IPC_NOTE,      /**< struct ipc_note. */
	IPC_HOOKS,     /**< struct ipc_hooks; the client's socket; the document of a test. */
	IPC_DROP,      /**< struct ipc_drop; a socket that front must not be the last to close. */
	/* spawn -> front */
	IPC_STARTED, /**< struct ipc_started; one descriptor (channel) when a worker was made. */
	IPC_ENDED,   /**< struct ipc_ended. */
	IPC_HOOKED,  /**< struct ipc_hooked; a sealed memfd when it went well. */
	IPC_WATCH,   /**< struct ipc_watch; one descriptor (channel) when a worker was made. */
	IPC_RULE_NAME, /**< struct ipc_rule_name. */
	IPC_LIMITS, /**< struct ipc_limits. */
	IPC_CLOSER, /**< struct ipc_closer. */
	IPC_PING,   /**< struct ipc_ping: front shall answer at once, with IPC_NOTE_PONG. */
	/* front -> worker: struct ipc_head */
	IPC_CALL,
	IPC_LEASE_LOST, /**< Undo what the writer may not leave behind; `number` is the enum rpc_resume_reason. */
	IPC_CLIENT_LEFT, /**< `client` left; the session goes on. */
	/* worker -> front: struct ipc_head */
	IPC_REPLY,  /**< Text of the result. */
	IPC_ERROR,  /**< Text of the JSON-RPC error object. */
	IPC_NOTIFY, /**< Text of the notification's params; `number` is its enum rpc_notification. */
	IPC_SUSPENSION, /**< struct ipc_suspension, shortened to its queues; each time that it changes. */
	IPC_OVER,   /**< The session ended; `number` is its enum rpc_end_reason.  Nothing follows. */
	IPC_COUNTS, /**< Text: struct ipc_counts, what came since the last one. */
	IPC_TARGET, /**< Attached; `number` is its enum rpc_vendor. */
	/* worker -> spawn: struct ipc_guard */
	IPC_ARM,
	IPC_DISARM,
	IPC_STORE, /**< One descriptor: the store's end of a SOCK_SEQPACKET pair; closed when refused. */
	IPC_FOUND, /**< Of a look: a process. */
	IPC_HOOK,  /**< The rule has a hook.  One descriptor, sealed: the document. */
	/* spawn -> worker */
	IPC_RULE, /**< struct ipc_rule: from now on. */
	/* worker -> store */
	IPC_ADD, /**< struct ipc_add; a sealed memfd with metadata line and document; the body, if any. */
	/* store -> worker */
	IPC_ADDED, /**< struct ipc_added. */
};

enum ipc_note_kind {
	IPC_NOTE_READY = 1, /**< front serves. */
	IPC_NOTE_IDLE,	    /**< front has had no connection for the idle time; takes none until serve_on. */
	IPC_NOTE_STATUS,    /**< value: sessions << 16 | connections. */
	IPC_NOTE_KILL,	    /**< value: worker id that does not answer. */
	IPC_NOTE_RELEASE,   /**< value: worker id whose process no rule is to watch any more. */
	IPC_NOTE_DROPPED,   /**< What the last IPC_DROP brought is closed on front's side. */
	IPC_NOTE_PONG,	    /**< value: number of the ping. */
	IPC_NOTE_OWED,	    /**< From spawn: a process did not get what a dead worker owed it. */
};

struct ipc_start {
	uint32_t type;
	uint32_t request; /**< Chosen by front, comes back in ipc_started. */
	uint32_t kind;	  /**< enum ipc_kind. */
	uint32_t pid;	  /**< Target; for inspect workers the process to judge, or 0. */
	uint32_t timeout_ms; /**< The worker is killed when it has not settled by then. */
};

struct ipc_started {
	uint32_t type;
	uint32_t request;
	uint32_t worker;  /**< Id of the worker, new or found; 0 when refused. */
	uint32_t session; /**< Its number; the id is "s" followed by it. */
	uint32_t joined;  /**< 1: this target has a worker already (no descriptor comes). */
	uint32_t verdict; /**< enum ipc_verdict. */
	int32_t status;	  /**< -errno behind IPC_VERDICT_FAILED. */
	uint32_t rights;  /**< enum ipc_right of this client on this target. */
	uint32_t target_uid;
	char comm[16];
	uint64_t user_ns; /**< Number of the client's user namespace; 0: not known. */
};

/**
 * Exit status of a session worker that ended as it should, of a target in which threads wait for an
 * answer that nobody gives any more, or in which it may not see whether they do: spawn looks.
 */
#define IPC_EXIT_LOOK 3

enum ipc_how { IPC_HOW_CLEAN = 0, IPC_HOW_DIED, IPC_HOW_STUCK };

struct ipc_ended {
	uint32_t type;
	uint32_t worker;
	uint32_t how; /**< enum ipc_how. */
	int32_t wait_status;
};

#define IPC_HOOKS_CALLER UINT32_MAX

/** To look at the files of all hooks, or to run the one of a rule on a sample. */
struct ipc_hooks {
	uint32_t type;
	uint32_t request; /**< Chosen by front, comes back in ipc_hooked. */
	uint32_t uid;	  /**< For whom; IPC_HOOKS_CALLER. */
	char rule[HOOK_RULE_MAX]; /**< "": look. */
};

struct ipc_hooked {
	uint32_t type;
	uint32_t request;
	/**
	 * 0: the memfd has struct hook_info[] (none, for no hooks, when there is no memfd) or one struct
	 * hook_report.  -EACCES (may not), -ENOENT (no such rule), -ENOBUFS (too many wait), -errno.
	 */
	int32_t status;
};

struct ipc_note {
	uint32_t type;
	uint32_t kind;
	uint32_t value;
	uint32_t pad;
};

/**
 * Descriptors of a stranger lie in a socket: whoever closes it last drops them, and may have to wait
 * for that as long as the stranger likes.  A process that is good for nothing else does it, and nobody
 * waits for that one.  One at a time; the next when IPC_CLOSER has answered.
 */
struct ipc_drop {
	uint32_t type;
	uint32_t uid; /**< Whose; comes back in ipc_closer. */
};

enum ipc_closer_kind {
	IPC_CLOSER_HOLDS = 1, /**< It has the socket: front closes its own, and says so. */
	IPC_CLOSER_FAILED,    /**< There is none now: front keeps the socket. */
	IPC_CLOSER_ENDED,     /**< One of that user has ended; not an answer. */
};

struct ipc_closer {
	uint32_t type;
	uint32_t kind; /**< enum ipc_closer_kind. */
	uint32_t uid;
};

struct ipc_ping {
	uint32_t type;
	uint32_t number; /**< A new one each time. */
};

/** What a hook shall find in its environment, as far as the worker knows it: words of the target. */
struct ipc_fault {
	char record[32]; /**< Id of the record; "" without one. */
	char comm[16];
	char vendor[16];
	char exception[128];
	char kernel[256];
	char location[256];
	char exe[256];
};

struct ipc_guard {
	uint32_t type;
	uint32_t ms; /**< IPC_ARM: kill the worker unless it disarms within this time. */
	uint32_t pid;	 /**< IPC_FOUND. */
	uint32_t vendor; /**< IPC_FOUND: enum ipc_vendor. */
	struct ipc_fault fault; /**< IPC_HOOK. */
};

/** Values of the schema's `vendor`. */
enum ipc_vendor { IPC_VENDOR_ANY = 0, IPC_VENDOR_AMD = 1, IPC_VENDOR_NVIDIA = 2 };

/** What a rule keeps of an exception; LIGHT and FULL: a core file besides the document. */
enum ipc_keep { IPC_KEEP_NOTHING = 0, IPC_KEEP_JSON, IPC_KEEP_LIGHT, IPC_KEEP_FULL };

/* What makes two exceptions the same. */
#define IPC_KEY_KERNEL 1u
#define IPC_KEY_PC     2u
#define IPC_KEY_CODE   4u

#define IPC_RULE_NAME_SIZE   32
#define IPC_RULE_DEVICES_MAX 16

/** The rule that watches a worker's target (agentd/spawn/rules/rules.h says what the members mean). */
struct ipc_rule {
	uint32_t type;
	uint32_t keep; /**< enum ipc_keep. */
	uint64_t exceptions;
	uint32_t rate_events, rate_ms;
	uint32_t key_parts, key_ms;
	uint32_t n_devices, has_hook;
	uint32_t hold_ms; /**< LIGHT, FULL: how long an exception may wait for the core. */
	uint32_t again;	  /**< Tried before: a failure has been told. */
	uint32_t devices[IPC_RULE_DEVICES_MAX];
	char name[IPC_RULE_NAME_SIZE]; /**< "": no rule watches any more. */
};

/** A rule watches the target of a worker, new or found, or no longer. */
struct ipc_watch {
	uint32_t type;
	uint32_t worker;
	uint32_t session, pid, target_uid;
	char comm[16];
	char rule[IPC_RULE_NAME_SIZE]; /**< "": none does. */
};

/** One for each rule at start and after a reload; at least one. */
struct ipc_rule_name {
	uint32_t type;
	uint32_t generation; /**< When the last one is here, rules of an earlier one are gone. */
	uint32_t last;
	char name[IPC_RULE_NAME_SIZE]; /**< "": there are no rules. */
};

/** After a reload, and with serve_on; what front has on its command line before. */
struct ipc_limits {
	uint32_t type;
	uint32_t connections, connections_per_user, sessions_per_user, idle_ms;
	uint32_t silent_holder_ms;
	uint32_t admin_gid;
	uint32_t serve_on; /**< Answers IPC_NOTE_IDLE: spawn has a reason to stay. */
};

/** What happened to the exceptions that a rule is for. */
struct ipc_counts {
	uint64_t begun;	     /**< Told before the rest is known, should the worker die of it. */
	uint64_t exceptions; /**< All of them: each is in one of the others, besides. */
	uint64_t recorded;   /**< Or passed to the hook only, where nothing is kept. */
	uint64_t duplicates; /**< Of a record that is there. */
	uint64_t limited;    /**< More than rate_limit. */
	uint64_t lost;	     /**< The record could not be made or stored. */
};

struct ipc_add {
	uint32_t type;
	uint32_t has_body;   /**< A second descriptor comes along, to be read to its end. */
	uint64_t body_bytes; /**< What comes from it, if its writer lives that long. */
};

struct ipc_added {
	uint32_t type;
	int32_t status;	     /**< 0 or -errno. */
	int32_t body_status; /**< The same for the body. */
	char id[32];	     /**< Of the record. */
};

#define IPC_SUSPENSION_QUEUES_MAX 1024

/** What gpu.suspend has done to the target of a session; times are CLOCK_MONOTONIC. */
struct ipc_suspension {
	uint64_t start_ticks;  /**< Of the target: tells a reused pid. */
	uint64_t count;	       /**< How often it went from running to suspended. */
	uint64_t total_ns;     /**< Of suspensions that are over. */
	uint64_t since_ns;     /**< Of the one that is not; 0: nothing is suspended. */
	uint64_t lease_end_ns;
	uint32_t n_queues;
	uint32_t queues[IPC_SUSPENSION_QUEUES_MAX];
};

#define IPC_FLAG_JOINED	 1u /**< session.attach: the session was open already. */
#define IPC_FLAG_CONTROL 2u /**< The client may use control methods on this target. */
#define IPC_FLAG_HOLDER	 4u /**< holder_uid is valid. */
#define IPC_FLAG_WRITER	 8u /**< The client itself holds the writer lease. */
#define IPC_FLAG_FD	 16u /**< A socket comes along, whose other end the client gets. */
#define IPC_FLAG_ADMIN	 32u /**< The client is an administrator. */

struct ipc_head {
	uint32_t type;
	uint32_t number; /**< IPC_CALL: enum rpc_method. */
	uint64_t id;	 /**< Of the call, chosen by front. */
	uint32_t flags;
	uint32_t holder_uid; /**< IPC_CALL: user who holds the writer lease. */
	uint32_t client;     /**< IPC_CALL: number of the client, one for each attachment. */
	uint32_t pad;
	uint64_t size;	     /**< Of the text; above IPC_INLINE_MAX it is in a memfd. */
};

/** One end of a front <-> worker channel: sends without blocking, queues what does not fit. */
struct ipc_link {
	int fd; /**< Owned; -1 when closed. */
	struct ipc_queued *head, *tail;
	size_t queued_bytes;
};

#define IPC_LINK_NULL { .fd = -1 }
/** More than this queued to a peer that does not read: the link is given up. */
#define IPC_QUEUE_MAX ((size_t)8 << 20)

void ipc_link_init(struct ipc_link *l, int take_fd);
void ipc_link_deinit(struct ipc_link *l);

/**
 * Send or queue one message.
 * @return 0, -EPIPE (peer gone), -ENOBUFS (queue full), -ENOMEM, -errno.
 */
int ipc_link_send(struct ipc_link *l, const struct ipc_head *head, const char *text);
/**
 * The same with a descriptor.
 * @param head     With IPC_FLAG_FD.
 * @param take_fd  Closed in any case.
 * @return also -EMSGSIZE: the text is too long to have a descriptor beside it.
 */
int ipc_link_send_fd(struct ipc_link *l, const struct ipc_head *head, const char *text,
		     int take_fd);
/** Send what is queued.  @return 0, -errno when the link is dead. */
int ipc_link_flush(struct ipc_link *l);
static inline bool ipc_link_has_queued(const struct ipc_link *l)
{
	return l->head != NULL;
}

/** A received message; release with ipc_message_deinit(). */
struct ipc_message {
	struct ipc_head head;
	const char *text; /**< head.size bytes, not NUL-terminated. */
	char *owned;
	const void *mapped;
	int fd; /**< With IPC_FLAG_FD; else -1. */
};

/**
 * Receive one message.
 * @return 1, 0 at end of file, -EAGAIN, -EPROTO (malformed), -EMFILE (no descriptor was free for
 *         the memfd: only @p ret->head is valid, the link goes on), other -errno.
 */
int ipc_link_recv(struct ipc_link *l, struct ipc_message *ret);
void ipc_message_deinit(struct ipc_message *m);

/**
 * Receive one fixed-size message.
 * @param ret_fd  Descriptor that came along, or -1; more than one is a protocol error.
 * @return 1, 0 at end of file, -EAGAIN, -EPROTO, -errno.
 */
int ipc_recv_fixed(int sock, void *msg, size_t size, int *ret_fd);

#endif /* AGENTD_IPC_H */
