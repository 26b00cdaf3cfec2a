/* SPDX-License-Identifier: MIT */
#ifndef STORE_INTERNAL_H
#define STORE_INTERNAL_H

/** @file internal.h  What the store's own files share. */

#include "store/store.h"

#define INDEX_NAME "index"

enum name_kind { NAME_FOREIGN, NAME_RECORD, NAME_CORE, NAME_CORE_ZST, NAME_PIN, NAME_KIND_COUNT };

struct name {
	enum name_kind kind;
	bool unfinished; /* begins with a dot */
	size_t stem_size; /* without the dot */
	struct store_item facts;
};

extern const char *const name_suffixes[NAME_KIND_COUNT];

/* name.c */

/** Stem of a record's files, from its metadata. */
void name_stem(const struct store_meta *m, char ret[NAME_MAX + 1]);
/** STEM.SUFFIX, or .STEM.SUFFIX while it is being written. */
void name_file(const char *stem, enum name_kind kind, bool unfinished, char ret[NAME_MAX + 1]);
/** @return what it is; NAME_FOREIGN if we did not name it. */
void name_parse(const char *file, struct name *ret);
uint64_t name_key_hash(const char *key);

/* store.c */

/** The directory's lock; the second gives it back.  @return 0, -errno. */
int store_lock(struct store *s);
void store_unlock(struct store *s);
/**
 * Open one of our files for reading.
 * @return 0, -ENOENT, -ELOOP or -EPERM (not a file of ours), -errno.
 */
int store_open_file(struct store *s, const char *file, int *ret_fd);
/** Unlink unless somebody reads it.  @return 0, -EBUSY, -errno. */
int store_unlink(struct store *s, const char *file);
/** Delete the files of an item.  @param record  Also its metadata.  Lock held. */
int store_delete(struct store *s, const struct store_item *i, bool record);

/* scan.c */

/** Call @p f for each file that is being written, or was; errors of @p f are ignored. */
void store_each_unfinished(struct store *s, int (*f)(struct store *s, const char *file));

/* quota.c */

/**
 * As store_vacuum(), and the space is taken from the disk, so that others who write now see it in use.
 * @param fd    File that is being written, at least @p to bytes long afterwards.
 * @param from, to  Bytes of it that come next.
 */
int store_reserve(struct store *s, int fd, uint64_t from, uint64_t to, const char *keep);
/** As store_vacuum(), but records stay. */
void store_drop_bodies(struct store *s, uint64_t reserve);

/* index.c */

/** Metadata from the index's text.  @return 0, -ENOENT. */
int index_find(const struct store_list *l, const struct store_item *i, struct store_meta *ret);
/** Read it; a missing or unusable one is empty. */
void index_load(struct store *s, struct store_list *l);

#endif /* STORE_INTERNAL_H */
