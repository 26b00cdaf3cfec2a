/* SPDX-License-Identifier: MIT */
/* Lists the directory: files become items, and their sizes a sum. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "store/internal.h"

static void close_dir(DIR **d)
{
	if (*d)
		closedir(*d);
}

/* Open the directory a second time, so that each reader has a position of its own in it. */
static int open_dir(struct store *s, DIR **ret)
{
	auto_close int fd = openat(s->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d)
		return -errno;
	(void)TAKE_FD(fd);
	*ret = d;
	return 0;
}

struct found {
	struct name name;
	struct stat st;
};

struct scan {
	struct store *s;
	struct store_list *list;
	struct found *files;
	size_t n, capacity;
};

static bool is_known(const char *file)
{
	return !strcmp(file, ".") || !strcmp(file, "..") || !strcmp(file, INDEX_NAME) ||
	       !strcmp(file, "." INDEX_NAME);
}

static int add_file(struct scan *c, const char *file)
{
	struct found *f;

	if (is_known(file))
		return 0;
	if (vec_reserve(&c->files, c->n, 1, &c->capacity, sizeof(*c->files)) < 0)
		return -ENOMEM;
	f = &c->files[c->n];
	name_parse(file, &f->name);
	if (fstatat(c->s->dir_fd, file, &f->st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (f->name.kind == NAME_FOREIGN || !S_ISREG(f->st.st_mode) || f->st.st_uid != c->s->uid)
		c->list->usage.n_foreign++;
	else if (c->n == c->s->limits.max_files)
		return -EOVERFLOW;
	else
		c->n++;
	return 0;
}

static int read_files(struct scan *c)
{
	auto_call(close_dir) DIR *d = NULL;
	const struct dirent *e;
	int r = open_dir(c->s, &d);

	while (r == 0) {
		errno = 0;
		e = readdir(d);
		if (!e)
			return -errno;
		r = add_file(c, e->d_name);
	}
	return r;
}

static int compare_files(const void *x, const void *y)
{
	const struct found *a = x, *b = y;

	return strcmp(a->name.facts.name, b->name.facts.name);
}

static uint64_t disk_of(const struct stat *st)
{
	return (uint64_t)st->st_blocks * 512; /* stat(2): always in units of 512 bytes. */
}

static void merge_file(struct store_item *i, const struct found *f)
{
	switch (f->name.kind) {
	case NAME_RECORD:
		i->has_record = true;
		i->record_size = (uint64_t)f->st.st_size;
		i->record_mtime_ns = (uint64_t)f->st.st_mtim.tv_sec * 1000000000 +
				     (uint64_t)f->st.st_mtim.tv_nsec;
		i->record_disk += disk_of(&f->st);
		break;
	case NAME_CORE:
	case NAME_CORE_ZST:
		i->body = STORE_BODY_PRESENT;
		i->zstd = f->name.kind == NAME_CORE_ZST;
		i->body_size = (uint64_t)f->st.st_size;
		i->body_disk += disk_of(&f->st);
		break;
	default:
		i->pinned = true;
	}
}

/* Sort files by their stem and make an item of those that share one. */
static int make_items(struct scan *c)
{
	struct store_list *l = c->list;

	if (c->n)
		qsort(c->files, c->n, sizeof(*c->files), compare_files);
	l->items = calloc(c->n + 1, sizeof(*l->items));
	if (!l->items)
		return -ENOMEM;
	for (size_t i = 0; i < c->n; i++) {
		const struct found *f = &c->files[i];

		if (f->name.unfinished) {
			l->usage.unfinished_bytes += disk_of(&f->st);
			continue;
		}
		if (!l->n || strcmp(l->items[l->n - 1].name, f->name.facts.name))
			l->items[l->n++] = f->name.facts;
		merge_file(&l->items[l->n - 1], f);
	}
	return 0;
}

static int compare_keys(const void *x, const void *y)
{
	const struct store_item *a = *(struct store_item *const *)x,
				*b = *(struct store_item *const *)y;

	if (a->uid != b->uid)
		return a->uid < b->uid ? -1 : 1;
	if (a->key_hash != b->key_hash)
		return a->key_hash < b->key_hash ? -1 : 1;
	return strcmp(b->name, a->name); /* The newest comes first. */
}

static int mark_newest(struct store_list *l)
{
	auto_free struct store_item **order = calloc(l->n + 1, sizeof(struct store_item *));
	size_t n = 0;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < l->n; i++)
		if (l->items[i].body == STORE_BODY_PRESENT)
			order[n++] = &l->items[i];
	qsort(order, n, sizeof(struct store_item *), compare_keys);
	for (size_t i = 0; i < n; i++)
		order[i]->newest = !i || order[i]->uid != order[i - 1]->uid ||
				   order[i]->key_hash != order[i - 1]->key_hash;
	return 0;
}

static int sum_up(struct store *s, struct store_list *l)
{
	struct store_usage *u = &l->usage;
	struct statvfs fs;

	for (size_t i = 0; i < l->n; i++) {
		const struct store_item *item = &l->items[i];

		u->n_records++;
		u->n_bodies += item->body == STORE_BODY_PRESENT;
		u->body_bytes += item->body_disk;
		u->disk_bytes += item->record_disk + item->body_disk;
		u->n_pinned += item->pinned;
		u->pinned_bytes += item->pinned ? item->record_disk + item->body_disk : 0;
	}
	u->disk_bytes += u->unfinished_bytes;
	if (s->sys->fstatvfs(s->dir_fd, &fs) < 0)
		return -errno;
	u->free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	return 0;
}

int store_list(struct store *s, struct store_list *ret)
{
	struct store_list l = { 0 };
	struct scan c = { .s = s, .list = &l };
	int r = read_files(&c);

	if (r == 0)
		r = make_items(&c);
	if (r == 0)
		r = mark_newest(&l);
	if (r == 0)
		r = sum_up(s, &l);
	free(c.files);
	if (r < 0)
		store_list_deinit(&l);
	else
		*ret = l;
	return r;
}

void store_list_deinit(struct store_list *l)
{
	free(l->items);
	free(l->index);
	*l = (struct store_list){ 0 };
}

int store_list_find(const struct store_list *l, const char *id, const struct store_item **ret)
{
	const struct store_item *found = NULL;
	size_t n = strlen(id);

	for (size_t i = 0; n && i < l->n; i++) {
		if (strncmp(l->items[i].id, id, n))
			continue;
		if (found)
			return -ENOTUNIQ;
		found = &l->items[i];
	}
	*ret = found;
	return found ? 0 : -ENOENT;
}

void store_each_unfinished(struct store *s, int (*f)(struct store *s, const char *file))
{
	auto_call(close_dir) DIR *d = NULL;
	const struct dirent *e;
	struct name name;

	if (open_dir(s, &d) < 0)
		return;
	while ((e = readdir(d))) {
		name_parse(e->d_name, &name);
		if (name.unfinished && name.kind != NAME_FOREIGN)
			f(s, e->d_name);
	}
}
