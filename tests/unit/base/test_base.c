/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bit_list.h"
#include "base/argv.h"
#include "base/clock.h"
#include "base/elf_view.h"
#include "base/fd.h"
#include "base/out.h"
#include "base/program.h"
#include "base/reader.h"
#include "base/str.h"
#include "testlib.h"

/* Reading past the end gives zeros, remembers where, and never touches the next page. */
static void reader_stops_at_the_end(void)
{
	const uint8_t bytes[] = { 1, 2, 0, 0, 0, 7 };
	struct reader r;

	reader_init(&r, test_tail_dup(bytes, sizeof(bytes)), sizeof(bytes));
	TEST_EQ(reader_u8(&r), 1);
	TEST_EQ(reader_u32(&r), 2);
	TEST_EQ(reader_u16(&r), 0);
	CU_ASSERT_TRUE(reader_is_bad(&r));
	TEST_EQ(r.bad_at, 5);
	TEST_EQ(reader_u8(&r), 0);
	TEST_EQ(reader_left(&r), 0);
	CU_ASSERT_PTR_NULL(reader_bytes(&r, 0));
}

/* What has no length of its own ends inside the buffer, or turns the reader bad. */
static void reader_numbers_and_strings_end(void)
{
	static const struct {
		const char *bytes;
		size_t size;
		uint64_t value;
		bool ok;
	} rows[] = {
		{ "\x00", 1, 0, true },
		{ "\x7f", 1, 127, true },
		{ "\xe5\x8e\x26", 3, 624485, true },
		{ "\x80", 1, 0, false },
		{ "", 0, 0, false },
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, UINT64_MAX, true },
		{ "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 11, 0, false },
	};
	struct reader r;

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		reader_init(&r, test_tail_dup(rows[i].bytes, rows[i].size), rows[i].size);
		TEST_ROW_EQ(i, reader_uleb(&r), rows[i].value);
		TEST_ROW_EQ(i, reader_is_bad(&r), !rows[i].ok);
	}
	reader_init(&r, test_tail_dup("ab\0c", 4), 4);
	TEST_STR(reader_string(&r), "ab");
	TEST_EQ(r.pos, 3);
	CU_ASSERT_PTR_NULL(reader_string(&r));
	CU_ASSERT_TRUE(reader_is_bad(&r));
}

/* Slices cannot leave their parent, also when offset + size wraps around. */
static void reader_slices_are_bounded(void)
{
	static const struct {
		size_t offset, size;
		bool ok;
	} rows[] = { { 0, 8, true },	     { 8, 0, true }, { 4, 5, false },
		     { 9, 0, false },	     { 4, SIZE_MAX, false }, { SIZE_MAX, 2, false } };
	struct reader r;

	reader_init(&r, test_tail_alloc(8), 8);
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct reader s = reader_slice(&r, rows[i].offset, rows[i].size);

		TEST_ROW_EQ(i, !reader_is_bad(&s), rows[i].ok);
	}
	reader_seek(&r, 9);
	CU_ASSERT_TRUE(reader_is_bad(&r));
}

static void out_is_bounded_and_sticky(void)
{
	auto_out struct out o;
	char *text;
	size_t size;

	out_init(&o, 8);
	out_str(&o, "12345678");
	TEST_EQ(out_error(&o), 0);
	out_char(&o, '9');
	TEST_EQ(out_error(&o), -EFBIG);
	TEST_EQ(out_steal(&o, &text, &size), -EFBIG);
	TEST_EQ(o.size, 8);
	out_reset(&o);
	out_fmt(&o, "%d", 42);
	TEST_STR(o.data, "42");
}

static void a_zeroed_out_is_an_empty_buffer(void)
{
	auto_out struct out o = { 0 };

	out_str(&o, "some");
	TEST_EQ(out_error(&o), 0);
	TEST_STR(o.data, "some");
}

