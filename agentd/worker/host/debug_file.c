/* SPDX-License-Identifier: MIT */
#include "agentd/worker/host/debug_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <zlib.h>

#include "agentd/worker/process/code_file.h"
#include "base/cleanup.h"
#include "hoststack/native/debug_link.h"
#include "hoststack/native/debug_symbols.h"
#include "hoststack/native/module.h"

#define BYTES_MAX (UINT64_C(64) << 20)
#define ROOM	  "/usr/lib/debug"
#define SEGMENTS_MAX 64
#define PIECE	  16384

struct debug_file {
	const struct native_module *of;
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
		const int next = keeps_files(at) && strcmp(part, "..") ? openat(at, part, flags) : -1;

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
	char below[PATH_MAX];

	if (root_fd < 0 || path[0] != '/' || strlen(path) >= sizeof(below))
		return -1;
	snprintf(below, sizeof(below), "%s", path + 1);
	found = walk(root_fd, below);
	return found < 0 ? -1 : code_file_open_found(found);
}

/* ------------------------------------------------------------------ reading ------------------ */

/* Behind its end are zeros: names are read in pieces. */
static int read_file(void *ctx, const struct hoststack_piece *pieces, size_t n)
{
	const int fd = *(const int *)ctx;

	for (size_t i = 0; i < n; i++) {
		size_t done = 0;
		ssize_t got = 1;

		while (done < pieces[i].size && got > 0) {
			got = pieces[i].address > INT64_MAX - pieces[i].size ?
				      0 :
				      pread(fd, (char *)pieces[i].buf + done, pieces[i].size - done,
					    (off_t)(pieces[i].address + done));
			done += got > 0 ? (size_t)got : 0;
		}
		if (got < 0 || (!done && pieces[i].size))
			return -EFAULT;
		memset((char *)pieces[i].buf + done, 0, pieces[i].size - done);
	}
	return 0;
}

static struct hoststack_memory bytes_of(const int *fd, const struct hoststack_memory *like)
{
	return (struct hoststack_memory){ .read = read_file, .ctx = (void *)(uintptr_t)fd, .bytes_left = BYTES_MAX,
					  .deadline_ns = like->deadline_ns };
}

/* Is it of that build?  One that is not is closed.  @param fd  Is taken over. */
static bool take_file(struct debug_file *f, int fd, const struct hoststack_memory *like)
{
	const char *build_id = f->of->build_id[0] ? f->of->build_id : NULL;

	f->fd = fd;
	f->memory = bytes_of(&f->fd, like);
	if (fd >= 0 && native_debug_symbols_open(&f->memory, build_id, &f->elf) < 0) {
		close(fd);
		f->fd = -1;
	}
	return f->fd >= 0;
}

static bool find_by_build(const struct debug_files *d, struct debug_file *f, const struct hoststack_memory *like)
{
	char path[sizeof(ROOM "/.build-id//.debug") + 2 * NATIVE_BUILD_ID_MAX];
	const char *build_id = f->of->build_id;

	if (strlen(build_id) < 3)
		return false;
	snprintf(path, sizeof(path), ROOM "/.build-id/%.2s/%s.debug", build_id, build_id + 2);
	/* This machine's own: who writes there may do all else as well, and some distributions have links there. */
	return take_file(f, open_below(d->root_fd, path), like) ||
	       take_file(f, open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), like);
}

/* ------------------------------------------------------------------ links -------------------- */

/*
 * The list of mappings has paths as we see them: where the root of the process lies below ours, and not in a mount
 * namespace of its own, they begin with it.
 */
static const char *path_below(int root_fd, const char *path)
{
	char self[40], root[PATH_MAX];
	ssize_t n;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", root_fd);
	n = readlink(self, root, sizeof(root));
	return n > 1 && !strncmp(path, root, (size_t)n) && path[n] == '/' ? path + n : path;
}

