/* SPDX-License-Identifier: MIT */
/* Adds records: the metadata and document first, then the body, in steps that the limits allow. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/out.h"
#include "store/internal.h"

#define PIECE	 ((size_t)128 << 10)
#define PAGE	 ((size_t)4096)
/* Room for a body is made in steps, each a small part of the store: all at once may be too much. */
#define STEP_SHARE 64
#define STEP_MAX   ((uint64_t)16 << 20)
#define ID_TRIES 16

/* A file that is being written under a temporary name. */
struct writing {
	struct store *s;
	char stem[NAME_MAX + 1];
	char temp[NAME_MAX + 1], final[NAME_MAX + 1];
	int fd;
};

static int make_id(struct store *s, struct store_meta *m)
{
	time_t t = (time_t)(m->time_us / 1000000);
	char when[20];
	uint32_t serial;
	struct tm tm;

	/*
	 * The microseconds come first, so that names sort by time; 12 random bits tell apart what
	 * is left.
	 */
	if (getrandom(&serial, sizeof(serial), 0) != sizeof(serial))
		return -errno;
	serial = (uint32_t)(m->time_us % 1000000) << 12 | (serial & 0xfff);
	if (!gmtime_r(&t, &tm) || tm.tm_year < 70 || tm.tm_year >= 8100)
		return -ERANGE;
	strftime(when, sizeof(when), "%Y%m%dT%H%M%S", &tm);
	snprintf(m->id, sizeof(m->id), "%.15s-%08x", when, serial);
	return 0;
}

/*
 * Create a file.  It is locked from the beginning, so that nobody takes it for one that was left
 * behind.
 */
