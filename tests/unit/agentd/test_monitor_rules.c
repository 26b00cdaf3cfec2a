/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentd/rules/config/config.h"
#include "agentd/rules/engine/rules.h"
#include "rpc_gen.h"
#include "testlib.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

#define test_rules __attribute__((cleanup(rules_deinit))) struct rules

static int parse(struct rules *r, const char *text, char *error)
{
	const struct config_reading how = { .rules = r };
	struct config c;
	int e;

	config_init(&c);
	e = config_parse(&c, &how, "t.conf", text, strlen(text), error, 256);
	return e < 0 ? e : rules_check(r, error, 256);
}

static void all_keys_are_stored(void)
{
	test_rules rules = { 0 };
	char error[256] = "";
	const struct rule *r;

	TEST_EQ(parse(&rules, "[rule nightly]\nuser = root, 1000\nexe = /opt/*/python*\nunit = train-*.service\n"
			      "cgroup = */kubepods*\ncontainer = lxc.payload.*\ndevice = amd, 4098\n"
			      "exceptions = wave_trap wave_abort\nkeep = full\nrate_limit = 3/2h\n"
			      "deduplicate = code/1d\nhold = 2m\nhost = native\nwhy = yes\nhook = /usr/bin/true\n", error), 0);
	TEST_STR(error, "");
	r = rules_find(&rules, "nightly");
	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	TEST_EQ(r->n_users, 2);
	TEST_EQ(r->users[0], 0);
	TEST_EQ(r->users[1], 1000);
	TEST_STR(r->exe, "/opt/*/python*");
	TEST_STR(r->unit, "train-*.service");
	TEST_STR(r->cgroup, "*/kubepods*");
	TEST_STR(r->container, "lxc.payload.*");
	TEST_EQ(r->vendor, IPC_VENDOR_AMD);
	TEST_EQ(r->n_devices, 1);
	TEST_EQ(r->devices[0], 4098);
	TEST_EQ(r->exceptions, 3);
	TEST_EQ(r->keep, IPC_KEEP_FULL);
	TEST_EQ(r->rate_events, 3);
	TEST_EQ(r->rate_ms, 2 * 3600 * 1000);
	TEST_EQ(r->key_parts, IPC_KEY_CODE);
	TEST_EQ(r->key_ms, 86400 * 1000);
	TEST_EQ(r->hold_ms, 120000);
	TEST_EQ(r->frames, IPC_FRAMES_NATIVE);
	TEST_EQ(r->why, true);
	TEST_STR(r->hook.path, "/usr/bin/true");
}

/* What is not said has a bound all the same. */
static void defaults_are_bounded(void)
{
	test_rules rules = { 0 };
	char error[256] = "";

	TEST_EQ(parse(&rules, "[rule a]\nexe = *\n[rule b]\nuser = *\nrate_limit = none\ndeduplicate = none\n"
			      "[rule a]\nkeep = nothing\n", error), 0);
	TEST_EQ(rules.n, 2);
	TEST_EQ(rules.list[0].keep, IPC_KEEP_NOTHING);
	TEST_EQ(rules.list[0].rate_events, 10);
	TEST_EQ(rules.list[0].rate_ms, 60000);
	TEST_EQ(rules.list[0].key_parts, 7);
	TEST_EQ(rules.list[0].hold_ms, 10000);
	TEST_EQ(rules.list[0].frames, IPC_FRAMES_OFF);
	TEST_EQ(rules.list[0].why, false);
	TEST_EQ(rules.list[1].keep, IPC_KEEP_JSON);
	TEST_EQ(rules.list[1].rate_events, 0);
	TEST_EQ(rules.list[1].key_parts, 0);
	/* As `gpu-agentctl events` has it. */
	for (size_t i = 0; i < rpc_exception_enum.n; i++) {
		int64_t code = rpc_exception_enum.values[i].value;
		bool fault = code != RPC_EXCEPTION_QUEUE_NEW && code != RPC_EXCEPTION_DEVICE_NEW &&
			     code != RPC_EXCEPTION_DEVICE_QUEUE_DELETE && code != RPC_EXCEPTION_PROCESS_RUNTIME;

		TEST_ROW_EQ(i, rules.list[0].exceptions >> (code - 1) & 1, fault);
	}
	TEST_EQ(IPC_VENDOR_AMD, RPC_VENDOR_AMD);
	TEST_EQ(IPC_VENDOR_NVIDIA, RPC_VENDOR_NVIDIA);
}

