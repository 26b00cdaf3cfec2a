/* SPDX-License-Identifier: MIT */
/* Bytes reach the file as they are, holes included; a file is whole or not there. */
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "corefile/compress.h"
#include "corefile/file.h"
#include "corefile/sink.h"
#include "testlib.h"

#define MIB ((size_t)1 << 20)

DEFINE_AUTO(struct corefile_sink *, corefile_sink_destroy);

/* What fsync() below answers, and what it sees. */
static struct {
	int error;	  /* It fails so. */
	int dir;	  /* Whether "core" is there already is noted. */
	bool has_name[4]; /* For each call. */
	size_t n;
} sync_calls = { .dir = -1 };

/* In place of the C library's. */
int fsync(int fd)
{
	if (sync_calls.n < TEST_COUNT(sync_calls.has_name))
		sync_calls.has_name[sync_calls.n++] = faccessat(sync_calls.dir, "core", F_OK, 0) == 0;
	if (sync_calls.error) {
		errno = sync_calls.error;
		return -1;
	}
	return (int)syscall(SYS_fsync, fd);
}

static int temporary(void)
{
	int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	CU_ASSERT_TRUE_FATAL(fd >= 0);
	return fd;
}

static void compare_file(int fd, const uint8_t *want, size_t size)
{
	struct stat st;
	uint8_t *p;

	TEST_EQ_FATAL(fstat(fd, &st), 0);
	TEST_EQ_FATAL(st.st_size, size);
	p = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	CU_ASSERT_TRUE_FATAL(p != MAP_FAILED);
	TEST_EQ(memcmp(p, want, size), 0);
	munmap(p, size);
}

/* Random runs of zeros and bytes, of page size, below and above it, in writes of any length. */
static void holes_are_where_zeros_were(void)
{
	static const size_t lengths[] = { 1, 100, 4095, 4096, 8192, 16384, 65536, 300000, 2 * MIB };
	static const struct corefile_sink_options plain;
	auto_free uint8_t *all = malloc(16 * MIB);

	for (unsigned round = 0; round < 20; round++) {
		auto_call(corefile_sink_destroyp) struct corefile_sink *s = NULL;
		auto_close int fd = temporary();
		size_t size = 0;
		struct stat st;

		while (size < 12 * MIB) {
			size_t n = lengths[test_random() % TEST_COUNT(lengths)];

			memset(all + size, test_random() % 2 ? (int)(test_random() & 0xff) : 0, n);
			size += n;
		}
		if (round & 1)
			memset(all + size - 1 * MIB, 0, 1 * MIB);
		TEST_EQ_FATAL(corefile_sink_create(fd, &plain, &s), 0);
		for (size_t at = 0; at < size;) {
			size_t n = 1 + test_random() % (3 * MIB);

			n = size - at < n ? size - at : n;
			corefile_sink_write(s, all + at, n);
			at += n;
			TEST_EQ(corefile_sink_position(s), at);
		}
		TEST_EQ(corefile_sink_finish(s), 0);
		/* Before it is compared: a page of tmpfs that is mapped and read is no hole any more. */
		TEST_EQ(fstat(fd, &st), 0);
		CU_ASSERT_TRUE((uint64_t)st.st_blocks * 512 < size);
		compare_file(fd, all, size);
	}
}

/* Into a pipe everything is written out. */
static void no_holes_in_a_pipe(void)
{
	auto_call(corefile_sink_destroyp) struct corefile_sink *s = NULL;
	static uint8_t zeros[32768], got[32768];
	int fds[2];

	TEST_EQ_FATAL(pipe(fds), 0);
	TEST_EQ_FATAL(corefile_sink_create(fds[1], &(struct corefile_sink_options){ 0 }, &s), 0);
	corefile_sink_write(s, zeros, sizeof(zeros));
	TEST_EQ(corefile_sink_finish(s), 0);
	memset(got, 1, sizeof(got));
	TEST_EQ(read(fds[0], got, sizeof(got)), sizeof(got));
	TEST_EQ(memcmp(got, zeros, sizeof(got)), 0);
	close(fds[0]);
	close(fds[1]);
}

