/* SPDX-License-Identifier: MIT */
/* Code objects of a fake target: what lies where, and files below a root directory. */
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentd/worker/process/code_file.h"
#include "agentd/worker/snapshot/id_map.h"
#include "agentd/worker/snapshot/locations.h"
#include "agentd/worker/target/target.h"
#include "base/fd.h"
#include "testlib.h"

#define DATA "tests/data/codeobj/"
#define MINUTE 60000

/* ------------------------------------------------------------------ the target --------------- */

#define OBJECTS_MAX 4

static struct {
	struct code_object objects[OBJECTS_MAX];
	char *bytes[OBJECTS_MAX];
	size_t size[OBJECTS_MAX], n;
	int stat_error;
	unsigned n_done, n_whole; /* calls of code_done, reads of whole objects */
} fake;

static int fake_list(struct target *t, struct rpc_arena *a, struct code_list *ret)
{
	ret->objects = rpc_arena_array(a, fake.n, sizeof(*ret->objects));
	ret->n_objects = fake.n;
	memcpy(ret->objects, fake.objects, fake.n * sizeof(*ret->objects));
	return 0;
}

/* The URI is the number. */
static size_t number_of(const struct code_object *o)
{
	return (size_t)(o->uri[0] - '0');
}

static int fake_stat(struct target *t, const struct code_object *o, struct code_stat *ret)
{
	*ret = (struct code_stat){ .size = fake.size[number_of(o)] };
	return fake.stat_error;
}

static ssize_t fake_read(struct target *t, const struct code_object *o, uint64_t offset, void *buf,
			 size_t size)
{
	size_t i = number_of(o), n = fake.size[i] - (size_t)offset < size ?
					     fake.size[i] - (size_t)offset : size;

	fake.n_whole += n == fake.size[i];
	memcpy(buf, fake.bytes[i] + offset, n);
	return (ssize_t)n;
}

static void fake_done(struct target *t)
{
	fake.n_done++;
}

static const struct target_ops fake_ops = { .code_list = fake_list, .code_stat = fake_stat,
					    .code_read = fake_read, .code_done = fake_done };

static void add_object(const char *name, uint64_t bias)
{
	static const char *const uris[OBJECTS_MAX] = { "0", "1", "2", "3" };
	char path[256];

	snprintf(path, sizeof(path), DATA "%s.co", name);
	CU_ASSERT_FATAL(fake.n < OBJECTS_MAX);
	TEST_EQ_FATAL(fd_read_file(path, 1 << 20, &fake.bytes[fake.n], &fake.size[fake.n]), 0);
	fake.objects[fake.n] = (struct code_object){ .uri = uris[fake.n], .bias = bias };
	fake.n++;
}

struct scene {
	struct target target;
	struct rpc_arena arena;
	struct code_set set;
};

static void scene_init(struct scene *s, uint32_t ms)
{
	s->target = (struct target){ .ops = &fake_ops };
	rpc_arena_init(&s->arena, 0);
	TEST_EQ_FATAL(code_set_init(&s->set, &s->target, &s->arena, ms), 0);
}

static void scene_deinit(struct scene *s)
{
	code_set_deinit(&s->set);
	symbols_cache_destroy(s->target.code_cache);
	rpc_arena_deinit(&s->arena);
	for (size_t i = 0; i < fake.n; i++)
		free(fake.bytes[i]);
	memset(&fake, 0, sizeof(fake));
}

/* ------------------------------------------------------------------ code --------------------- */

#define BIAS 0x7f0000000000

/* In spin-gfx90a: two instructions of one line in inner <- middle <- outside, and others. */
#define INNER_8	      (BIAS + 0x1810)
#define INNER_8_NEXT  (BIAS + 0x1814)
#define INNER_7	      (BIAS + 0x1818)
#define NOWHERE	      UINT64_C(0x1000)

