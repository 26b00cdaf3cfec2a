/* SPDX-License-Identifier: MIT */
#include "agentd/worker/core_output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "corefile/sink.h"

#define PIECE_BYTES (UINT32_C(1) << 20)
/* Between two looks at the clock. */
#define SLICE_BYTES (UINT32_C(8) << 20)

struct core_output {
	struct corefile_sink *sink;
	struct core_output_state state;
	uint64_t bytes;
	int fd;
	uint8_t piece[PIECE_BYTES];
};

/* linux/magic.h, and those whose drivers are built elsewhere. */
static bool is_local_disk(const struct statfs *fs)
{
	static const uint32_t magics[] = {
		0xef53,	    /* ext2, ext3, ext4 */
		0x58465342, /* xfs */
		0x9123683e, /* btrfs */
		0xf2f52010, /* f2fs */
		0x794c7630, /* overlayfs */
		0xca451a4e, /* bcachefs */
		0x2fc12fc1, /* zfs */
		0x4d44,	    /* fat */
		0x2011bab0, /* exfat */
	};

	for (size_t i = 0; i < ARRAY_SIZE(magics); i++)
		if ((uint32_t)fs->f_type == magics[i])
			return true;
	return false;
}

static int check(int fd, struct agent_err *err)
{
	int flags = fcntl(fd, F_GETFL);
	struct statfs fs;
	struct stat st;

	if (flags < 0 || fstat(fd, &st) < 0)
		return agent_err_set(err, RPC_ERROR_FAILED, errno, "core.write", NULL,
				     "the descriptor cannot be looked at");
	if ((flags & O_PATH) || (flags & O_ACCMODE) == O_RDONLY)
		return agent_err_set(err, RPC_ERROR_FAILED, EBADF, "core.write",
				     "open the file for writing",
				     "the descriptor is not open for writing");
	if (!S_ISREG(st.st_mode) || fstatfs(fd, &fs) < 0 || !is_local_disk(&fs))
		return agent_err_set(err, RPC_ERROR_UNSUPPORTED, EOPNOTSUPP, "core.write",
				     "fetch the core with core.read and write it yourself",
				     "the descriptor is not a regular file on a local disk");
	return 0;
}

int core_output_create(int take_fd, bool zstd, uint64_t bytes, struct core_output **ret,
		       struct agent_err *err)
{
	const struct corefile_sink_options options = { .zstd = zstd, .total = bytes };
	struct core_output *o = malloc(sizeof(*o));
	int r;

	if (!o) {
		close(take_fd);
		return agent_err_set(err, RPC_ERROR_INTERNAL, ENOMEM, NULL, NULL, "out of memory");
	}
	o->sink = NULL;
	o->state = (struct core_output_state){ 0 };
	o->bytes = bytes;
	o->fd = take_fd;
	r = check(o->fd, err);
	if (r == 0 && corefile_sink_create(o->fd, &options, &o->sink) < 0)
		r = agent_err_set(err, RPC_ERROR_INTERNAL, ENOMEM, NULL, NULL, "out of memory");
	if (r < 0)
		core_output_destroy(o);
	else
		*ret = o;
	return r;
}

void core_output_destroy(struct core_output *o)
{
	if (!o)
		return;
	corefile_sink_destroy(o->sink);
	close(o->fd);
	free(o);
}

/* Bytes that the target has need not be copied. */
static int write_piece(struct core_output *o, struct target *t, struct agent_err *err)
{
	uint64_t left = o->bytes - o->state.position, size;
	const void *data = t->ops->core_at ? t->ops->core_at(t, o->state.position, &size) : NULL;
	int n;

	if (!data) {
		size = left < PIECE_BYTES ? left : PIECE_BYTES;
		n = t->ops->core_read(t, o->state.position, o->piece, (uint32_t)size,
				      &o->state.lost, err);
		if (n < 0)
			return n;
		if ((uint64_t)n != size)
			return agent_err_set(err, RPC_ERROR_INTERNAL, EIO, "core.write", NULL,
					     "the core is shorter than it was");
		data = o->piece;
	}
	size = size < SLICE_BYTES ? size : SLICE_BYTES;
	corefile_sink_write(o->sink, data, size);
	o->state.position += size;
	return 0;
}

int core_output_write(struct core_output *o, struct target *t, uint64_t deadline_ns,
		      struct core_output_state *ret, struct agent_err *err)
{
	int r = 0;

	while (r == 0 && !corefile_sink_failed(o->sink) && o->state.position < o->bytes) {
		r = write_piece(o, t, err);
		if (clock_now_ns() >= deadline_ns)
			break;
	}
	if (r < 0)
		return r;
	o->state.done = o->state.position == o->bytes;
	if (o->state.done || corefile_sink_failed(o->sink))
		r = corefile_sink_finish(o->sink);
	if (r < 0)
		return agent_err_set(err, RPC_ERROR_FAILED, -r, "core.write",
				     r == -ENOSPC ? "name another file system, or compress" : NULL,
				     "the file ends at byte %" PRId64 ": %s",
				     (int64_t)lseek(o->fd, 0, SEEK_CUR), strerror(-r));
	*ret = o->state;
	return 0;
}