/* A file that does not begin at its end, or is appended to, cannot have holes made by seeking. */
static void no_holes_over_other_content(void)
{
	auto_call(corefile_sink_destroyp) struct corefile_sink *s = NULL;
	auto_close int fd = temporary();
	static uint8_t zeros[32768], old[32768];

	memset(old, 7, sizeof(old));
	TEST_EQ(write(fd, old, sizeof(old)), sizeof(old));
	TEST_EQ(lseek(fd, 0, SEEK_SET), 0);
	TEST_EQ_FATAL(corefile_sink_create(fd, &(struct corefile_sink_options){ 0 }, &s), 0);
	corefile_sink_write(s, zeros, sizeof(zeros));
	TEST_EQ(corefile_sink_finish(s), 0);
	compare_file(fd, zeros, sizeof(zeros));
}

struct watch {
	unsigned calls, stop_at;
	uint64_t done, total;
};

static bool watch(void *arg, uint64_t done, uint64_t total)
{
	struct watch *w = arg;

	CU_ASSERT_TRUE(done > w->done);
	w->done = done;
	w->total = total;
	return ++w->calls != w->stop_at;
}

static void progress_and_cancel(void)
{
	for (unsigned stop_at = 0; stop_at < 3; stop_at++) {
		auto_call(corefile_sink_destroyp) struct corefile_sink *s = NULL;
		auto_close int fd = temporary();
		struct watch w = { .stop_at = stop_at };
		struct corefile_sink_options o = { .total = 3 * MIB + 1, .progress = watch,
						   .arg = &w };

		TEST_EQ_FATAL(corefile_sink_create(fd, &o, &s), 0);
		corefile_sink_pad(s, 3 * MIB);
		TEST_EQ(corefile_sink_failed(s), stop_at != 0);
		corefile_sink_write(s, "x", 1);
		TEST_ROW_EQ(stop_at, corefile_sink_finish(s), stop_at ? -ECANCELED : 0);
		TEST_ROW_EQ(stop_at, w.calls, stop_at ? stop_at : 4);
		TEST_ROW_EQ(stop_at, w.done, stop_at ? stop_at * MIB : 3 * MIB + 1);
		TEST_EQ(w.total, 3 * MIB + 1);
	}
}

/* The first failure stays, and nothing is written after it. */
static void full_disk(void)
{
	for (int zstd = 0; zstd < 2; zstd++) {
		auto_call(corefile_sink_destroyp) struct corefile_sink *s = NULL;
		auto_close int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
		struct corefile_sink_options o = { .zstd = zstd, .total = 1 };

		TEST_EQ_FATAL(corefile_sink_create(fd, &o, &s), 0);
		corefile_sink_write(s, "x", 1);
		TEST_EQ(corefile_sink_finish(s), -ENOSPC);
		TEST_EQ(corefile_sink_finish(s), -ENOSPC);
	}
}

/* A frame says how long it is: a wrong promise is an error, not a damaged file. */
static void wrong_total_of_a_compressed_core(void)
{
	auto_call(corefile_sink_destroyp) struct corefile_sink *s = NULL;
	auto_close int fd = temporary();
	struct corefile_sink_options o = { .zstd = true, .total = 5 };

	TEST_EQ_FATAL(corefile_sink_create(fd, &o, &s), 0);
	corefile_sink_write(s, "four", 4);
	TEST_EQ(corefile_sink_finish(s), -EIO);
}

