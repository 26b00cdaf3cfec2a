/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "store_dir.h"

/* Everything that was said comes back, also what a hostile process is called. */
static void record_and_body_come_back(void)
{
	auto_store_list struct store_list l = { 0 };
	auto_free char *json = NULL;
	auto_fixture f;
	const struct store_item *i;
	struct store_added added;
	auto_close int body = -1;
	struct store_meta m;
	size_t size;

	TEST_EQ_FATAL(fixture_open(&f, NULL), 0);
	TEST_EQ_FATAL(fixture_add(&f, "k\"\xff", 10000, &added), 0);
	TEST_EQ(added.body_status, 0);
	TEST_EQ_FATAL(store_list(&f.store, &l), 0);
	TEST_EQ_FATAL(l.n, 1);
	TEST_EQ_FATAL(store_list_find(&l, added.id, &i), 0);
	TEST_EQ(i->body_size, 10000);
	TEST_EQ(i->uid, 1000);
	TEST_EQ(i->pid, 4242);
	TEST_EQ(i->time_s, faults.now_us / 1000000);
	TEST_EQ_FATAL(store_list_meta(&f.store, &l, i, &m), 0);
	TEST_STR(m.comm, "py.thon\n");
	TEST_STR(m.key, "k\"\xef\xbf\xbd");
	TEST_STR(m.body, "core");
	TEST_EQ(m.time_us, faults.now_us);
	TEST_EQ(m.count, 1);
	TEST_EQ_FATAL(store_read_json(&f.store, i, &json, &size), 0);
	TEST_STR(json, "{\"schema\":\"gpu-agent.snapshot/1\",\"groups\":[]}\n");
	TEST_EQ_FATAL(store_open_body(&f.store, i, &body), 0);
	TEST_EQ(lseek(body, 0, SEEK_END), 10000);
}

static unsigned n_holes;

int __real_fallocate(int fd, int mode, off_t offset, off_t size);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t size);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t size)
{
	n_holes += (mode & FALLOC_FL_PUNCH_HOLE) != 0;
	return __real_fallocate(fd, mode, offset, size);
}

/* A hole may cost a request to the disk: there is one for a run of pages, not one for each page. */
static void pages_of_zeros_are_few_holes(void)
{
	enum { SIZE = 256 << 10, PAGE = 4096, AT = 40 * PAGE, PIECES = 2 };
	const struct store_meta m = { .pid = 4242, .uid = 1000, .boot_id = "0123456789abcdef0123456789abcdef" };
	auto_store_list struct store_list l = { 0 };
	auto_close int body = body_file(PAGE), zeros = memfd_create("zeros", MFD_CLOEXEC), back = -1;
	static char page[PAGE], got[SIZE];
	auto_fixture f;
	struct store_added added;

	TEST_EQ_FATAL(pread(body, page, PAGE, 0), PAGE);
	TEST_EQ_FATAL(ftruncate(zeros, SIZE), 0);
	TEST_EQ_FATAL(pwrite(zeros, page, PAGE, AT), PAGE);
	TEST_EQ_FATAL(fixture_open(&f, NULL), 0);
	n_holes = 0;
	TEST_EQ_FATAL(store_add(&f.store, &m, "{}", 2, zeros, SIZE, &added), 0);
	TEST_EQ(added.body_status, 0);
	TEST_EQ(n_holes, PIECES + 1);
	TEST_EQ_FATAL(store_list(&f.store, &l), 0);
	TEST_EQ_FATAL(store_open_body(&f.store, &l.items[0], &back), 0);
	TEST_EQ(read(back, got, SIZE), SIZE);
	TEST_EQ(memcmp(got + AT, page, PAGE), 0);
	memset(got + AT, 0, PAGE);
	TEST_EQ(got[0] || memcmp(got, got + 1, SIZE - 1), 0);
}