static void out_json_follows_a_format(void)
{
	auto_out struct out o = { 0 };
	const char *volatile none = NULL; /* volatile: the compiler warns of a NULL that it sees */

	out_json_fmt(&o, "{'a':%s,'b':%s,'c':%i,'d':%i,'e':%x}", "it's \"x\"", none, true, false,
		     255u);
	out_json_fmt(&o, "[%u,%d,%zu,%" PRIu64 ",%" PRId64 ",%" PRIx64 "]", 7u, -7, (size_t)8,
		     UINT64_MAX, INT64_MIN, UINT64_MAX);
	TEST_STR(o.data, "{\"a\":\"it's \\\"x\\\"\",\"b\":\"\",\"c\":true,\"d\":false,\"e\":\"0xff\"}"
			 "[7,-7,8,18446744073709551615,-9223372036854775808,\"0xffffffffffffffff\"]");
	out_reset(&o);
	out_json_fmt(&o, "[");
	out_json_fmt(&o, ",{'a':1}");
	out_json_fmt(&o, ",{");
	out_json_fmt(&o, ",'b':2}]");
	TEST_STR(o.data, "[{\"a\":1},{\"b\":2}]");
}

static void out_writes_numbers(void)
{
	auto_out struct out o;

	out_init(&o, 0);
	out_u64(&o, UINT64_MAX);
	out_char(&o, ' ');
	out_i64(&o, INT64_MIN);
	out_char(&o, ' ');
	out_hex(&o, 0);
	out_hex(&o, UINT64_MAX);
	TEST_STR(o.data, "18446744073709551615 -9223372036854775808 0x00xffffffffffffffff");
}

/* With every limit from where nothing fits to where all does. */
static void out_json_names_are_whole_or_an_error(void)
{
	static const char want[] = "{\"pc\":1,\"\":2}";

	for (size_t limit = 1; limit <= sizeof(want); limit++) {
		auto_out struct out o;

		out_init(&o, limit);
		out_char(&o, '{');
		out_json_name(&o, "pc", true);
		out_u64(&o, 1);
		out_json_name(&o, "", false);
		out_u64(&o, 2);
		out_char(&o, '}');
		TEST_EQ(out_error(&o), limit < strlen(want) ? -EFBIG : 0);
		TEST_EQ(o.size <= limit && strlen(o.data) == o.size, true);
		TEST_EQ(strncmp(o.data, want, o.size), 0);
	}
}

/* Whatever a target put into a name, the result is a valid JSON string. */
static void out_json_strings_are_always_valid(void)
{
	static const struct {
		const char *in, *want;
	} rows[] = {
		{ "plain", "\"plain\"" },
		{ "q\"b\\s\n\t\r", "\"q\\\"b\\\\s\\n\\t\\r\"" },
		{ "\x01\x7f", "\"\\u0001\\u007f\"" },
		{ "gr\xc3\xbc\xc3\x9f", "\"gr\xc3\xbc\xc3\x9f\"" },
		{ "\xc3", "\"\xef\xbf\xbd\"" },
		{ "\xc0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
	};
	auto_out struct out o;

	out_init(&o, 0);
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		out_reset(&o);
		out_json_str(&o, rows[i].in, strlen(rows[i].in));
		TEST_ROW_STR(i, o.data, rows[i].want);
	}
}

static void numbers_are_parsed_strictly(void)
{
	static const struct {
		const char *text;
		int want;
		uint64_t value;
	} rows[] = {
		{ "0", 0, 0 },	      { "18446744073709551615", 0, UINT64_MAX },
		{ "18446744073709551616", -ERANGE, 0 }, { "", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 }, { " 1", -EINVAL, 0 },
		{ "1x", -EINVAL, 0 }, { "0x10", 0, 16 },
		{ "0x", -EINVAL, 0 }, { "0xffffffffffffffff", 0, UINT64_MAX },
		{ "0x10000000000000000", -EINVAL, 0 },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		uint64_t v = 0;

		TEST_ROW_EQ(i, str_to_u64_any(rows[i].text, &v), rows[i].want);
		TEST_ROW_EQ(i, v, rows[i].value);
	}
}

static void durations_have_units(void)
{
	static const struct {
		const char *text;
		int want;
		uint64_t ms;
	} rows[] = { { "250ms", 0, 250 }, { "5", 0, 5000 },	{ "5s", 0, 5000 },
		     { "2m", 0, 120000 }, { "5h", -EINVAL, 0 }, { "ms", -EINVAL, 0 },
		     { "2000m", -ERANGE, 0 } };

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		uint64_t ms = 0;

		TEST_ROW_EQ(i, str_to_ms(rows[i].text, &ms), rows[i].want);
		TEST_ROW_EQ(i, ms, rows[i].ms);
	}
}

