/* SPDX-License-Identifier: MIT */
#include "agentd/worker/process/mappings.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/out.h"

/* A process has 65530 mappings at most, unless somebody has raised vm.max_map_count. */
#define TEXT_MAX ((size_t)64 << 20)

static void parse_line(char *line, mappings_fn fn, void *arg)
{
	struct mapping m;
	char mode[5];
	int path = 0;

	/* A line is BEGIN-END MODE OFFSET DEVICE INODE PATH: proc_pid_maps(5). */
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &m.begin, &m.end,
		   mode, &m.offset, &path) != 4 || !path || m.begin >= m.end)
		return;
	m.readable = mode[0] == 'r';
	m.writable = mode[1] == 'w';
	m.path = line + path;
	fn(arg, &m);
}

void mappings_parse(char *text, mappings_fn fn, void *arg)
{
	while (*text) {
		char *end = text + strcspn(text, "\n");
		bool last = !*end;

		*end = '\0';
		parse_line(text, fn, arg);
		if (last)
			break;
		text = end + 1;
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
	out_char(&text, '\n');
	if (!out_error(&text))
		mappings_parse(text.data, fn, arg);
	return out_error(&text);
}