/* The body tells what it is when it is copied away. */
static void attributes_are_set(void)
{
	auto_store_list struct store_list l = { 0 };
	auto_close int body = -1;
	auto_fixture f;
	struct store_added added;
	char value[32] = "";

	TEST_EQ_FATAL(fixture_open(&f, NULL), 0);
	TEST_EQ_FATAL(fixture_add(&f, "k", 100, &added), 0);
	TEST_EQ_FATAL(store_list(&f.store, &l), 0);
	TEST_EQ_FATAL(store_open_body(&f.store, &l.items[0], &body), 0);
	if (fgetxattr(body, "user.gpu_agent.pid", value, sizeof(value) - 1) < 0) {
		test_skip("no extended attributes in /tmp: %s", strerror(errno));
		return;
	}
	TEST_STR(value, "4242");
	memset(value, 0, sizeof(value));
	CU_ASSERT_TRUE(fgetxattr(body, "user.gpu_agent.record", value, sizeof(value) - 1) > 0);
	TEST_STR(value, added.id);
}

/* Nothing of an id is needed but what tells it from the others. */
static void ids_are_found_by_their_beginning(void)
{
	auto_store_list struct store_list l = { 0 };
	const struct store_item *i;
	auto_fixture f;
	struct store_added a, b;
	char begin[16] = "";

	TEST_EQ_FATAL(fixture_open(&f, NULL), 0);
	TEST_EQ_FATAL(fixture_add(&f, "a", -1, &a), 0);
	TEST_EQ_FATAL(fixture_add(&f, "b", -1, &b), 0);
	TEST_EQ_FATAL(store_list(&f.store, &l), 0);
	memcpy(begin, a.id, 15);
	TEST_EQ(store_list_find(&l, begin, &i), 0);
	TEST_STR(i->id, a.id);
	TEST_EQ(store_list_find(&l, "2", &i), -ENOTUNIQ);
	TEST_EQ(store_list_find(&l, "3", &i), -ENOENT);
	TEST_EQ(store_list_find(&l, "", &i), -ENOENT);
}

/*
 * Each system call in turn fails, with what a full disk says or because the process was killed: the
 * older record stays whole, and nothing but a whole new one or nothing is left after a restart.
 */
static void every_step_may_fail(void)
{
	static const struct {
		int error;
		bool dead;
	} rows[] = { { EIO, false }, { ENOSPC, false }, { EIO, true } };

	for (size_t row = 0; row < TEST_COUNT(rows); row++) {
		bool went_through = false;

		for (int step = 1; !went_through && step < 40; step++) {
			struct store_added old, added = { 0 };
			auto_fixture f;
			int r, state;

			TEST_EQ_FATAL(fixture_open(&f, NULL), 0);
			TEST_EQ_FATAL(fixture_add(&f, "old", 5000, &old), 0);
			faults.n_calls = 0;
			faults.fail_errno = rows[row].error;
			faults.dead = rows[row].dead;
			faults.fail_at = step;
			r = fixture_add(&f, "new", 9000, &added);
			went_through = faults.n_calls < step;
			TEST_EQ_FATAL(fixture_reopen(&f, NULL), 0);
			TEST_ROW_EQ(step, fixture_state(&f, old.id), HAS_RECORD | HAS_BODY);
			TEST_ROW_EQ(step, fixture_usage(&f).unfinished_bytes, 0);
			TEST_ROW_EQ(step, fixture_usage(&f).n_foreign, 0);
			/* A name that is there is a file that is whole. */
			state = r < 0 ? -ENOENT : fixture_state(&f, added.id);
			if (r == 0)
				TEST_ROW_EQ(step, state & HAS_RECORD, HAS_RECORD);
			if (r == 0 && added.body_status == 0)
				TEST_ROW_EQ(step, state, HAS_RECORD | HAS_BODY);
			if (went_through)
				TEST_ROW_EQ(step, r, 0);
		}
		CU_ASSERT_TRUE(went_through);
	}
}