static void sizes_and_ages_have_units(void)
{
	static const struct {
		const char *text;
		int size, age; /* outcomes */
		uint64_t bytes, seconds;
		uint32_t percent;
	} rows[] = {
		{ "0", 0, 0, 0, 0, 0 }, { "4096", 0, 0, 4096, 4096, 0 }, { "0x10", 0, -EINVAL, 16, 0, 0 },
		{ "4K", 0, -EINVAL, 4096, 0, 0 }, { "3T", 0, -EINVAL, UINT64_C(3) << 40, 0, 0 },
		{ "10%", 0, -EINVAL, 0, 0, 10 }, { "0%", -ERANGE, -EINVAL, 0, 0, 0 },
		{ "101%", -ERANGE, -EINVAL, 0, 0, 0 }, { "4KB", -EINVAL, -EINVAL, 0, 0, 0 },
		{ "K", -EINVAL, -EINVAL, 0, 0, 0 }, { "", -EINVAL, -EINVAL, 0, 0, 0 },
		{ "99999999T", -ERANGE, -EINVAL, 0, 0, 0 }, { "26w", -EINVAL, 0, 0, 15724800, 0 },
		{ "2h", -EINVAL, 0, 0, 7200, 0 }, { "99999999999999999w", -EINVAL, -ERANGE, 0, 0, 0 },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		uint64_t bytes = 0, seconds = 0;
		uint32_t percent = 0;

		TEST_ROW_EQ(i, str_to_size(rows[i].text, &bytes, &percent), rows[i].size);
		TEST_ROW_EQ(i, bytes, rows[i].bytes);
		TEST_ROW_EQ(i, percent, rows[i].percent);
		TEST_ROW_EQ(i, str_to_age(rows[i].text, &seconds), rows[i].age);
		if (rows[i].age == 0)
			TEST_ROW_EQ(i, seconds, rows[i].seconds);
	}
}

static void copies_never_split_a_character(void)
{
	char buf[4];

	str_copy(buf, sizeof(buf), "ab\xc3\xbc");
	TEST_STR(buf, "ab");
	str_copy(buf, sizeof(buf), "abc");
	TEST_STR(buf, "abc");
}

/* The code point of each length, and of a byte that begins no sequence. */
static void characters_have_numbers(void)
{
	TEST_EQ(str_utf8_code("a", 1), 'a');
	TEST_EQ(str_utf8_code("\xc3\xbc", 2), 0xfc);
	TEST_EQ(str_utf8_code("\xe2\x82\xac", 3), 0x20ac);
	TEST_EQ(str_utf8_code("\xf3\xa0\x81\x81", 4), 0xe0041);
	TEST_EQ(str_utf8_code("\x85", 1), 0x85);
}

/* What a shell prints that gets a file in place of 0, 1 and 3; *ret_status is as waitpid() has it. */
static void run_shell(const char *path, const char *script, char *ret, size_t size, int *ret_status)
{
	const char *const argv[] = { "sh", "-c", script, NULL };
	struct program program = { .path = path, .argv = argv, .fds = { -1, -1, -1, -1 }, .n_fds = 4, .prefix = "error: " };
	int pipes[2], extra[2];
	ssize_t n, got = 0;
	pid_t pid;

	CU_ASSERT_TRUE(pipe2(pipes, O_CLOEXEC) == 0 && pipe2(extra, O_CLOEXEC) == 0);
	TEST_EQ(write(extra[1], "given", 5), 5);
	close(extra[1]);
	program.fds[1] = program.fds[2] = pipes[1];
	program.fds[3] = extra[0];
	pid = program_start(&program);
	CU_ASSERT_TRUE(pid > 0);
	close(pipes[1]);
	close(extra[0]);
	while ((n = read(pipes[0], ret + got, size - 1 - (size_t)got)) > 0)
		got += n;
	ret[got] = '\0';
	close(pipes[0]);
	TEST_EQ(waitpid(pid, ret_status, 0), pid);
}

