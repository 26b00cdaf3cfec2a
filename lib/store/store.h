/* SPDX-License-Identifier: MIT */
#ifndef STORE_H
#define STORE_H

/**
 * @file store.h
 * Records on disk: what an exception or a snapshot was about, for months, and core files while
 * there is room (docs/STORE.md).
 *
 * The files of one directory are the whole truth; there is nothing beside them that could disagree:
 *
 *	STEM.record          one line of metadata, then the grouped JSON document
 *	STEM.core[.zst]      the body, if there is one
 *	STEM.pin             empty; exists while the record is pinned
 *	index                metadata of all records, to be fast; made anew when it is missing
 *	.STEM.*              being written, locked by the writer
 *
 * Any number of processes may work on a directory at a time: a lock on the directory (flock) orders
 * those that delete, a lock on a body protects it while a process reads it.
 *
 * Errors: 0 or a count on success, -errno on failure.  Nothing here logs.
 */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct statvfs;

/**
 * Room for an id and its NUL, such as `20261121T091733-3f9a2c41`: time in UTC, microseconds (5
 * hexadecimal digits), 3 random digits.
 */
#define STORE_ID_SIZE 25
/** Longest first line of a record, in bytes. */
#define STORE_META_MAX ((size_t)32 << 10)
/** Longest document of a record, in bytes. */
#define STORE_JSON_MAX ((size_t)64 << 20)

/** The metadata of a record.  Strings are UTF-8 as they came from the target. */
struct store_meta {
	char id[STORE_ID_SIZE]; /**< Given by store_add(). */
	uint64_t time_us;	/**< Microseconds since 1970. */
	uint64_t count;		/**< Events that this record stands for. */
	uint32_t pid, uid;
	char boot_id[33];    /**< 32 hex digits. */
	char comm[16];
	/** Name of the rule in agentd.conf; "" when a person asked for the record. */
	char rule[32];
	char reason[32];     /**< `requested`, or what happened. */
	char vendor[16];
	char exception[128]; /**< Names joined by commas. */
	char exe[512];
	char kernel[512];
	char location[512];  /**< Source line or program counter. */
	char key[256];	     /**< Records with the same key are about the same thing. */
	char body[16];	     /**< Kind of the body that was to come: `core`, `core.zst` or "". */
};

/** A member of struct store_meta; NULL name ends the table. */
struct store_field {
	/** Name as in JSON; users write it in capitals when they filter by it. */
	const char *name;
	/** Place in the struct, and size of the string's array; 4 or 8 with is_number. */
	size_t offset, size;
	bool is_number;
};
/** All members, in the order of the JSON. */
extern const struct store_field store_fields[];

/** @return the member of that name (@p size bytes, in any case); NULL if there is none. */
const struct store_field *store_field_find(const char *name, size_t size);
/**
 * @return the value of a member as text, in @p m or in @p buf.
 * @param buf  At least 21 bytes, for numbers.
 */
const char *store_field_text(const struct store_meta *m, const struct store_field *f, char *buf);

struct out;
/** Append metadata as one line of JSON, without line break. */
void store_meta_encode(struct out *o, const struct store_meta *m);
/**
 * Decode a line of metadata; unknown members are skipped.
 * @return 0, -EBADMSG.
 */
int store_meta_decode(const char *text, size_t size, struct store_meta *ret);

/**
 * @param r  Negative error of a function below, or -EPIPE: the process that works on the store is gone.
 * @return what it means, for people: static, or as strerror(3) has it.
 */
const char *store_error_text(int r);

/* ------------------------------------------------------------------ limits ------------------- */

/** The limits of a store. */
struct store_limits {
	uint64_t max_use;   /**< Most bytes on disk of everything in the directory. */
	uint64_t keep_free; /**< Bytes to leave free on the file system. */
	uint64_t max_body;  /**< Longest body in bytes; 0: half of max_use. */
	uint64_t body_age_s, record_age_s; /**< Oldest body and record, in seconds; 0: no limit. */
	uint32_t max_records; /**< Most records; 0: no limit. */
	uint32_t max_files; /**< Most files of ours that are listed; not configured. */
};

/** Limits as text, as agentd.conf has them; NULL stands for the default. */
struct store_limits_text {
	const char *max_use, *keep_free, *max_body, *max_age, *max_record_age, *max_records;
};

