/* SPDX-License-Identifier: MIT */
/*
 * gpu-agent-rules: reads the configuration for the monitor, has it parsed by a process without rights,
 * decides which processes are watched by which rule, and has hooks run.
 *
 * It may read files and become other users, which the runners of hooks need, but trace nobody: what
 * it wants to know about processes it asks the monitor (agentd/ipc/monitor_rules.h).
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agentd/child.h"
#include "agentd/privileges.h"
#include "agentd/rules/config/parser.h"
#include "agentd/rules/engine/check.h"
#include "agentd/rules/saved.h"
#include "agentd/rules/service.h"
#include "agentd/rules/settings.h"
#include "agentd/rules/store_check.h"
#include "base/argv.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/out.h"

static bool again, own_socket, parses;

static const struct argv_option own_options[] = {
	{ "again", 0, ARGV_FLAG, &again, NULL, "a rules process has died: go on with what it had read" },
	{ "parse", 0, ARGV_FLAG, &parses, NULL, "only parse the configuration, for another one of these" },
	{ "own-socket", 0, ARGV_FLAG, &own_socket, NULL, "the monitor makes the socket" },
	{ 0 },
};

static int find_runner(char *ret, size_t size)
{
	char self[PATH_MAX - 32];
	int r = child_find_directory(self, sizeof(self));

	if (r == 0)
		snprintf(ret, size, "%s/gpu-agent-hook", self);
	return r;
}

/* Those who read the configuration, run hooks and keep records have said what is wrong; all are asked. */
static int judge(const struct config *config, const struct rules *rules, const struct config_dump *dump,
		 const char *runner)
{
	struct rules_ids ids;
	const char *where = config_dump_where(dump, "store", "directory");
	int r = check_hooks(rules, runner, options.user), e = 0;

	if (store_check_is_due(config, options.user, where)) {
		e = settings_resolve(&options, config, false, &ids);
		e = e < 0 ? e : store_check(config, &ids, options.user, where);
	}
	return r < 0 ? r : e;
}

static void print(const struct config *config, const struct config_dump *dump)
{
	auto_out struct out text;

	out_init(&text, 0);
	config_dump_print(dump, config, &text);
	fwrite(text.data, 1, text.size, stdout);
}

/* --check-config and --dump-config. */
static int look(const char *runner)
{
	struct config_dump dump = { 0 };
	struct rules rules = { 0 };
	struct config config;
	int r = settings_load(&options, &config, &rules, &dump);

	if (r == 0 && dump.error < 0)
		log_error("the settings: %s", strerror(-(r = dump.error)));
	if (r == 0 && options.check_config)
		r = judge(&config, &rules, &dump, runner);
	if (r == 0 && options.dump_config)
		print(&config, &dump);
	else if (r == 0)
		puts("configuration is valid");
	config_dump_deinit(&dump);
	rules_deinit(&rules);
	return r < 0;
}

static int read_configuration(struct config *config, struct rules_ids *ids, struct rules *rules)
{
	int r;

	if (again) {
		r = saved_read(RULES_FD_STATE, config, ids, rules);
		close(RULES_FD_STATE);
		if (r < 0)
			log_error("what the last rules process had read: %s", strerror(-r));
		return r;
	}
	r = settings_load(&options, config, rules, NULL);
	return r < 0 ? r : settings_resolve(&options, config, own_socket, ids);
}

static int serve(const char *runner)
{
	static struct service s;
	struct rules rules = { 0 };
	struct rules_ids ids;
	struct config config;
	int r = service_init(&s, &options, IPC_FD_MONITOR, runner);

	if (r < 0)
		log_error("cannot start: %s", strerror(-r));
	if (r == 0)
		r = read_configuration(&config, &ids, &rules);
	if (r == 0) {
		service_configure(&s, &config, &ids, &rules);
		service_run(&s);
	}
	rules_deinit(&rules);
	/* Without a word the monitor sees the end of this process, and what is wrong has been logged. */
	service_deinit(&s);
	return r < 0;
}

static int give_up_rights(void)
{
	int r = privileges_keep_hooks();

	return r < 0 ? r : privileges_hide();
}

static bool is_started_by_monitor(void)
{
	int type = 0;
	socklen_t size = sizeof(type);

	return getsockopt(IPC_FD_MONITOR, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

int main(int argc, char **argv)
{
	static const struct argv_option *const tables[] = { options_table, own_options, NULL };
	char runner[PATH_MAX], error[160];
	int r;

	if (fd_reserve_stdio() < 0)
		return 1;
	r = argv_parse(argc, argv, tables, error, sizeof(error));
	if (r != 0 || (!options.check_config && !options.dump_config && !parses && !is_started_by_monitor())) {
		fputs("gpu-agent-rules is started by gpu-agentd\n", stderr);
		return 2;
	}
	/* To administrators, whose file and whose hooks these lines are about, this is gpu-agentd. */
	log_init("gpu-agentd", options.verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
	if (parses)
		return parser_run();
	r = find_runner(runner, sizeof(runner));
	if (r < 0) {
		log_error("gpu-agent-hook: %s", strerror(-r));
		return 1;
	}
	if (options.check_config || options.dump_config)
		return look(runner);
	fd_set_cloexec(IPC_FD_MONITOR, true);
	r = give_up_rights();
	if (r < 0) {
		log_error("cannot give up rights: %s", strerror(-r));
		return 1;
	}
	return serve(runner);
}
