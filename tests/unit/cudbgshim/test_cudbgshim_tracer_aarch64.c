/* SPDX-License-Identifier: MIT */
/*
 * Registers of aarch64 that no call could put back, with the kernel's answers by this test: no emulator here has
 * guarded control stacks.  test_inferior has real threads with a matrix.
 */
#include <elf.h>
#include <errno.h>

#include "libcudbgshim/src/inferior/vectors_aarch64.h"
#include "libcudbgshim/src/tracer.h"
#include "testlib.h"

/* What the kernel has of a thread.  A set without bytes is one that it does not know. */
static struct set {
	int kind, error;
	size_t size;
	uint64_t words[4];
} sets[8];

static const struct set *find(int kind)
{
	for (size_t i = 0; i < TEST_COUNT(sets); i++)
		if (sets[i].kind == kind)
			return &sets[i];
	return NULL;
}

/* As copy_regset_to_user(): no more than there is room for. */
int tracer_get(int tid, int kind, void *buf, size_t *size)
{
	const struct set *set = find(kind);

	(void)tid;
	if (!set || set->error)
		return set ? set->error : -EINVAL;
	if (*size > set->size)
		*size = set->size;
	memset(buf, 0, *size);
	memcpy(buf, set->words, *size < sizeof(set->words) ? *size : sizeof(set->words));
	return 0;
}

static int n_written;

int tracer_set(int tid, int kind, const void *buf, size_t size)
{
	(void)tid;
	(void)kind;
	(void)buf;
	(void)size;
	n_written++;
	return 0;
}

/* The two words of a vectors_head. */
#define HEAD(size, length, flags) \
	{ (size) | UINT64_C(0x4440) << 32, (length) | UINT64_C(256) << 16 | (uint64_t)(flags) << 32 }
#define SVE	0x405
#define SSVE	0x40b
#define ZA	0x40c
#define GCS	0x410
#define FPSIMD	{ NT_FPREGSET, 0, 528, { 0 } }
#define PLAIN	{ SVE, 0, 544, HEAD(544, 64, 0) }
#define NO_SSVE { SSVE, 0, 544, HEAD(16, 256, 0) }
#define NO_ZA	{ ZA, 0, 16, HEAD(16, 256, 0) }

/* The two sets of SME are as Linux 7.3 gives them: they are there for all threads of a processor that has it. */
static void what_could_not_be_put_back_is_refused(void)
{
	static const struct { int want; struct set sets[8]; } rows[] = {
		{ 0, { FPSIMD } },
		{ 0, { FPSIMD, PLAIN } },
		{ 0, { FPSIMD, PLAIN, NO_SSVE, NO_ZA } },
		{ -EOPNOTSUPP, { FPSIMD, PLAIN, { SSVE, 0, 8736, HEAD(8736, 256, 1) }, NO_ZA } },
		{ -EOPNOTSUPP, { FPSIMD, PLAIN, NO_SSVE, { ZA, 0, 65552, HEAD(65552, 256, 0) } } },
		{ 0, { FPSIMD, PLAIN, { GCS, 0, 24, { 0, 0, 0 } } } },
		{ -EOPNOTSUPP, { FPSIMD, PLAIN, { GCS, 0, 24, { 1, 0, 0x7f0000001000 } } } },
		{ -EOPNOTSUPP, { FPSIMD, { GCS, 0, 24, { 1, 0, 0x7f0000001000 } } } },
		/* What else of it is allowed, and that nobody may change that. */
		{ -EOPNOTSUPP, { FPSIMD, PLAIN, { GCS, 0, 24, { 7, 7, 0x7f0000001000 } } } },
		{ -ESRCH, { { NT_FPREGSET, -ESRCH, 0, { 0 } }, { SVE, -ESRCH, 0, { 0 } }, { SSVE, -ESRCH, 0, { 0 } },
			    { ZA, -ESRCH, 0, { 0 } }, { GCS, -ESRCH, 0, { 0 } } } },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		_Alignas(16) uint8_t buf[16384];
		size_t size = sizeof(buf);

		memcpy(sets, rows[i].sets, sizeof(sets));
		TEST_ROW_EQ(i, tracer_get_vectors(1, buf, &size), rows[i].want);
		TEST_ROW_EQ(i, n_written, 0);
	}
}

/* A processor without SVE has its registers in another set. */
static void vectors_come_from_where_they_are(void)
{
	static const struct { struct set sets[2]; size_t want; uint16_t length; } rows[] = {
		{ { FPSIMD }, 544, 0 },
		{ { FPSIMD, PLAIN }, 544, 64 },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		_Alignas(16) uint8_t buf[16384];
		struct vectors_head head;
		size_t size = sizeof(buf);

		memset(sets, 0, sizeof(sets));
		memcpy(sets, rows[i].sets, sizeof(rows[i].sets));
		TEST_ROW_EQ(i, tracer_get_vectors(1, buf, &size), 0);
		memcpy(&head, buf, sizeof(head));
		TEST_ROW_EQ(i, size, rows[i].want);
		TEST_ROW_EQ(i, head.size, rows[i].want);
		TEST_ROW_EQ(i, head.length, rows[i].length);
	}
}

TEST_SUITE(cudbgshim_tracer_aarch64, TEST(what_could_not_be_put_back_is_refused),
	   TEST(vectors_come_from_where_they_are));