static int begin(struct writing *w, struct store *s, const char *stem, enum name_kind kind)
{
	int r = store_lock(s);

	*w = (struct writing){ .s = s, .fd = -1 };
	if (r < 0)
		return r;
	snprintf(w->stem, sizeof(w->stem), "%s", stem);
	name_file(stem, kind, true, w->temp);
	name_file(stem, kind, false, w->final);
	w->fd = s->sys->openat(s->dir_fd, w->temp,
			       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (w->fd < 0 || flock(w->fd, LOCK_EX | LOCK_NB) < 0)
		r = -errno;
	store_unlock(s);
	return r;
}

/* Remove a file that is not finished; errors are ignored, since the first one is to be reported. */
static void abandon(struct writing *w)
{
	if (w->fd < 0)
		return;
	if (w->temp[0])
		w->s->sys->unlinkat(w->s->dir_fd, w->temp);
	close(w->fd);
	w->fd = -1;
}

/*
 * Set extended attributes, for people who look at a core that was copied somewhere; nothing here
 * reads them.  Records have none: they say it all in their first line, and attributes take a block
 * of their own on ext4.
 */
static void set_attributes(int fd, const struct store_meta *m)
{
	char name[64], buf[21];

	for (const struct store_field *f = store_fields; f->name; f++) {
		const char *text = store_field_text(m, f, buf);

		snprintf(name, sizeof(name), "user.gpu_agent.%s", f->name);
		/* File systems that have no attributes go without them. */
		if (text[0] && fsetxattr(fd, name, text, strlen(text), 0) < 0 &&
		    errno == EOPNOTSUPP)
			return;
	}
}

/*
 * Check that the record is still there: a client that removed it while its body was written wants
 * neither.
 */
static int check_record(const struct writing *w)
{
	char record[NAME_MAX + 1];
	struct stat st;

	name_file(w->stem, NAME_RECORD, false, record);
	/*
	 * faccessat() with flags is a system call of its own, which the store's process may not
	 * make.
	 */
	if (fstatat(w->s->dir_fd, record, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	return errno == ENOENT ? -ECANCELED : -errno;
}

/*
 * Finish a file: its content goes to the disk first; then it gets its name, under the lock, so that
 * a process that counts misses none; then the name goes to the disk.
 */
static int commit(struct writing *w, bool body)
{
	struct store *s = w->s;
	int r = s->sys->fsync(w->fd) < 0 ? -errno : store_lock(s);

	if (r < 0)
		return r;
	r = body ? check_record(w) : 0;
	if (r == 0 && s->sys->rename(s->dir_fd, w->temp, w->final) < 0)
		r = -errno;
	store_unlock(s);
	if (r < 0)
		return r;
	w->temp[0] = '\0';
	return s->sys->fsync(s->dir_fd) < 0 ? -errno : 0;
}

static int write_all(struct writing *w, const void *data, size_t size)
{
	while (size) {
		ssize_t n = w->s->sys->write(w->fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		data = (const char *)data + n;
		size -= (size_t)n;
	}
	return 0;
}

/* ------------------------------------------------------------------ metadata ----------------- */

static int write_record(struct store *s, const struct store_meta *m, const char *stem,
			const void *json, size_t json_size)
{
	auto_out struct out line;
	struct writing w;
	int r;

	out_init(&line, STORE_META_MAX);
	store_meta_encode(&line, m);
	out_char(&line, '\n');
	if (out_error(&line))
		return -EFBIG;
	r = begin(&w, s, stem, NAME_RECORD);
	if (r == 0)
		r = store_reserve(s, w.fd, 0, line.size + json_size, NULL);
	if (r == 0)
		r = write_all(&w, line.data, line.size);
	if (r == 0)
		r = write_all(&w, json, json_size);
	if (r == 0)
		r = commit(&w, false);
	abandon(&w);
	return r;
}

/*
 * Write the metadata and the document.  Room is made before, and once more when the disk turns out
 * to be full.
 */
static int add_record(struct store *s, struct store_meta *m, char stem[NAME_MAX + 1],
		      const void *json, size_t json_size)
{
	int r = 0;

	for (int tries = 0; r == 0 && tries < ID_TRIES; tries++) {
		r = make_id(s, m);
		if (r < 0)
			return r;
		name_stem(m, stem);
		r = write_record(s, m, stem, json, json_size);
		/*
		 * The disk is full although the limits hold: the store has to make do with a
		 * quarter less.
		 */
		if ((r == -ENOSPC || r == -EDQUOT) && !tries)
			store_drop_bodies(s, s->limits.max_use / 4 + json_size + STORE_META_MAX);
		else if (r != -EEXIST)
			return r;
		r = 0;
	}
	return r < 0 ? r : -EEXIST;
}

/* ------------------------------------------------------------------ body --------------------- */

static bool is_zero(const char *data, size_t size)
{
	return !data[0] && !memcmp(data, data + 1, size - 1);
}

/* @return how many bytes from the start are pages of zeros, or are pages that are not. */
static size_t run_length(const char *data, size_t size, bool zero)
{
	size_t at = 0;

	while (at < size && is_zero(data + at, size - at < PAGE ? size - at : PAGE) == zero)
		at += PAGE;
	return at < size ? at : size;
}

/*
 * Write a piece; pages of zeros become holes.  Each hole costs a request to the disk where that takes
 * back what is free at once (mount option discard), so that neighbouring pages are one hole.
 */
static int write_piece(struct writing *w, uint64_t offset, const char *data, size_t size)
{
	int r = 0;

	for (size_t at = 0, n; r == 0 && at < size; at += n) {
		n = run_length(data + at, size - at, true);
		if (!n) {
			n = run_length(data + at, size - at, false);
			r = write_all(w, data + at, n);
		} else if (lseek(w->fd, (off_t)n, SEEK_CUR) < 0) {
			r = -errno;
		} else { /* The reserved space goes back; where that is impossible it stays. */
			fallocate(w->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(offset + at), (off_t)n);
		}
	}
	return r;
}

static ssize_t read_piece(int fd, char *buf)
{
	size_t have = 0;

	/* Pieces are filled, so that pages stay pages where a pipe gives less. */
	while (have < PIECE) {
		ssize_t n = read(fd, buf + have, PIECE - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	return (ssize_t)have;
}

static uint64_t room_step(const struct store *s)
{
	uint64_t step = s->limits.max_use / STEP_SHARE;

	return step < PIECE ? PIECE : step < STEP_MAX ? step : STEP_MAX;
}

/*
 * @return the offset up to which to make room next: a step, or what is left, and two pages that the
 *         attributes and the file system's map of holes may take.
 */
static uint64_t next_room(const struct writing *w, uint64_t done, uint64_t size)
{
	uint64_t step = room_step(w->s);

	return done + (size - done < step ? size - done : step) + 2 * PAGE;
}

static int copy_body(struct writing *w, int body_fd, uint64_t size)
{
	auto_free char *buf = malloc(PIECE);
	uint64_t done = 0, room = 0;
	int r = buf ? 0 : -ENOMEM;

	while (r == 0) {
		ssize_t n = read_piece(body_fd, buf);

		if (n <= 0) {
			r = (int)n;
			break;
		}
		if (done + (uint64_t)n > size)
			return -ENODATA;
		if (done + (uint64_t)n > room) {
			room = next_room(w, done, size);
			r = store_reserve(w->s, w->fd, done, room, w->stem);
		}
		if (r == 0)
			r = write_piece(w, done, buf, (size_t)n);
		done += (uint64_t)n;
	}
	if (r == 0 && done != size)
		r = -ENODATA;
	return r;
}

static int add_body(struct store *s, const struct store_meta *m, const char *stem, int body_fd,
		    uint64_t size)
{
	struct writing w;
	struct stat st;
	int r;

	if (size > store_max_body(s))
		return -EFBIG;
	r = begin(&w, s, stem, strcmp(m->body, "core.zst") ? NAME_CORE : NAME_CORE_ZST);
	if (r == 0)
		r = copy_body(&w, body_fd, size);
	if (r == 0) {
		set_attributes(w.fd, m);
		r = ftruncate(w.fd, (off_t)size) < 0 ? -errno : commit(&w, true);
	}
	/* The limits have the last word, and may take what was just written. */
	if (r == 0 && store_vacuum(s, 0, NULL) == 0 && fstat(w.fd, &st) == 0 && !st.st_nlink)
		r = -EDQUOT;
	abandon(&w);
	return r;
}

int store_add(struct store *s, const struct store_meta *meta, const void *json, size_t json_size,
	      int body_fd, uint64_t body_size, struct store_added *ret)
{
	struct store_meta m = *meta;
	char stem[NAME_MAX + 1];
	int r;

	if (json_size > STORE_JSON_MAX)
		return -EFBIG;
	if (m.pid > INT32_MAX || strspn(m.boot_id, "0123456789abcdef") != strlen(m.boot_id))
		return -EINVAL;
	if (!m.time_us)
		m.time_us = s->sys->now_us();
	if (!m.count)
		m.count = 1;
	if (body_fd < 0)
		m.body[0] = '\0';
	else if (strcmp(m.body, "core.zst"))
		snprintf(m.body, sizeof(m.body), "core");
	r = add_record(s, &m, stem, json, json_size);
	if (r < 0)
		return r;
	*ret = (struct store_added){ 0 };
	memcpy(ret->id, m.id, sizeof(ret->id));
	if (body_fd >= 0)
		ret->body_status = add_body(s, &m, stem, body_fd, body_size);
	return 0;
}
