/* SPDX-License-Identifier: MIT */
/* A CUDA driver of any release: exports, table, and a record of what was called. */
#include "tests/unit/cudbgshim/cudbgshim_fake.h"

struct fake_driver fake;

const struct fake_generation fake_generations[] = {
#define GENERATION(major, minor, revision, n_slots, lax) { major, minor, revision, n_slots },
	CUDBGABI_RELEASES(GENERATION)
};
const size_t n_fake_generations = TEST_COUNT(fake_generations);

uint32_t fake_call(uint32_t slot)
{
	CU_ASSERT_TRUE_FATAL(fake.n_calls < FAKE_MAX_CALLS);
	CU_ASSERT_TRUE(slot < fake.n_slots);
	fake.calls[fake.n_calls++] = slot;
	return fake.result;
}

#define DEFAULT_SLOT(nr, vendor_name, args)                                                        \
	static uint32_t default_##vendor_name args                                                 \
	{                                                                                          \
		return fake_call(nr);                                                              \
	}
CUDBGABI_SLOTS(DEFAULT_SLOT)

static cudbgabi_any_fn *const default_table[] = {
#define DEFAULT_ENTRY(nr, vendor_name, args) (cudbgabi_any_fn *)default_##vendor_name,
	CUDBGABI_SLOTS(DEFAULT_ENTRY)
};

static uint32_t get_version(uint32_t *major, uint32_t *minor, uint32_t *revision)
{
	fake.n_asked_version++;
	if (fake.version_result)
		return fake.version_result;
	*major = fake.major;
	*minor = fake.minor;
	*revision = fake.revision;
	return CUDBGABI_SUCCESS;
}

/* Like the real one: whatever is asked for, the same table comes back. */
static uint32_t get_api(uint32_t major, uint32_t minor, uint32_t revision,
			cudbgabi_any_fn *const **ret_table)
{
	fake.n_asked_table++;
	fake.asked[0] = major;
	fake.asked[1] = minor;
	fake.asked[2] = revision;
	if (fake.table_result)
		return fake.table_result;
	if (!fake.has_no_table)
		*ret_table = fake.table;
	return CUDBGABI_SUCCESS;
}

static void *fake_open_library(const char *path)
{
	return strcmp(path, "missing.so") ? &fake : NULL;
}

static void *fake_symbol(void *library, const char *name)
{
	const struct {
		const char *name;
		void *symbol;
	} symbols[] = {
		{ "cudbgGetAPIVersion", fake.has_no_version ? NULL : (void *)get_version },
		{ "cudbgGetAPI", fake.has_no_api ? NULL : (void *)get_api },
		{ "cudbgApiClientPid", &fake.client_pid },
		{ "cudbgApiClientRevision", &fake.client_revision },
		{ "cudbgSessionId", &fake.session },
		{ "cudbgInjectionPath", fake.injection_path },
	};

	CU_ASSERT_PTR_EQUAL(library, &fake);
	for (size_t i = 0; i < TEST_COUNT(symbols); i++)
		if (strcmp(symbols[i].name, name) == 0)
			return symbols[i].symbol;
	return NULL;
}

static const char *fake_error(void)
{
	return "missing.so: no such thing";
}

static uint64_t fake_now(void)
{
	return fake.now_ns += 1000;
}

const struct cudbgshim_sys fake_sys = {
	.open = fake_open_library,
	.symbol = fake_symbol,
	.error = fake_error,
	.now_ns = fake_now,
};

void fake_release(uint32_t major, uint32_t minor, uint32_t revision, uint32_t n_slots)
{
	fake = (struct fake_driver){
		.major = major,
		.minor = minor,
		.revision = revision,
		.n_slots = n_slots,
		.table = test_tail_dup(default_table, n_slots * sizeof(default_table[0])),
	};
}

struct cudbgshim *fake_open(uint32_t major, uint32_t minor, uint32_t revision, uint32_t n_slots)
{
	struct cudbgshim *s = NULL;

	fake_release(major, minor, revision, n_slots);
	TEST_EQ_FATAL(cudbgshim_create(&(struct cudbgshim_options){ .sys = &fake_sys }, &s, NULL),
		      0);
	return s;
}
