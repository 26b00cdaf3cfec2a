/* SPDX-License-Identifier: MIT */
#ifndef KFDTRAP_SYSFS_H
#define KFDTRAP_SYSFS_H

/**
 * @file sysfs.h
 * Reads small text files below a directory, with bounded parsers.
 *
 * The text is the kernel's or a simulator's; either way nothing in it is trusted.
 */

#include <stddef.h>
#include <stdint.h>

/** The member of a record that a `name value` line goes to. */
struct sysfs_field {
	const char *name;
	size_t offset;
	size_t size; /**< 4 or 8. */
};

/** A field whose name in the file is that of the member. */
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
/**
 * Parse one decimal number, with blanks around it allowed.
 * @return 0, -EINVAL, -ERANGE.
 */
int sysfs_parse_u64(const char *text, size_t size, uint64_t *ret_value);
/**
 * Copy the first line, printable ASCII only (other bytes become '?'), cut to fit; always
 * terminated.
 */
void sysfs_parse_line(const char *text, size_t size, char *buf, size_t buf_size);

/**
 * Read a whole file below @p dir_fd, of at most 64 KiB.
 * @param ret_text  Release with free(); NUL-terminated.
 * @return 0, -EFBIG, other -errno.
 */
int sysfs_read(int dir_fd, const char *path, char **ret_text, size_t *ret_size);
/**
 * Read a file that holds one decimal number.
 * @return 0, -EINVAL, -ERANGE, other -errno.
 */
int sysfs_read_u64(int dir_fd, const char *path, uint64_t *ret_value);
/**
 * List the entries of a directory that are a number behind @p prefix ("" for plain numbers),
 * ascending.
 * @param ret_numbers  Release with free(); NULL when there are none.
 * @return 0, -errno.
 */
int sysfs_list(int dir_fd, const char *path, const char *prefix, uint32_t **ret_numbers,
	       size_t *ret_n);
/**
 * Name a directory, for what is below it to be opened: it is not opened itself, which asks the file system nothing.
 * @return its descriptor, close-on-exec, or -errno.
 */
int sysfs_open(int dir_fd, const char *path);

#endif /* KFDTRAP_SYSFS_H */
