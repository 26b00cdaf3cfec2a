/* SPDX-License-Identifier: MIT */
#ifndef BASE_FD_H
#define BASE_FD_H

/**
 * @file fd.h
 * Descriptors: whole-file reads, socket pairs, messages with descriptors, sealed memory files.
 *
 * Every descriptor made here is close-on-exec from birth.  Functions return 0 (or a count) on
 * success and -errno on failure; nothing here logs.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** Most descriptors that one message carries. */
#define FD_MESSAGE_MAX 4
/** Most descriptors with which the kernel takes a message (SCM_MAX_FD of net/scm.h). */
#define FD_RIGHTS_MAX 253

/** Make sure that 0, 1 and 2 are open, so that no later descriptor lands there. */
int fd_reserve_stdio(void);
/** Set or clear O_NONBLOCK. */
int fd_set_nonblock(int fd, bool on);
/** Set or clear FD_CLOEXEC. */
int fd_set_cloexec(int fd, bool on);

/** So long poll() may fail, one time after the other. */
#define FD_POLL_MS_MAX 5000
/**
 * A loop goes on though poll() has failed, for which the kernel may have had no memory at that moment.  Waits a little.
 * @param n  How often it has failed, one time after the other.
 * @return false: for so long that it is to be given up.
 */
bool fd_poll_again(int error, unsigned n);

/** Make a close-on-exec pair of SOCK_SEQPACKET sockets; @p flags may add SOCK_NONBLOCK. */
int fd_socketpair(int flags, int ret_fds[2]);

/**
 * Send one message.
 * @param fds  Up to FD_MESSAGE_MAX descriptors to send along; borrowed.
 * @return bytes sent, -EAGAIN, -EPIPE (the peer is gone), other -errno; never raises SIGPIPE.
 */
ssize_t fd_send(int sock, const void *data, size_t size, const int *fds, size_t n_fds);
/** The same on a socket that somebody else made, who may have made it wait: it never does. */
ssize_t fd_send_now(int sock, const void *data, size_t size, const int *fds, size_t n_fds);
/**
 * Receive one message.
 * @param ret_fds  Room for FD_MESSAGE_MAX; entries beyond *ret_n_fds are -1.  The caller owns them.
 * @return bytes received, 0 at end of file, -EAGAIN, -EMSGSIZE (the message is larger than @p size;
 *         it is dropped and nothing leaks), -EMFILE (no room for the descriptors that came along:
 *         they are lost, the bytes are in @p data), other -errno.
 */
ssize_t fd_recv(int sock, void *data, size_t size, int *ret_fds, size_t *ret_n_fds);
/**
 * The same from a sender whose files may block whoever closes them: nothing is closed here.
 * @param ret_fds  Room for FD_RIGHTS_MAX; the first *ret_n_fds are the caller's, whatever is returned.
 */
ssize_t fd_recv_foreign(int sock, void *data, size_t size, int *ret_fds, size_t *ret_n_fds);

/**
 * Receive from a stream.
 * @param ret_fd  The first descriptor that came along, owned by the caller; -1 if none came, or it
 *                could not be received.  Further ones are closed.
 * @return bytes received, 0 at end of file, -EAGAIN, other -errno.
 */
ssize_t fd_recv_stream(int sock, void *data, size_t size, int *ret_fd);

/**
 * Prepare a Unix stream socket whose other end belongs to somebody less trusted, or a socket that
 * listens for such.  The kernel refuses descriptors that are sent to it (from Linux 6.16 on), and
 * an urgent byte stays in the stream, where fd_recv_plain() sees what it brings.  Accepted sockets
 * inherit only the first of the two.
 * @return 0 or -errno.
 */
int fd_refuse_rights(int sock);
/**
 * Receive bytes from a socket of fd_refuse_rights(), and never a descriptor.  Neither receiving a
 * descriptor nor letting the kernel drop it is safe: the last close of a file that somebody else
 * made may block for as long as that owner likes.
 * @return bytes received, 0 at end of file, -EAGAIN, -EBADMSG (descriptors lie among what comes
 *         next, or right behind it; nothing was received, and the socket must not be closed here),
 *         other -errno.
 */
ssize_t fd_recv_plain(int sock, void *data, size_t size);
/**
 * Shut a socket of fd_refuse_rights() down and empty it, so that closing it cannot block.  No other
 * process or thread may read from the socket.
 * @return 0, -EBADMSG (descriptors lie in it), other -errno; after any failure the socket must not
 *         be closed here.
 */
int fd_end_stream(int sock);
/** Is this a memory file?  Closing one never blocks, whoever made it. */
bool fd_is_memfd(int fd);

/**
 * Write everything to a blocking descriptor.
 * @return 0 or -errno; part of the data may have been written then.
 */
int fd_write_all(int fd, const void *data, size_t size);

/**
 * Read from an offset on, until @p size bytes are there or the file ends.
 * @return the number of bytes, fewer than @p size where the file ends or the rest cannot be read;
 *         -EINVAL (no file is that long), other -errno when nothing can be read.
 */
ssize_t fd_pread_all(int fd, void *buf, size_t size, uint64_t offset);

/**
 * Read a whole (proc, sysfs, regular) file relative to @p dir_fd.
 * @param max      Largest number of bytes accepted.
 * @param ret_data Allocated with malloc() and NUL-terminated; the NUL is not counted in *ret_size.
 * @return 0, -EFBIG (more than @p max), -ENOMEM, other -errno.
 */
int fd_read_file_at(int dir_fd, const char *path, size_t max, char **ret_data, size_t *ret_size);
/**
 * The same for a file of sysfs.  The kernel makes its text once and gives all that there is room for
 * (filesystems/sysfs.rst of the kernel's documentation), so that nothing is read again only to find the end.
 */
int fd_read_attribute_at(int dir_fd, const char *path, size_t max, char **ret_data, size_t *ret_size);
/** fd_read_file_at() for a path that is absolute, or relative to the working directory. */
int fd_read_file(const char *path, size_t max, char **ret_data, size_t *ret_size);

/**
 * Make a memory file with the given content and seal it against any change.
 * @return 0 or -errno.
 */
int fd_memfd_sealed(const char *name, const void *data, size_t size, int *ret_fd);
/**
 * Map a memory file read-only after checking its seals.
 * @param max       Largest size accepted, in bytes.
 * @param ret_data  Release with fd_memfd_unmap().
 * @return 0, -EPERM (not sealed), -EFBIG (empty or larger than @p max), other -errno.
 */
int fd_memfd_map(int fd, size_t max, const void **ret_data, size_t *ret_size);
/** Undo fd_memfd_map(); @p data may be NULL. */
void fd_memfd_unmap(const void *data, size_t size);

#endif /* BASE_FD_H */
