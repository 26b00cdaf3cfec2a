/* SPDX-License-Identifier: MIT */
#include "agentd/worker/inspect/command_line.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

/* One byte more tells that there is more, and the others are for a character that is cut. */
#define READ_MAX (COMMAND_LINE_MAX + 4)

void command_line_parse(const char *text, size_t size, struct command_line *ret)
{
	char line[READ_MAX + 1];

	size = size < READ_MAX ? size : READ_MAX;
	/* A program that has set a shorter title leaves NULs behind it. */
	while (size && !text[size - 1])
		size--;
	for (size_t i = 0; i < size; i++)
		line[i] = text[i] ? text[i] : ' ';
	line[size] = '\0';
	str_copy(ret->text, sizeof(ret->text), line);
	str_make_printable(ret->text);
	ret->is_cut = size > COMMAND_LINE_MAX;
}

int command_line_read(pid_t pid, struct command_line *ret)
{
	char path[40], text[READ_MAX];
	auto_close int fd = -1;
	size_t size = 0;
	ssize_t n = 1;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (size < sizeof(text) && (n = read(fd, text + size, sizeof(text) - size)) > 0)
		size += (size_t)n;
	if (n < 0)
		return -errno;
	command_line_parse(text, size, ret);
	return 0;
}
