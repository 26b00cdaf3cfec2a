/* SPDX-License-Identifier: MIT */
#include "agentd/worker/process/mappings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/out.h"

/* A process has 65530 mappings at most, unless somebody has raised vm.max_map_count. */
#define TEXT_MAX ((size_t)64 << 20)

/* What is left of a line; at its end all that is read is empty. */
struct cursor {
	const char *at, *end;
};

/* A hexadecimal number of 16 digits at most, and the character behind it.  @return whether both are there. */
static bool take_hex(struct cursor *c, char behind, uint64_t *ret)
{
	const char *begin = c->at;
	uint64_t v = 0;

	for (; c->at < c->end && c->at - begin <= 16; c->at++) {
		const unsigned digit = (unsigned)*c->at - '0', letter = (unsigned)*c->at - 'a';

		if (digit > 9 && letter > 5)
			break;
		v = v << 4 | (digit <= 9 ? digit : letter + 10);
	}
	*ret = v;
	return c->at > begin && c->at - begin <= 16 && c->at < c->end && *c->at++ == behind;
}

static void skip_word(struct cursor *c)
{
	while (c->at < c->end && *c->at != ' ')
		c->at++;
	while (c->at < c->end && *c->at == ' ')
		c->at++;
}

/*
 * A line is BEGIN-END MODE OFFSET DEVICE INODE PATH: proc_pid_maps(5).  It ends with a NUL.
 * By hand: sscanf() took a third of the time of a worker that reads stacks.
 */
static void parse_line(const char *line, const char *end, mappings_fn fn, void *arg)
{
	struct cursor c = { line, end };
	struct mapping m;
	const char *mode;

	if (!take_hex(&c, '-', &m.begin) || !take_hex(&c, ' ', &m.end) || m.begin >= m.end || c.end - c.at < 5)
		return;
	mode = c.at;
	c.at += 5;
	if (mode[4] != ' ' || !take_hex(&c, ' ', &m.offset))
		return;
	skip_word(&c);
	skip_word(&c);
	m.readable = mode[0] == 'r';
	m.writable = mode[1] == 'w';
	m.executable = mode[2] == 'x';
	m.path = c.at;
	fn(arg, &m);
}

void mappings_parse(char *text, size_t size, mappings_fn fn, void *arg)
{
	char *const end = text + size;

	while (text < end) {
		char *newline = memchr(text, '\n', (size_t)(end - text));

		/* Without its end a line is not whole. */
		if (!newline)
			return;
		*newline = '\0';
		parse_line(text, newline, fn, arg);
		text = newline + 1;
	}
}

int mappings_open(pid_t pid)
{
	char path[40];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int mappings_read(int fd, mappings_fn fn, void *arg)
{
	auto_out struct out text = { 0 };
	char buf[16384];
	ssize_t n;

	out_init(&text, TEXT_MAX);
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		out_bytes(&text, buf, (size_t)n);
	if (n < 0)
		return -errno;
	if (!out_error(&text) && text.size)
		mappings_parse(text.data, text.size, fn, arg);
	return out_error(&text);
}
