/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_IPC_H
#define AGENTD_IPC_H

/**
 * @file ipc.h
 * Messages between the processes of the daemon (picture: docs/ARCHITECTURE.md).
 *
 *	frontend  <-> monitor    struct ipc_start, ipc_started, ipc_ended, ipc_note, ipc_watch,
 *	                    ipc_rule_name, ipc_limits, ipc_drop, ipc_closer, ipc_ping
 *	frontend  <-> worker   struct ipc_head and text; a text above IPC_INLINE_MAX comes as a sealed
 *	                    memfd; with IPC_FLAG_FD a socket made by frontend comes with a short text
 *	worker  -> monitor    struct ipc_guard
 *	monitor   -> worker   struct ipc_rule
 *	frontend  <-> store    as frontend <-> worker
 *	frontend  <-> adapter  a stream: JSON-RPC, the adapter being the client
 *	frontend  <-> monitor    besides, struct ipc_hooks, ipc_hooked
 *	worker <-> store    struct ipc_add, ipc_added
 *	rules   <-> monitor    struct ipc_head and a struct of rules_ipc.h
 *
 * All links but the adapter's are SOCK_SEQPACKET pairs made by the monitor, except that a worker makes
 * the pair to the store (IPC_STORE).  A message of another size or type than expected is a protocol
 * error: the receiver closes that link.  No side trusts a number that says who the client is: the monitor
 * reads the credentials from the client's own socket, passed as a descriptor.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/hook.h"

/* A child finds these descriptors after exec. */
#define IPC_FD_LISTEN 3 /**< The frontend: listening socket. */
#define IPC_FD_MONITOR  4 /**< The frontend, worker: the socket pair to the monitor. */
#define IPC_FD_FRONT  5 /**< worker: the socket pair to front. */
#define IPC_FD_TARGET 6 /**< session and rescue worker: pidfd of the target. */
/**
 * session and rescue worker: memory of IPC_UNDO_BYTES that outlives the worker.
 *
 * The first word is zero as long as there is nothing in the target that the kernel would not undo.
 * The last word is the monitor's own.  The monitor sets it when the worker has died and the target was seen to
 * wait for the worker's answer to RUNTIME_ENABLE; the rescue worker that gives the answer clears
 * it.  The monitor looks at no more than those two words.
 */
#define IPC_FD_UNDO 7
#define IPC_UNDO_BYTES 4096
#define IPC_UNDO_ANSWER (IPC_UNDO_BYTES - sizeof(uint64_t))
#define IPC_FD_EDITOR 6 /**< adapter: the editor's socket. */
#define IPC_FD_EARLY  7 /**< adapter: sealed memory with what was read from it. */

/** Longest text, in bytes, that a message carries itself. */
#define IPC_INLINE_MAX (48 * 1024)
/** Longest stop of a target's queues, unless the configuration says otherwise. */
#define IPC_MAX_SUSPENDED_MS 600000
/** Longest text of one message in bytes: the most that its memfd may hold. */
#define IPC_TEXT_MAX ((size_t)256 << 20)

/** The kinds of children.  The frontend asks for all but RESCUE and LOOK, which only the monitor starts. */
enum ipc_kind {
	IPC_KIND_SESSION = 1,
	IPC_KIND_INSPECT = 2,
	IPC_KIND_RESCUE = 3, /**< Cleans up behind a dead session worker. */
	IPC_KIND_STORE = 4,
	IPC_KIND_LOOK = 5, /**< Discovers the processes that use a GPU. */
	IPC_KIND_ADAPTER = 6,
};
/** Each right includes those with smaller numbers. */
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
	IPC_VERDICT_KERNEL,	  /**< The kernel refuses the client, for a reason of its own. */
	IPC_VERDICT_UNKNOWN_PEER, /**< Nothing proves who the client is. */
	IPC_VERDICT_OWN_PROCESS, /**< The target is one of the agent's own processes. */
	IPC_VERDICT_LIMIT,	 /**< There are too many workers, of this user or at all. */
	IPC_VERDICT_RESCUE,	 /**< A rescue worker is undoing what a dead worker did. */
	IPC_VERDICT_FAILED,	 /**< The member `status` says why. */
	IPC_VERDICT_COUNT,
};

