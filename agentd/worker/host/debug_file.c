/* SPDX-License-Identifier: MIT */
#include "agentd/worker/host/debug_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "agentd/worker/process/code_file.h"
#include "base/cleanup.h"
#include "hoststack/native/debug_symbols.h"
#include "hoststack/native/module.h"

#define BYTES_MAX (UINT64_C(64) << 20)
#define PLACE	  "/usr/lib/debug/.build-id"
#define PATH_BYTES (sizeof(PLACE "//.debug") + 2 * NATIVE_BUILD_ID_MAX)

struct debug_file {
	char build_id[2 * NATIVE_BUILD_ID_MAX + 1];
	int fd; /* -1: there is none. */
	struct hoststack_memory memory;
	struct hoststack_elf elf;
	struct native_symbols symbols;
};

/* ------------------------------------------------------------------ opening ------------------ */

/* One that keeps files itself: others ask a program, or another machine, or have files with effects. */
static bool keeps_files(int fd)
{
	static const uint32_t kinds[] = {
		EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC,
		TMPFS_MAGIC, SQUASHFS_MAGIC, EROFS_SUPER_MAGIC_V1,
	};
	struct statfs s;

	if (fstatfs(fd, &s) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if ((uint32_t)s.f_type == kinds[i])
			return true;
	return false;
}

/* A file below a directory, through no link.  @param path  Is taken apart.  @return descriptor with O_PATH, -1. */
static int walk(int root_fd, char *path)
{
	int at = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
	char *rest = path, *part;

	while (at >= 0 && (part = strsep(&rest, "/"))) {
		const int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC | (rest ? O_DIRECTORY : 0);
		/* Before anything is looked up there. */
		const int next = keeps_files(at) ? openat(at, part, flags) : -1;

		close(at);
		at = next;
	}
	/* A file may be a mount of its own. */
	if (at >= 0 && !keeps_files(at)) {
		close(at);
		return -1;
	}
	return at;
}

/* Below the root of the process.  @return descriptor; negative: there is none. */
static int open_below(int root_fd, const char *path)
{
	auto_close int found = -1;
	char below[PATH_BYTES];

	if (root_fd < 0)
		return -1;
	snprintf(below, sizeof(below), "%s", path + 1);
	found = walk(root_fd, below);
	return found < 0 ? -1 : code_file_open_found(found);
}

/* ------------------------------------------------------------------ reading ------------------ */

/* Behind its end are zeros: names are read in pieces. */
static int read_file(void *ctx, const struct hoststack_piece *pieces, size_t n)
{
	const struct debug_file *f = ctx;

	for (size_t i = 0; i < n; i++) {
		size_t done = 0;
		ssize_t got = 1;

		while (done < pieces[i].size && got > 0) {
			got = pieces[i].address > INT64_MAX - pieces[i].size ?
				      0 :
				      pread(f->fd, (char *)pieces[i].buf + done, pieces[i].size - done,
					    (off_t)(pieces[i].address + done));
			done += got > 0 ? (size_t)got : 0;
		}
		if (got < 0 || (!done && pieces[i].size))
			return -EFAULT;
		memset((char *)pieces[i].buf + done, 0, pieces[i].size - done);
	}
	return 0;
}

/* Is it of that build?  One that is not is closed.  @param fd  Is taken over. */
static bool take_file(struct debug_file *f, int fd, const struct hoststack_memory *like)
{
	f->fd = fd;
	f->memory = (struct hoststack_memory){ .read = read_file, .ctx = f, .bytes_left = BYTES_MAX,
					       .deadline_ns = like->deadline_ns };
	if (fd >= 0 && native_debug_symbols_open(&f->memory, f->build_id, &f->elf) < 0) {
		close(fd);
		f->fd = -1;
	}
	return f->fd >= 0;
}

static void open_file(const struct debug_files *d, struct debug_file *f, const struct hoststack_memory *like)
{
	char path[PATH_BYTES];

	f->fd = -1;
	if (strlen(f->build_id) < 3)
		return;
	snprintf(path, sizeof(path), PLACE "/%.2s/%s.debug", f->build_id, f->build_id + 2);
	/* This machine's own: who writes there may do all else as well, and some distributions have links there. */
	if (!take_file(f, open_below(d->root_fd, path), like))
		(void)take_file(f, open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), like);
}

static struct debug_file *find(struct debug_files *d, const struct hoststack_memory *like, const char *build_id)
{
	struct debug_file *f;

	for (size_t i = 0; i < d->n; i++)
		if (!strcmp(d->list[i].build_id, build_id))
			return &d->list[i];
	if (!d->list)
		d->list = calloc(DEBUG_FILES_MAX, sizeof(*d->list));
	if (!d->list || d->n == DEBUG_FILES_MAX)
		return NULL;
	f = &d->list[d->n++];
	snprintf(f->build_id, sizeof(f->build_id), "%s", build_id);
	open_file(d, f, like);
	return f;
}

const char *debug_files_name(struct debug_files *d, const struct hoststack_memory *like,
			     const struct native_module *module, uint64_t address, uint64_t function,
			     uint64_t *ret_begin)
{
	struct debug_file *f = module->build_id[0] ? find(d, like, module->build_id) : NULL;
	const uint64_t bias = module->bias;
	const char *name = NULL;

	/* Where the table does not say, no symbol begins there. */
	if (f && f->fd >= 0)
		name = native_symbols_name(&f->symbols, &f->memory, &f->elf, address - bias,
					   function ? function - bias : UINT64_MAX, ret_begin);
	if (name)
		*ret_begin += bias;
	return name;
}

void debug_files_deinit(struct debug_files *d)
{
	for (size_t i = 0; i < d->n; i++) {
		native_symbols_free(&d->list[i].symbols);
		if (d->list[i].fd >= 0)
			close(d->list[i].fd);
	}
	free(d->list);
	*d = (struct debug_files){ .root_fd = -1 };
}