/* Another file may lie there by now: has this one the headers of what was loaded? */
static bool is_loaded(struct hoststack_memory *file, struct hoststack_memory *process, uint64_t base)
{
	Elf64_Phdr segments[SEGMENTS_MAX], loaded_segments[SEGMENTS_MAX];
	Elf64_Ehdr head, loaded;
	size_t size;

	if (hoststack_read(file, 0, &head, sizeof(head)) < 0 ||
	    hoststack_read(process, base, &loaded, sizeof(loaded)) < 0 || memcmp(&head, &loaded, sizeof(head)) ||
	    head.e_phnum > SEGMENTS_MAX || head.e_phentsize != sizeof(segments[0]))
		return false;
	size = head.e_phnum * sizeof(segments[0]);
	return hoststack_read(file, head.e_phoff, segments, size) == 0 &&
	       hoststack_read(process, base + head.e_phoff, loaded_segments, size) == 0 &&
	       !memcmp(segments, loaded_segments, size);
}

static bool has_checksum(struct debug_files *d, int fd, const struct hoststack_memory *like, uint32_t checksum)
{
	struct hoststack_memory m = bytes_of(&fd, like);
	uint8_t bytes[PIECE];
	uint32_t sum = 0;
	struct stat st;

	if (fstat(fd, &st) < 0 || (uint64_t)st.st_size > BYTES_MAX ||
	    (uint64_t)st.st_size > DEBUG_CHECKED_MAX - d->checked)
		return false;
	d->checked += (uint64_t)st.st_size;
	for (uint64_t at = 0, n; at < (uint64_t)st.st_size; at += n) {
		n = (uint64_t)st.st_size - at < PIECE ? (uint64_t)st.st_size - at : PIECE;
		if (hoststack_read(&m, at, bytes, n) < 0)
			return false;
		sum = (uint32_t)crc32(sum, bytes, (uInt)n);
	}
	return sum == checksum;
}

/* Its checksum is what a link says?  Else it is closed.  @param fd  Is taken over. */
static int if_linked(struct debug_files *d, int fd, const struct hoststack_memory *like,
		     const struct native_debug_link *link)
{
	if (fd < 0 || has_checksum(d, fd, like, link->checksum))
		return fd;
	close(fd);
	return -1;
}

static bool read_link(const struct debug_files *d, const struct native_module *module, const char *path,
		      struct hoststack_memory *process, struct native_debug_link *ret)
{
	auto_close int fd = open_below(d->root_fd, path);
	struct hoststack_memory file = bytes_of(&fd, process);

	return fd >= 0 && is_loaded(&file, process, module->base) && native_debug_link_read(&file, ret) == 0;
}

/* The file's own link: beside it, in .debug beside it, or below usr/lib/debug. */
static bool find_by_link(struct debug_files *d, struct debug_file *f, struct hoststack_memory *process)
{
	static const struct {
		const char *before, *behind;
	} places[] = { { "", "" }, { "", "/.debug" }, { ROOM, "" } };
	struct native_debug_link link;
	char at[PATH_MAX + NATIVE_LINK_NAME_MAX + sizeof(ROOM "/.debug")];
	const char *path;
	int n;

	if (d->root_fd < 0 || f->of->name[0] != '/' || strlen(f->of->name) >= PATH_MAX)
		return false;
	path = path_below(d->root_fd, f->of->name);
	n = (int)(strrchr(path, '/') - path);
	if (!read_link(d, f->of, path, process, &link))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		snprintf(at, sizeof(at), "%s%.*s%s/%s", places[i].before, n, path, places[i].behind, link.name);
		if (take_file(f, if_linked(d, open_below(d->root_fd, at), process, &link), process))
			return true;
	}
	return false;
}

/* ------------------------------------------------------------------ names -------------------- */

static struct debug_file *find(struct debug_files *d, struct hoststack_memory *process,
			       const struct native_module *module)
{
	struct debug_file *f;

	for (size_t i = 0; i < d->n; i++)
		if (d->list[i].of == module)
			return &d->list[i];
	if (!d->list)
		d->list = calloc(DEBUG_MODULES_MAX, sizeof(*d->list));
	if (!d->list || d->n == DEBUG_MODULES_MAX || d->n_open == DEBUG_FILES_MAX)
		return NULL;
	f = &d->list[d->n++];
	*f = (struct debug_file){ .of = module, .fd = -1 };
	if (find_by_build(d, f, process) || find_by_link(d, f, process))
		d->n_open++;
	return f;
}

const char *debug_files_name(struct debug_files *d, struct hoststack_memory *process,
			     const struct native_module *module, uint64_t address, uint64_t function,
			     uint64_t *ret_begin)
{
	struct debug_file *f = find(d, process, module);
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
