/* SPDX-License-Identifier: MIT */
/* The directory, its limits, and what is done with one item: read, open, pin, remove. */
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "store/internal.h"

/* ------------------------------------------------------------------ system calls ------------- */

static int sys_openat(int dir, const char *name, int flags, mode_t mode)
{
	return openat(dir, name, flags, mode);
}

/*
 * Not every file system knows RENAME_NOREPLACE (renameat2(2)); linkat() never replaces a file
 * either.
 */
static int sys_rename(int dir, const char *from, const char *to)
{
	if (renameat2(dir, from, dir, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL || linkat(dir, from, dir, to, 0) < 0)
		return -1;
	return unlinkat(dir, from, 0);
}

static int sys_unlinkat(int dir, const char *name)
{
	return unlinkat(dir, name, 0);
}

const struct store_sys store_sys_default = {
	.openat = sys_openat,
	.write = write,
	.fsync = fsync,
	.rename = sys_rename,
	.unlinkat = sys_unlinkat,
	.fstatvfs = fstatvfs,
	.now_us = clock_wall_us,
};

const char *store_error_text(int r)
{
	return r == -EPIPE     ? "the store is not available" :
	       r == -EOVERFLOW ? "its directory has more than 1048576 files; remove the oldest by hand" :
				 strerror(-r);
}

/* ------------------------------------------------------------------ limits ------------------- */

static int parse_size(const char *text, uint64_t fs_bytes, uint32_t percent, uint64_t cap,
		      uint64_t *ret)
{
	uint64_t bytes = 0;
	int r = text ? str_to_size(text, &bytes, &percent) : 0;

	if (r < 0)
		return r;
	/* The division comes first, because the multiplication would overflow for a large disk. */
	if (!text)
		bytes = fs_bytes / 100 * percent < cap ? fs_bytes / 100 * percent : cap;
	else if (percent)
		bytes = fs_bytes / 100 * percent;
	*ret = bytes;
	return 0;
}

static int parse_age(const char *text, uint64_t fallback, uint64_t *ret)
{
	*ret = fallback;
	return text ? str_to_age(text, ret) : 0;
}

int store_limits_parse(const struct store_limits_text *t, uint64_t fs_bytes,
		       struct store_limits *ret)
{
	struct store_limits l;
	uint64_t records = STORE_RECORDS;

	if (parse_size(t->max_use, fs_bytes, STORE_MAX_USE_PERCENT, STORE_MAX_USE_CAP, &l.max_use) <
		    0 ||
	    parse_size(t->keep_free, fs_bytes, STORE_KEEP_FREE_PERCENT, STORE_KEEP_FREE_CAP,
		       &l.keep_free) < 0 ||
	    parse_size(t->max_body ? t->max_body : "0", fs_bytes, 0, 0, &l.max_body) < 0 ||
	    parse_age(t->max_age, STORE_BODY_AGE_S, &l.body_age_s) < 0 ||
	    parse_age(t->max_record_age, STORE_RECORD_AGE_S, &l.record_age_s) < 0 ||
	    (t->max_records && str_to_u64(t->max_records, 0, UINT32_MAX, &records) < 0))
		return -EINVAL;
	l.max_records = (uint32_t)records;
	l.max_files = STORE_FILES_MAX;
	*ret = l;
	return 0;
}

uint64_t store_max_body(const struct store *s)
{
	return s->limits.max_body ? s->limits.max_body : s->limits.max_use / 2;
}

/* ------------------------------------------------------------------ the directory ------------ */

int store_lock(struct store *s)
{
	int r;

	do
		r = flock(s->dir_fd, LOCK_EX);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

void store_unlock(struct store *s)
{
	flock(s->dir_fd, LOCK_UN);
}

static int check_directory(int dir_fd, uid_t uid)
{
	struct stat st;

	if (fstat(dir_fd, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	return st.st_uid == uid && !(st.st_mode & 022) ? 0 : -EPERM;
}

/* Remove a file, unless its writer still holds its lock.  @return 0, -EBUSY, other -errno. */
static int store_unlink(struct store *s, const char *file)
{
	auto_close int fd = -1;
	int r = store_open_file(s, file, &fd);

	if (r < 0)
		return r;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	return s->sys->unlinkat(s->dir_fd, file) < 0 ? -errno : 0;
}

/* A writer that lives has its file locked, and takes that lock while it holds the directory's. */
static void remove_unfinished(struct store *s)
{
	if (store_lock(s) < 0)
		return;
	store_each_unfinished(s, store_unlink);
	store_unlock(s);
}

int store_init(struct store *ret, int dir_fd, const struct store_limits_text *limits,
	       const struct store_sys *sys)
{
	struct store s = { .dir_fd = dir_fd, .sys = sys ? sys : &store_sys_default, .uid = geteuid() };
	struct statvfs fs;
	int r = check_directory(dir_fd, s.uid);

	if (r < 0)
		return r;
	if (s.sys->fstatvfs(dir_fd, &fs) < 0)
		return -errno;
	r = store_limits_parse(limits, (uint64_t)fs.f_blocks * fs.f_frsize, &s.limits);
	if (r < 0)
		return r;
	/*
	 * A directory that may only be read has no unfinished files; failures show when something
	 * is written.
	 */
	remove_unfinished(&s);
	*ret = s;
	return 0;
}

/* ------------------------------------------------------------------ files -------------------- */

int store_open_file(struct store *s, const char *file, int *ret_fd)
{
	/* O_NONBLOCK, because a fifo that somebody put there must not make us wait. */
	auto_close int fd = s->sys->openat(s->dir_fd, file,
					   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != s->uid)
		return -EPERM;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int unlink_kind(struct store *s, const struct store_item *i, enum name_kind kind)
{
	char file[NAME_MAX + 1];
	int r;

	name_file(i->name, kind, false, file);
	r = store_unlink(s, file);
	return r == -ENOENT ? 0 : r;
}

int store_delete(struct store *s, const struct store_item *i, bool record)
{
	int r = 0;

	/*
	 * The metadata go last: a failure in between leaves a record without a body, never the
	 * reverse.
	 */
	if (i->body == STORE_BODY_PRESENT)
		r = unlink_kind(s, i, i->zstd ? NAME_CORE_ZST : NAME_CORE);
	if (r < 0 || !record)
		return r;
	if (i->pinned)
		r = unlink_kind(s, i, NAME_PIN);
	return r == 0 && i->has_record ? unlink_kind(s, i, NAME_RECORD) : r;
}

int store_read_json(struct store *s, const struct store_item *i, char **ret_json, size_t *ret_size)
{
	auto_free char *text = NULL;
	char file[NAME_MAX + 1], *newline;
	auto_close int fd = -1;
	size_t size;
	int r;

	name_file(i->name, NAME_RECORD, false, file);
	r = store_open_file(s, file, &fd);
	if (r == 0)
		r = fd_read_file_at(s->dir_fd, file, STORE_META_MAX + STORE_JSON_MAX, &text, &size);
	if (r < 0)
		return r;
	newline = memchr(text, '\n', size);
	if (!newline)
		return -EBADMSG;
	size -= (size_t)(newline + 1 - text);
	memmove(text, newline + 1, size + 1);
	*ret_json = TAKE_PTR(text);
	*ret_size = size;
	return 0;
}

int store_open_body(struct store *s, const struct store_item *i, int *ret_fd)
{
	char file[NAME_MAX + 1];
	auto_close int fd = -1;
	struct stat st;
	int r;

	if (i->body != STORE_BODY_PRESENT)
		return -ENOENT;
	name_file(i->name, i->zstd ? NAME_CORE_ZST : NAME_CORE, false, file);
	r = store_open_file(s, file, &fd);
	if (r < 0)
		return r;
	/*
	 * A process that deletes the body locks it for a moment only; afterwards the name is gone.
	 */
	if (flock(fd, LOCK_SH) < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!st.st_nlink)
		return -ENOENT;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* ------------------------------------------------------------------ pin, remove -------------- */

static int pin_allowed(struct store *s, const struct store_item *i)
{
	auto_store_list struct store_list l = { 0 };
	const struct store_item *now;
	int r = store_list(s, &l);

	/* Another process may have removed it since it was listed. */
	if (r == 0)
		r = store_list_find(&l, i->id, &now);
	if (r < 0 || now->pinned)
		return r;
	return l.usage.pinned_bytes + now->record_disk + now->body_disk > s->limits.max_use / 2 ? -EDQUOT : 0;
}

static int pin_locked(struct store *s, const struct store_item *i, bool pin)
{
	char file[NAME_MAX + 1];
	auto_close int fd = -1;
	int r;

	if (!pin)
		return unlink_kind(s, i, NAME_PIN);
	r = pin_allowed(s, i);
	if (r < 0)
		return r;
	name_file(i->name, NAME_PIN, false, file);
	fd = s->sys->openat(s->dir_fd, file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    0600);
	return fd < 0 && errno != EEXIST ? -errno : 0;
}

int store_pin(struct store *s, const struct store_item *i, bool pin)
{
	int r;

	if (pin == i->pinned)
		return 0;
	r = store_lock(s);
	if (r < 0)
		return r;
	r = pin_locked(s, i, pin);
	if (r == 0 && s->sys->fsync(s->dir_fd) < 0)
		r = -errno;
	store_unlock(s);
	return r;
}

int store_remove(struct store *s, const struct store_item *i)
{
	auto_store_list struct store_list l = { 0 };
	const struct store_item *now;
	int r = store_lock(s);

	if (r < 0)
		return r;
	/* Another process may have pinned it since it was listed. */
	r = store_list(s, &l);
	if (r == 0)
		r = store_list_find(&l, i->id, &now);
	if (r == 0 && now->pinned)
		r = -EPERM;
	if (r == 0)
		r = store_delete(s, now, true);
	if (r == 0 && s->sys->fsync(s->dir_fd) < 0)
		r = -errno;
	store_unlock(s);
	return r;
}
