/* SPDX-License-Identifier: MIT */
/* Loading the driver and agreeing on a version. */
#include "tests/unit/cudbgshim/cudbgshim_fake.h"

static int create(const char *path, const char *engine, struct cudbgshim **ret_shim,
		  struct cudbgshim_failure *failure)
{
	struct cudbgshim_options options = { .path = path, .engine = engine, .sys = &fake_sys };

	return cudbgshim_create(&options, ret_shim, failure);
}

/* The version is asked for first, the table with exactly those numbers, and slots are counted. */
static void every_release_gets_its_slots(void)
{
	for (size_t i = 0; i < n_fake_generations; i++) {
		const struct fake_generation *g = &fake_generations[i];
		auto_shim struct cudbgshim *s =
			fake_open(g->major, g->minor, g->revision, g->n_slots);

		TEST_ROW_EQ(i, cudbgshim_get_version(s).n_slots, g->n_slots);
		TEST_ROW_EQ(i, cudbgshim_get_version(s).revision, g->revision);
		TEST_ROW_EQ(i, fake.n_asked_version, 1);
		TEST_ROW_EQ(i, fake.n_asked_table, 1);
		TEST_ROW_EQ(i, fake.asked[0], g->major);
		TEST_ROW_EQ(i, fake.asked[1], g->minor);
		TEST_ROW_EQ(i, fake.asked[2], g->revision);
		TEST_ROW_EQ(i, fake.n_calls, 0);
		TEST_ROW_EQ(i, cudbgshim_has_slot(s, g->n_slots - 1), true);
		TEST_ROW_EQ(i, cudbgshim_has_slot(s, g->n_slots), false);
	}
}

/* A release that nobody has seen has at least what the one before it had. */
static void unknown_releases_count_down(void)
{
	static const struct {
		uint32_t major, minor, n_slots;
	} rows[] = {
		{ 8, 1, 120 },   { 11, 2, 120 }, { 11, 9, 121 }, { 12, 1, 125 },
		{ 12, 10, 146 }, { 13, 3, 159 }, { 13, 5, 164 }, { 14, 0, 164 },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_shim struct cudbgshim *s =
			fake_open(rows[i].major, rows[i].minor, 200, rows[i].n_slots);

		TEST_ROW_EQ(i, cudbgshim_get_version(s).n_slots, rows[i].n_slots);
	}
}

/* Each step that can fail says which it was and keeps the driver's own answer. */
static void failures_name_their_step(void)
{
	static const struct {
		struct fake_driver driver;
		const char *path;
		int error;
		enum cudbgshim_step step;
		uint32_t result;
		const char *text;
	} rows[] = {
		{ { .major = 12 },
		  "missing.so",
		  -ENOENT,
		  CUDBGSHIM_STEP_LIBRARY,
		  0,
		  "missing.so: no such thing" },
		{ { .has_no_version = true },
		  NULL,
		  -ENOEXEC,
		  CUDBGSHIM_STEP_SYMBOLS,
		  0,
		  "cudbgGetAPIVersion" },
		{ { .has_no_api = true },
		  NULL,
		  -ENOEXEC,
		  CUDBGSHIM_STEP_SYMBOLS,
		  0,
		  "cudbgGetAPI" },
		/* What libcuda answers when libcudadebugger cannot be opened. */
		{ { .version_result = CUDBGABI_ERROR_INTERNAL },
		  NULL,
		  -EIO,
		  CUDBGSHIM_STEP_VERSION,
		  CUDBGABI_ERROR_INTERNAL,
		  "" },
		{ { .major = 7, .minor = 5 },
		  NULL,
		  -EPROTONOSUPPORT,
		  CUDBGSHIM_STEP_RELEASE,
		  0,
		  "" },
		{ { .major = 12, .table_result = CUDBGABI_ERROR_INCOMPATIBLE_API },
		  NULL,
		  -EPROTONOSUPPORT,
		  CUDBGSHIM_STEP_TABLE,
		  CUDBGABI_ERROR_INCOMPATIBLE_API,
		  "" },
		{ { .major = 12, .has_no_table = true },
		  NULL,
		  -EPROTO,
		  CUDBGSHIM_STEP_TABLE,
		  0,
		  "" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct cudbgshim_failure failure = { 0 };
		struct cudbgshim *s = NULL;

		fake = rows[i].driver;
		TEST_ROW_EQ(i, create(rows[i].path, NULL, &s, &failure), rows[i].error);
		TEST_ROW_EQ(i, failure.step, rows[i].step);
		TEST_ROW_EQ(i, failure.result, rows[i].result);
		TEST_ROW_STR(i, failure.text, rows[i].text);
		CU_ASSERT_PTR_NULL(s);
	}
}

/* The engine of our side is written into our image before the version is asked for. */
static void engine_path_is_set(void)
{
	char long_path[CUDBGABI_INJECTION_PATH_SIZE + 1];
	auto_shim struct cudbgshim *s = NULL;
	struct cudbgshim *none = NULL;

	fake_release(12, 4, 142, 133);
	TEST_EQ(create(NULL, "/opt/engine.so", &s, NULL), 0);
	TEST_STR(fake.injection_path, "/opt/engine.so");
	memset(long_path, 'x', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = '\0';
	TEST_EQ(create(NULL, long_path, &none, NULL), -ENAMETOOLONG);
	TEST_STR(fake.injection_path, "/opt/engine.so");
}

static void client_is_named_in_our_image(void)
{
	auto_shim struct cudbgshim *s = fake_open(12, 5, 145, 136);

	TEST_EQ(cudbgshim_set_client(s, 0, 1), -EINVAL);
	TEST_EQ(fake.client_pid, 0);
	TEST_EQ(cudbgshim_set_client(s, 4242, 7), 0);
	TEST_EQ(fake.client_pid, 4242);
	TEST_EQ(fake.client_revision, 145);
	TEST_EQ(fake.session, 7);
}

/* With the real loader: one that cannot be opened may be followed by another, one that can, never.
 */
static void a_process_loads_one_library(void)
{
	struct cudbgshim_options options = { .path = "/nonexistent/libcuda.so.1" };
	struct cudbgshim_failure failure = { 0 };
	struct cudbgshim *s = NULL;

	TEST_EQ(cudbgshim_create(&options, &s, &failure), -ENOENT);
	TEST_EQ(failure.step, CUDBGSHIM_STEP_LIBRARY);
	CU_ASSERT_TRUE(strstr(failure.text, "/nonexistent/libcuda.so.1") != NULL);
	options.path = "libm.so.6";
	TEST_EQ(cudbgshim_create(&options, &s, &failure), -ENOEXEC);
	TEST_EQ(failure.step, CUDBGSHIM_STEP_SYMBOLS);
	TEST_EQ(cudbgshim_create(&options, &s, &failure), -EALREADY);
	TEST_EQ(failure.step, CUDBGSHIM_STEP_NONE);
	CU_ASSERT_PTR_NULL(s);
	cudbgshim_destroy(NULL);
}

TEST_SUITE(cudbgshim_loader, TEST(every_release_gets_its_slots), TEST(unknown_releases_count_down),
	   TEST(failures_name_their_step), TEST(engine_path_is_set),
	   TEST(client_is_named_in_our_image), TEST(a_process_loads_one_library));