static char *make_directory(char *path)
{
	strcpy(path, "/tmp/test_corefile.XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(path));
	return path;
}

static unsigned count_entries(int dir_fd)
{
	DIR *d = fdopendir(openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	unsigned n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static int open_directory(char *path)
{
	return open(make_directory(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void file_is_named_when_done(void)
{
	char path[64], buf[8] = "";
	auto_close int dir = open_directory(path), fd = -1;
	struct corefile_file f = COREFILE_FILE_NULL;
	uint64_t space = 0;

	TEST_EQ_FATAL(corefile_file_open(dir, "core", 0640, &f), 0);
	TEST_EQ(write(f.fd, "first", 5), 5);
	TEST_EQ(corefile_file_space(&f, &space), 0);
	CU_ASSERT_TRUE(space > 0);
	TEST_EQ(faccessat(dir, "core", F_OK, 0), -1);
	TEST_EQ(corefile_file_commit(&f, false), 0);
	corefile_file_close(&f);
	fd = openat(dir, "core", O_RDONLY | O_CLOEXEC);
	TEST_EQ(read(fd, buf, sizeof(buf)), 5);
	TEST_STR(buf, "first");
	TEST_EQ(count_entries(dir), 1);
	TEST_EQ(unlinkat(dir, "core", 0), 0);
	TEST_EQ(rmdir(path), 0);
}

static void replaces_only_when_told(void)
{
	char path[64], buf[8] = "";
	auto_close int dir = open_directory(path), fd = -1;

	for (unsigned i = 0; i < 3; i++) {
		struct corefile_file f = COREFILE_FILE_NULL;

		TEST_EQ_FATAL(corefile_file_open(dir, "core", 0600, &f), 0);
		TEST_EQ(write(f.fd, &"abc"[i], 1), 1);
		TEST_ROW_EQ(i, corefile_file_commit(&f, i == 2), i == 1 ? -EEXIST : 0);
		corefile_file_close(&f);
	}
	fd = openat(dir, "core", O_RDONLY | O_CLOEXEC);
	TEST_EQ(read(fd, buf, sizeof(buf)), 1);
	TEST_STR(buf, "c");
	TEST_EQ(count_entries(dir), 1);
	TEST_EQ(unlinkat(dir, "core", 0), 0);
	TEST_EQ(rmdir(path), 0);
}

/* Where it had a name from the beginning, as on file systems without O_TMPFILE. */
static void a_hidden_name_replaces_only_when_told(void)
{
	char path[64], buf[8] = "";
	auto_close int dir = open_directory(path), fd = -1;

	for (unsigned i = 0; i < 3; i++) {
		struct corefile_file f = { .dir_fd = fcntl(dir, F_DUPFD_CLOEXEC, 3), .name = "core", .hidden = ".core.1" };

		f.fd = openat(dir, f.hidden, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		TEST_EQ(write(f.fd, &"abc"[i], 1), 1);
		TEST_ROW_EQ(i, corefile_file_commit(&f, i == 2), i == 1 ? -EEXIST : 0);
		corefile_file_close(&f);
		TEST_ROW_EQ(i, count_entries(dir), 1);
	}
	fd = openat(dir, "core", O_RDONLY | O_CLOEXEC);
	TEST_EQ(read(fd, buf, sizeof(buf)), 1);
	TEST_STR(buf, "c");
	TEST_EQ(unlinkat(dir, "core", 0), 0);
	TEST_EQ(rmdir(path), 0);
}

/* After a loss of power a file of that name is whole; if the disk refuses the bytes, there is none. */
static void on_the_disk_before_it_has_a_name(void)
{
	char path[64];
	auto_close int dir = open_directory(path);

	for (int error = 0; error <= EIO; error += EIO) {
		struct corefile_file f = COREFILE_FILE_NULL;

		sync_calls = (typeof(sync_calls)){ .dir = dir, .error = error };
		TEST_EQ_FATAL(corefile_file_open(dir, "core", 0600, &f), 0);
		TEST_EQ(write(f.fd, "x", 1), 1);
		TEST_EQ(corefile_file_commit(&f, false), -error);
		corefile_file_close(&f);
		TEST_ROW_EQ(error, sync_calls.n, error ? 1 : 2);
		/* The bytes first, then the name itself. */
		TEST_ROW_EQ(error, sync_calls.has_name[0], false);
		TEST_ROW_EQ(error, sync_calls.has_name[1], !error);
		TEST_ROW_EQ(error, count_entries(dir), !error);
		unlinkat(dir, "core", 0);
	}
	sync_calls = (typeof(sync_calls)){ .dir = -1 };
	TEST_EQ(rmdir(path), 0);
}

static void nothing_stays_without_a_commit(void)
{
	char path[64], long_name[300];
	auto_close int dir = open_directory(path);
	struct corefile_file f = COREFILE_FILE_NULL;

	corefile_file_close(&f);
	TEST_EQ_FATAL(corefile_file_open(dir, "core", 0600, &f), 0);
	TEST_EQ(write(f.fd, "x", 1), 1);
	corefile_file_close(&f);
	corefile_file_close(&f);
	TEST_EQ(count_entries(dir), 0);
	memset(long_name, 'n', sizeof(long_name));
	long_name[299] = '\0';
	TEST_EQ(corefile_file_open(dir, "a/b", 0600, &f), -EINVAL);
	TEST_EQ(corefile_file_open(dir, "..", 0600, &f), -EINVAL);
	TEST_EQ(corefile_file_open(dir, "", 0600, &f), -EINVAL);
	TEST_EQ(corefile_file_open(dir, long_name, 0600, &f), -EINVAL);
	TEST_EQ(corefile_file_open(-1, "core", 0600, &f), -EBADF);
	TEST_EQ(rmdir(path), 0);
}

/* What a rename would make a plain file of stays what it is; links are followed. */
static void only_files_are_replaced(void)
{
	static const struct {
		const char *name;
		bool replace;
		int want;
	} rows[] = {
		{ "new", false, 0 },	   { "new", true, 0 },	       { "file", true, 0 },
		{ "file", false, -EEXIST }, { "link", true, 0 },       { "link", false, -EEXIST },
		{ "nowhere", true, -ENOENT }, { "fifo", true, -ENOTSUP }, { "null", true, -ENOTSUP },
		{ "stdin", true, -ENOTSUP }, { "sub", true, -EISDIR },	{ "sub/", true, -EISDIR },
		{ ".", true, -EISDIR },	   { "none/", true, -ENOENT }, { "none/x", true, -ENOENT },
		{ "file/x", true, -ENOTDIR }, { "", true, -EINVAL },
	};
	char path[64], name[128];
	auto_close int dir = open_directory(path);
	int pipe_fds[2];

	TEST_EQ_FATAL(pipe2(pipe_fds, O_CLOEXEC), 0);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", pipe_fds[1]);
	TEST_EQ(symlinkat(name, dir, "stdin"), 0);
	TEST_EQ(symlinkat("/dev/null", dir, "null"), 0);
	TEST_EQ(symlinkat("missing", dir, "nowhere"), 0);
	TEST_EQ(symlinkat("sub/real", dir, "link"), 0);
	TEST_EQ(mkdirat(dir, "sub", 0700), 0);
	TEST_EQ(mkfifoat(dir, "fifo", 0600), 0);
	for (size_t i = 0; i < 2; i++) {
		int fd = openat(dir, i ? "file" : "sub/real", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

		CU_ASSERT_TRUE(fd >= 0);
		close(fd);
	}
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct corefile_file f = COREFILE_FILE_NULL;

		snprintf(name, sizeof(name), "%s/%s", path, rows[i].name);
		TEST_ROW_EQ(i, corefile_file_open_path(rows[i].name[0] ? name : "", 0600, rows[i].replace, &f),
			    rows[i].want);
		if (rows[i].want == 0) {
			TEST_ROW_EQ(i, write(f.fd, "core", 4), 4);
			TEST_ROW_EQ(i, corefile_file_commit(&f, true), 0);
			TEST_ROW_EQ(i, faccessat(dir, rows[i].name, F_OK, 0), 0);
			if (!strcmp(rows[i].name, "new"))
				unlinkat(dir, "new", 0);
		}
		corefile_file_close(&f);
	}
	TEST_EQ(readlinkat(dir, "link", name, sizeof(name)), 8);
	TEST_EQ(count_entries(dir), 7);
	for (size_t i = 0; i < 7; i++)
		unlinkat(dir, (const char *[]){ "stdin", "null", "nowhere", "link", "fifo", "file", "sub/real" }[i], 0);
	TEST_EQ(unlinkat(dir, "sub", AT_REMOVEDIR), 0);
	TEST_EQ(rmdir(path), 0);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

static void directory_that_cannot_be_written(void)
{
	auto_close int dir = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct corefile_file f = COREFILE_FILE_NULL;

	CU_ASSERT_TRUE(corefile_file_open(dir, "core", 0600, &f) < 0);
	TEST_EQ(f.fd, -1);
}

/* A file system that knows no file without a name, seen by this process only. */
static int enter_old_file_system(const char *path)
{
	if (unshare(CLONE_NEWNS | CLONE_NEWIPC) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", path, "mqueue", 0, NULL) < 0)
		return -errno;
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int use_hidden_name(const char *path)
{
	struct corefile_file f = COREFILE_FILE_NULL;
	int dir = enter_old_file_system(path), bad;

	if (dir < 0)
		return 77;
	bad = corefile_file_open(dir, "core", 0600, &f) != 0;
	bad |= strncmp(f.hidden, ".core.", 6) || faccessat(dir, f.hidden, F_OK, 0) < 0;
	bad |= count_entries(dir) != 1;
	corefile_file_close(&f);
	bad |= count_entries(dir) != 0;
	close(dir);
	return bad;
}

static void hidden_name_where_there_is_nothing_else(void)
{
	char path[64];
	int status;
	pid_t pid;

	make_directory(path);
	pid = fork();
	if (pid == 0)
		_exit(use_hidden_name(path));
	TEST_EQ(waitpid(pid, &status, 0), pid);
	TEST_EQ(rmdir(path), 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		test_skip("no right to mount");
	else
		TEST_EQ(status, 0);
}

static void map_of(const uint8_t *content, size_t size, bool zstd)
{
	auto_call(corefile_sink_destroyp) struct corefile_sink *s = NULL;
	auto_close int fd = temporary(), first = temporary(), second = temporary();
	struct corefile_sink_options o = { .zstd = zstd, .total = size };
	struct corefile_map m = { 0 };

	TEST_EQ(corefile_map_open(fd, first, 1, &m), -EINVAL);
	TEST_EQ_FATAL(corefile_sink_create(fd, &o, &s), 0);
	corefile_sink_write(s, content, size);
	TEST_EQ(corefile_sink_finish(s), 0);
	TEST_EQ(corefile_map_open(fd, first, size - 1, &m), zstd ? -EFBIG : 0);
	corefile_map_close(&m);
	if (zstd)
		TEST_EQ(corefile_map_open(fd, -1, size, &m), -EBADF);
	TEST_ROW_EQ(size, corefile_map_open(fd, second, size, &m), 0);
	TEST_EQ_FATAL(m.size, size);
	TEST_EQ(memcmp(m.data, content, size), 0);
	corefile_map_close(&m);
	corefile_map_close(&m);
}

/* A compressed core is read like a plain one; also when it ends where a piece of the library ends. */
static void maps_plain_and_compressed(void)
{
	static uint8_t content[3 << 17];
	static const size_t sizes[] = { 1, 100000, (1 << 17) - 1, 1 << 17, (1 << 17) + 1, 3 << 17 };

	for (size_t i = 0; i < sizeof(content); i++)
		content[i] = (uint8_t)(i * i >> 7);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		map_of(content, sizes[i], false);
		map_of(content, sizes[i], true);
	}
}

/* Parallel compressors make one frame after the other. */
static void maps_frames_in_a_row(void)
{
	static uint8_t content[2 << 17];
	auto_close int fd = temporary(), scratch = temporary();
	struct corefile_map m = { 0 };

	for (size_t i = 0; i < sizeof(content); i++)
		content[i] = (uint8_t)(i * i >> 7);
	for (size_t half = 0; half < 2; half++) {
		auto_call(corefile_sink_destroyp) struct corefile_sink *s = NULL;
		struct corefile_sink_options o = { .zstd = true, .total = 1 << 17 };

		TEST_EQ_FATAL(corefile_sink_create(fd, &o, &s), 0);
		corefile_sink_write(s, content + (half << 17), 1 << 17);
		TEST_EQ(corefile_sink_finish(s), 0);
	}
	TEST_EQ_FATAL(corefile_map_open(fd, scratch, sizeof(content), &m), 0);
	TEST_EQ_FATAL(m.size, sizeof(content));
	TEST_EQ(memcmp(m.data, content, sizeof(content)), 0);
	corefile_map_close(&m);
}

/* A frame that readers pass over, as pzstd puts one in front of each of its own; cut off, it is none. */
static void maps_what_begins_with_something_to_skip(void)
{
	static const uint8_t skipped[] = { 0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c' };
	auto_close int fd = temporary(), scratch = temporary(), alone = temporary(), nothing = temporary();
	auto_call(corefile_sink_destroyp) struct corefile_sink *s = NULL;
	struct corefile_sink_options o = { .zstd = true, .total = 5 };
	struct corefile_map m = { 0 };

	TEST_EQ(write(fd, skipped, sizeof(skipped)), sizeof(skipped));
	TEST_EQ_FATAL(corefile_sink_create(fd, &o, &s), 0);
	corefile_sink_write(s, "bytes", 5);
	TEST_EQ(corefile_sink_finish(s), 0);
	TEST_EQ_FATAL(corefile_map_open(fd, scratch, 5, &m), 0);
	TEST_EQ_FATAL(m.size, 5);
	TEST_EQ(memcmp(m.data, "bytes", 5), 0);
	corefile_map_close(&m);
	TEST_EQ(write(alone, skipped, sizeof(skipped) - 1), sizeof(skipped) - 1);
	TEST_EQ(corefile_map_open(alone, nothing, 5, &m), -EBADMSG);
	TEST_EQ(pwrite(alone, skipped, sizeof(skipped), 0), sizeof(skipped));
	TEST_EQ(corefile_map_open(alone, nothing, 5, &m), -EINVAL);
}

/* As `zstd --long=31` makes one from a pipe: a window of 2 GiB, and one block as it is. */
static void maps_a_frame_with_a_wide_window(void)
{
	static const uint8_t frame[] = { 0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x29, 0, 0, 'b', 'y', 't', 'e', 's' };
	auto_close int fd = temporary(), scratch = temporary();
	struct corefile_map m = { 0 };
	int r;

	TEST_EQ(write(fd, frame, sizeof(frame)), sizeof(frame));
	r = corefile_map_open(fd, scratch, 5, &m);
	if (r == -ENOMEM) {
		test_skip("no 2 GiB of address space");
		return;
	}
	TEST_EQ_FATAL(r, 0);
	TEST_EQ(m.size, 5);
	corefile_map_close(&m);
}

TEST_SUITE(corefile_sink, TEST(holes_are_where_zeros_were), TEST(no_holes_in_a_pipe),
	   TEST(no_holes_over_other_content), TEST(progress_and_cancel), TEST(full_disk),
	   TEST(wrong_total_of_a_compressed_core), TEST(file_is_named_when_done),
	   TEST(replaces_only_when_told), TEST(a_hidden_name_replaces_only_when_told),
	   TEST(on_the_disk_before_it_has_a_name), TEST(nothing_stays_without_a_commit), TEST(only_files_are_replaced),
	   TEST(directory_that_cannot_be_written),
	   TEST(hidden_name_where_there_is_nothing_else), TEST(maps_plain_and_compressed),
	   TEST(maps_frames_in_a_row), TEST(maps_what_begins_with_something_to_skip),
	   TEST(maps_a_frame_with_a_wide_window));