/** The first word of every message: its sender, its struct, and the descriptors that come along. */
enum ipc_type {
	/* frontend -> monitor */
	IPC_START = 1, /**< struct ipc_start; the client's socket; an adapter's IPC_FD_EARLY. */
	IPC_NOTE,      /**< struct ipc_note. */
	IPC_HOOKS,     /**< struct ipc_hooks; the client's socket; the document of a test. */
	IPC_DROP,      /**< struct ipc_drop; a socket that the frontend must not be the last to close. */
	/* monitor -> frontend */
	IPC_STARTED, /**< struct ipc_started; one descriptor (channel) when a worker was made. */
	IPC_ENDED,   /**< struct ipc_ended. */
	IPC_HOOKED,  /**< struct ipc_hooked; a sealed memfd when it went well. */
	IPC_WATCH,   /**< struct ipc_watch; one descriptor (channel) when a worker was made. */
	IPC_RULE_NAME, /**< struct ipc_rule_name. */
	IPC_LIMITS, /**< struct ipc_limits. */
	IPC_CLOSER, /**< struct ipc_closer. */
	IPC_PING,   /**< struct ipc_ping: the frontend shall answer at once, with IPC_NOTE_PONG. */
	/* frontend -> worker: struct ipc_head */
	IPC_CALL,
	/**
	 * The worker undoes what the writer may not leave behind; `number` is the
	 * enum rpc_resume_reason.
	 */
	IPC_LEASE_LOST,
	IPC_CLIENT_LEFT, /**< The client with the number `client` left; the session goes on. */
	/* worker -> frontend: struct ipc_head */
	IPC_REPLY,  /**< Text of the result. */
	IPC_ERROR,  /**< Text of the JSON-RPC error object. */
	IPC_NOTIFY, /**< Text of a notification's params; `number`: its enum rpc_notification. */
	/** struct ipc_suspension, cut off behind its last queue; sent each time that it changes. */
	IPC_SUSPENSION,
	IPC_OVER,   /**< The session ended; `number`: its enum rpc_end_reason.  Nothing follows. */
	IPC_COUNTS, /**< Text: struct ipc_counts, the increase since the last one. */
	IPC_TARGET, /**< The worker is attached; `number` is the target's enum rpc_vendor. */
	/* worker -> monitor: struct ipc_guard */
	IPC_ARM,
	IPC_DISARM,
	/** One descriptor: the store's end of a SOCK_SEQPACKET pair; the monitor closes it to refuse. */
	IPC_STORE,
	IPC_FOUND, /**< A LOOK worker has discovered a process that uses a GPU. */
	IPC_HOOK,  /**< The rule's hook is to run.  One descriptor, sealed: the document. */
	/* monitor -> worker */
	IPC_RULE, /**< struct ipc_rule: the rule that holds from now on. */
	/* worker -> store */
	/** struct ipc_add; a sealed memfd with metadata line and document; the body, if any. */
	IPC_ADD,
	/* store -> worker */
	IPC_ADDED, /**< struct ipc_added. */
};

/** What the frontend tells the monitor, except IPC_NOTE_OWED, which the monitor tells front. */
enum ipc_note_kind {
	IPC_NOTE_READY = 1, /**< The frontend serves. */
	/** The frontend has had no connection for the idle time, and accepts none until `serve_on`. */
	IPC_NOTE_IDLE,
	IPC_NOTE_STATUS,    /**< value: sessions << 16 | connections. */
	IPC_NOTE_KILL,	    /**< value: id of a worker that does not answer. */
	IPC_NOTE_RELEASE,   /**< value: id of a worker whose process no rule is to watch now. */
	IPC_NOTE_DROPPED,   /**< The frontend has closed the socket that it sent with its last IPC_DROP. */
	IPC_NOTE_PONG,	    /**< value: number of the ping. */
	IPC_NOTE_OWED,	    /**< A process did not get what a dead worker owed it. */
};

/** The frontend asks for a worker, a store or an adapter. */
struct ipc_start {
	uint32_t type;
	uint32_t request; /**< Chosen by the frontend; comes back in ipc_started. */
	uint32_t kind;	  /**< enum ipc_kind. */
	uint32_t pid;	  /**< Target; for inspect workers the process to judge, or 0. */
	uint32_t timeout_ms; /**< The monitor kills the worker if it has not settled within this time. */
};

