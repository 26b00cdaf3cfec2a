/* SPDX-License-Identifier: MIT */
#include "agentd/worker/process/facts.h"
#include "agentd/worker/snapshot/convert.h"
#include "testlib.h"

static void base64_of_every_length(void)
{
	/* RFC 4648 section 10, and bytes with the high bit set. */
	static const struct {
		const char *bytes;
		size_t n;
		const char *want;
	} rows[] = {
		{ "", 0, "" },	       { "f", 1, "Zg==" },	   { "fo", 2, "Zm8=" },
		{ "foo", 3, "Zm9v" },  { "foob", 4, "Zm9vYg==" }, { "fooba", 5, "Zm9vYmE=" },
		{ "foobar", 6, "Zm9vYmFy" }, { "\xff\xfe\xfd", 3, "//79" }, { "\xfb\xf0", 2, "+/A=" },
	};
	auto_rpc_arena struct rpc_arena a;

	rpc_arena_init(&a, 0);
	for (size_t i = 0; i < TEST_COUNT(rows); i++)
		TEST_ROW_STR(i, rpc_arena_base64(&a, rows[i].n ? test_tail_dup(rows[i].bytes, rows[i].n) :
							       "", rows[i].n), rows[i].want);
}

/* To a list and back; bits that the schema lacks are left out. */
static void masks_survive(void)
{
	auto_rpc_arena struct rpc_arena a;
	enum rpc_exception *exceptions;
	enum rpc_trap *traps;
	enum rpc_flag *flags;
	size_t n;

	rpc_arena_init(&a, 0);
	/* All three classes of KFD (enum kfd_dbg_trap_exception_code), and what only NVIDIA has. */
	exceptions = convert_exceptions(&a, UINT64_MAX, &n);
	TEST_EQ(n, 24);
	TEST_EQ(convert_exception_mask(exceptions, n), UINT64_C(0x801800fe07f803f));
	traps = convert_traps(&a, 0xffffffff, &n);
	TEST_EQ(n, 11);
	TEST_EQ(convert_trap_mask(traps, n), 0xc00001ff);
	flags = convert_flags(&a, 0xff, &n);
	TEST_EQ(convert_flag_mask(flags, n), 7);
	convert_exceptions(&a, 0, &n);
	TEST_EQ(n, 0);
}

static void containers_are_found(void)
{
#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	static const struct {
		const char *cgroup, *want;
	} rows[] = {
		{ "0::/system.slice/docker-" ID ".scope\n", "docker-" ID ".scope" },
		{ "0::/kubepods/burstable/pod1/" ID "\n", ID },
		{ "12:devices:/docker/" ID "\n11:cpu:/x\n", ID },
		{ "0::/machine.slice/libpod-" ID ".scope/container\n", "libpod-" ID ".scope" },
		{ "0::/lxc.payload.box/init.scope\n", "lxc.payload.box" },
		{ "0::/user.slice/user-0.slice/session-1.scope\n", NULL },
		{ "0::/\n", NULL },
		{ "", NULL },
		{ "nonsense", NULL },
		{ "0:" ID, NULL },
		{ "0::" ID, ID },
	};
	auto_rpc_arena struct rpc_arena a;

	rpc_arena_init(&a, 0);
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		size_t n = strlen(rows[i].cgroup);
		const char *got = process_facts_container(
			&a, n ? test_tail_dup(rows[i].cgroup, n) : "", n);

		if (rows[i].want)
			TEST_ROW_STR(i, got, rows[i].want);
		else
			TEST_ROW_EQ(i, got == NULL, true);
	}
}

TEST_SUITE(worker_convert, TEST(base64_of_every_length), TEST(masks_survive),
	   TEST(containers_are_found));
