/* SPDX-License-Identifier: MIT */
/* Small text files of the kernel, read with bounds and without trust. */
#include "sysfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fd.h"

#define SYSFS_FILE_MAX	65536
#define SYSFS_ENTRY_MAX 65536

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\0';
}

int sysfs_parse_u64(const char *text, size_t size, uint64_t *ret_value)
{
	uint64_t value = 0;
	size_t i = 0;

	while (size && is_blank(text[size - 1]))
		size--;
	while (i < size && is_blank(text[i]))
		i++;
	if (i == size)
		return -EINVAL;
	for (; i < size; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value))
			return -ERANGE;
	}
	*ret_value = value;
	return 0;
}

static bool store_field(const struct sysfs_field *field, uint64_t value, void *record)
{
	char *place = (char *)record + field->offset;
	uint32_t narrow = (uint32_t)value;

	if (field->size == sizeof(value)) {
		memcpy(place, &value, sizeof(value));
		return true;
	}
	if (value > UINT32_MAX)
		return false;
	memcpy(place, &narrow, sizeof(narrow));
	return true;
}

static uint64_t parse_field_line(const char *line, size_t size, const struct sysfs_field *fields,
				 size_t n_fields, void *record)
{
	const char *blank = memchr(line, ' ', size);
	size_t name_size = blank ? (size_t)(blank - line) : 0;
	uint64_t value;

	if (!blank || sysfs_parse_u64(blank, size - name_size, &value) < 0)
		return 0;
	for (size_t i = 0; i < n_fields; i++)
		if (strlen(fields[i].name) == name_size && !memcmp(fields[i].name, line, name_size))
			return store_field(&fields[i], value, record) ? UINT64_C(1) << i : 0;
	return 0;
}

uint64_t sysfs_parse_fields(const char *text, size_t size, const struct sysfs_field *fields,
			    size_t n_fields, void *record)
{
	uint64_t seen = 0;

	while (size) {
		const char *end = memchr(text, '\n', size);
		size_t line = end ? (size_t)(end - text) : size;

		seen |= parse_field_line(text, line, fields, n_fields, record);
		line += end ? 1 : 0;
		text += line;
		size -= line;
	}
	return seen;
}

void sysfs_parse_line(const char *text, size_t size, char *buf, size_t buf_size)
{
	size_t n = 0;

	while (n < size && n + 1 < buf_size && text[n] != '\n' && text[n] != '\0') {
		buf[n] = text[n] >= ' ' && text[n] <= '~' ? text[n] : '?';
		n++;
	}
	while (n && buf[n - 1] == ' ')
		n--;
	buf[n] = '\0';
}

int sysfs_read(int dir_fd, const char *path, char **ret_text, size_t *ret_size)
{
	return fd_read_attribute_at(dir_fd, path, SYSFS_FILE_MAX, ret_text, ret_size);
}

int sysfs_read_u64(int dir_fd, const char *path, uint64_t *ret_value)
{
	auto_free char *text = NULL;
	size_t size;
	int r;

	r = sysfs_read(dir_fd, path, &text, &size);
	if (r < 0)
		return r;
	return sysfs_parse_u64(text, size, ret_value);
}

int sysfs_open(int dir_fd, const char *path)
{
	int fd = openat(dir_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static void close_dirp(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

static int compare_numbers(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static bool entry_number(const char *name, const char *prefix, uint32_t *ret_number)
{
	size_t skip = strlen(prefix);
	uint64_t value;

	if (strncmp(name, prefix, skip))
		return false;
	if (sysfs_parse_u64(name + skip, strlen(name + skip), &value) < 0 || value > UINT32_MAX)
		return false;
	*ret_number = (uint32_t)value;
	return true;
}

/* Append a number; the array doubles at each power of two. */
static int append_number(uint32_t **numbers, size_t n, uint32_t number)
{
	if ((n & (n - 1)) == 0) {
		uint32_t *more = realloc(*numbers, (n ? 2 * n : 1) * sizeof(**numbers));

		if (!more)
			return -ENOMEM;
		*numbers = more;
	}
	(*numbers)[n] = number;
	return 0;
}

int sysfs_list(int dir_fd, const char *path, const char *prefix, uint32_t **ret_numbers,
	       size_t *ret_n)
{
	__attribute__((cleanup(close_dirp))) DIR *dir = NULL;
	auto_free uint32_t *numbers = NULL;
	auto_close int fd = openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct dirent *entry;
	size_t n = 0;

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir)
		return -errno;
	fd = -1;
	while (n < SYSFS_ENTRY_MAX && (errno = 0, entry = readdir(dir))) {
		uint32_t number;

		if (!entry_number(entry->d_name, prefix, &number))
			continue;
		if (append_number(&numbers, n, number) < 0)
			return -ENOMEM;
		n++;
	}
	if (n < SYSFS_ENTRY_MAX && errno)
		return -errno;
	if (n)
		qsort(numbers, n, sizeof(*numbers), compare_numbers);
	*ret_numbers = TAKE_PTR(numbers);
	*ret_n = n;
	return 0;
}