static void programs_get_what_is_named_and_no_more(void)
{
	const struct program too_many = { .path = "sh", .n_fds = PROGRAM_FDS_MAX + 1, .prefix = "" };
	unsigned session = 0, pid = 1;
	char text[512];
	int status, kept = fcntl(STDERR_FILENO, F_DUPFD, 8);
	sigset_t some, before;

	sigemptyset(&some);
	sigaddset(&some, SIGTERM);
	sigprocmask(SIG_BLOCK, &some, &before);
	run_shell("sh", "cat; cat <&3; for i in 0 1 2 3 4 5 6 7 8 9; do [ ! -e /proc/$$/fd/$i ] || printf ' %s' $i; done;"
		  "echo / $(ps -o sid= -p $$) $$; kill -TERM $$", text, sizeof(text), &status);
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(kept);
	/* Its signals are not blocked, and it leads a session. */
	CU_ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	TEST_EQ(sscanf(text, "given 0 1 2 3/ %u %u", &session, &pid), 2);
	TEST_EQ(session, pid);
	run_shell("/nowhere/sh", "", text, sizeof(text), &status);
	CU_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == PROGRAM_NOT_FOUND);
	TEST_STR(text, "error: cannot run /nowhere/sh: No such file or directory\n");
	TEST_EQ(program_start(&too_many), -EINVAL);
}

static int count_open_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* A message too large for the receiver is refused, and the descriptors it carried are closed. */
static void truncated_messages_leak_no_descriptor(void)
{
	int pair[2], fds[FD_MESSAGE_MAX], before;
	char big[64] = { 0 }, small[16];
	size_t n_fds = 9;

	TEST_EQ_FATAL(fd_socketpair(0, pair), 0);
	before = count_open_fds();
	TEST_EQ(fd_send(pair[0], big, sizeof(big), pair, 2), sizeof(big));
	TEST_EQ(fd_recv(pair[1], small, sizeof(small), fds, &n_fds), -EMSGSIZE);
	TEST_EQ(n_fds, 0);
	TEST_EQ(count_open_fds(), before);
	TEST_EQ(fd_send(pair[0], big, 8, pair, 1), 8);
	TEST_EQ(fd_recv(pair[1], small, sizeof(small), fds, &n_fds), 8);
	TEST_EQ(n_fds, 1);
	CU_ASSERT_TRUE(fcntl(fds[0], F_GETFD) & FD_CLOEXEC);
	close(fds[0]);
	close(pair[0]);
	TEST_EQ(fd_recv(pair[1], small, sizeof(small), fds, &n_fds), 0);
	TEST_EQ(fd_send(pair[1], big, 8, NULL, 0), -EPIPE);
	close(pair[1]);
}

/* A peer that leaves without reading everything has said what it has said. */
static void last_words_of_a_hasty_peer_arrive(void)
{
	int pair[2], fds[FD_MESSAGE_MAX];
	size_t n_fds;
	char got[8];

	for (int foreign = 0; foreign < 2; foreign++) {
		TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, pair), 0);
		TEST_EQ(fd_send(pair[1], "unread", 6, NULL, 0), 6);
		TEST_EQ(fd_send(pair[0], "first", 5, NULL, 0), 5);
		TEST_EQ(fd_send(pair[0], "last", 4, NULL, 0), 4);
		close(pair[0]);
		for (int i = 0; i < 3; i++)
			TEST_ROW_EQ(i, (foreign ? fd_recv_foreign : fd_recv)(pair[1], got, sizeof(got), fds, &n_fds),
				    i == 0 ? 5 : i == 1 ? 4 : 0);
		close(pair[1]);
	}
}

/* What lies where the descriptors of an earlier message were is no part of the end. */
static void lost_peers_bring_no_descriptor(void)
{
	int pair[2], first[FD_MESSAGE_MAX], fds[FD_MESSAGE_MAX];
	size_t n_first, n_fds = 9;
	ssize_t got, end;
	char c;

	TEST_EQ_FATAL(fd_socketpair(0, pair), 0);
	TEST_EQ(fd_send(pair[1], "never read", 10, NULL, 0), 10);
	TEST_EQ(fd_send(pair[0], "x", 1, pair, 1), 1);
	got = fd_recv(pair[1], &c, 1, first, &n_first);
	close(pair[0]);
	close(first[0]);
	/* Nothing else uses the stack in between. */
	end = fd_recv(pair[1], &c, 1, fds, &n_fds);
	TEST_EQ(got, 1);
	TEST_EQ(n_first, 1);
	TEST_EQ(end, 0);
	TEST_EQ(n_fds, 0);
	TEST_EQ(fds[0], -1);
	close(pair[1]);
}