static void finds_functions_kernels_and_lines(void)
{
	const struct symbols_location *l;
	struct code_symbol kernel, same;
	struct code_object *o;
	struct scene s;

	add_object("spin-gfx1030-z", BIAS + 0x100000);
	add_object("spin-gfx90a", BIAS);
	scene_init(&s, MINUTE);
	o = code_find(&s.set, INNER_8);
	CU_ASSERT_PTR_NOT_NULL_FATAL(o);
	TEST_STR(o->uri, "1");
	TEST_EQ(o->bias, BIAS);
	CU_ASSERT_PTR_NULL(code_find(&s.set, o->end));
	CU_ASSERT_PTR_NULL(code_find(&s.set, NOWHERE));
	TEST_EQ_FATAL(code_locate(&s.set, INNER_8, &l), 0);
	TEST_EQ(l->n_frames, 3);
	TEST_STR(l->frames[2].function, "outside");
	TEST_EQ(code_kernel_around(&s.set, INNER_8, &kernel), -ENOENT);
	TEST_EQ(code_locate(&s.set, NOWHERE, &l), -ENOENT);
	TEST_EQ_FATAL(code_kernel_around(&s.set, BIAS + 0x1b10, &kernel), 0);
	TEST_STR(kernel.name, "spin");
	TEST_EQ_FATAL(code_kernel(&s.set, kernel.address, &same), 0);
	TEST_STR(same.raw, "spin.kd");
	TEST_EQ(code_kernel(&s.set, kernel.address + 4, &same), -ENOENT);
	/* Both were probed; only the one that was asked for was read, once. */
	TEST_EQ(fake.n_whole, 1);
	code_set_deinit(&s.set);
	TEST_EQ(fake.n_done, 1);
	/* The next one finds it in the cache by its build-id. */
	TEST_EQ_FATAL(code_set_init(&s.set, &s.target, &s.arena, MINUTE), 0);
	TEST_EQ(code_locate(&s.set, INNER_8, &l), 0);
	TEST_EQ(fake.n_whole, 1);
	scene_deinit(&s);
}

static void what_is_broken_is_named_when_it_matters(void)
{
	const struct symbols_location *l;
	const char *missing[CODE_MISSING_MAX];
	struct scene s;

	add_object("spin-gfx90a", BIAS);
	add_object("shapes-gfx90a", BIAS + 0x100000);
	fake.size[1] /= 2;
	scene_init(&s, MINUTE);
	TEST_EQ(code_locate(&s.set, INNER_8, &l), 0);
	TEST_EQ(code_missing(&s.set, true, missing), 0);
	TEST_EQ(code_locate(&s.set, BIAS + 0x101c8c, &l), 0);
	TEST_EQ(l->n_frames, 0);
	TEST_EQ_FATAL(code_missing(&s.set, false, missing), 1);
	TEST_STR(missing[0], "code object 1: it has no symbols; it may be cut off");
	scene_deinit(&s);
	add_object("spin-gfx90a", BIAS);
	fake.stat_error = -EACCES;
	scene_init(&s, MINUTE);
	TEST_EQ(code_locate(&s.set, INNER_8, &l), -ENOENT);
	TEST_EQ(code_missing(&s.set, false, missing), 0);
	TEST_EQ_FATAL(code_missing(&s.set, true, missing), 1);
	TEST_STR(missing[0], "code object 0: its file may not be read");
	scene_deinit(&s);
}

static void without_time_nothing_is_read(void)
{
	const struct symbols_location *l;
	const char *missing[CODE_MISSING_MAX];
	struct scene s;

	add_object("spin-gfx90a", BIAS);
	scene_init(&s, 0);
	TEST_EQ(code_locate(&s.set, INNER_8, &l), -ENOENT);
	CU_ASSERT_FATAL(code_missing(&s.set, true, missing) == 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(missing[0], "no time"));
	TEST_EQ(fake.n_whole, 0);
	scene_deinit(&s);
}

