/* SPDX-License-Identifier: MIT */
#include "corefile/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "corefile/compress.h"

/* Most random names that are tried when the ones before are taken. */
#define NAME_ATTEMPTS 32

static int hidden_name(struct corefile_file *f)
{
	uint32_t random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	/* The file system bounds the length of the name itself; we bound that of the hidden one. */
	snprintf(f->hidden, sizeof(f->hidden), ".%.240s.%06x", f->name, random & 0xffffff);
	return 0;
}

static int open_hidden(struct corefile_file *f, mode_t mode)
{
	int r = -EEXIST;

	for (unsigned i = 0; i < NAME_ATTEMPTS && r == -EEXIST; i++) {
		r = hidden_name(f);
		if (r < 0)
			break;
		f->fd = openat(f->dir_fd, f->hidden, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
		r = f->fd < 0 ? -errno : 0;
	}
	if (r < 0)
		f->hidden[0] = '\0';
	return r;
}

static bool is_component(const char *name)
{
	return name[0] && !strchr(name, '/') && strcmp(name, ".") && strcmp(name, "..");
}

int corefile_file_open(int dir_fd, const char *name, mode_t mode, struct corefile_file *ret)
{
	struct corefile_file f = COREFILE_FILE_NULL;
	int r = 0;

	if (!is_component(name) || strlen(name) >= sizeof(f.name))
		return -EINVAL;
	strcpy(f.name, name);
	f.dir_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 3);
	if (f.dir_fd < 0)
		return -errno;
	f.fd = openat(f.dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
	/*
	 * File systems without O_TMPFILE answer with one of these (open(2)), and so do old kernels.
	 */
	if (f.fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT))
		r = open_hidden(&f, mode);
	else if (f.fd < 0)
		r = -errno;
	if (r < 0) {
		corefile_file_close(&f);
		return r;
	}
	*ret = f;
	return 0;
}

/*
 * Find the path of the file behind symbolic links.  A link that leads nowhere is an error:
 * /dev/stdout is such a link when the file that it leads to has lost its name.
 */
static int behind_links(const char *path, bool replace, char ret[PATH_MAX])
{
	struct stat st;

	if (lstat(path, &st) < 0) {
		if (errno != ENOENT)
			return -errno;
		snprintf(ret, PATH_MAX, "%s", path);
		return 0;
	}
	if (!replace)
		return -EEXIST;
	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -ENOTSUP;
	return realpath(path, ret) ? 0 : -errno;
}

/*
 * The directory is held by its descriptor, not by its name, so that nobody can move the file
 * elsewhere before it is committed.
 */
int corefile_file_open_path(const char *path, mode_t mode, bool replace, struct corefile_file *ret)
{
	char dir[PATH_MAX], name[PATH_MAX];
	auto_close int dir_fd = -1;
	char *slash;
	int r = behind_links(path, replace, dir);

	if (r < 0)
		return r;
	slash = strrchr(dir, '/');
	snprintf(name, sizeof(name), "%s", slash ? slash + 1 : dir);
	if (slash)
		slash[1] = '\0';
	dir_fd = open(slash ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir_fd < 0 ? -errno : corefile_file_open(dir_fd, name, mode, ret);
}

int corefile_file_space(const struct corefile_file *f, uint64_t *ret_bytes)
{
	return corefile_space(f->fd, 0, ret_bytes);
}

int corefile_space(int fd, unsigned keep_percent, uint64_t *ret_bytes)
{
	struct statvfs st;
	uint64_t room, keep;

	if (fstatvfs(fd, &st) < 0)
		return -errno;
	room = (uint64_t)st.f_bavail * st.f_frsize;
	keep = (uint64_t)st.f_blocks * st.f_frsize / 100 * keep_percent;
	/* One that has no blocks at all is not full: it has no limit, or does not tell. */
	*ret_bytes = !st.f_blocks ? UINT64_MAX : room > keep ? room - keep : 0;
	return 0;
}

/*
 * linkat(2) with AT_EMPTY_PATH would need CAP_DAC_READ_SEARCH; the link in /proc does not (open(2),
 * O_TMPFILE).
 */
static int link_as(struct corefile_file *f, const char *name)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
	return linkat(AT_FDCWD, path, f->dir_fd, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

static int link_hidden(struct corefile_file *f)
{
	int r = -EEXIST;

	for (unsigned i = 0; i < NAME_ATTEMPTS && r == -EEXIST; i++) {
		r = hidden_name(f);
		if (r == 0)
			r = link_as(f, f->hidden);
	}
	if (r < 0)
		f->hidden[0] = '\0';
	return r;
}

int corefile_file_commit(struct corefile_file *f, bool replace)
{
	int r = 0;

	if (fsync(f->fd) < 0)
		return -errno;
	if (!f->hidden[0] && !replace) {
		r = link_as(f, f->name);
	} else {
		/* linkat() cannot replace a file; only a rename does that in one step. */
		if (!f->hidden[0])
			r = link_hidden(f);
		if (r == 0 && renameat2(f->dir_fd, f->hidden, f->dir_fd, f->name,
					replace ? 0 : RENAME_NOREPLACE) < 0)
			r = -errno;
		if (r == 0)
			f->hidden[0] = '\0';
	}
	if (r == 0 && fsync(f->dir_fd) < 0)
		r = -errno;
	return r;
}

void corefile_file_close(struct corefile_file *f)
{
	if (f->hidden[0])
		unlinkat(f->dir_fd, f->hidden, 0);
	if (f->fd >= 0)
		close(f->fd);
	if (f->dir_fd >= 0)
		close(f->dir_fd);
	*f = (struct corefile_file)COREFILE_FILE_NULL;
}

static int map_fd(int fd, struct corefile_map *ret)
{
	struct stat st;
	void *p;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0)
		return -EINVAL;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	ret->data = p;
	ret->size = (size_t)st.st_size;
	return 0;
}

void corefile_map_close(struct corefile_map *m)
{
	if (m->data)
		munmap((void *)m->data, m->size);
	*m = (struct corefile_map){ 0 };
}

int corefile_map_open(int fd, int scratch_fd, uint64_t max, struct corefile_map *ret)
{
	struct corefile_map map = { 0 };
	int r = map_fd(fd, &map);

	if (r < 0)
		return r;
	if (!corefile_is_zstd(map.data, map.size) && !corefile_is_gzip(map.data, map.size)) {
		*ret = map;
		return 0;
	}
	r = corefile_decompress(map.data, map.size, scratch_fd, max, &ret->damaged_at);
	corefile_map_close(&map);
	return r < 0 ? r : map_fd(scratch_fd, ret);
}