/* Killed for real in the middle of a body: the record is there, what was written goes at the next start. */
static void killed_writer_loses_only_the_body(void)
{
	auto_store_list struct store_list l = { 0 };
	auto_fixture f;
	int pipes[2], status;
	char piece[256 * 1024];
	pid_t child;

	memset(piece, 'x', sizeof(piece));
	TEST_EQ_FATAL(fixture_open(&f, NULL), 0);
	TEST_EQ_FATAL(pipe(pipes), 0);
	child = fork();
	if (child == 0) {
		const struct store_meta m = { .pid = 1, .reason = "requested" };
		struct store_added added;

		close(pipes[1]);
		_exit(store_add(&f.store, &m, "{}", 2, pipes[0], 2 * sizeof(piece), &added) < 0);
	}
	close(pipes[0]);
	TEST_EQ(write(pipes[1], piece, sizeof(piece)), sizeof(piece));
	for (int i = 0; i < 2000 && fixture_usage(&f).unfinished_bytes == 0; i++)
		usleep(5000);
	CU_ASSERT_TRUE(fixture_usage(&f).unfinished_bytes > 0);
	/* It lives: nobody takes its file away. */
	TEST_EQ(fixture_reopen(&f, NULL), 0);
	CU_ASSERT_TRUE(fixture_usage(&f).unfinished_bytes > 0);
	kill(child, SIGKILL);
	TEST_EQ(waitpid(child, &status, 0), child);
	close(pipes[1]);
	TEST_EQ(fixture_reopen(&f, NULL), 0);
	TEST_EQ_FATAL(store_list(&f.store, &l), 0);
	TEST_EQ(l.usage.unfinished_bytes, 0);
	TEST_EQ_FATAL(l.n, 1);
	TEST_EQ(l.items[0].has_record, true);
	TEST_EQ(l.items[0].body, STORE_BODY_NONE);
}

/* Half a body, then the record goes, then the rest; 0 when all of that was possible. */
static int remove_in_the_middle(const struct fixture *f, int pipe_fd)
{
	char half[5000];
	struct store s;
	int r = store_init(&s, f->dir_fd, &(struct store_limits_text){ 0 }, NULL);

	memset(half, 'x', sizeof(half));
	if (r < 0 || write(pipe_fd, half, sizeof(half)) != sizeof(half))
		return 1;
	for (unsigned i = 0; i < 60000; i++) {
		auto_store_list struct store_list l = { 0 };

		/* For a moment its writer still has it locked. */
		r = store_list(&s, &l) == 0 && l.n == 1 ? store_remove(&s, &l.items[0]) : -EBUSY;
		if (r != -EBUSY)
			return r < 0 || write(pipe_fd, half, sizeof(half)) != sizeof(half);
		usleep(1000);
	}
	return 1;
}

