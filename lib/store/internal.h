/* SPDX-License-Identifier: MIT */
#ifndef STORE_INTERNAL_H
#define STORE_INTERNAL_H

/**
 * @file internal.h
 * What the files of the store share with each other.
 */

#include "store/store.h"

#define INDEX_NAME "index"

/** Kinds of files in the directory; foreign ones are not ours. */
enum name_kind { NAME_FOREIGN, NAME_RECORD, NAME_CORE, NAME_CORE_ZST, NAME_PIN, NAME_KIND_COUNT };

/** The facts that the name of a file tells. */
struct name {
	enum name_kind kind;
	/* The name begins with a dot: the file is being written, or its writer died. */
	bool unfinished;
	size_t stem_size; /* Length of the stem, without the dot. */
	struct store_item facts;
};

/** Suffix of each kind, without the dot in front. */
extern const char *const name_suffixes[NAME_KIND_COUNT];

/* name.c */

/** Make the stem of a record's files from its metadata. */
void name_stem(const struct store_meta *m, char ret[NAME_MAX + 1]);
/** Make the name of a file: STEM.SUFFIX, or .STEM.SUFFIX while it is being written. */
void name_file(const char *stem, enum name_kind kind, bool unfinished, char ret[NAME_MAX + 1]);
/** Take the name of a file apart; its kind is NAME_FOREIGN if we did not name it. */
void name_parse(const char *file, struct name *ret);
/** @return the hash of a key that stands for it in names; different keys may have the same. */
uint64_t name_key_hash(const char *key);

/* store.c */

/**
 * Take the lock of the directory, and wait for it if need be.
 * @return 0, -errno.
 */
int store_lock(struct store *s);
/** Give the lock of the directory back. */
void store_unlock(struct store *s);
/**
 * Open one of our files for reading.
 * @return 0, -ENOENT, -ELOOP or -EPERM (not a file of ours), -errno.
 */
int store_open_file(struct store *s, const char *file, int *ret_fd);
/**
 * Delete the files of an item.  The caller holds the lock of the directory.
 * @param record  Also delete the metadata, and the pin.
 * @return 0, -EBUSY (being read), -errno.
 */
int store_delete(struct store *s, const struct store_item *i, bool record);

/* scan.c */

/**
 * Call @p f for each file that is being written, or whose writer died; errors of @p f are ignored.
 */
void store_each_unfinished(struct store *s, int (*f)(struct store *s, const char *file));

/* quota.c */

/**
 * Do what store_vacuum() does, and reserve the space on the disk, so that other writers see it in
 * use.
 * @param fd    File that is being written, at least @p to bytes long afterwards.
 * @param from, to  The bytes of it that come next.
 * @param keep  As for store_vacuum().
 * @return as store_vacuum().
 */
int store_reserve(struct store *s, int fd, uint64_t from, uint64_t to, const char *keep);
/** Do what store_vacuum() does, but delete no records. */
void store_drop_bodies(struct store *s, uint64_t reserve);

/* index.c */

/**
 * Find the metadata of an item in the text of the index.
 * @return 0, -ENOENT.
 */
int index_find(const struct store_list *l, const struct store_item *i, struct store_meta *ret);

#endif /* STORE_INTERNAL_H */