/* With a full table the message arrives all the same, and its receiver is told. */
static void descriptors_without_room_are_told(void)
{
	struct rlimit old, few;
	int pair[2], fds[FD_MESSAGE_MAX], before;
	char text[8] = "";
	size_t n_fds = 9;

	TEST_EQ_FATAL(getrlimit(RLIMIT_NOFILE, &old), 0);
	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, pair), 0);
	before = count_open_fds();
	TEST_EQ(fd_send(pair[0], "message", 8, pair, 2), 8);
	few = (struct rlimit){ .rlim_cur = 0, .rlim_max = old.rlim_max };
	setrlimit(RLIMIT_NOFILE, &few);
	TEST_EQ(fd_recv(pair[1], text, sizeof(text), fds, &n_fds), -EMFILE);
	setrlimit(RLIMIT_NOFILE, &old);
	TEST_EQ(n_fds, 0);
	CU_ASSERT_STRING_EQUAL(text, "message");
	TEST_EQ(count_open_fds(), before);
	TEST_EQ(fd_recv(pair[1], text, sizeof(text), fds, &n_fds), -EAGAIN);
	close(pair[0]);
	close(pair[1]);
}

/* Only files that nobody can change any more are mapped. */
static void memfds_must_be_sealed(void)
{
	const void *data;
	size_t size;
	int fd;

	TEST_EQ_FATAL(fd_memfd_sealed("t", "hello", 5, &fd), 0);
	TEST_EQ(fd_memfd_map(fd, 4, &data, &size), -EFBIG);
	TEST_EQ_FATAL(fd_memfd_map(fd, 5, &data, &size), 0);
	CU_ASSERT_TRUE(size == 5 && !memcmp(data, "hello", 5));
	fd_memfd_unmap(data, size);
	CU_ASSERT_TRUE(write(fd, "x", 1) < 0);
	close(fd);
	fd = memfd_create("open", MFD_CLOEXEC);
	TEST_EQ(fd_memfd_map(fd, 5, &data, &size), -EPERM);
	close(fd);
}

static void files_have_a_size_limit(void)
{
	char *data;
	size_t size;

	TEST_EQ(fd_read_file("/proc/self/maps", 16, &data, &size), -EFBIG);
	TEST_EQ(fd_read_file("/nonexistent", 16, &data, &size), -ENOENT);
	TEST_EQ_FATAL(fd_read_file("/proc/self/stat", 4096, &data, &size), 0);
	TEST_EQ(strlen(data), size);
	free(data);
}

/* A pipe with a writer has no end: a second read of it would wait. */
static void attributes_are_read_once(void)
{
	char path[] = "/tmp/gpu-agent-attribute.XXXXXX", name[64], *data, most[4095];
	size_t size;
	int fd;

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(path));
	snprintf(name, sizeof(name), "%s/gpu_id", path);
	TEST_EQ_FATAL(mkfifo(name, 0600), 0);
	fd = open(name, O_RDWR | O_CLOEXEC);
	TEST_EQ_FATAL(write(fd, "37846\n", 6), 6);
	alarm(20);
	TEST_EQ_FATAL(fd_read_attribute_at(AT_FDCWD, name, 65536, &data, &size), 0);
	CU_ASSERT_TRUE(size == 6 && strcmp(data, "37846\n") == 0);
	free(data);
	/* There may be more than what fills the buffer. */
	memset(most, 'x', sizeof(most));
	TEST_EQ_FATAL(write(fd, most, sizeof(most)), sizeof(most));
	TEST_EQ_FATAL(write(fd, "end", 3), 3);
	TEST_EQ_FATAL(fd_read_attribute_at(AT_FDCWD, name, 65536, &data, &size), 0);
	CU_ASSERT_TRUE(size == sizeof(most) + 3 && strcmp(data + sizeof(most), "end") == 0);
	alarm(0);
	free(data);
	TEST_EQ_FATAL(write(fd, "37846\n", 6), 6);
	TEST_EQ(fd_read_attribute_at(AT_FDCWD, name, 5, &data, &size), -EFBIG);
	close(fd);
	unlink(name);
	rmdir(path);
}

