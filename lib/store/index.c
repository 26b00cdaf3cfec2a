/* SPDX-License-Identifier: MIT */
/*
 * The index has a line `STEM SIZE MTIME_NS METADATA` for each record, sorted by stem.  Records do
 * not change, so a line is either right or about a file that is gone; nobody has to keep the index
 * up to date.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/out.h"
#include "store/internal.h"

#define INDEX_MAX ((size_t)64 << 20)
/* Opening fewer files than this costs less than writing the index. */
#define WORTH_WRITING 32

/* Read the index into the list; a missing or unusable one is empty. */
static void index_load(struct store *s, struct store_list *l)
{
	auto_close int fd = -1;
	char *text;
	size_t size;

	if (l->index)
		return;
	if (store_open_file(s, INDEX_NAME, &fd) == 0 &&
	    fd_read_file_at(s->dir_fd, INDEX_NAME, INDEX_MAX, &text, &size) == 0) {
		l->index = text;
		l->index_size = size;
	} else {
		l->index = calloc(1, 1);
		l->index_size = 0;
	}
}

/*
 * @return the offset of the first line that begins at or behind @p at; within the text or at its
 *         end.
 */
static size_t line_start(const struct store_list *l, size_t at)
{
	const char *newline = at ? memchr(l->index + at - 1, '\n', l->index_size - at + 1) : l->index - 1;

	return newline ? (size_t)(newline + 1 - l->index) : l->index_size;
}

static int compare_line(const struct store_list *l, size_t at, const char *head, size_t n)
{
	size_t left = l->index_size - at;
	int c = memcmp(l->index + at, head, left < n ? left : n);

	return c ? c : left < n ? -1 : 0;
}

int index_find(const struct store_list *l, const struct store_item *i, struct store_meta *ret)
{
	char head[NAME_MAX + 64];
	size_t low = 0, high = l->index_size, n, stem;
	const char *line, *end;

	stem = strlen(i->name) + 1;
	n = (size_t)snprintf(head, sizeof(head), "%s %" PRIu64 " %" PRIu64 " ", i->name,
			     i->record_size, i->record_mtime_ns);
	while (low < high) {
		/*
		 * The search goes by bytes; the line that begins at or behind the middle decides.
		 */
		size_t middle = low + (high - low) / 2, at = line_start(l, middle);

		if (at < l->index_size && compare_line(l, at, head, stem) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	low = line_start(l, low);
	if (low >= l->index_size || compare_line(l, low, head, n))
		return -ENOENT;
	line = l->index + low + n;
	end = memchr(line, '\n', l->index_size - low - n);
	return end && store_meta_decode(line, (size_t)(end - line), ret) == 0 ? 0 : -ENOENT;
}

static int read_meta(struct store *s, const struct store_item *i, struct store_meta *ret)
{
	auto_free char *line = malloc(STORE_META_MAX);
	char file[NAME_MAX + 1];
	const char *newline;
	auto_close int fd = -1;
	ssize_t n;
	int r;

	if (!line)
		return -ENOMEM;
	name_file(i->name, NAME_RECORD, false, file);
	r = store_open_file(s, file, &fd);
	if (r < 0)
		return r;
	n = pread(fd, line, STORE_META_MAX, 0);
	if (n < 0)
		return -errno;
	newline = memchr(line, '\n', (size_t)n);
	return newline ? store_meta_decode(line, (size_t)(newline - line), ret) : -EBADMSG;
}

int store_list_meta(struct store *s, struct store_list *l, const struct store_item *i,
		    struct store_meta *ret)
{
	struct store_meta m;
	int r;

	if (!i->has_record)
		return -ENOENT;
	index_load(s, l);
	if (!l->index)
		return -ENOMEM;
	r = index_find(l, i, &m);
	if (r < 0) {
		l->n_not_indexed++;
		r = read_meta(s, i, &m);
	}
	/* The name and the content must be about the same record; the limits go by the name. */
	if (r == 0 && (strcmp(m.id, i->id) || m.uid != i->uid || m.pid != i->pid))
		r = -EBADMSG;
	if (r == 0)
		*ret = m;
	return r;
}

static int write_text(struct store *s, const char *data, size_t size)
{
	auto_close int fd =
		s->sys->openat(s->dir_fd, "." INDEX_NAME,
			       O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	ssize_t n = fd < 0 ? -1 : s->sys->write(fd, data, size);

	if (n < 0 || (size_t)n != size ||
	    renameat(s->dir_fd, "." INDEX_NAME, s->dir_fd, INDEX_NAME) < 0) {
		if (fd >= 0)
			s->sys->unlinkat(s->dir_fd, "." INDEX_NAME);
		return -EIO;
	}
	return 0;
}

void store_list_keep_index(struct store *s, struct store_list *l)
{
	auto_out struct out text = { 0 };
	struct store_meta m;

	if (l->n_not_indexed < WORTH_WRITING)
		return;
	out_init(&text, INDEX_MAX);
	for (size_t i = 0; i < l->n; i++) {
		const struct store_item *item = &l->items[i];

		if (store_list_meta(s, l, item, &m) < 0)
			continue;
		out_fmt(&text, "%s %" PRIu64 " %" PRIu64 " ", item->name, item->record_size,
			item->record_mtime_ns);
		store_meta_encode(&text, &m);
		out_char(&text, '\n');
	}
	l->n_not_indexed = 0;
	if (out_error(&text) || store_lock(s) < 0)
		return;
	write_text(s, text.data, text.size);
	store_unlock(s);
}
