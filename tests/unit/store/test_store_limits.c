/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/page.h"
#include "store_dir.h"

/* A kibibyte where pages have 4 KiB, and more where they are larger: a file in memory takes whole pages on disk. */
#define KIB ((size_t)page_bytes() / 4)

/* So many of these, as a limit of the configuration. */
static const char *text_of(size_t kib)
{
	static char texts[2][24];
	static size_t next;
	char *text = texts[next++ % 2];

	snprintf(text, sizeof(texts[0]), "%zu", kib * KIB);
	return text;
}

static void texts_become_limits(void)
{
	static const struct {
		struct store_limits_text text;
		int ret;
		uint64_t max_use, keep_free;
	} rows[] = {
		{ { 0 }, 0, STORE_MAX_USE_CAP, STORE_KEEP_FREE_CAP },
		{ { .max_use = "20%", .keep_free = "1%" }, 0, UINT64_C(200) << 30, UINT64_C(10) << 30 },
		{ { .max_use = "4K", .keep_free = "0" }, 0, 4096, 0 },
		{ { .max_use = "3T" }, 0, UINT64_C(3) << 40, STORE_KEEP_FREE_CAP },
		{ { .max_use = "101%" }, -EINVAL, 0, 0 },
		{ { .max_use = "4X" }, -EINVAL, 0, 0 },
		{ { .max_use = "99999999999T" }, -EINVAL, 0, 0 },
		{ { .max_age = "soon" }, -EINVAL, 0, 0 },
		{ { .max_records = "-1" }, -EINVAL, 0, 0 },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct store_limits l = { 0 };

		TEST_ROW_EQ(i, store_limits_parse(&rows[i].text, UINT64_C(1000) << 30, &l), rows[i].ret);
		TEST_ROW_EQ(i, l.max_use / KIB, rows[i].max_use / KIB);
		TEST_ROW_EQ(i, l.keep_free, rows[i].keep_free);
	}
}

/* Bodies go before metadata, old ones first, and the newest of each key after all others. */
static void newest_bodies_stay(void)
{
	const struct store_limits_text limits = { .max_use = text_of(400), .keep_free = "0", .max_body = text_of(200) };
	struct store_added rare, a[8];
	auto_fixture f;

	TEST_EQ_FATAL(fixture_open(&f, &limits), 0);
	TEST_EQ(fixture_add(&f, "rare", 90 * KIB, &rare), 0);
	for (size_t i = 0; i < TEST_COUNT(a); i++) {
		TEST_EQ(fixture_add(&f, "often", 90 * KIB, &a[i]), 0);
		TEST_ROW_EQ(i, a[i].body_status, 0);
		CU_ASSERT_TRUE(fixture_usage(&f).disk_bytes <= 400 * KIB);
	}
	TEST_EQ(fixture_state(&f, rare.id), HAS_RECORD | HAS_BODY);
	TEST_EQ(fixture_state(&f, a[7].id), HAS_RECORD | HAS_BODY);
	TEST_EQ(fixture_state(&f, a[0].id), HAS_RECORD);
	TEST_EQ(fixture_usage(&f).n_records, 9);
}

/* It is not memory that lacks: the one who can mend it has to learn what does. */
static void too_many_files_are_told(void)
{
	auto_store_list struct store_list l = { 0 };
	struct store_added added;
	auto_fixture f;

	TEST_EQ_FATAL(fixture_open(&f, NULL), 0);
	TEST_EQ(f.store.limits.max_files, 1048576);
	f.store.limits.max_files = 3;
	TEST_EQ(fixture_add(&f, "a", -1, &added), 0);
	TEST_EQ(fixture_add(&f, "b", -1, &added), 0);
	TEST_EQ(fixture_add(&f, "c", -1, &added), 0);
	TEST_EQ(store_list(&f.store, &l), 0);
	store_list_deinit(&l);
	f.store.limits.max_files = 2;
	TEST_EQ(store_list(&f.store, &l), -EOVERFLOW);
	TEST_EQ(fixture_add(&f, "d", -1, &added), -EOVERFLOW);
	TEST_STR(store_error_text(-EOVERFLOW),
		 "its directory has more than 1048576 files; remove the oldest by hand");
}

