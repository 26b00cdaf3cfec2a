/* SPDX-License-Identifier: MIT */
#ifndef CONNECT_SOCKETS_H
#define CONNECT_SOCKETS_H

/**
 * @file sockets.h
 * The sockets that the vendor's library has in a worker.  The worker's filter lets it make none (agentd/sandbox.c);
 * the broker makes each of them, in the network namespace of the target, gives it to the worker, and does to its own
 * descriptor what the library asks for: a socket that is watched by epoll before it is connected has to stay the same
 * socket (docs/reference/cudbg.md, section 4).  Calls name sockets by their numbers in the worker.  A number that has
 * changed its meaning there names, at worst, another socket that the broker made.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** So many sockets of a worker are remembered, the latest ones. */
#define SOCKETS_MAX 16

enum socket_kind {
	SOCKET_NONE,
	SOCKET_STREAM,   /**< Unix, connection-oriented. */
	SOCKET_INTERNET, /**< The one that listens to nobody; it is not kept here. */
	SOCKET_DATAGRAM, /**< Unix; what the worker has is one end of a pair, and the other end is ours. */
};

struct sockets {
	struct {
		enum socket_kind kind;
		int number; /**< In the worker. */
		int fd; /**< Ours; -1: nothing is to be done with it any more. */
		bool bound;
	} table[SOCKETS_MAX];
	unsigned next; /**< The entry that is used next. */
	int receiver;  /**< The entry to which what comes to datagram_fd goes; -1: none. */
	int internet_fd; /**< Made before this process gave up its rights; -1: there is none. */
	int datagram_fd; /**< Bound for the entry `receiver`; -1: there is none. */
	pid_t target;
	pid_t target_number; /**< What the target's number is in its own namespace. */
	uint64_t target_ns, own_ns; /**< Inodes of namespaces of process numbers; 0: not known. */
	int target_pidfd; /**< Borrowed. */
};

#define SOCKETS_NULL { .receiver = -1, .internet_fd = -1, .datagram_fd = -1, .target_pidfd = -1 }

/**
 * Look at what cannot be looked at later, and make the internet socket: one that listens on the loopback address, and
 * whose connections nobody accepts, for the worker's filter refuses that.  The vendor's library goes no further
 * without it.  To be called while this process may.  Failure is no error: the library is told then that there is no
 * such network.
 */
void sockets_prepare(struct sockets *s);
void sockets_deinit(struct sockets *s);

/**
 * Make a socket.
 * @return our descriptor of it, which the caller hands to the worker and then keeps by sockets_keep();
 *         -EAFNOSUPPORT, other -errno.
 */
int sockets_make(struct sockets *s, int domain, int type, enum socket_kind *ret_kind, int *ret_ours);
/** Remember under which number the worker has it.  @param ours  As sockets_make() returned it; owned from now on. */
void sockets_keep(struct sockets *s, enum socket_kind kind, int ours, int number);

/**
 * Bind a socket: that of memory to a name that the kernel makes up, for no other process needs it and a worker must
 * not take another's; that for datagrams to its name, if that is the target's.
 * @param name  An address as the worker gave it; our own copy.
 * @return 0, -EACCES, other -errno.
 */
int sockets_bind(struct sockets *s, int number, const void *name, size_t size);
int sockets_listen(struct sockets *s, int number, int backlog);
/**
 * Connect to what the target itself listens on.
 * @param engine  The name of its debug engine; empty: there is none yet.
 * @param ret_is_engine  Whether that is what was asked for.
 * @return 0; -ENOENT (a path), -ECONNREFUSED (a name that no debug engine has), -EADDRINUSE (another process listens
 *         there), other -errno.
 */
int sockets_connect(struct sockets *s, int number, const void *name, size_t size, const char *engine,
		    bool *ret_is_engine);

/** Descriptors to poll for reading, for sockets_forward(); -1: there is none. */
int sockets_poll_fd(const struct sockets *s);
/** Give a datagram of the target to the worker, with its descriptors.  Anybody else's is dropped. */
void sockets_forward(struct sockets *s);

#endif /* CONNECT_SOCKETS_H */