/**
 * Defaults: a tenth of the file system up to 16 GiB may be used; 15 percent are kept free, up to 4
 * GiB.
 */
#define STORE_MAX_USE_PERCENT	10
#define STORE_MAX_USE_CAP	(UINT64_C(16) << 30)
#define STORE_KEEP_FREE_PERCENT 15
#define STORE_KEEP_FREE_CAP	(UINT64_C(4) << 30)
#define STORE_BODY_AGE_S	(UINT64_C(14) * 86400)
#define STORE_RECORD_AGE_S	(UINT64_C(180) * 86400)
#define STORE_RECORDS		10000
/** A directory with more files than this of ours is not listed, and so not added to. */
#define STORE_FILES_MAX		(UINT32_C(1) << 20)

/**
 * Parse limits.
 * @param fs_bytes  Size of the file system, for percentages.
 * @return 0, -EINVAL.
 */
int store_limits_parse(const struct store_limits_text *t, uint64_t fs_bytes,
		       struct store_limits *ret);

/* ------------------------------------------------------------------ the store ---------------- */

/** System calls that change the disk, or tell how full it is; tests pass their own table. */
struct store_sys {
	int (*openat)(int dir, const char *name, int flags, mode_t mode);
	ssize_t (*write)(int fd, const void *data, size_t size);
	int (*fsync)(int fd);
	int (*rename)(int dir, const char *from, const char *to); /**< Never replaces a file. */
	int (*unlinkat)(int dir, const char *name);
	int (*fstatvfs)(int fd, struct statvfs *ret);
	uint64_t (*now_us)(void);
};
/** The real system calls. */
extern const struct store_sys store_sys_default;

/** A directory of records that was opened. */
struct store {
	int dir_fd; /**< Borrowed. */
	const struct store_sys *sys;
	struct store_limits limits;
	uid_t uid; /**< Owner of the files that are ours. */
};

/**
 * Open the store in a directory, and remove what dead writers left there.
 * @param dir_fd  Opened for reading; borrowed.
 * @param sys     NULL for the real system calls; else borrowed.
 * @return 0, -ENOTDIR, -EPERM (another owner, or others may write into it), -EINVAL (limits),
 *         -errno.  A directory that can only be read gives 0; writing to it fails later.
 */
int store_init(struct store *ret, int dir_fd, const struct store_limits_text *limits,
	       const struct store_sys *sys);

/** @return the longest body that is allowed, in bytes. */
uint64_t store_max_body(const struct store *s);

/** The result of store_add(). */
struct store_added {
	char id[STORE_ID_SIZE];
	/**
	 * 0, or why there is no body: -EFBIG, -EDQUOT, -ENOSPC, -ENODATA (it has another size),
	 * -ECANCELED (the record was removed meanwhile), other.
	 */
	int body_status;
};

/**
 * Store a record; it is on disk when this returns.
 *
 * The metadata come first: whatever stops this, at most the body is lost, and what was not finished
 * is removed by the next store_init().
 *
 * @param meta     Without id.  Without time or count, the present and 1 are taken.
 * @param json     The document; it may have line breaks.
 * @param body_fd  Read from its position to its end; borrowed.  -1: no body.
 * @param body_size  Bytes that come from there.  A body of another size is not kept, because the
 *                   process that wrote it has died.
 * @return 0 (also when the body could not be kept), -EFBIG (document), -EINVAL (pid, boot_id),
 *         -ENOSPC, -EDQUOT, -errno.
 */
int store_add(struct store *s, const struct store_meta *meta, const void *json, size_t json_size,
	      int body_fd, uint64_t body_size, struct store_added *ret);

/** Whether a record has a body. */
enum store_body {
	STORE_BODY_NONE,    /**< There never was one. */
	STORE_BODY_PRESENT,
	STORE_BODY_GONE,    /**< Removed to keep the limits, or never finished. */
	STORE_BODY_COUNT,
};

/** A record as its files show it. */
struct store_item {
	char name[NAME_MAX + 1]; /**< Stem of the names of its files. */
	char id[STORE_ID_SIZE];
	uint32_t uid, pid;
	uint64_t time_s;
	uint64_t key_hash;
	bool has_record, pinned;
	bool newest; /**< Its body is the newest of its key and user, and goes last. */
	bool busy;   /**< It was being read when it was to be deleted. */
	enum store_body body; /**< PRESENT or NONE; only metadata can tell GONE. */
	bool zstd;
	uint64_t record_size, record_mtime_ns;
	uint64_t body_size; /**< Length of the body; body_disk is what it takes on disk. */
	uint64_t record_disk, body_disk;
};