/* Who floods the store loses what he has, not what others have. */
static void a_flood_hits_its_own_user(void)
{
	const struct store_limits_text limits = { .max_use = text_of(400), .keep_free = "0", .max_body = text_of(200) };
	struct store_added quiet, last = { 0 };
	auto_fixture f;

	TEST_EQ_FATAL(fixture_open(&f, &limits), 0);
	TEST_EQ(fixture_add_for(&f, 1001, "q", 60 * KIB, &quiet), 0);
	for (int i = 0; i < 30; i++) {
		char key[8];

		snprintf(key, sizeof(key), "k%d", i);
		TEST_EQ(fixture_add(&f, key, 60 * KIB, &last), 0);
	}
	TEST_EQ(fixture_state(&f, quiet.id), HAS_RECORD | HAS_BODY);
	TEST_EQ(fixture_state(&f, last.id), HAS_RECORD | HAS_BODY);
}

static void pinned_records_stay(void)
{
	const struct store_limits_text limits = { .max_use = text_of(400), .keep_free = "0", .max_body = text_of(200) };
	static const struct store_limits_text nothing = { .max_use = "0", .keep_free = "0" };
	auto_store_list struct store_list l = { 0 };
	struct store_added pinned, second, last = { 0 };
	const struct store_item *i;
	auto_fixture f;

	TEST_EQ_FATAL(fixture_open(&f, &limits), 0);
	TEST_EQ(fixture_add(&f, "k", 100 * KIB, &pinned), 0);
	TEST_EQ(fixture_add(&f, "k", 120 * KIB, &second), 0);
	TEST_EQ_FATAL(store_list(&f.store, &l), 0);
	TEST_EQ_FATAL(store_list_find(&l, pinned.id, &i), 0);
	TEST_EQ(store_pin(&f.store, i, true), 0);
	/* Half of the store at most. */
	TEST_EQ_FATAL(store_list_find(&l, second.id, &i), 0);
	TEST_EQ(store_pin(&f.store, i, true), -EDQUOT);
	for (int n = 0; n < 10; n++)
		TEST_EQ(fixture_add(&f, "k", 100 * KIB, &last), 0);
	TEST_EQ(fixture_state(&f, pinned.id), HAS_RECORD | HAS_BODY | IS_PINNED);
	TEST_EQ(fixture_state(&f, second.id), HAS_RECORD);
	CU_ASSERT_TRUE(fixture_usage(&f).pinned_bytes >= 100 * KIB);
	TEST_EQ(fixture_reopen(&f, &nothing), 0);
	TEST_EQ(store_vacuum(&f.store, 0, NULL), -EDQUOT);
	TEST_EQ(fixture_usage(&f).n_records, 1);
	/* A new one has no room then, and that is said. */
	TEST_EQ(fixture_add(&f, "k", 100, &last), -EDQUOT);
	store_list_deinit(&l);
	TEST_EQ_FATAL(store_list(&f.store, &l), 0);
	TEST_EQ(store_remove(&f.store, &l.items[0]), -EPERM);
	TEST_EQ(store_pin(&f.store, &l.items[0], false), 0);
	TEST_EQ(store_vacuum(&f.store, 0, NULL), 0);
	TEST_EQ(files_in(&f), 0);
}

/* While somebody reads a body, neither limits nor `rm` take it; afterwards they do. */
static void what_is_read_stays(void)
{
	static const struct store_limits_text nothing = { .max_use = "0", .keep_free = "0" };
	auto_store_list struct store_list l = { 0 };
	struct store_added added;
	auto_close int body = -1;
	auto_fixture f;

	TEST_EQ_FATAL(fixture_open(&f, NULL), 0);
	TEST_EQ(fixture_add(&f, "k", 5000, &added), 0);
	TEST_EQ_FATAL(store_list(&f.store, &l), 0);
	TEST_EQ_FATAL(store_open_body(&f.store, &l.items[0], &body), 0);
	TEST_EQ(store_remove(&f.store, &l.items[0]), -EBUSY);
	TEST_EQ(fixture_reopen(&f, &nothing), 0);
	TEST_EQ(store_vacuum(&f.store, 0, NULL), -EDQUOT);
	TEST_EQ(fixture_state(&f, added.id), HAS_RECORD | HAS_BODY);
	close(TAKE_FD(body));
	TEST_EQ(store_remove(&f.store, &l.items[0]), 0);
	TEST_EQ(store_remove(&f.store, &l.items[0]), -ENOENT);
	TEST_EQ(files_in(&f), 0);
}

