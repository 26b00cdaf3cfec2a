/* SPDX-License-Identifier: MIT */
#ifndef KFDSIM_PASSTHROUGH_H
#define KFDSIM_PASSTHROUGH_H

/**
 * @file passthrough.h
 * Files of the mount that are mapped from another file, without us: FUSE passthrough.
 *
 * The kernel has it since Linux 6.9 (CONFIG_FUSE_PASSTHROUGH), for a server with CAP_SYS_ADMIN in
 * the initial user namespace.  libfuse speaks of it since 3.17 only, so that its first reply is
 * completed here and replies to OPEN are made here; both look the same to every libfuse.
 */

#include <fuse3/fuse_lowlevel.h>
#include <stdint.h>

/** Ask the kernel for it; after the mount and before the first request.  @return 0, -errno. */
int passthrough_ask(struct fuse_session *session);
/**
 * Make a file known to the kernel, once it has had its first reply.
 * @param ret  Its number, for passthrough_reply_open().
 * @return 0, -EOPNOTSUPP (this kernel has none), -EPERM, -errno.
 */
int passthrough_add(struct fuse_session *session, int fd, int32_t *ret);
/**
 * Reply to OPEN: ioctls and reads come to us as before, a mapping is one of file @p backing.
 * @return 0, -errno as of fuse_reply_open().
 */
int passthrough_reply_open(fuse_req_t req, uint64_t fh, int32_t backing);

#endif /* KFDSIM_PASSTHROUGH_H */
