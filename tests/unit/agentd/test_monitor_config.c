/* SPDX-License-Identifier: MIT */
#include <sys/stat.h>
#include <unistd.h>

#include "agentd/rules/config/config.h"
#include "testlib.h"

static const struct config_reading plain;

static int parse(struct config *c, const char *text, char *error)
{
	return config_parse(c, &plain, "t.conf", text, strlen(text), error, 256);
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
	TEST_STR(error, "t.conf:3: [limits] connection: unknown key; did you mean connections?");
}

/* The message names file, line, key and mistake; nothing of a bad file is taken. */
static void mistakes_are_named(void)
{
	static const struct {
		const char *text, *error;
	} rows[] = {
		{ "[agent]\nsockets = x\n", "t.conf:2: [agent] sockets: unknown key; did you mean socket?" },
		{ "[nope]\nuser = x\n", "t.conf:1: [nope]: there is no such section" },
		{ "[agents]\nuser = x\nidle = 5\n", "t.conf:1: [agents]: there is no such section; did you mean [agent]?" },
		{ "[agent]\nsessions = 5\n", "t.conf:2: [agent] sessions: unknown key; it belongs into [limits]" },
		{ "[agent\nuser = x\n", "t.conf:1: a section header ends with ]" },
		{ "user = x\n", "t.conf:1: a key in front of the first section" },
		/* All of them, in the order of the file. */
		{ "[agent]\nidle_exi = 5m\n[limits]\nsessions = 0 # none\nwhat\n[limit]\nx = y\n[cuda]\nlibrary =\n",
		  "t.conf:2: [agent] idle_exi: unknown key; did you mean idle_exit?\n"
		  "t.conf:4: [limits] sessions: not a number in the allowed range\n"
		  "t.conf:5: neither a section, nor key = value, nor a comment\n"
		  "t.conf:6: [limit]: there is no such section; did you mean [limits]?\n"
		  "t.conf:9: [cuda] library: neither an absolute path nor a file name" },
		{ "[limits]\nsessions = 0\n", "t.conf:2: [limits] sessions: not a number in the allowed range" },
		{ "[limits]\nsessions = many\n", "t.conf:2: [limits] sessions: not a number in the allowed range" },
		{ "[agent]\nidle_exit = 2 years\n", "t.conf:2: [agent] idle_exit: not a duration such as 90s, 250ms or 5m" },
		{ "[agent]\nuser = aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", "t.conf:2: [agent] user: too long" },
		{ "[cuda]\nlibrary = ../libcuda.so\n", "t.conf:2: [cuda] library: neither an absolute path nor a file name" },
		{ "[cuda]\nlibrary =\n", "t.conf:2: [cuda] library: neither an absolute path nor a file name" },
		{ "[agent]\nnonsense\n", "t.conf:2: neither a section, nor key = value, nor a comment" },
		{ "[store]\nmax_use = lots\n", "t.conf:2: [store] max_use: not a size such as 10G or 15%" },
		{ "[store]\nmax_age = old\n", "t.conf:2: [store] max_age: not an age such as 14d, 26w or 12h" },
		{ "[store]\nmax_records = 1e3\n", "t.conf:2: [store] max_records: not a number" },
		{ "[store]\nkeep_free = 10000000000000000000000000\n", "t.conf:2: [store] keep_free: too long" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct config c;
		char error[512] = "";

		config_init(&c);
		TEST_ROW_EQ(i, config_parse(&c, &plain, "t.conf", rows[i].text, strlen(rows[i].text), error, sizeof(error)),
			    -EINVAL);
		TEST_ROW_STR(i, error, rows[i].error);
		TEST_ROW_EQ(i, c.sessions, 128);
	}
}

/* Behind a value, too, where a blank is in front of it. */
static void comments_are_left_out(void)
{
	struct config c;
	char error[256] = "";

	config_init(&c);
	TEST_EQ(parse(&c, "# all\n[agent] # one\nidle_exit = 5m # five\nadmin_group = a#b\nobserver_group = c\t;d\n"
			  "user = #nobody\n; end\n#[what]\n", error), 0);
	TEST_STR(error, "");
	TEST_EQ(c.idle_exit_ms, 300000);
	TEST_STR(c.admin_group, "a#b");
	TEST_STR(c.observer_group, "c");
	TEST_STR(c.user, "");
}

static void byte_order_marks_are_left_out(void)
{
	struct config c;
	char error[256] = "";

	config_init(&c);
	TEST_EQ(parse(&c, "\xef\xbb\xbf[agent]\nidle_exit = 5m\n", error), 0);
	TEST_STR(error, "");
	TEST_EQ(c.idle_exit_ms, 300000);
	TEST_EQ(parse(&c, "[agent]\n\xef\xbb\xbf[store]\n", error), -EINVAL);
}

/* What is behind a header that is too long belongs to nothing. */
static void long_headers_are_mistakes(void)
{
	for (size_t n = 40; n < 400; n++) {
		char text[512], error[512] = "";
		struct config c;

		config_init(&c);
		snprintf(text, sizeof(text), "[agent%0*d]\nidle_exit = 5m\n", (int)n, 1);
		TEST_ROW_EQ(n, parse(&c, text, error), -EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strchr(error, ':'));
		TEST_ROW_EQ(n, c.idle_exit_ms != 300000, true);
	}
}

/* Messages that do not fit are left out whole. */
static void many_mistakes_fit(void)
{
	char text[4096] = "[agent]\n", error[200];
	struct config c;

	for (size_t i = 0; i < 100; i++)
		strcat(text, "nonsense = 1\n");
	config_init(&c);
	TEST_EQ(config_parse(&c, &plain, "t", text, strlen(text), error, sizeof(error)), -EINVAL);
	CU_ASSERT(strlen(error) < sizeof(error) && strlen(error) > 100);
	TEST_STR(strrchr(error, ' '), " key");
}

/* The daemon gives nobody any right by such a name; a check tells it. */
static void names_exist_when_that_is_asked(void)
{
	static const char text[] = "[agent]\nadmin_group = no-such-group\nuser = root\nsocket_group = root\n";
	static const char user[] = "[agent]\nuser = no-such-user\n";
	const struct config_reading strict = { .names_must_exist = true };
	char error[256] = "";
	struct config c;

	config_init(&c);
	TEST_EQ(parse(&c, text, error), 0);
	TEST_EQ(config_parse(&c, &strict, "t.conf", text, strlen(text), error, sizeof(error)), -EINVAL);
	TEST_STR(error, "t.conf:2: [agent] admin_group: there is no such group");
	TEST_EQ(config_parse(&c, &strict, "t.conf", user, strlen(user), error, sizeof(error)), -EINVAL);
	TEST_STR(error, "t.conf:2: [agent] user: there is no such user");
}

static int read_file(struct config *c, const char *path, char *error, size_t size)
{
	struct config_files files = { 0 };
	int r;

	config_files_read(&files, path);
	r = config_parse_files(c, &plain, &files, error, size);
	config_files_deinit(&files);
	return r;
}

static void binary_files_are_refused(void)
{
	struct config c;
	char error[256];

	config_init(&c);
	TEST_EQ(config_parse(&c, &plain, "t", "[agent]\0x", 9, error, sizeof(error)), -EINVAL);
	TEST_EQ(read_file(&c, "/nonexistent/x.conf", error, sizeof(error)), -ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(error, "/nonexistent/x.conf"));
}

/* The file that is installed says nothing but the defaults. */
static void shipped_file_is_valid(void)
{
	struct config c, defaults;
	char error[256] = "";

	config_init(&c);
	config_init(&defaults);
	TEST_EQ(read_file(&c, "systemd/agentd.conf", error, sizeof(error)), 0);
	TEST_STR(error, "");
	TEST_EQ(c.connections, defaults.connections);
	TEST_STR(c.socket_group, defaults.socket_group);
}

TEST_SUITE(monitor_config, TEST(values_are_stored), TEST(indented_keys_are_keys),
	   TEST(mistakes_are_named), TEST(comments_are_left_out),
	   TEST(byte_order_marks_are_left_out), TEST(long_headers_are_mistakes),
	   TEST(many_mistakes_fit), TEST(names_exist_when_that_is_asked),
	   TEST(binary_files_are_refused), TEST(shipped_file_is_valid));
