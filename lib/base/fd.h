/* SPDX-License-Identifier: MIT */
#ifndef BASE_FD_H
#define BASE_FD_H

/**
 * @file fd.h
 * Descriptors: whole-file reads, socket pairs, messages with descriptors, sealed memory files.
 *
 * Every descriptor made here is close-on-exec from birth.  Functions return 0 (or a count) and
 * -errno; nothing here logs.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/** Most descriptors one message carries. */
#define FD_MESSAGE_MAX 4

/** Make sure 0, 1 and 2 are open, so that no later descriptor lands there. */
int fd_reserve_stdio(void);
int fd_set_nonblock(int fd, bool on);
int fd_set_cloexec(int fd, bool on);

/** SOCK_SEQPACKET pair, close-on-exec; @p flags adds SOCK_NONBLOCK. */
int fd_socketpair(int flags, int ret_fds[2]);

/**
 * Send one message with up to FD_MESSAGE_MAX descriptors (borrowed).
 * @return bytes sent, -EAGAIN, -EPIPE, ...; never raises SIGPIPE.
 */
ssize_t fd_send(int sock, const void *data, size_t size, const int *fds, size_t n_fds);
/**
 * Receive one message.
 * @param ret_fds  Room for FD_MESSAGE_MAX; entries beyond *ret_n_fds are -1.  The caller owns them.
 * @return bytes received, 0 at end of file, -EAGAIN, -EMSGSIZE (message larger than @p size; it is
 *         dropped and nothing leaks), -EMFILE (no room for the descriptors that came along: they
 *         are lost, the bytes are in @p data), other -errno.
 */
ssize_t fd_recv(int sock, void *data, size_t size, int *ret_fds, size_t *ret_n_fds);

/**
 * Receive from a stream.
 * @param ret_fd  The first descriptor that came along, owned by the caller; -1 if none did, or none
 *                could be had.  Further ones are closed.
 * @return bytes received, 0 at end of file, -EAGAIN, other -errno.
 */
ssize_t fd_recv_stream(int sock, void *data, size_t size, int *ret_fd);

/**
 * Prepare a Unix stream socket whose other end belongs to somebody less trusted, or a socket that
 * listens for such: the kernel refuses descriptors that are sent to it (from Linux 6.16 on), and an
 * urgent byte stays in the stream, where fd_recv_plain() sees what it brings.  Accepted sockets take
 * over only the first.
 * @return 0 or -errno.
 */
int fd_refuse_rights(int sock);
/**
 * Receive bytes from such a stream, and never a descriptor.  Neither receiving one nor letting the
 * kernel drop it is safe: the last close of a file of somebody else may block for as long as he likes.
 * @return bytes received, 0 at end of file, -EAGAIN, -EBADMSG: descriptors lie among what comes next,
 *         or right behind it; nothing was received, and the socket must not be closed here; other -errno.
 */
ssize_t fd_recv_plain(int sock, void *data, size_t size);
/**
 * End such a stream and empty it, so that closing it cannot block.  For a socket that nobody else reads.
 * @return 0, -EBADMSG: descriptors lie in it, and the socket must not be closed here; other -errno: the
 *         same.
 */
int fd_end_stream(int sock);
/** A memory file: closing it never blocks, whoever made it. */
bool fd_is_memfd(int fd);

/** Write everything to a blocking descriptor.  @return 0 or -errno. */
int fd_write_all(int fd, const void *data, size_t size);

/**
 * Read a whole (proc, sysfs, regular) file relative to @p dir_fd.
 * @param max      Larger files give -EFBIG.
 * @param ret_data malloc'ed and NUL-terminated; the NUL is not counted in *ret_size.
 */
int fd_read_file_at(int dir_fd, const char *path, size_t max, char **ret_data, size_t *ret_size);
int fd_read_file(const char *path, size_t max, char **ret_data, size_t *ret_size);

/** Memory file with the given content, sealed against any change. */
int fd_memfd_sealed(const char *name, const void *data, size_t size, int *ret_fd);
/** Map such a file read-only after checking its seals.  @return 0, -EPERM (not sealed), -errno. */
int fd_memfd_map(int fd, size_t max, const void **ret_data, size_t *ret_size);
void fd_memfd_unmap(const void *data, size_t size);

#endif /* BASE_FD_H */
