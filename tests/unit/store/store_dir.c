/* SPDX-License-Identifier: MIT */
#include "store_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"

#define START_US UINT64_C(1764000000000000)

struct faults faults;

static bool fails(void)
{
	int n = ++faults.n_calls;

	if (!faults.fail_at || n < faults.fail_at || (n > faults.fail_at && !faults.dead))
		return false;
	errno = faults.fail_errno;
	return true;
}

static int fake_openat(int dir, const char *name, int flags, mode_t mode)
{
	/* Only what changes something counts. */
	if (flags & O_CREAT && fails())
		return -1;
	return store_sys_default.openat(dir, name, flags, mode);
}

static ssize_t fake_write(int fd, const void *data, size_t size)
{
	/* The disk that fills up takes a part of it. */
	if (fails()) {
		int saved = errno;
		ssize_t n = store_sys_default.write(fd, data, size / 2);

		errno = saved;
		return n < 0 ? n : -1;
	}
	return store_sys_default.write(fd, data, size);
}

/* No test outlives a power cut, and a busy disk takes a second for each. */
static int fake_fsync(int fd)
{
	return fails() ? -1 : 0;
}

static int fake_rename(int dir, const char *from, const char *to)
{
	return fails() ? -1 : store_sys_default.rename(dir, from, to);
}

static int fake_unlinkat(int dir, const char *name)
{
	return fails() ? -1 : store_sys_default.unlinkat(dir, name);
}

static int fake_fstatvfs(int fd, struct statvfs *ret)
{
	int r = store_sys_default.fstatvfs(fd, ret);

	if (faults.free_bytes)
		ret->f_bavail = faults.free_bytes / ret->f_frsize;
	return r;
}

static uint64_t fake_now(void)
{
	return faults.now_us;
}

const struct store_sys store_dir_sys = {
	.openat = fake_openat,
	.write = fake_write,
	.fsync = fake_fsync,
	.rename = fake_rename,
	.unlinkat = fake_unlinkat,
	.fstatvfs = fake_fstatvfs,
	.now_us = fake_now,
};

int fixture_reopen(struct fixture *f, const struct store_limits_text *limits)
{
	static const struct store_limits_text usual = { .max_use = "1M", .keep_free = "0", .max_body = "1M" };

	faults.fail_at = 0;
	if (f->dir_fd > 0)
		close(f->dir_fd);
	f->dir_fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return store_init(&f->store, f->dir_fd, limits ? limits : &usual, &store_dir_sys);
}

int fixture_open(struct fixture *f, const struct store_limits_text *limits)
{
	faults = (struct faults){ .now_us = START_US };
	*f = (struct fixture){ .path = "/tmp/test-store.XXXXXX", .dir_fd = -1 };
	if (!mkdtemp(f->path))
		return -errno;
	return fixture_reopen(f, limits);
}

void fixture_close(struct fixture *f)
{
	DIR *d = fdopendir(f->dir_fd);
	const struct dirent *e;

	while (d && (e = readdir(d)))
		unlinkat(f->dir_fd, e->d_name, 0);
	if (d)
		closedir(d);
	rmdir(f->path);
}

int body_file(size_t size)
{
	int fd = memfd_create("body", MFD_CLOEXEC);
	uint64_t words[512];

	for (size_t at = 0; at < size; at += sizeof(words)) {
		for (size_t i = 0; i < TEST_COUNT(words); i++)
			words[i] = test_random() | 1;
		if (fd_write_all(fd, words, size - at < sizeof(words) ? size - at : sizeof(words)) < 0)
			return -1;
	}
	lseek(fd, 0, SEEK_SET);
	return fd;
}

int fixture_add_for(struct fixture *f, uint32_t uid, const char *key, int body_size,
		    struct store_added *ret)
{
	static const char json[] = "{\"schema\":\"gpu-agent.snapshot/1\",\"groups\":[]}\n";
	auto_close int body = body_size < 0 ? -1 : body_file((size_t)body_size);
	struct store_meta m = { .pid = 4242, .uid = uid, .boot_id = "0123456789abcdef0123456789abcdef",
				.comm = "py.thon\n", .rule = "gpu/all", .reason = "requested" };
	struct store_added added;
	int r;

	snprintf(m.key, sizeof(m.key), "%s", key);
	faults.now_us += 1000000;
	m.time_us = faults.now_us;
	r = store_add(&f->store, &m, json, sizeof(json) - 1, body, body_size < 0 ? 0 : (uint64_t)body_size,
		      ret ? ret : &added);
	return r;
}

int fixture_add(struct fixture *f, const char *key, int body_size, struct store_added *ret)
{
	return fixture_add_for(f, 1000, key, body_size, ret);
}

int fixture_state(struct fixture *f, const char *id)
{
	auto_store_list struct store_list l = { 0 };
	const struct store_item *i;
	int r = store_list(&f->store, &l);

	if (r == 0)
		r = store_list_find(&l, id, &i);
	if (r < 0)
		return r;
	return (i->has_record ? HAS_RECORD : 0) | (i->body == STORE_BODY_PRESENT ? HAS_BODY : 0) |
	       (i->pinned ? IS_PINNED : 0);
}

struct store_usage fixture_usage(struct fixture *f)
{
	auto_store_list struct store_list l = { 0 };

	TEST_EQ(store_list(&f->store, &l), 0);
	return l.usage;
}

unsigned files_in(struct fixture *f)
{
	DIR *d = opendir(f->path);
	const struct dirent *e;
	unsigned n = 0;

	while (d && (e = readdir(d)))
		n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	if (d)
		closedir(d);
	return n;
}