/** The monitor's answer to struct ipc_start. */
struct ipc_started {
	uint32_t type;
	uint32_t request;
	uint32_t worker;  /**< Id of the worker, new or found; 0 when refused. */
	uint32_t session; /**< Number of the session; its id is "s" followed by this number. */
	uint32_t joined;  /**< 1: this target has a worker already, and no descriptor comes. */
	uint32_t verdict; /**< enum ipc_verdict. */
	int32_t status;	  /**< -errno behind IPC_VERDICT_FAILED. */
	uint32_t rights;  /**< enum ipc_right of this client on this target. */
	uint32_t target_uid;
	char comm[16];
	uint64_t user_ns; /**< Number of the client's user namespace; 0: not known. */
};

/**
 * Exit status of a session worker that ended as it should, but left threads in the target that wait
 * for an answer that nobody gives any more, or may not see whether there are any: the monitor looks.
 */
#define IPC_EXIT_LOOK 3

/** How a worker ended: as it should, by itself or by a signal, or killed because it hung. */
enum ipc_how { IPC_HOW_CLEAN = 0, IPC_HOW_DIED, IPC_HOW_STUCK };

/** A worker has ended. */
struct ipc_ended {
	uint32_t type;
	uint32_t worker;
	uint32_t how; /**< enum ipc_how. */
	int32_t wait_status; /**< Its status as waitpid(2) says it. */
};

#define IPC_HOOKS_CALLER UINT32_MAX

/** The frontend asks the monitor to check the files of all hooks, or to run the hook of a rule on a sample. */
struct ipc_hooks {
	uint32_t type;
	uint32_t request; /**< Chosen by the frontend; comes back in ipc_hooked. */
	uint32_t uid;	  /**< The user of the sample; IPC_HOOKS_CALLER: the client. */
	char rule[HOOK_RULE_MAX]; /**< The rule whose hook runs; "": check all files. */
};

/** The monitor's answer to struct ipc_hooks. */
struct ipc_hooked {
	uint32_t type;
	uint32_t request;
	/**
	 * 0: the memfd has struct hook_info[] or one struct hook_report; if there are no hooks,
	 * there is no memfd.  -EACCES (the client may not), -ENOENT (no such rule), -ENOBUFS (too
	 * many wait), other -errno.
	 */
	int32_t status;
};

/** A number and what it means. */
struct ipc_note {
	uint32_t type;
	uint32_t kind; /**< enum ipc_note_kind. */
	uint32_t value;
	uint32_t pad;
};

/**
 * The frontend gives the monitor a socket that must not be closed in the frontend, nor in the monitor.
 *
 * A stranger's descriptors lie unread in that socket.  The process that closes the socket last
 * drops them, and may have to wait for that as long as the stranger likes.  So a closer, a process
 * that does nothing else, closes it last, and nobody waits for the closer.  The frontend sends one socket
 * at a time, and the next after IPC_CLOSER has answered.
 */
struct ipc_drop {
	uint32_t type;
	uint32_t uid; /**< The stranger's user; comes back in ipc_closer. */
};

/** What became of the socket of an ipc_drop. */
enum ipc_closer_kind {
	IPC_CLOSER_HOLDS = 1, /**< The closer has the socket: the frontend closes its own, and says so. */
	IPC_CLOSER_FAILED,    /**< No closer could be made now: the frontend keeps the socket. */
	IPC_CLOSER_ENDED,     /**< A closer of that user has ended; this is no answer. */
};

/** The monitor's answer to struct ipc_drop, and its news of closers. */
struct ipc_closer {
	uint32_t type;
	uint32_t kind; /**< enum ipc_closer_kind. */
	uint32_t uid;
};

/** The monitor asks whether the frontend still serves. */
struct ipc_ping {
	uint32_t type;
	uint32_t number; /**< A new one each time. */
};

/**
 * What a hook shall find in its environment, as far as the worker knows it.  The target chose most
 * of these words.
 */
struct ipc_fault {
	char record[32]; /**< Id of the record; "": there is none. */
	char comm[16];
	char vendor[16];
	char exception[128];
	char kernel[256];
	char location[256];
	char exe[256];
};

