/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include <endian.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/out.h"
#include "base/str.h"

static struct {
	const char *ident;
	enum log_level max;
	/* stderr is the journal's stream: lines get level prefixes, records are possible. */
	bool journal;
	int journal_fd;
} sink = { .ident = "gpu-agent", .max = LOG_LEVEL_INFO, .journal_fd = -1 };

/* systemd puts "device:inode" of the journal stream that it connected into JOURNAL_STREAM. */
static bool stderr_is_journal(void)
{
	const char *env = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	if (!env || sscanf(env, "%llu:%llu", &dev, &ino) != 2 || fstat(STDERR_FILENO, &st) < 0)
		return false;
	return st.st_dev == dev && st.st_ino == ino;
}

/*
 * The socket is connected at the start, while its path is reachable: a sandbox may hide it later.
 */
static int connect_journal(void)
{
	static const struct sockaddr_un addr = { .sun_family = AF_UNIX,
						 .sun_path = "/run/systemd/journal/socket" };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

void log_init(const char *ident, enum log_level max_level)
{
	sink.ident = ident;
	sink.max = max_level;
	sink.journal = stderr_is_journal();
	if (sink.journal && sink.journal_fd < 0)
		sink.journal_fd = connect_journal();
}

static void print_line(enum log_level level, const char *text)
{
	char line[1280];
	int n;

	if (sink.journal)
		n = snprintf(line, sizeof(line), "<%d>%s\n", (int)level, text);
	else
		n = snprintf(line, sizeof(line), "%s: %s\n", sink.ident, text);
	/* A line that is too long is cut, but keeps its newline. */
	if (n >= (int)sizeof(line)) {
		n = sizeof(line) - 1;
		line[n - 1] = '\n';
	}
	/*
	 * One write per line, so that lines of our processes do not mix.  A failure cannot be
	 * reported.
	 */
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return;
}

void log_line(enum log_level level, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	if (level > sink.max)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	str_make_printable(text);
	print_line(level, text);
}

/*
 * A field in the native journal protocol: name, newline, 64-bit little endian size, bytes, newline.
 */
static void add_field(struct out *o, const char *name, const char *value)
{
	uint64_t size = htole64(strlen(value));

	out_str(o, name);
	out_char(o, '\n');
	out_bytes(o, &size, sizeof(size));
	out_str(o, value);
	out_char(o, '\n');
}

static bool send_record(enum log_level level, const char *message_id,
			const struct log_field *fields, const char *text)
{
	auto_out struct out o = { 0 };
	char priority[2] = { (char)('0' + level), '\0' };

	if (sink.journal_fd < 0)
		return false;
	out_init(&o, 60000);
	add_field(&o, "MESSAGE", text);
	add_field(&o, "PRIORITY", priority);
	add_field(&o, "MESSAGE_ID", message_id);
	add_field(&o, "SYSLOG_IDENTIFIER", sink.ident);
	for (; fields && fields->name; fields++)
		if (!str_is_empty(fields->value))
			add_field(&o, fields->name, fields->value);
	return !out_error(&o) && fd_send(sink.journal_fd, o.data, o.size, NULL, 0) > 0;
}

void log_record(enum log_level level, const char *message_id, const struct log_field *fields,
		const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	if (level > sink.max)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	str_make_printable(text);
	if (!send_record(level, message_id, fields, text))
		print_line(level, text);
}
