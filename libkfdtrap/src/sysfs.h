/* SPDX-License-Identifier: MIT */
#ifndef KFDTRAP_SYSFS_H
#define KFDTRAP_SYSFS_H

/**
 * @file sysfs.h
 * Small text files: bounded parsers, and reading them below a directory.
 *
 * The text is the kernel's or a simulator's; either way nothing in it is trusted.
 */

#include <stddef.h>
#include <stdint.h>

/** Where a `name value` line goes. */
struct sysfs_field {
	const char *name;
	size_t offset;
	size_t size; /**< 4 or 8. */
};

#define SYSFS_FIELD(type, member)                                                                  \
	{ #member, offsetof(struct type, member), sizeof(((struct type *)0)->member) }

/**
 * Parse lines of `name value`.  Unknown names, values that are not a decimal number and values
 * too large for their field are skipped; of a repeated name the last line counts.
 * @param n_fields  At most 64.
 * @return bit i set: fields[i] was found.
 */
uint64_t sysfs_parse_fields(const char *text, size_t size, const struct sysfs_field *fields,
			    size_t n_fields, void *record);
/** One decimal number, with blanks around it allowed.  @return 0, -EINVAL, -ERANGE. */
int sysfs_parse_u64(const char *text, size_t size, uint64_t *ret_value);
/** First line, printable ASCII only (other bytes become '?'), cut to fit; always terminated. */
void sysfs_parse_line(const char *text, size_t size, char *buf, size_t buf_size);

/** Whole file below @p dir_fd.  @return 0, -errno. */
int sysfs_read(int dir_fd, const char *path, char **ret_text, size_t *ret_size);
int sysfs_read_u64(int dir_fd, const char *path, uint64_t *ret_value);
/**
 * Entries of a directory that are a number behind @p prefix ("" for plain numbers), ascending.
 * @param ret_numbers  Release with free().
 */
int sysfs_list(int dir_fd, const char *path, const char *prefix, uint32_t **ret_numbers,
	       size_t *ret_n);
/** @return descriptor of a directory, close-on-exec, or -errno. */
int sysfs_open(int dir_fd, const char *path);

#endif /* KFDTRAP_SYSFS_H */