/* File, line and key, and what is wrong. */
static void mistakes_are_named(void)
{
	static const struct {
		const char *text, *error;
	} rows[] = {
		{ "[rule a]\nexe = *\ncolour = red\n", "t.conf:3: [rule a] colour: unknown key" },
		{ "[rule a]\nexe = python\n", "t.conf:2: [rule a] exe: not a pattern for paths: it begins with / or *" },
		{ "[rule a]\nexe = /opt/[ab\n", "t.conf:2: [rule a] exe: not a pattern: a [ without ]" },
		{ "[rule a]\nexe = /opt/[]\n", "t.conf:2: [rule a] exe: not a pattern: a [ without ]" },
		{ "[rule a]\nunit = x\\\n", "t.conf:2: [rule a] unit: not a pattern: it ends with a backslash" },
		{ "[rule a]\nunit =\n", "t.conf:2: [rule a] unit: is empty" },
		{ "[rule a]\nuser = no-such-user-here\n", "t.conf:2: [rule a] user: no such user" },
		{ "[rule a]\nuser = ,\n", "t.conf:2: [rule a] user: is empty" },
		{ "[rule a]\ndevice = intel\n",
		  "t.conf:2: [rule a] device: neither amd, nvidia, nor the number of a device (gpu-agentctl devices)" },
		{ "[rule a]\ndevice = amd nvidia\n", "t.conf:2: [rule a] device: only one vendor is possible" },
		{ "[rule a]\nexceptions = wave_trap, wave_trip\n",
		  "t.conf:2: [rule a] exceptions: not the name of an exception, nor faults" },
		{ "[rule a]\nexceptions = process_runtime\n",
		  "t.conf:2: [rule a] exceptions: process_runtime is no fault" },
		{ "[rule a]\nkeep = everything\n", "t.conf:2: [rule a] keep: not json, light, full or nothing" },
		{ "[rule a]\nrate_limit = 10\n", "t.conf:2: [rule a] rate_limit: needs a time behind a slash, such as /10m" },
		{ "[rule a]\nrate_limit = 0/1m\n",
		  "t.conf:2: [rule a] rate_limit: not a number of records and a time, such as 10/1m, nor none" },
		{ "[rule a]\nrate_limit = 1/0s\n", "t.conf:2: [rule a] rate_limit: the time behind the slash is not 1 ms to 7 d" },
		{ "[rule a]\ndeduplicate = kernel/8d\n",
		  "t.conf:2: [rule a] deduplicate: the time behind the slash is not 1 ms to 7 d" },
		{ "[rule a]\ndeduplicate = wave/1m\n", "t.conf:2: [rule a] deduplicate: not kernel, pc or code" },
		{ "[rule a]\ndevice = nvidia\n\nhold = 6m\n", "t.conf:4: [rule a] hold: not a time up to 5m" },
		{ "[rule a]\nhost = yes\n", "t.conf:2: [rule a] host: not python, native or off" },
		{ "[rule a]\nhold = long\n", "t.conf:2: [rule a] hold: not a time up to 5m" },
		{ "[rule]\nexe = *\n", "t.conf:1: [rule]: a rule needs a name of letters, digits, `-`, `_` and `.`" },
		{ "[rule a b]\nexe = *\n",
		  "t.conf:1: [rule a b]: a rule needs a name of letters, digits, `-`, `_` and `.`" },
		{ "[rule aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]\nexe = *\n",
		  "t.conf:1: [rule aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]: the name of the rule is too long" },
		{ "[rule a]\n[agent]\nuser = x\n", "t.conf:1: [rule a]: this rule has no keys" },
		{ "\n[rule a]\n# nothing\n", "t.conf:2: [rule a]: this rule has no keys" },
		{ "[rule a]\n[rule b]\nexe = *\n[rule c]\n",
		  "t.conf:1: [rule a]: this rule has no keys\nt.conf:4: [rule c]: this rule has no keys" },
		{ "[rule a]\nkeep = json\n",
		  "t.conf:2: [rule a] says no user, exe, unit, cgroup, container or device: exe = * would choose all processes" },
		{ "[rule a]\nexe = *\nhook_user = root\n", "t.conf:2: [rule a] hook_user: there is no hook" },
		{ "[rule a\nuser = x\n", "t.conf:1: a section header ends with ]" },
		{ "[rule a]\nexe = *\nhook_usr = x\nkep = json\n",
		  "t.conf:3: [rule a] hook_usr: unknown key; did you mean hook_user?\n"
		  "t.conf:4: [rule a] kep: unknown key; did you mean keep?" },
		{ "[rule a]\nkeep = json\n[rule b]\nhold = 1s\n",
		  "t.conf:2: [rule a] says no user, exe, unit, cgroup, container or device: exe = * would choose all processes\n"
		  "t.conf:4: [rule b] says no user, exe, unit, cgroup, container or device: exe = * would choose all processes" },
		{ "[rule a]\nexe = *\nhook = true\n", "t.conf:3: [rule a] hook: not an absolute path" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		test_rules rules = { 0 };
		char error[256] = "";

		TEST_ROW_EQ(i, parse(&rules, rows[i].text, error), -EINVAL);
		TEST_ROW_STR(i, error, rows[i].error);
	}
}

/* inih would cut it, and take the rest for another line. */
static void long_lines_are_mistakes(void)
{
	test_rules rules = { 0 };
	char text[600], error[256] = "";

	snprintf(text, sizeof(text), "[rule a]\nexe = /%0400d\nkeep = json\n", 1);
	TEST_EQ(parse(&rules, text, error), -EINVAL);
	TEST_STR(error, "t.conf:2: the line is too long");
}

static void number_of_rules_is_bounded(void)
{
	test_rules rules = { 0 };
	char text[64], error[256] = "";

	for (int i = 0; i <= RULES_MAX; i++) {
		snprintf(text, sizeof(text), "[rule r%d]\nexe = *\n", i);
		TEST_ROW_EQ(i, parse(&rules, text, error), i < RULES_MAX ? 0 : -EINVAL);
	}
	TEST_STR(error, "t.conf:2: [rule r64] exe: too many rules");
}

static int read_file(struct config *c, struct rules *rules, bool rules_need_root, const char *path, char *error,
		     size_t size)
{
	const struct config_reading how = { .rules = rules };
	struct config_files files = { .rules_need_root = rules_need_root };
	int r;

	config_files_read(&files, path);
	r = config_parse_files(c, &how, &files, error, size);
	config_files_deinit(&files);
	return r;
}

/* Whoever may write the file could have everybody's processes watched. */
static void files_of_others_have_no_rules(void)
{
	test_rules rules = { 0 };
	char path[] = "/tmp/test_monitor_rules.XXXXXX", error[256] = "", want[128];
	struct config c;
	int fd = mkstemp(path);
	static const char text[] = "[rule a]\nexe = *\n";

	TEST_EQ(write(fd, text, sizeof(text) - 1), (ssize_t)sizeof(text) - 1);
	config_init(&c);
	snprintf(want, sizeof(want),
		 "%s:2: [rule a] exe: rules must be in a file that belongs to root and that nobody else may write", path);
	fchmod(fd, 0664);
	TEST_EQ(read_file(&c, &rules, true, path, error, sizeof(error)), -EINVAL);
	TEST_STR(error, want);
	fchmod(fd, 0644);
	if (geteuid() == 0) {
		TEST_EQ(read_file(&c, &rules, true, path, error, sizeof(error)), 0);
		TEST_EQ(rules.n, 1);
		TEST_EQ(fchown(fd, 1000, 1000), 0);
		TEST_EQ(read_file(&c, &rules, true, path, error, sizeof(error)), -EINVAL);
	}
	TEST_EQ(read_file(&c, &rules, false, path, error, sizeof(error)), 0);
	close(fd);
	unlink(path);
}

static void first_rule_that_matches_has_the_process(void)
{
	static const char text[] = "[rule user]\nuser = 1000\n[rule exe]\nexe = /opt/*/py*\n"
				   "[rule unit]\nunit = train@*.service\n[rule container]\ncontainer = " ID "\n"
				   "[rule cgroup]\ncgroup = /system.slice/[a-c]*\n[rule nvidia]\ndevice = nvidia\n";
	static const char v2[] = "0::/system.slice/train@7.service\n";
	static const struct {
		uid_t uid;
		enum ipc_vendor vendor;
		const char *exe, *cgroup, *rule;
	} rows[] = {
		{ 1000, IPC_VENDOR_AMD, "/opt/a/b/python3", v2, "user" },
		{ 1001, IPC_VENDOR_AMD, "/opt/a/b/python3", v2, "exe" },
		{ 1001, IPC_VENDOR_AMD, "/usr/bin/python3", v2, "unit" },
		{ 1001, IPC_VENDOR_AMD, NULL, "0::/system.slice/train@7.service/sub\n", "unit" },
		{ 1001, IPC_VENDOR_AMD, NULL, "0::/system.slice/docker-" ID ".scope\n", NULL },
		{ 1001, IPC_VENDOR_AMD, NULL, "1:name=systemd:/docker/" ID "\n0::/\n", "container" },
		{ 1001, IPC_VENDOR_AMD, NULL, "0::/system.slice/cron.service\n", "cgroup" },
		{ 1001, IPC_VENDOR_AMD, NULL, "1:name=systemd:/system.slice/cron.service\n", "cgroup" },
		{ 1001, IPC_VENDOR_NVIDIA, NULL, "0::/system.slice/ssh.service\n", "nvidia" },
		{ 1001, IPC_VENDOR_AMD, NULL, "0::/system.slice/ssh.service\n", NULL },
		{ 1001, IPC_VENDOR_AMD, "/usr/bin/python3", NULL, NULL },
		{ 1001, IPC_VENDOR_AMD, "/usr/bin/python3", "rubbish\n::\n0:\n", NULL },
	};
	test_rules rules = { 0 };
	char error[256] = "";

	TEST_EQ(parse(&rules, text, error), 0);
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		const struct rule_subject s = { rows[i].uid, rows[i].vendor, rows[i].exe, rows[i].cgroup };
		const struct rule *r = rules_match(&rules, &s);

		TEST_ROW_STR(i, r ? r->name : "none", rows[i].rule ? rows[i].rule : "none");
	}
}