/** The sums over all files of a directory. */
struct store_usage {
	uint64_t disk_bytes, body_bytes, pinned_bytes, free_bytes;
	uint64_t n_records, n_bodies, n_pinned, n_foreign;
	/** Bytes on disk of files that are being written; part of disk_bytes. */
	uint64_t unfinished_bytes;
};

/** Everything in the directory, oldest first; release with store_list_deinit(). */
struct store_list {
	struct store_item *items;
	size_t n;
	struct store_usage usage;
	char *index; /**< Text of the index file; NULL until it was needed. */
	size_t index_size;
	size_t n_not_indexed; /**< Records whose metadata had to be read from their file. */
};

/**
 * List the directory.
 * @return 0, -ENOMEM, -EOVERFLOW (more than STORE_FILES_MAX files), -errno.
 */
int store_list(struct store *s, struct store_list *ret);
/** Release a list; a zeroed object is accepted. */
void store_list_deinit(struct store_list *l);
#define auto_store_list __attribute__((cleanup(store_list_deinit)))

/**
 * Tell the metadata of an item, from the index or its file.
 * @return 0, -EBADMSG (broken), -ENOENT (only a body, or gone meanwhile), -errno.
 */
int store_list_meta(struct store *s, struct store_list *l, const struct store_item *i,
		    struct store_meta *ret);
/**
 * Write the index anew when that would save work.  A failure costs only time, so it is not
 * reported.
 */
void store_list_keep_index(struct store *s, struct store_list *l);

/**
 * Find an item by its id.
 * @param id   The beginning of one is enough.
 * @param ret  Borrowed from the list; NULL if there is none.
 * @return 0, -ENOENT, -ENOTUNIQ.
 */
int store_list_find(const struct store_list *l, const char *id, const struct store_item **ret);

/**
 * Read the document of a record.
 * @param ret_json  Allocated with malloc(), NUL-terminated.
 * @return 0, -EBADMSG (the file has no first line), -ENOENT, -EFBIG, -errno.
 */
int store_read_json(struct store *s, const struct store_item *i, char **ret_json, size_t *ret_size);
/**
 * Open the body, which is not deleted while the descriptor is open.
 * @param ret_fd  Owned by the caller.
 * @return 0, -ENOENT, -errno.
 */
int store_open_body(struct store *s, const struct store_item *i, int *ret_fd);

/**
 * Pin a record, or take the pin away.  A pinned record stays, whatever the limits say, but it
 * counts.
 * @return 0, -ENOENT (gone meanwhile), -EDQUOT (more than half of max_use would be pinned), -errno.
 */
int store_pin(struct store *s, const struct store_item *i, bool pin);
/**
 * Remove a record with all its files.
 * @return 0, -EPERM (pinned), -EBUSY (being read), -ENOENT, -errno.
 */
int store_remove(struct store *s, const struct store_item *i);

/**
 * Delete what the limits ask for.
 * @param reserve  Bytes that are about to be written.
 * @param keep     Stem of the record whose body they belong to, which stays; NULL when they are a
 *                 record.
 * @return 0 within the limits, -EDQUOT (all that is left is pinned, being read or kept), -errno.
 */
int store_vacuum(struct store *s, uint64_t reserve, const char *keep);

/* ------------------------------------------------------------------ choosing ----------------- */

/**
 * A choice of records, by `FIELD=VALUE` as journalctl(1) has it: the values of one field are
 * alternatives, and every field that is named must fit.
 */
struct store_filter {
	const char *const *matches; /**< Each was checked by store_match_check(). */
	size_t n_matches;
	uint64_t since_us, until_us; /**< Both inclusive. */
	bool has_until;
};

/**
 * Check one `FIELD=VALUE`.  `NAME=` is the command or the kernel, `RECORD=` the beginning of the
 * id.
 * @return 0, -EINVAL.
 */
int store_match_check(const char *match);
/** Does a record belong to the choice? */
bool store_match(const struct store_filter *f, const struct store_meta *m);

#endif /* STORE_H */