/* Who removes a record does not find its body in the store a moment later. */
static void removed_while_its_body_is_written(void)
{
	struct store_meta m = { .pid = 1, .uid = 1000, .comm = "sh", .key = "k" };
	struct store_added added;
	int pipe_fds[2], status;
	auto_fixture f;
	pid_t pid;

	TEST_EQ_FATAL(fixture_open(&f, NULL), 0);
	TEST_EQ_FATAL(pipe2(pipe_fds, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		struct fixture own = f;

		/* A lock belongs to whoever opened the directory. */
		own.dir_fd = open(f.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		_exit(remove_in_the_middle(&own, pipe_fds[1]));
	}
	close(pipe_fds[1]);
	TEST_EQ(store_add(&f.store, &m, "{}", 2, pipe_fds[0], 10000, &added), 0);
	close(pipe_fds[0]);
	TEST_EQ(waitpid(pid, &status, 0), pid);
	TEST_EQ(status, 0);
	TEST_EQ(added.body_status, -ECANCELED);
	TEST_EQ(files_in(&f), 0);
}

/* A pin for what is gone would be there for ever. */
static void nothing_is_pinned_that_is_gone(void)
{
	auto_store_list struct store_list l = { 0 };
	struct store_added added;
	auto_fixture f;

	TEST_EQ_FATAL(fixture_open(&f, NULL), 0);
	TEST_EQ_FATAL(fixture_add(&f, "k", 100, &added), 0);
	TEST_EQ_FATAL(store_list(&f.store, &l), 0);
	TEST_EQ(store_remove(&f.store, &l.items[0]), 0);
	TEST_EQ(store_pin(&f.store, &l.items[0], true), -ENOENT);
	TEST_EQ(store_remove(&f.store, &l.items[0]), -ENOENT);
	TEST_EQ(files_in(&f), 0);
}

static void put_file(struct fixture *f, const char *name, const char *text)
{
	int fd = openat(f->dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	TEST_EQ(fd_write_all(fd, text, strlen(text)), 0);
	close(fd);
}

/* What is not ours is counted, never opened, never deleted. */
static void foreign_files_stay(void)
{
	static const struct store_limits_text nothing = { .max_use = "0", .keep_free = "0" };
	auto_store_list struct store_list l = { 0 };
	const struct store_item *i;
	struct store_added added;
	auto_fixture f;
	char *json;
	size_t size;
	int fd;

	TEST_EQ_FATAL(fixture_open(&f, NULL), 0);
	put_file(&f, "notes.txt", "mine");
	put_file(&f, ".hidden.record", "mine");
	put_file(&f, "20251124T160000-00000000.u1.p1.a.b.record", "too few parts");
	TEST_EQ(symlinkat("/etc/passwd", f.dir_fd, "20251124T170001-00000001.u0.p1.sh..0000000000000000..record"), 0);
	TEST_EQ(symlinkat("/etc/shadow", f.dir_fd, "20251124T170001-00000001.u0.p1.sh..0000000000000000..core"), 0);
	TEST_EQ(mkfifoat(f.dir_fd, "20251124T160002-00000002.u0.p1.sh..0000000000000000..core", 0600), 0);
	TEST_EQ_FATAL(fixture_add(&f, "k", 100, &added), 0);
	TEST_EQ_FATAL(store_list(&f.store, &l), 0);
	TEST_EQ(l.n, 1);
	TEST_EQ(l.usage.n_foreign, 6);
	TEST_EQ(store_list_find(&l, "20251124T170001", &i), -ENOENT);
	/* Also when the list is older than the link. */
	unlinkat(f.dir_fd, "x", 0);
	TEST_EQ_FATAL(store_list_find(&l, added.id, &i), 0);
	put_file(&f, "decoy", "decoy");
	{
		char record[300];

		snprintf(record, sizeof(record), "%s.record", i->name);
		unlinkat(f.dir_fd, record, 0);
		TEST_EQ(symlinkat("decoy", f.dir_fd, record), 0);
		TEST_EQ(store_read_json(&f.store, i, &json, &size), -ELOOP);
		snprintf(record, sizeof(record), "%s.core", i->name);
		unlinkat(f.dir_fd, record, 0);
		TEST_EQ(symlinkat("decoy", f.dir_fd, record), 0);
		TEST_EQ(store_open_body(&f.store, i, &fd), -ELOOP);
	}
	TEST_EQ(fixture_reopen(&f, &nothing), 0);
	store_vacuum(&f.store, 0, NULL);
	TEST_EQ(files_in(&f), 9);
}

/* A record that cannot be read is listed, says so, and does not hide the others. */
static void broken_records_are_listed(void)
{
	static const char *const texts[] = {
		"", "{", "{}\n", "garbage\n{}", "{\"schema\":\"gpu-agent.record/2\",\"pid\":1}\n",
		"{\"schema\":\"gpu-agent.record/1\",\"record\":\"20251124T160000-ffffffff\",\"pid\":7,\"uid\":0}\n",
	};
	auto_store_list struct store_list l = { 0 };
	auto_fixture f;
	struct store_meta m;
	struct store_added added;
	unsigned broken = 0;

	TEST_EQ_FATAL(fixture_open(&f, NULL), 0);
	TEST_EQ_FATAL(fixture_add(&f, "k", -1, &added), 0);
	for (size_t i = 0; i < TEST_COUNT(texts); i++) {
		char name[128];

		snprintf(name, sizeof(name), "20251124T160000-0000000%zu.u0.p1.sh..0000000000000000..record", i);
		put_file(&f, name, texts[i]);
	}
	put_file(&f, "20251124T160009-00000009.u0.p1.sh..0000000000000000..core", "a body alone");
	TEST_EQ_FATAL(store_list(&f.store, &l), 0);
	TEST_EQ(l.n, TEST_COUNT(texts) + 2);
	for (size_t i = 0; i < l.n; i++) {
		int r = store_list_meta(&f.store, &l, &l.items[i], &m);

		if (strcmp(l.items[i].id, added.id))
			TEST_ROW_EQ(i, r, l.items[i].has_record ? -EBADMSG : -ENOENT);
		else
			TEST_ROW_EQ(i, r, 0);
		broken += r < 0;
	}
	TEST_EQ(broken, TEST_COUNT(texts) + 1);
}

static unsigned count_good(struct fixture *f, size_t *ret_read)
{
	auto_store_list struct store_list l = { 0 };
	struct store_meta m;
	unsigned n = 0;

	TEST_EQ(store_list(&f->store, &l), 0);
	for (size_t i = 0; i < l.n; i++)
		n += store_list_meta(&f->store, &l, &l.items[i], &m) == 0 && m.pid == 4242;
	*ret_read = l.n_not_indexed;
	store_list_keep_index(&f->store, &l);
	return n;
}

/* The index saves reading; nothing depends on it, whatever becomes of it. */
static void index_is_only_a_help(void)
{
	static const char *const damages[] = { "", "\n\n\n", "garbage", "2 3 4 {}\n1 2 3 {}\n",
					       "\xff\xff\n" };
	static const struct store_limits_text wide = { .max_use = "100M", .keep_free = "0" };
	auto_fixture f;
	size_t read;

	TEST_EQ_FATAL(fixture_open(&f, &wide), 0);
	for (int i = 0; i < 100; i++)
		TEST_EQ(fixture_add(&f, "k", -1, NULL), 0);
	TEST_EQ(count_good(&f, &read), 100);
	TEST_EQ(read, 100);
	TEST_EQ(count_good(&f, &read), 100);
	TEST_EQ(read, 0);
	TEST_EQ(fixture_add(&f, "k", -1, NULL), 0);
	TEST_EQ(count_good(&f, &read), 101);
	TEST_EQ(read, 1);
	for (size_t i = 0; i < TEST_COUNT(damages); i++) {
		put_file(&f, "index", damages[i]);
		TEST_ROW_EQ(i, count_good(&f, &read), 101);
		TEST_ROW_EQ(i, read, 101);
		TEST_ROW_EQ(i, count_good(&f, &read), 101);
		TEST_ROW_EQ(i, read, 0);
	}
	TEST_EQ(unlinkat(f.dir_fd, "index", 0), 0);
	TEST_EQ(symlinkat("/etc/passwd", f.dir_fd, "index"), 0);
	TEST_EQ(count_good(&f, &read), 101);
	TEST_EQ(read, 101);
}

/* Somebody else could exchange what we delete. */
static void directory_must_be_ours(void)
{
	auto_fixture f;
	struct store s;
	static const struct store_limits_text none;
	auto_close int file = open("/dev/null", O_RDONLY);

	TEST_EQ_FATAL(fixture_open(&f, NULL), 0);
	TEST_EQ(store_init(&s, file, &none, NULL), -ENOTDIR);
	for (int bit = 020; bit >= 02; bit >>= 3) {
		TEST_EQ(fchmod(f.dir_fd, (mode_t)(0700 | bit)), 0);
		TEST_EQ(store_init(&s, f.dir_fd, &none, NULL), -EPERM);
	}
	TEST_EQ(fchmod(f.dir_fd, 0700), 0);
	TEST_EQ(store_init(&s, f.dir_fd, &none, NULL), 0);
}

static void bad_input_is_refused(void)
{
	const struct store_meta pid = { .pid = 1u << 31 }, boot = { .boot_id = "../../x" };
	struct store_added added;
	auto_fixture f;

	TEST_EQ_FATAL(fixture_open(&f, NULL), 0);
	TEST_EQ(store_add(&f.store, &pid, "{}", 2, -1, 0, &added), -EINVAL);
	TEST_EQ(store_add(&f.store, &boot, "{}", 2, -1, 0, &added), -EINVAL);
	TEST_EQ(store_add(&f.store, &boot, "{}", STORE_JSON_MAX + 1, -1, 0, &added), -EFBIG);
	TEST_EQ(files_in(&f), 0);
}

TEST_SUITE(store, TEST(record_and_body_come_back), TEST(pages_of_zeros_are_few_holes),
	   TEST(attributes_are_set),
	   TEST(ids_are_found_by_their_beginning), TEST(every_step_may_fail),
	   TEST(killed_writer_loses_only_the_body), TEST(foreign_files_stay),
	   TEST(removed_while_its_body_is_written), TEST(nothing_is_pinned_that_is_gone),
	   TEST(broken_records_are_listed), TEST(index_is_only_a_help), TEST(directory_must_be_ours),
	   TEST(bad_input_is_refused));