/* /proc/PID/exe of an older process after an upgrade. */
static void programs_that_were_replaced_keep_their_name(void)
{
	static const char text[] = "[rule new]\nexe = /opt/new (deleted)\n[rule python]\nexe = /usr/bin/python3*1[0-9]\n"
				   "[rule old]\nexe = /opt/old\n";
	static const struct {
		const char *exe, *rule;
	} rows[] = {
		{ "/usr/bin/python3.11", "python" },
		{ "/usr/bin/python3.11 (deleted)", "python" },
		{ "/usr/bin/python3.11 (deleted) (deleted)", NULL },
		{ "/usr/bin/python3.11(deleted)", NULL },
		{ "/opt/old (deleted)", "old" },
		/* A file may have such a name. */
		{ "/opt/new (deleted)", "new" },
		{ "/opt/new (deleted) (deleted)", "new" },
		{ "/opt/new", NULL },
		{ " (deleted)", NULL },
		{ "", NULL },
	};
	test_rules rules = { 0 };
	char error[256] = "";

	TEST_EQ(parse(&rules, text, error), 0);
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		const struct rule_subject s = { .exe = rows[i].exe };
		const struct rule *r = rules_match(&rules, &s);

		TEST_ROW_STR(i, r ? r->name : "none", rows[i].rule ? rows[i].rule : "none");
	}
}

TEST_SUITE(monitor_rules, TEST(all_keys_are_stored), TEST(defaults_are_bounded), TEST(mistakes_are_named),
	   TEST(long_lines_are_mistakes), TEST(number_of_rules_is_bounded), TEST(files_of_others_have_no_rules),
	   TEST(first_rule_that_matches_has_the_process),
	   TEST(programs_that_were_replaced_keep_their_name));