/* Others filled the disk: bodies go, the small metadata stay. */
static void free_space_is_kept_with_bodies_only(void)
{
	static const struct store_limits_text limits = { .max_use = "1M", .keep_free = "64M", .max_body = "1M" };
	struct store_added first, second;
	auto_fixture f;

	TEST_EQ_FATAL(fixture_open(&f, &limits), 0);
	faults.free_bytes = UINT64_C(1) << 30;
	TEST_EQ(fixture_add(&f, "k", 5000, &first), 0);
	TEST_EQ(first.body_status, 0);
	faults.free_bytes = 1 << 20;
	TEST_EQ(fixture_add(&f, "k", 5000, &second), 0);
	TEST_EQ(second.body_status, -EDQUOT);
	TEST_EQ(fixture_state(&f, first.id), HAS_RECORD);
	TEST_EQ(fixture_state(&f, second.id), HAS_RECORD);
	TEST_EQ(fixture_usage(&f).unfinished_bytes, 0);
}

static void long_bodies_are_refused(void)
{
	static const struct store_limits_text limits = { .max_use = "1M", .keep_free = "0", .max_body = "200K" };
	struct store_added added;
	auto_fixture f;

	TEST_EQ_FATAL(fixture_open(&f, &limits), 0);
	TEST_EQ(fixture_add(&f, "k", 201 * 1024, &added), 0);
	TEST_EQ(added.body_status, -EFBIG);
	TEST_EQ(fixture_state(&f, added.id), HAS_RECORD);
	TEST_EQ(fixture_add(&f, "k", 200 * 1024, &added), 0);
	TEST_EQ(added.body_status, 0);
}

/* A hole takes no room and is not charged for, but stays a part of the body. */
static void holes_cost_nothing(void)
{
	static const struct store_limits_text limits = { .max_use = "1M", .keep_free = "0", .max_body = "1G" };
	const struct store_meta m = { .pid = 1, .body = "core.zst" };
	auto_close int body = body_file(3000), copy = -1;
	auto_store_list struct store_list l = { 0 };
	struct store_added added;
	char byte = 1;
	auto_fixture f;

	TEST_EQ_FATAL(fixture_open(&f, &limits), 0);
	TEST_EQ(ftruncate(body, 300 << 20), 0);
	TEST_EQ(store_add(&f.store, &m, "{}", 2, body, 300 << 20, &added), 0);
	TEST_EQ(added.body_status, 0);
	TEST_EQ_FATAL(store_list(&f.store, &l), 0);
	TEST_EQ(l.items[0].zstd, true);
	TEST_EQ(l.items[0].body_size, 300 << 20);
	CU_ASSERT_TRUE(l.items[0].body_disk < 64 * KIB);
	CU_ASSERT_TRUE(l.usage.disk_bytes < 128 * KIB);
	TEST_EQ_FATAL(store_open_body(&f.store, &l.items[0], &copy), 0);
	TEST_EQ(pread(copy, &byte, 1, (300 << 20) - 1), 1);
	TEST_EQ(byte, 0);
}

static void age_takes_bodies_before_records(void)
{
	static const struct store_limits_text limits = { .max_use = "10M", .keep_free = "0", .max_age = "1d",
							 .max_record_age = "1w" };
	struct store_added added;
	auto_fixture f;

	TEST_EQ_FATAL(fixture_open(&f, &limits), 0);
	TEST_EQ(fixture_add(&f, "k", 5000, &added), 0);
	faults.now_us += UINT64_C(86401) * 1000000;
	TEST_EQ(store_vacuum(&f.store, 0, NULL), 0);
	TEST_EQ(fixture_state(&f, added.id), HAS_RECORD);
	faults.now_us += UINT64_C(6 * 86400) * 1000000;
	TEST_EQ(store_vacuum(&f.store, 0, NULL), 0);
	TEST_EQ(fixture_state(&f, added.id), -ENOENT);
	TEST_EQ(files_in(&f), 0);
	/* A clock that was set back deletes nothing. */
	TEST_EQ(fixture_add(&f, "k", 5000, &added), 0);
	faults.now_us -= UINT64_C(400 * 86400) * 1000000;
	TEST_EQ(store_vacuum(&f.store, 0, NULL), 0);
	TEST_EQ(fixture_state(&f, added.id), HAS_RECORD | HAS_BODY);
}