static void a_vendor_without_code_objects(void)
{
	static const struct target_ops none = { 0 };
	struct target t = { .ops = &none };
	auto_rpc_arena struct rpc_arena arena;
	const struct symbols_location *l;
	struct code_set set;

	rpc_arena_init(&arena, 0);
	TEST_EQ(code_set_init(&set, &t, &arena, MINUTE), 0);
	TEST_EQ(code_locate(&set, INNER_8, &l), -ENOENT);
	code_set_deinit(&set);
}

/* ------------------------------------------------------------------ places ------------------- */

static void waves_stand_at_few_places(void)
{
	struct wave w[] = {
		{ .pc = INNER_8 },
		{ .pc = INNER_8_NEXT },
		{ .pc = INNER_8 + 4, .behind = 4 }, /* stopped by a trap at INNER_8 */
		{ .pc = INNER_7 },
		{ .pc = NOWHERE },
		{ .pc = NOWHERE + 4 },
		{ .pc = INNER_8, .kernel_handle = 0xdead },
		{ .pc = BIAS + 0x1b10 },
	};
	struct locations p;
	struct scene s;

	add_object("spin-gfx90a", BIAS);
	scene_init(&s, MINUTE);
	TEST_EQ_FATAL(locations_find(&s.set, w, TEST_COUNT(w), &p), 0);
	TEST_EQ(p.n_sites, 6);
	TEST_EQ(p.n_unknown, 2);
	TEST_EQ(p.n_places, 5);
	TEST_EQ(w[0].place, w[1].place);
	CU_ASSERT(w[0].site != w[1].site);
	TEST_EQ(w[0].site, w[2].site);
	CU_ASSERT(w[3].place != w[0].place && w[4].place != w[5].place);
	TEST_EQ(p.places[w[0].place].n_frames, 3);
	TEST_EQ(p.places[w[4].place].n_frames, 0);
	TEST_EQ(w[0].kernel, 0);
	TEST_EQ(p.kernels[w[6].kernel].address, 0xdead);
	CU_ASSERT_PTR_NULL(p.kernels[w[6].kernel].name);
	TEST_STR(p.kernels[w[7].kernel].name, "spin");
	locations_deinit(&p);
	scene_deinit(&s);
}

static void numbers_are_consecutive_and_stay(void)
{
	struct id_map t;

	TEST_EQ_FATAL(id_map_init(&t), 0);
	for (int round = 0; round < 2; round++)
		for (uint64_t i = 0; i < 5000; i++)
			TEST_EQ(id_map_put(&t, i << 40 | 1), i);
	TEST_EQ(t.n, 5000);
	TEST_EQ(t.keys[77], UINT64_C(77) << 40 | 1);
	id_map_deinit(&t);
}

/* ------------------------------------------------------------------ files -------------------- */

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void write_file(int dir, const char *name, const char *text)
{
	auto_close int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	TEST_EQ_FATAL(fd_write_all(fd, text, strlen(text)), 0);
}

/* outside/secret lies beside the root; root/d/file, and links of every kind. */
static int make_tree(char *base)
{
	int top, root;

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(base));
	top = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);
	CU_ASSERT_FATAL(top >= 0 && mkdirat(top, "root", 0755) == 0 &&
			mkdirat(top, "root/d", 0755) == 0);
	root = openat(top, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	write_file(top, "secret", "outside");
	write_file(root, "d/file", "inside");
	write_file(root, "secret", "of the root");
	CU_ASSERT_EQUAL(symlinkat("/d/file", root, "absolute"), 0);
	CU_ASSERT_EQUAL(symlinkat("../../../secret", root, "d/up"), 0);
	CU_ASSERT_EQUAL(symlinkat("d", root, "dir"), 0);
	CU_ASSERT_EQUAL(symlinkat("loop", root, "loop"), 0);
	CU_ASSERT_EQUAL(mkfifoat(root, "fifo", 0644), 0);
	close(top);
	return root;
}

