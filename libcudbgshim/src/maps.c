/* SPDX-License-Identifier: MIT */
/* Parses the text of /proc/PID/maps, and reads memory behind a descriptor. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cudbgshim_target.h"

static int memory_read(void *ctx, uint64_t addr, void *buf, size_t size)
{
	char *to = buf;

	while (size) {
		ssize_t n = pread((int)(intptr_t)ctx, to, size, (off_t)addr);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			/* 0 means that the process has ended and its memory with it. */
			return n == 0 ? -ESRCH : errno == EIO ? -EFAULT : -errno;
		to += n;
		addr += (uint64_t)n;
		size -= (size_t)n;
	}
	return 0;
}

static int memory_write(void *ctx, uint64_t addr, const void *buf, size_t size)
{
	const char *from = buf;

	while (size) {
		ssize_t n = pwrite((int)(intptr_t)ctx, from, size, (off_t)addr);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n == 0 ? -ESRCH : errno == EIO ? -EFAULT : -errno;
		from += n;
		addr += (uint64_t)n;
		size -= (size_t)n;
	}
	return 0;
}

struct cudbgshim_memory cudbgshim_memory_from_fd(int mem_fd)
{
	return (struct cudbgshim_memory){ memory_read, memory_write, (void *)(intptr_t)mem_fd };
}

/* A bounded cursor over one line. */
struct cursor {
	const char *at, *end;
	bool bad;
};

static uint64_t take_number(struct cursor *c, unsigned base, char after)
{
	const char *start = c->at;
	uint64_t value = 0;

	for (; c->at < c->end && c->at - start < 20; c->at++) {
		char ch = *c->at;
		unsigned digit = ch >= '0' && ch <= '9' ? (unsigned)(ch - '0') :
				 ch >= 'a' && ch <= 'f' ? (unsigned)(ch - 'a') + 10 : 16;

		if (digit >= base)
			break;
		value = value * base + digit;
	}
	if (c->at == start || (after && (c->at == c->end || *c->at != after)))
		c->bad = true;
	else if (after)
		c->at++;
	return value;
}

static uint32_t take_flags(struct cursor *c)
{
	uint32_t flags = 0;

	if (c->bad || c->end - c->at < 5) {
		c->bad = true;
		return 0;
	}
	flags |= c->at[0] == 'r' ? CUDBGSHIM_MAP_READ : 0;
	flags |= c->at[1] == 'w' ? CUDBGSHIM_MAP_WRITE : 0;
	flags |= c->at[2] == 'x' ? CUDBGSHIM_MAP_EXEC : 0;
	c->at += 5;
	return flags;
}

static void take_name(struct cursor *c, struct cudbgshim_map *map)
{
	static const char deleted[] = " (deleted)";
	size_t tail = sizeof(deleted) - 1;

	while (c->at < c->end && *c->at == ' ')
		c->at++;
	map->name = c->at;
	map->name_size = (size_t)(c->end - c->at);
	if (map->name_size > tail && !memcmp(c->end - tail, deleted, tail))
		map->name_size -= tail;
}

static bool parse_line(const char *line, size_t size, struct cudbgshim_map *ret_map)
{
	struct cursor c = { line, line + size, false };
	struct cudbgshim_map map = { 0 };

	map.start = take_number(&c, 16, '-');
	map.end = take_number(&c, 16, ' ');
	map.flags = take_flags(&c);
	map.offset = take_number(&c, 16, ' ');
	take_number(&c, 16, ':');
	take_number(&c, 16, ' ');
	map.inode = take_number(&c, 10, '\0');
	take_name(&c, &map);
	if (c.bad || map.start >= map.end)
		return false;
	*ret_map = map;
	return true;
}

bool cudbgshim_maps_next(struct cudbgshim_maps *maps, struct cudbgshim_map *ret_map)
{
	while (maps->pos < maps->size) {
		const char *line = maps->text + maps->pos;
		size_t left = maps->size - maps->pos;
		const char *newline = memchr(line, '\n', left);
		size_t size = newline ? (size_t)(newline - line) : left;

		maps->pos += size + (newline ? 1 : 0);
		if (parse_line(line, size, ret_map))
			return true;
	}
	return false;
}

bool cudbgshim_maps_find(const char *text, size_t size, uint64_t addr,
			 struct cudbgshim_map *ret_map)
{
	struct cudbgshim_maps maps = { text, size, 0 };
	struct cudbgshim_map map;

	while (cudbgshim_maps_next(&maps, &map)) {
		if (addr >= map.start && addr < map.end) {
			*ret_map = map;
			return true;
		}
	}
	return false;
}

/* Names such as libcuda.so, libcuda.so.1, libcuda.so.550.163.01. */
static bool is_libcuda(const struct cudbgshim_map *map)
{
	static const char stem[] = "libcuda.so";
	size_t at = map->name_size, length = sizeof(stem) - 1;
	bool dot = false;

	while (at && map->name[at - 1] != '/')
		at--;
	if (!at || map->name_size - at < length || memcmp(map->name + at, stem, length))
		return false;
	for (at += length; at < map->name_size; at++) {
		char ch = map->name[at];

		if (!(dot && ch >= '0' && ch <= '9') && !(!dot && ch == '.') &&
		    !(ch == '.' && map->name[at - 1] != '.'))
			return false;
		dot = true;
	}
	return map->name[map->name_size - 1] != '.';
}

static bool is_same_file(const struct cudbgshim_map *map, const struct cudbgshim_library *library)
{
	return strlen(library->path) == map->name_size &&
	       !memcmp(map->name, library->path, map->name_size);
}

int cudbgshim_find_libcuda(const char *maps, size_t size, size_t nth,
			   struct cudbgshim_library *ret_library)
{
	struct cudbgshim_maps at = { maps, size, 0 };
	struct cudbgshim_library found = { .base = 0 };
	struct cudbgshim_map map;

	while (cudbgshim_maps_next(&at, &map)) {
		if (found.base && is_same_file(&map, &found)) {
			/*
			 * A second copy of the same file starts at its offset 0 again; a kernel's
			 * list ascends.
			 */
			if (!map.offset || map.start < found.end)
				break;
			found.end = map.end;
		} else if (!found.base && !map.offset && is_libcuda(&map) &&
			   map.name_size < sizeof(found.path) && !nth--) {
			found.base = map.start;
			found.end = map.end;
			memcpy(found.path, map.name, map.name_size);
		}
	}
	if (!found.base)
		return -ENOENT;
	*ret_library = found;
	return 0;
}