static void options_are_read_from_tables(void)
{
	static const char *pid, *json, *wave;
	static uint32_t count = 3;
	static bool quiet;
	static const struct argv_option table[] = {
		{ "pid", 'p', ARGV_STRING, &pid, "PID", "" },
		{ "json", 0, ARGV_OPTIONAL, &json, "STYLE", "" },
		{ "count", 'c', ARGV_U32, &count, "N", "" },
		{ "quiet", 'q', ARGV_FLAG, &quiet, NULL, "" },
		{ "wave", 0, ARGV_STRING, &wave, "WAVE", "", "warp" },
		{ 0 },
	};
	static const struct argv_option *const tables[] = { table, NULL };
	static const struct {
		const char *argv[5];
		int want;
		const char *error;
	} rows[] = {
		{ { "x", "a", "-qp", "7", "--json=short" }, 1, "" },
		{ { "x", "--pid=9", "b", "--", "-q" }, 2, "" },
		{ { "x", "--pid" }, -EINVAL, "--pid needs a value (PID)" },
		{ { "x", "--quiet=1" }, -EINVAL, "--quiet takes no value" },
		{ { "x", "-z" }, -EINVAL, "unknown option -z" },
		{ { "x", "--nope" }, -EINVAL, "unknown option --nope" },
		{ { "x", "--cuont=1" }, -EINVAL, "unknown option --cuont; did you mean --count?" },
		{ { "x", "--wrap", "1" }, -EINVAL, "unknown option --wrap; did you mean --warp?" },
		{ { "x", "--warp=1:2:3" }, 0, "" },
		{ { "x", "-c" }, -EINVAL, "--count needs a value (N)" },
		{ { "x", "-c", "4294967296" }, -EINVAL,
		  "--count needs a number up to 4294967295, not `4294967296'" },
		{ { "x", "--count=1x" }, -EINVAL,
		  "--count needs a number up to 4294967295, not `1x'" },
		{ { "x", "-c4294967295", "y" }, 1, "" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		char *argv[6] = { 0 }, error[160] = "";
		int argc = 0;

		for (; argc < 5 && rows[i].argv[argc]; argc++)
			argv[argc] = (char *)rows[i].argv[argc];
		TEST_ROW_EQ(i, argv_parse(argc, argv, tables, error, sizeof(error)), rows[i].want);
		TEST_ROW_STR(i, error, rows[i].error);
	}
	TEST_STR(pid, "9");
	TEST_STR(json, "short");
	TEST_STR(wave, "1:2:3");
	TEST_EQ(count, UINT32_MAX);
}

static void deadlines_round_up(void)
{
	bool rounded_up = false;

	TEST_EQ(clock_left_ms(clock_now_ns() - 1), 0);
	/* Half a millisecond may pass before the second look at the clock, but not each time. */
	for (int i = 0; i < 1000 && !rounded_up; i++)
		rounded_up = clock_left_ms(clock_now_ns() + 500000) == 1;
	TEST_EQ(rounded_up, true);
	TEST_EQ(clock_left_ms(UINT64_MAX), INT_MAX);
}

/* Words of strangers in a log or an environment: nothing that forges a line or moves a cursor. */
static void text_is_made_printable(void)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "", "" },
		{ "spin<float>\xc3\xa9 ", "spin<float>\xc3\xa9 " },
		{ "a\nb\tc\x1b[2J\x7f", "a?b?c?[2J?" },
		{ "\xc2\x9b" "31m", "??31m" },
		{ "\xff\xc3=\xe2\x82", "?" "?=?" "?" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		char text[32];

		memcpy(text, rows[i].text, strlen(rows[i].text) + 1);
		str_make_printable(text);
		TEST_ROW_STR(i, text, rows[i].want);
	}
}