static void oldest_records_go_by_count(void)
{
	static const struct store_limits_text limits = { .max_use = "10M", .keep_free = "0", .max_records = "5" };
	struct store_added first, last = { 0 };
	auto_fixture f;

	TEST_EQ_FATAL(fixture_open(&f, &limits), 0);
	TEST_EQ(fixture_add(&f, "k", 100, &first), 0);
	for (int i = 0; i < 9; i++)
		TEST_EQ(fixture_add(&f, "k", 100, &last), 0);
	TEST_EQ(store_vacuum(&f.store, 0, NULL), 0);
	TEST_EQ(fixture_usage(&f).n_records, 5);
	TEST_EQ(fixture_state(&f, first.id), -ENOENT);
	TEST_EQ(fixture_state(&f, last.id), HAS_RECORD | HAS_BODY);
}

/* The limit holds with each record, not only when something cleans up afterwards. */
static void count_is_never_passed(void)
{
	static const struct store_limits_text limits = { .max_use = "10M", .keep_free = "0", .max_records = "3" };
	struct store_added added;
	auto_fixture f;

	TEST_EQ_FATAL(fixture_open(&f, &limits), 0);
	for (unsigned i = 0; i < 6; i++) {
		TEST_EQ(fixture_add(&f, "k", -1, &added), 0);
		TEST_ROW_EQ(i, fixture_usage(&f).n_records, i < 3 ? i + 1 : 3);
		TEST_ROW_EQ(i, fixture_state(&f, added.id), HAS_RECORD);
	}
}

/* A full disk that no limit foresaw: older bodies make room for the record. */
static void full_disk_makes_room_once(void)
{
	struct store_added old, added;
	auto_fixture f;

	TEST_EQ_FATAL(fixture_open(&f, NULL), 0);
	TEST_EQ(fixture_add(&f, "k", 900 * 1024, &old), 0);
	faults.n_calls = 0;
	faults.fail_at = 2; /* open, then the first write */
	faults.fail_errno = ENOSPC;
	TEST_EQ(fixture_add(&f, "k", -1, &added), 0);
	TEST_EQ(fixture_state(&f, added.id), HAS_RECORD);
	TEST_EQ(fixture_state(&f, old.id), HAS_RECORD);
}

#define WRITERS 4
#define ADDS	50

/* Many processes at a time: every record is there, no body is half, the limit holds. */
static void writers_do_not_meet(void)
{
	const struct store_limits_text limits = { .max_use = text_of(2048), .keep_free = "0", .max_body = text_of(64) };
	pid_t children[WRITERS];
	struct store_usage u;
	auto_fixture f;
	int status;

	TEST_EQ_FATAL(fixture_open(&f, &limits), 0);
	for (int i = 0; i < WRITERS; i++) {
		children[i] = fork();
		if (children[i])
			continue;
		TEST_EQ(fixture_reopen(&f, &limits), 0);
		for (int n = 0; n < ADDS; n++)
			if (fixture_add_for(&f, 1000 + (uint32_t)i, "k", 30 * KIB, NULL) < 0)
				_exit(1);
		_exit(0);
	}
	for (int i = 0; i < WRITERS; i++) {
		TEST_EQ(waitpid(children[i], &status, 0), children[i]);
		TEST_EQ(status, 0);
	}
	u = fixture_usage(&f);
	TEST_EQ(u.n_records, WRITERS * ADDS);
	TEST_EQ(u.unfinished_bytes, 0);
	CU_ASSERT_TRUE(u.n_bodies > WRITERS);
	CU_ASSERT_TRUE(u.disk_bytes <= 2 * 1024 * KIB);
}

TEST_SUITE(store_limits, TEST(texts_become_limits), TEST(newest_bodies_stay),
	   TEST(too_many_files_are_told), TEST(a_flood_hits_its_own_user),
	   TEST(pinned_records_stay), TEST(what_is_read_stays),
	   TEST(free_space_is_kept_with_bodies_only), TEST(long_bodies_are_refused),
	   TEST(holes_cost_nothing), TEST(age_takes_bodies_before_records),
	   TEST(oldest_records_go_by_count), TEST(count_is_never_passed),
	   TEST(full_disk_makes_room_once), TEST(writers_do_not_meet));
