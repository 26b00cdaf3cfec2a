/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_IPC_MONITOR_FRONTEND_H
#define AGENTD_IPC_MONITOR_FRONTEND_H

/**
 * @file monitor_frontend.h
 * Messages between the monitor and the frontend.
 *
 * The judge stands between them (monitor_judge.h).  It answers itself whatever is about connections
 * and their sockets: IPC_CLIENT, IPC_CLIENTS, IPC_DROP and IPC_CLOSER never reach the monitor.  Nor does IPC_TAKEN;
 * IPC_RELEASE goes on as a note.
 */

#include <stdint.h>

#include "agentd/hook.h"
#include "agentd/ipc/child.h"

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
	IPC_VERDICT_LOOK_ONLY,	 /**< The client may look at the target, and not stop its threads. */
	IPC_VERDICT_FAILED,	 /**< The member `status` says why. */
	IPC_VERDICT_COUNT,
};

/** The first word of every message: its sender, its struct, and the descriptors that come along. */
enum ipc_monitor_frontend_type {
	/* frontend -> monitor */
	IPC_START = 0x100 + 1, /**< struct ipc_start; for an adapter the client's socket, and IPC_FD_EARLY. */
	IPC_NOTE,      /**< struct ipc_note. */
	IPC_HOOKS,     /**< struct ipc_hooks; the document of a test. */
	IPC_DROP,      /**< struct ipc_drop; a socket that the frontend must not be the last to close. */
	IPC_CLIENTS,   /**< struct ipc_clients. */
	IPC_RELEASE,   /**< struct ipc_release. */
	IPC_TAKEN,     /**< struct ipc_taken. */
	/* monitor -> frontend */
	IPC_CLIENT,  /**< struct ipc_client; the client's socket, where the connection is new. */
	IPC_STARTED, /**< struct ipc_started; one descriptor (channel) when a worker was made. */
	IPC_ENDED,   /**< struct ipc_ended. */
	IPC_HOOKED,  /**< struct ipc_hooked; a sealed memfd when it went well. */
	IPC_WATCH,   /**< struct ipc_watch; one descriptor (channel) when a worker was made. */
	IPC_RULE_NAME, /**< struct ipc_rule_name. */
	IPC_LIMITS, /**< struct ipc_limits. */
	IPC_CLOSER, /**< struct ipc_closer. */
	IPC_PING,   /**< struct ipc_ping: the frontend shall answer at once, with IPC_NOTE_PONG. */
};

/** What the frontend tells the monitor, except the last two, which the monitor tells front. */
enum ipc_note_kind {
	IPC_NOTE_READY = 1, /**< The frontend serves. */
	/** The frontend has had no connection for the idle time; the judge accepts none until `serve_on`. */
	IPC_NOTE_IDLE,
	IPC_NOTE_STATUS,    /**< value: sessions << 16 | connections. */
	IPC_NOTE_KILL,	    /**< value: id of a worker that does not answer. */
	IPC_NOTE_RELEASE,   /**< value: id of a worker whose process no rule is to watch now; the judge's. */
	IPC_NOTE_DROPPED,   /**< The frontend has closed the socket that it sent with its last IPC_DROP. */
	IPC_NOTE_PONG,	    /**< value: number of the ping. */
	IPC_NOTE_OWED,	    /**< A process did not get what a dead worker owed it. */
	IPC_NOTE_REPLACED,  /**< The agent's programs were replaced: nothing new is started. */
};

/** Connections that the frontend has not said yet to have; the judge accepts no more until then. */
#define IPC_CLIENTS_UNTOLD 64
/** Most connections of clients. */
#define IPC_CLIENTS_MAX 4096

/** What the frontend is to do with a connection. */
enum ipc_class {
	IPC_CLASS_SERVED = 0,
	IPC_CLASS_TOO_MANY,	    /**< Refuse it: the agent has too many. */
	IPC_CLASS_TOO_MANY_OF_USER, /**< Refuse it: its user has too many. */
	IPC_CLASS_UNKNOWN,	    /**< Close it: the kernel does not say whose it is. */
	IPC_CLASS_OVER,		    /**< Close it, which was served: too much that it asked for was refused. */
	IPC_CLASS_CHANGED,	    /**< It is served: `admin` has changed. */
};

/**
 * A connection that the judge has accepted; the last two classes are about one that the frontend
 * has.  What this says about the client is for the frontend's own use: what the client may do, the
 * judge decides by the id, and by what it has read from the socket.
 */
struct ipc_client {
	uint32_t type;
	uint32_t class; /**< enum ipc_class. */
	uint64_t id;	/**< Never given twice; 0: the connection is not served, and has none. */
	uint32_t pid, uid;
	uint32_t charge; /**< User whose quotas it uses up. */
	uint32_t admin;
	uint32_t near; /**< 1: it lives in the agent's namespaces of users and processes. */
	uint32_t pad;
};

/** Most ids in one struct ipc_clients. */
#define IPC_CLIENTS_CLOSED 14

