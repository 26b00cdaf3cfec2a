/* SPDX-License-Identifier: MIT */
#include "agentd/worker/host/debug_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "hoststack/native/debug_symbols.h"
#include "hoststack/native/module.h"

#define BYTES_MAX (UINT64_C(64) << 20)
#define PLACE	  "usr/lib/debug/.build-id"

struct debug_file {
	char build_id[2 * NATIVE_BUILD_ID_MAX + 1];
	int fd; /* -1: there is none. */
	struct hoststack_memory memory;
	struct hoststack_elf elf;
	struct native_symbols symbols;
};

/* ------------------------------------------------------------------ opening ------------------ */

/* A file below a directory, through no link.  @param path  Is taken apart.  @return descriptor with O_PATH, -errno. */
static int walk(int root_fd, char *path)
{
	int at = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
	char *rest = path, *part;

	while (at >= 0 && (part = strsep(&rest, "/"))) {
		const int next = openat(at, part, O_PATH | O_NOFOLLOW | O_CLOEXEC | (rest ? O_DIRECTORY : 0));

		close(at);
		at = next;
	}
	return at < 0 ? -errno : at;
}

/* What is no plain file is not opened: that alone may have effects. */
static int open_plain(int path_fd)
{
	char name[32];
	struct stat st;
	int fd;

	if (fstat(path_fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOENT;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", path_fd);
	fd = open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* @return descriptor, -errno. */
static int open_below(const struct debug_files *d, const char *build_id)
{
	auto_close int plain = -1;
	char path[sizeof(PLACE) + sizeof("///.debug") + 2 * NATIVE_BUILD_ID_MAX];
	int fd = -ENOENT;

	if (strlen(build_id) < 3)
		return -ENOENT;
	snprintf(path, sizeof(path), "/" PLACE "/%.2s/%s.debug", build_id, build_id + 2);
	if (d->root_fd >= 0) {
		char below[sizeof(path)];

		snprintf(below, sizeof(below), "%s", path + 1);
		plain = walk(d->root_fd, below);
		fd = plain < 0 ? plain : open_plain(plain);
	}
	/* This machine's own: who writes there may do all else as well, and some distributions have links there. */
	if (fd < 0)
		fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
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

static void open_file(const struct debug_files *d, struct debug_file *f, const struct hoststack_memory *like)
{
	f->fd = open_below(d, f->build_id);
	f->memory = (struct hoststack_memory){ .read = read_file, .ctx = f, .bytes_left = BYTES_MAX,
					       .deadline_ns = like->deadline_ns };
	if (f->fd >= 0 && native_debug_symbols_open(&f->memory, f->build_id, &f->elf) < 0) {
		close(f->fd);
		f->fd = -1;
	}
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