/** What a worker tells the monitor; the type says which members mean something. */
struct ipc_guard {
	uint32_t type;
	uint32_t ms; /**< IPC_ARM: the monitor kills the worker unless it disarms within this time. */
	uint32_t pid;	 /**< IPC_FOUND: the process. */
	uint32_t vendor; /**< IPC_FOUND: enum ipc_vendor. */
	struct ipc_fault fault; /**< IPC_HOOK: the exception. */
};

/** Values of the schema's `vendor`. */
enum ipc_vendor { IPC_VENDOR_ANY = 0, IPC_VENDOR_AMD = 1, IPC_VENDOR_NVIDIA = 2 };

/** What a rule keeps of an exception; with LIGHT and FULL it is a core besides the document. */
enum ipc_keep { IPC_KEEP_NOTHING = 0, IPC_KEEP_JSON, IPC_KEEP_LIGHT, IPC_KEEP_FULL };

/* Two exceptions are the same if they agree in these, as far as `key_parts` has them. */
#define IPC_KEY_KERNEL 1u
#define IPC_KEY_PC     2u
#define IPC_KEY_CODE   4u

#define IPC_RULE_NAME_SIZE   32
#define IPC_RULE_DEVICES_MAX 16

/** The rule that watches a worker's target; agentd/rules/engine/rules.h says what the members mean. */
struct ipc_rule {
	uint32_t type;
	uint32_t keep; /**< enum ipc_keep. */
	uint64_t exceptions;
	uint32_t rate_events, rate_ms;
	uint32_t key_parts, key_ms;
	uint32_t n_devices, has_hook;
	uint32_t hold_ms; /**< LIGHT, FULL: how long an exception may be withheld for the core. */
	uint32_t again;	  /**< An earlier try failed, and the log says so already. */
	uint32_t devices[IPC_RULE_DEVICES_MAX];
	char name[IPC_RULE_NAME_SIZE]; /**< "": no rule watches any more. */
};

/** A rule watches the target of a worker, which is new or was there already, or no longer. */
struct ipc_watch {
	uint32_t type;
	uint32_t worker;
	uint32_t session, pid, target_uid;
	char comm[16];
	char rule[IPC_RULE_NAME_SIZE]; /**< "": none does. */
};

/** The name of one rule.  The monitor sends all of them at start and after a reload; at least one. */
struct ipc_rule_name {
	uint32_t type;
	uint32_t generation; /**< After the last name, rules of an earlier generation are gone. */
	uint32_t last;	     /**< 1: no other name of this generation follows. */
	char name[IPC_RULE_NAME_SIZE]; /**< "": there are no rules. */
};

/**
 * The frontend's limits.  The frontend starts with those on its command line; the monitor sends them after a reload and
 * with `serve_on`.
 */
struct ipc_limits {
	uint32_t type;
	uint32_t connections, connections_per_user, sessions_per_user, idle_ms;
	uint32_t silent_holder_ms;
	uint32_t admin_gid;
	uint32_t serve_on; /**< 1: the frontend accepts again, because the monitor has a reason to stay. */
};

/** What happened to the exceptions that a rule is for. */
struct ipc_counts {
	uint64_t begun;	     /**< Sent before the rest is known: the worker may die of one. */
	uint64_t exceptions; /**< All of them; each is in one of the members below, too. */
	uint64_t recorded;   /**< Records made, or runs of the hook where nothing is kept. */
	uint64_t duplicates; /**< Exceptions that are the same as one with a record. */
	uint64_t limited;    /**< Exceptions above rate_limit. */
	uint64_t lost;	     /**< Exceptions whose record could not be made or stored. */
};

/** A worker asks the store to add a record. */
struct ipc_add {
	uint32_t type;
	uint32_t has_body;   /**< A second descriptor comes along, to be read to its end. */
	uint64_t body_bytes; /**< Bytes that come from it, if its writer lives that long. */
};

/** The store's answer to struct ipc_add. */
struct ipc_added {
	uint32_t type;
	int32_t status;	     /**< 0 or -errno. */
	int32_t body_status; /**< The same for the body. */
	char id[32];	     /**< Id of the record. */
};