static void files_stay_below_the_root(void)
{
	static const struct {
		const char *path, *text;
		int error;
	} rows[] = {
		{ "/d/file", "inside", 0 },	    { "d/file", "inside", 0 },
		{ "//d/.//file", "inside", 0 },	    { "/absolute", "inside", 0 },
		{ "/dir/file", "inside", 0 },	    { "/../../secret", "of the root", 0 },
		{ "/d/../secret", "of the root", 0 }, { "/d/up", "of the root", 0 },
		{ "/d/../../d/../../secret", "of the root", 0 },
		{ "/loop", NULL, -ELOOP },	    { "/none", NULL, -ENOENT },
		{ "/d/none/file", NULL, -ENOENT },  { "/d/file/x", NULL, -ENOTDIR },
		{ "/fifo", NULL, -EMEDIUMTYPE },    { "/d", NULL, -EMEDIUMTYPE },
		{ "", NULL, -EMEDIUMTYPE },	    { "/..", NULL, -EMEDIUMTYPE },
	};
	char base[] = "/tmp/gpu-agent-root-XXXXXX", text[64];
	auto_close int root = make_tree(base);
	struct stat st;

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_close int fd = code_file_open(root, rows[i].path, &st);
		ssize_t n;

		TEST_ROW_EQ(i, fd < 0 ? fd : 0, rows[i].error);
		if (fd < 0)
			continue;
		n = fd_pread_all(fd, text, sizeof(text) - 1, 0);
		text[n > 0 ? n : 0] = '\0';
		TEST_ROW_STR(i, text, rows[i].text);
		TEST_ROW_EQ(i, st.st_size, n);
		TEST_ROW_EQ(i, fd_pread_all(fd, text, 3, 2), 3);
		TEST_ROW_EQ(i, fd_pread_all(fd, text, 3, 1000), 0);
	}
	TEST_EQ(code_file_open(-1, "/d/file", &st), -EACCES);
	nftw(base, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* The name that the target exchanges after this process has opened it for the first time. */
static const char *exchanged_name;

int __real_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...)
{
	const char *name = exchanged_name;
	int fd = __real_openat(dir, path, flags, 0600);

	if (fd >= 0 && name && !strcmp(path, name)) {
		exchanged_name = NULL;
		TEST_EQ(renameat(dir, "device", dir, name), 0);
	}
	return fd;
}

/* Opening a device may do something already, so nothing that was not looked at is opened. */
static void a_file_that_is_exchanged_is_read_as_it_was(void)
{
	char base[] = "/tmp/gpu-agent-root-XXXXXX", text[8] = "";
	auto_close int root = make_tree(base);
	auto_close int fd = -1;
	struct stat st;

	TEST_EQ_FATAL(mkfifoat(root, "device", 0644), 0);
	exchanged_name = "secret";
	fd = code_file_open(root, "/secret", &st);
	CU_ASSERT_PTR_NULL(exchanged_name);
	TEST_EQ(fd_pread_all(fd, text, 6, 0), 6);
	TEST_STR(text, "of the");
	nftw(base, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static void long_paths_end(void)
{
	char base[] = "/tmp/gpu-agent-root-XXXXXX", path[CODE_FILE_PATH_MAX + 2];
	auto_close int root = make_tree(base);
	struct stat st;

	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	TEST_EQ(code_file_open(root, path, &st), -ENAMETOOLONG);
	path[300] = '\0';
	TEST_EQ(code_file_open(root, path, &st), -ENAMETOOLONG);
	for (size_t i = 0; i + 1 < sizeof(path); i++)
		path[i] = "/d/.."[i % 5];
	path[4000] = '\0';
	TEST_EQ(code_file_open(root, path, &st), -EMEDIUMTYPE);
	nftw(base, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

TEST_SUITE(worker_code, TEST(finds_functions_kernels_and_lines),
	   TEST(what_is_broken_is_named_when_it_matters), TEST(without_time_nothing_is_read),
	   TEST(a_vendor_without_code_objects), TEST(waves_stand_at_few_places),
	   TEST(numbers_are_consecutive_and_stay), TEST(files_stay_below_the_root),
	   TEST(a_file_that_is_exchanged_is_read_as_it_was), TEST(long_paths_end));