/* Whatever the order, what brings a descriptor stays where it is; plain bytes before it are read. */
static void plain_streams_take_no_descriptor(void)
{
	static const struct {
		const char *plain; /* sent first, as one message */
		int flags;	   /* of the message with the descriptor */
		const char *behind;
	} rows[] = {
		{ NULL, 0, NULL },	    { NULL, 0, "b" },	    { "abc", 0, NULL },
		{ "abc", 0, "b" },	    { NULL, MSG_OOB, NULL }, { NULL, MSG_OOB, "b" },
		{ "abc", MSG_OOB, NULL },   { "abc", MSG_OOB, "b" },
	};

	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char got[16], control[CMSG_SPACE(sizeof(int))] = { 0 };
		char x = 'x';
		struct iovec iov = { .iov_base = &x, .iov_len = 1 };
		struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
				      .msg_controllen = sizeof(control) };
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		int pair[2], pipes[2];
		ssize_t n;

		TEST_EQ_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
		TEST_EQ_FATAL(pipe2(pipes, O_NONBLOCK), 0);
		/* All but the refusal, which the kernel may not know. */
		TEST_EQ(setsockopt(pair[1], SOL_SOCKET, SO_OOBINLINE, &(int){ 1 }, sizeof(int)), 0);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &pipes[0], sizeof(int));
		if (rows[i].plain)
			TEST_EQ(send(pair[0], rows[i].plain, 3, 0), 3);
		TEST_EQ(sendmsg(pair[0], &msg, rows[i].flags), 1);
		close(pipes[0]);
		if (rows[i].behind)
			TEST_EQ(send(pair[0], rows[i].behind, 1, 0), 1);
		n = fd_recv_plain(pair[1], got, sizeof(got));
		CU_ASSERT_TRUE(n == -EBADMSG || (n == 3 && rows[i].plain));
		if (n > 0)
			n = fd_recv_plain(pair[1], got, sizeof(got));
		TEST_EQ(n, -EBADMSG);
		TEST_EQ(fd_end_stream(pair[1]), -EBADMSG);
		/* Its only reader is still the one that lies there. */
		TEST_EQ(write(pipes[1], "x", 1), 1);
		TEST_EQ(send(pair[0], "y", 1, MSG_NOSIGNAL), -1);
		TEST_EQ(errno, EPIPE);
		close(pair[0]);
		close(pair[1]);
		TEST_EQ(write(pipes[1], "x", 1), -1);
		close(pipes[1]);
	}
}

static void plain_streams_are_read_and_emptied(void)
{
	static char data[48 * 1024];
	char got[8];
	int pair[2], memfd = memfd_create("t", MFD_CLOEXEC);

	TEST_EQ_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	/* A service manager may have set this, and its sockets are not told from others. */
	TEST_EQ(setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &(int){ 1 }, sizeof(int)), 0);
	TEST_EQ(fd_refuse_rights(pair[1]), 0);
	TEST_EQ(fd_recv_plain(pair[1], got, sizeof(got)), -EAGAIN);
	TEST_EQ(send(pair[0], "abc", 3, 0), 3);
	TEST_EQ(fd_recv_plain(pair[1], got, 2), 2);
	TEST_EQ(fd_recv_plain(pair[1], got, sizeof(got)), 1);
	TEST_EQ(send(pair[0], "o", 1, MSG_OOB), 1);
	TEST_EQ(fd_recv_plain(pair[1], got, sizeof(got)), 1);
	TEST_EQ(send(pair[0], data, sizeof(data), 0), sizeof(data));
	TEST_EQ(fd_end_stream(pair[1]), 0);
	TEST_EQ(fd_recv_plain(pair[1], got, sizeof(got)), 0);
	close(pair[1]);
	TEST_EQ(recv(pair[0], got, sizeof(got), 0), 0); /* and not that the connection was reset */
	CU_ASSERT_TRUE(fd_is_memfd(memfd));
	CU_ASSERT_FALSE(fd_is_memfd(pair[0]));
	close(pair[0]);
	close(memfd);
}

/* Where the number is told: in the first entry of that type, and in none that is cut. */
static void auxiliary_vectors_are_searched(void)
{
	const Elf64_auxv_t entries[] = { { AT_PHDR, { 7 } }, { AT_RANDOM, { 8 } }, { AT_RANDOM, { 9 } } };
	const char *tail = test_tail_dup(entries, sizeof(entries) - 1);

	TEST_EQ(elf_auxv_find(tail, sizeof(entries) - 1, AT_PHDR), 7);
	TEST_EQ(elf_auxv_find(tail, sizeof(entries) - 1, AT_RANDOM), 8);
	TEST_EQ(elf_auxv_find(tail, sizeof(entries) - 1, AT_PHNUM), 0);
	TEST_EQ(elf_auxv_find(tail, 2 * sizeof(*entries) - 1, AT_RANDOM), 0);
	TEST_EQ(elf_auxv_find(NULL, 0, AT_RANDOM), 0);
}