#define IPC_SUSPENSION_QUEUES_MAX 1024

/** What gpu.suspend has done to the target of a session; times are CLOCK_MONOTONIC. */
struct ipc_suspension {
	uint64_t start_ticks;  /**< When the target started; tells a reused pid. */
	uint64_t count;	       /**< How often the target went from running to suspended. */
	uint64_t total_ns;     /**< Duration of all suspensions that are over. */
	uint64_t since_ns;     /**< Start of the one that is not over; 0: nothing is suspended. */
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

/** The head of each message between the frontend and a worker or store. */
struct ipc_head {
	uint32_t type;
	uint32_t number; /**< IPC_CALL: enum rpc_method. */
	uint64_t id;	 /**< Id of the call, chosen by front. */
	uint32_t flags;
	uint32_t holder_uid; /**< IPC_CALL: user who holds the writer lease. */
	uint32_t client;     /**< IPC_CALL: number of the client, one for each attachment. */
	uint32_t pad;
	uint64_t size;	     /**< Bytes of text; a text above IPC_INLINE_MAX is in a memfd. */
};

/**
 * One end of a channel between the frontend and a worker.  It sends without blocking, and queues the
 * messages that do not fit into the socket.
 */
struct ipc_link {
	int fd; /**< Owned; -1 when closed. */
	struct ipc_queued *head, *tail;
	size_t queued_bytes;
};

#define IPC_LINK_NULL { .fd = -1 }
/** Bytes queued to a peer that does not read; with more, sending fails with -ENOBUFS. */
#define IPC_QUEUE_MAX ((size_t)8 << 20)

/** Begin with an empty queue.  @param take_fd  The link owns it; -1: the link is closed. */
void ipc_link_init(struct ipc_link *l, int take_fd);
/** Close the socket and drop what is queued. */
void ipc_link_deinit(struct ipc_link *l);

/**
 * Send or queue one message.
 * @param text  head->size bytes.
 * @return 0, -EPIPE (the peer is gone, or the link is closed), -ENOBUFS (the queue is full),
 *         -EFBIG (the text is above IPC_TEXT_MAX), -ENOMEM, other -errno.
 */
int ipc_link_send(struct ipc_link *l, const struct ipc_head *head, const char *text);
/**
 * Send or queue one message with a descriptor.
 * @param head     Its flags have IPC_FLAG_FD.
 * @param take_fd  Closed in any case.
 * @return as ipc_link_send(); also -EMSGSIZE: the text is too long to have a descriptor beside it.
 */
int ipc_link_send_fd(struct ipc_link *l, const struct ipc_head *head, const char *text,
		     int take_fd);
/** Send what is queued, as far as the socket takes it.  @return 0, -errno when the link is dead. */
int ipc_link_flush(struct ipc_link *l);
/** @return whether messages wait for the socket to become writable. */
static inline bool ipc_link_has_queued(const struct ipc_link *l)
{
	return l->head != NULL;
}

/** A received message; release with ipc_message_deinit(). */
struct ipc_message {
	struct ipc_head head;
	const char *text; /**< head.size bytes, not NUL-terminated. */
	char *owned;	    /**< The memory behind a short text. */
	const void *mapped; /**< The memory behind a long text. */
	int fd; /**< The descriptor of a message with IPC_FLAG_FD, owned; else -1. */
};

/**
 * Receive one message.
 * @param ret  Release with ipc_message_deinit() when the answer is 1.
 * @return 1, 0 at end of file, -EAGAIN, -EPROTO (malformed), -EMFILE (no descriptor was free for
 *         the memfd: only @p ret->head is valid, the link goes on), other -errno.
 */
int ipc_link_recv(struct ipc_link *l, struct ipc_message *ret);
/** Free the text and close the descriptor. */
void ipc_message_deinit(struct ipc_message *m);

/**
 * Receive one fixed-size message.
 * @param size    Bytes of @p msg; a message of another size is a protocol error.
 * @param ret_fd  Descriptor that came along, or -1; more than one is a protocol error.
 * @return 1, 0 at end of file, -EAGAIN, -EPROTO, other -errno.
 */
int ipc_recv_fixed(int sock, void *msg, size_t size, int *ret_fd);

#endif /* AGENTD_IPC_H */
