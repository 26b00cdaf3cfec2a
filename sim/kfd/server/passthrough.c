/* SPDX-License-Identifier: MIT */
/* The words of <linux/fuse.h> that Debian 12's header does not have are named here. */
#define FUSE_USE_VERSION 312
#include "passthrough.h"

#include <errno.h>
#include <linux/fuse.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

/* Bit 37 of the flags: bit 5 of the upper word. */
#define PASSTHROUGH_FLAG2 (UINT32_C(1) << 5)
/* The oldest minor version that has it. */
#define PASSTHROUGH_MINOR 40u
#define OPEN_DIRECT_IO	  UINT32_C(0x1)
#define OPEN_PASSTHROUGH  UINT32_C(0x80)

/* Argument of FUSE_DEV_IOC_BACKING_OPEN. */
struct backing_map {
	int32_t fd;
	uint32_t flags;
	uint64_t padding;
};
#define BACKING_OPEN _IOW(229, 1, struct backing_map)

/* The replies to INIT and OPEN up to what is needed here. */
struct init_out {
	uint32_t major, minor, max_readahead, flags;
	uint16_t max_background, congestion_threshold;
	uint32_t max_write, time_gran;
	uint16_t max_pages, map_alignment;
	uint32_t flags2, max_stack_depth;
};

struct open_out {
	uint64_t fh;
	uint32_t open_flags;
	int32_t backing_id;
};

/* One mount of one program: whether the kernel offered it, and whether it was answered. */
static bool offered, answered;

/* The kernel's first request is INIT, and says what it can do. */
static void look_at_offer(const uint8_t *request, size_t size)
{
	struct fuse_in_header head;
	uint32_t words[5]; /* major, minor, max_readahead, flags, flags2 */

	if (size < sizeof(head) + sizeof(words))
		return;
	memcpy(&head, request, sizeof(head));
	memcpy(words, request + sizeof(head), sizeof(words));
	if (head.opcode == FUSE_INIT && (words[3] & FUSE_INIT_EXT) && (words[4] & PASSTHROUGH_FLAG2))
		offered = true;
}

static ssize_t read_request(int fd, void *buf, size_t size, void *userdata)
{
	ssize_t n = read(fd, buf, size);

	if (n > 0 && !answered)
		look_at_offer(buf, (size_t)n);
	return n;
}

/* Complete libfuse's reply to INIT. */
static void accept_offer(const struct iovec *body)
{
	struct init_out out;

	if (body->iov_len < sizeof(out))
		return;
	memcpy(&out, body->iov_base, sizeof(out));
	if (out.minor < PASSTHROUGH_MINOR)
		out.minor = PASSTHROUGH_MINOR;
	out.flags |= FUSE_INIT_EXT;
	out.flags2 |= PASSTHROUGH_FLAG2;
	out.max_stack_depth = 1;
	memcpy(body->iov_base, &out, sizeof(out));
}

static ssize_t write_reply(int fd, struct iovec *iov, int count, void *userdata)
{
	if (!answered && offered && count == 2)
		accept_offer(&iov[1]);
	answered = true;
	return writev(fd, iov, count);
}

int passthrough_ask(struct fuse_session *session)
{
	static const struct fuse_custom_io io = { .writev = write_reply, .read = read_request };

	return fuse_session_custom_io(session, &io, fuse_session_fd(session));
}

int passthrough_add(struct fuse_session *session, int fd, int32_t *ret)
{
	struct backing_map map = { .fd = fd };
	int id;

	if (!offered)
		return -EOPNOTSUPP;
	id = ioctl(fuse_session_fd(session), BACKING_OPEN, &map);
	if (id <= 0)
		return id ? -errno : -EOPNOTSUPP;
	*ret = id;
	return 0;
}

int passthrough_reply_open(fuse_req_t req, uint64_t fh, int32_t backing)
{
	/* A file that cannot be seeked in cannot be passed through: its open would be EIO. */
	const struct open_out out = { fh, OPEN_DIRECT_IO | OPEN_PASSTHROUGH, backing };

	return fuse_reply_buf(req, (const char *)&out, sizeof(out));
}
