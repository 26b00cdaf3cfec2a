/* SPDX-License-Identifier: MIT */
#include <sys/stat.h>
#include <unistd.h>

#include "agentd/spawn/config.h"
#include "testlib.h"

static int parse(struct config *c, const char *text, char *error)
{
	return config_parse(c, "t.conf", text, strlen(text), error, 256);
}

static void values_are_stored(void)
{
	struct config c;
	char error[256] = "";

	config_init(&c);
	TEST_EQ(parse(&c, "[agent]\nadmin_group = ops\nidle_exit = 90s\n# note\n[limits]\nsessions=3\n"
			  "[kfd]\ndevice = /x/kfd\n[cuda]\nlibrary = libcuda.so\n", error), 0);
	TEST_STR(c.admin_group, "ops");
	TEST_EQ(c.idle_exit_ms, 90000);
	TEST_EQ(c.sessions, 3);
	TEST_STR(c.kfd_device, "/x/kfd");
	TEST_STR(c.cuda_library, "libcuda.so");
	TEST_STR(error, "");
}

/* inih takes an indented line for one more value of the key above. */
static void indented_keys_are_keys(void)
{
	struct config c;
	char error[256] = "";

	config_init(&c);
	TEST_EQ(parse(&c, "[agent]\n  socket_group = a\n\tadmin_group = b\n  \n   # note\n  [limits]\n"
			  "  sessions = 3\n  connections = 4\n  ", error), 0);
	TEST_STR(error, "");
	TEST_STR(c.socket_group, "a");
	TEST_STR(c.admin_group, "b");
	TEST_EQ(c.sessions, 3);
	TEST_EQ(c.connections, 4);
	TEST_EQ(parse(&c, "[limits]\n sessions = 3\n connection = 4\n", error), -EINVAL);
	TEST_STR(error, "t.conf:3: [limits] connection: unknown key");
}

/* The message names file, line, key and mistake; nothing of a bad file is taken. */
static void mistakes_are_named(void)
{
	static const struct {
		const char *text, *error;
	} rows[] = {
		{ "[agent]\nsockets = x\n", "t.conf:2: [agent] sockets: unknown key" },
		{ "[nope]\nuser = x\n", "t.conf:2: [nope] user: unknown key" },
		{ "[limits]\nsessions = 0\n", "t.conf:2: [limits] sessions: not a number in the allowed range" },
		{ "[limits]\nsessions = many\n", "t.conf:2: [limits] sessions: not a number in the allowed range" },
		{ "[agent]\nidle_exit = 2 years\n", "t.conf:2: [agent] idle_exit: not a duration such as 90s, 250ms or 5m" },
		{ "[agent]\nuser = aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", "t.conf:2: [agent] user: too long" },
		{ "[cuda]\nlibrary = ../libcuda.so\n", "t.conf:2: [cuda] library: neither an absolute path nor a file name" },
		{ "[cuda]\nlibrary =\n", "t.conf:2: [cuda] library: neither an absolute path nor a file name" },
		{ "[agent]\nnonsense\n", "t.conf:2: syntax error" },
		{ "[store]\nmax_use = lots\n", "t.conf:2: [store] max_use: not a size such as 10G or 15%" },
		{ "[store]\nmax_age = old\n", "t.conf:2: [store] max_age: not an age such as 14d, 26w or 12h" },
		{ "[store]\nmax_records = 1e3\n", "t.conf:2: [store] max_records: not a number" },
		{ "[store]\nkeep_free = 10000000000000000000000000\n", "t.conf:2: [store] keep_free: too long" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct config c;
		char error[256] = "";

		config_init(&c);
		TEST_ROW_EQ(i, parse(&c, rows[i].text, error), -EINVAL);
		TEST_ROW_STR(i, error, rows[i].error);
		TEST_ROW_EQ(i, c.sessions, 128);
	}
}

static void binary_files_are_refused(void)
{
	struct config c;
	char error[256];

	config_init(&c);
	TEST_EQ(config_parse(&c, "t", "[agent]\0x", 9, error, sizeof(error)), -EINVAL);
	TEST_EQ(config_read_file(&c, "/nonexistent/x.conf", error, sizeof(error)), -ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(error, "/nonexistent/x.conf"));
}

/* The file that is installed says nothing but the defaults. */
static void shipped_file_is_valid(void)
{
	struct config c, defaults;
	char error[256] = "";

	config_init(&c);
	config_init(&defaults);
	TEST_EQ(config_read_file(&c, "systemd/agentd.conf", error, sizeof(error)), 0);
	TEST_STR(error, "");
	TEST_EQ(c.connections, defaults.connections);
	TEST_STR(c.socket_group, defaults.socket_group);
}

TEST_SUITE(spawn_config, TEST(values_are_stored), TEST(indented_keys_are_keys), TEST(mistakes_are_named), TEST(binary_files_are_refused),
	   TEST(shipped_file_is_valid));
