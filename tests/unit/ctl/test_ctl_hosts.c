/* SPDX-License-Identifier: MIT */
#include "ctl/job/hosts.h"
#include "base/out.h"
#include "testlib.h"

static void reads_lists(void)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "", "" },
		{ "n1\nn2\n", "n1 n2" },
		{ "# all\n\n  n1 slots=8  # the first\r\nn1\nn2", "n1 n2" },
		{ "n[1-3,7]", "n1 n2 n3 n7" },
		{ "n[08-11]-ib", "n08-ib n09-ib n10-ib n11-ib" },
		{ "r[1-2]n[1-2]", "r1n1 r1n2 r2n1 r2n2" },
		{ "n[1-2],m4,user@h.example:2222", "n1 n2 m4 user@h.example:2222" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_out struct out o = { 0 };
		struct hosts h;
		const char *why;
		size_t line;

		out_str(&o, "");
		TEST_ROW_EQ(i, hosts_parse(rows[i].text, strlen(rows[i].text), &h, &line, &why), 0);
		for (size_t k = 0; k < h.n; k++)
			out_fmt(&o, "%s%s", k ? " " : "", h.list[k]);
		TEST_ROW_STR(i, o.data ? o.data : "", rows[i].want);
		hosts_deinit(&h);
	}
}

/* A name becomes an argument of ssh: none looks like an option, or like words of a shell. */
static void refuses_what_is_no_name(void)
{
	static const struct {
		const char *text;
		size_t line;
		int want;
	} rows[] = {
		{ "n1\n-oProxyCommand=x", 2, -EINVAL },
		{ "n1;reboot", 1, -EINVAL },
		{ "$(x)", 1, -EINVAL },
		{ "n[1-3", 1, -EINVAL },
		{ "n[3-1]", 1, -EINVAL },
		{ "n[1-]", 1, -EINVAL },
		{ "n[]", 1, -EINVAL },
		{ "n[1;2]", 1, -EINVAL },
		{ "\n\nn[0-99999]", 3, -EFBIG },
		{ "n[0-99][0-99]", 1, -EFBIG },
		{ "a,,b", 1, -EINVAL },
		{ "n[1234567890]", 1, -EINVAL },
		{ "[1][1][1][1][1]", 1, -EINVAL },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct hosts h = { .n = 7 };
		const char *why = NULL;
		size_t line = 0;

		TEST_ROW_EQ(i, hosts_parse(rows[i].text, strlen(rows[i].text), &h, &line, &why), rows[i].want);
		TEST_ROW_EQ(i, line, rows[i].line);
		TEST_ROW_EQ(i, h.n, 0);
		CU_ASSERT_PTR_NOT_NULL(why);
	}
}

static void splits_ports(void)
{
	static const struct {
		const char *text, *name, *port;
	} rows[] = {
		{ "n1", "n1", NULL },           { "u@n1:22", "u@n1", "22" },
		{ "n1:0", "n1:0", NULL },       { "n1:70000", "n1:70000", NULL },
		{ "fe80::1", "fe80::1", NULL },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		char name[64];
		const char *port;

		snprintf(name, sizeof(name), "%s", rows[i].text);
		port = hosts_split_port(name);
		TEST_ROW_STR(i, name, rows[i].name);
		TEST_ROW_STR(i, port ? port : "none", rows[i].port ? rows[i].port : "none");
	}
}

TEST_SUITE(ctl_hosts, TEST(reads_lists), TEST(refuses_what_is_no_name), TEST(splits_ports));