/* A foreign sender's descriptors are the receiver's, all of them, also those of a message that is too long. */
static void foreign_descriptors_are_not_closed(void)
{
	int fds[FD_RIGHTS_MAX], pair[2], three[] = { 0, 1, 2 };
	char buf[4];
	size_t n_fds;

	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, pair), 0);
	for (size_t size = 4; size <= 5; size++) {
		TEST_EQ(fd_send(pair[0], "what", size, three, 3), size);
		TEST_ROW_EQ(size, fd_recv_foreign(pair[1], buf, sizeof(buf), fds, &n_fds), size == 4 ? 4 : -EMSGSIZE);
		TEST_ROW_EQ(size, n_fds, 3);
		for (size_t i = 0; i < n_fds; i++)
			TEST_ROW_EQ(size, close(fds[i]), 0);
	}
	TEST_EQ(fd_recv_foreign(pair[1], buf, sizeof(buf), fds, &n_fds), -EAGAIN);
	TEST_EQ(n_fds, 0);
	close(pair[0]);
	close(pair[1]);
}

static void lists_of_bits_are_parsed_and_printed(void)
{
	static const struct {
		const char *text;
		uint64_t bits;
		const char *printed; /* NULL: the same. */
	} good[] = {
		{ "0", 1, NULL }, { "63", UINT64_C(1) << 63, NULL }, { "0-63", UINT64_MAX, NULL },
		{ "0-3,8", 0x10f, NULL }, { "8,3-0003,0,1-2,2", 0x10f, "0-3,8" }, { "1,2", 6, "1-2" },
	};
	static const char *const bad[] = { "", ",", "1,", ",1", "64", "1-", "-1", "3-2", "1-64", "0 ", " 0", "0x1", "1--2", "1-2-3",
					   "99999999999999999999", "all" };

	for (size_t i = 0; i < TEST_COUNT(good); i++) {
		auto_out struct out o = { 0 };
		uint64_t bits = 0;

		TEST_ROW_EQ(i, bit_list_parse(good[i].text, &bits), 0);
		TEST_ROW_EQ(i, bits, good[i].bits);
		bit_list_print(bits, &o);
		TEST_ROW_STR(i, o.data, good[i].printed ? good[i].printed : good[i].text);
	}
	for (size_t i = 0; i < TEST_COUNT(bad); i++) {
		uint64_t bits = 7;

		TEST_ROW_EQ(i, bit_list_parse(bad[i], &bits), -EINVAL);
		TEST_ROW_EQ(i, bits, 7);
	}
}

TEST_SUITE(base, TEST(lists_of_bits_are_parsed_and_printed),
	   TEST(auxiliary_vectors_are_searched), TEST(foreign_descriptors_are_not_closed),
	   TEST(reader_stops_at_the_end), TEST(reader_numbers_and_strings_end),
	   TEST(reader_slices_are_bounded), TEST(out_is_bounded_and_sticky),
	   TEST(a_zeroed_out_is_an_empty_buffer), TEST(out_json_follows_a_format),
	   TEST(out_json_names_are_whole_or_an_error),
	   TEST(out_writes_numbers),
	   TEST(out_json_strings_are_always_valid), TEST(numbers_are_parsed_strictly),
	   TEST(durations_have_units), TEST(sizes_and_ages_have_units), TEST(copies_never_split_a_character),
	   TEST(characters_have_numbers), TEST(programs_get_what_is_named_and_no_more),
	   TEST(text_is_made_printable),
	   TEST(truncated_messages_leak_no_descriptor),
	   TEST(last_words_of_a_hasty_peer_arrive), TEST(lost_peers_bring_no_descriptor),
	   TEST(descriptors_without_room_are_told), TEST(memfds_must_be_sealed),
	   TEST(files_have_a_size_limit), TEST(attributes_are_read_once),
	   TEST(options_are_read_from_tables),
	   TEST(deadlines_round_up),
	   TEST(plain_streams_take_no_descriptor), TEST(plain_streams_are_read_and_emptied));