/** The frontend says what became of connections. */
struct ipc_clients {
	uint32_t type;
	uint16_t taken;	   /**< So many more of them have arrived, served or not. */
	uint16_t n_closed; /**< So many of `closed` are valid, which are no clients any more. */
	uint64_t closed[IPC_CLIENTS_CLOSED];
};

/**
 * Most IPC_START whose answers the frontend waits for, however much its clients want: the sockets hold
 * some 270 messages in each direction, and starting a worker takes milliseconds.
 */
#define IPC_STARTS_MAX 32

/** The frontend asks for a worker, a store or an adapter. */
struct ipc_start {
	uint32_t type;
	uint32_t request; /**< Chosen by the frontend; comes back in ipc_started. */
	uint64_t client;  /**< Id of the connection on whose behalf. */
	uint32_t kind;	  /**< enum ipc_kind. */
	uint32_t pid;	  /**< Target; for inspect workers the process to judge, or 0. */
	uint32_t timeout_ms; /**< The monitor kills the worker if it has not settled within this time. */
	uint32_t judge; /**< 1: start nothing, only judge the client against the target of a session. */
	uint32_t stops; /**< 1: a reader of threads is to stop some, for a client who may control the target. */
	uint32_t pad;
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

/** How a worker ended: as it should, by itself or by a signal, or killed because it hung. */
enum ipc_how { IPC_HOW_CLEAN = 0, IPC_HOW_DIED, IPC_HOW_STUCK };

/** A worker has ended. */
struct ipc_ended {
	uint32_t type;
	uint32_t worker;
	uint32_t how; /**< enum ipc_how. */
	int32_t wait_status; /**< Its status as waitpid(2) says it. */
	/** Signal from outside that ended or stopped it; 0: none did. */
	int32_t signal;
	uint32_t uid; /**< With a signal: the user as whom it ran, and whose processes may send it one. */
};

#define IPC_HOOKS_CALLER UINT32_MAX
#define IPC_HOOKS_COUNTS (UINT32_MAX - 1)

/**
 * The frontend asks the monitor to check the files of all hooks, to run the hook of a rule on a sample, or
 * what hooks have done so far.
 */
struct ipc_hooks {
	uint32_t type;
	uint32_t request; /**< Chosen by the frontend; comes back in ipc_hooked. */
	uint64_t client;  /**< Id of the connection on whose behalf. */
	/** The user of the sample; IPC_HOOKS_CALLER: the client.  Without a rule IPC_HOOKS_COUNTS: check no files. */
	uint32_t uid;
	char rule[HOOK_RULE_MAX]; /**< The rule whose hook runs; "": all hooks are told. */
	uint32_t pad;
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
 * The frontend gives the judge a socket that must not be closed in the frontend, nor in the judge.
 *
 * A stranger's descriptors lie unread in that socket.  The process that closes the socket last
 * drops them, and may have to wait for that as long as the stranger likes.  So a closer, a process
 * that does nothing else, closes it last, and nobody waits for the closer.  The frontend sends one socket
 * at a time, and the next after IPC_CLOSER has answered.
 */
struct ipc_drop {
	uint32_t type;
	uint32_t uid; /**< Who is charged for it; comes back in ipc_closer. */
};

/** What became of the socket of an ipc_drop. */
enum ipc_closer_kind {
	IPC_CLOSER_HOLDS = 1, /**< The closer has the socket: the frontend closes its own, and says so. */
	IPC_CLOSER_FAILED,    /**< No closer could be made now: the frontend keeps the socket. */
	IPC_CLOSER_ENDED,     /**< A closer of that user has ended; this is no answer. */
};

/** The judge's answer to struct ipc_drop, and its news of closers. */
struct ipc_closer {
	uint32_t type;
	uint32_t kind; /**< enum ipc_closer_kind. */
	uint32_t uid;
};

/** A client wants no rule to watch the process of its session any more; the judge writes down who. */
struct ipc_release {
	uint32_t type;
	uint32_t worker;
	uint64_t client; /**< Id of the connection on whose behalf. */
};

/**
 * A client has taken the writer lease from another one, and the worker, which tells of that, hangs and is
 * to be killed.
 */
struct ipc_taken {
	uint32_t type;
	uint32_t worker;
	uint64_t client, from; /**< Ids of the connections of both. */
	uint32_t is_forced;
	uint32_t pad;
	uint64_t idle_ms;
};

/** The monitor asks whether the frontend still serves. */
struct ipc_ping {
	uint32_t type;
	uint32_t number; /**< A new one each time. */
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
	uint32_t connections, connections_per_user, sessions_per_user; /**< The judge and the monitor see to these. */
	uint32_t idle_ms;
	uint32_t silent_holder_ms;
	uint32_t serve_on; /**< 1: it is not idle after all, because the monitor has a reason to stay. */
};

#endif /* AGENTD_IPC_MONITOR_FRONTEND_H */
