/* SPDX-License-Identifier: MIT */
/* gpu-agent-cuda-sim: the GPUs and their kernel driver, for the stand-in libraries. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/argv.h"
#include "base/cleanup.h"
#include "server.h"

/* Set by a signal handler; the loop looks at it. */
static volatile bool stop;

static void on_signal(int sig)
{
	stop = true;
}

static void help(const struct argv_option *table)
{
	puts("usage: gpu-agent-cuda-sim --socket PATH [OPTIONS]\n"
	     "Simulated CUDA GPUs for programs that use the stand-in libcuda.so.1.");
	argv_print_options(table);
	puts("Commands, separated by ';' or newlines:");
	command_help();
}

/*
 * Run the script for a process that does not exist, to find mistakes before the first program
 * comes.
 */
static int script_check(const char *script)
{
	static const struct sim_os none;
	struct sim s = { .os = &none };
	struct sim_process *p = sim_process_create(&s, 0);
	auto_out struct out ret = { 0 };
	int r;

	if (!p)
		return -ENOMEM;
	out_init(&ret, 4096);
	r = script ? command_run(p, script, NULL, 0, &ret) : 0;
	if (r)
		fprintf(stderr, "gpu-agent-cuda-sim: %s\n", ret.data ? ret.data : strerror(-r));
	sim_process_destroy(p);
	return r;
}

static int run(const char *path, const char *script)
{
	struct sigaction sa = { .sa_handler = on_signal };
	int r;

	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	r = server_open(path, script);
	if (!r) {
		/* Tests wait for this line. */
		printf("ready %s\n", path);
		fflush(stdout);
		r = server_run(&stop);
	}
	if (r)
		fprintf(stderr, "gpu-agent-cuda-sim: %s: %s\n", path, strerror(-r));
	server_close();
	return r ? 1 : 0;
}

int main(int argc, char **argv)
{
	const char *path = NULL, *script = NULL;
	bool want_help = false, want_version = false;
	const struct argv_option table[] = {
		{ "socket", 's', ARGV_STRING, &path, "PATH",
		  "where programs and debuggers connect" },
		{ "execute", 'e', ARGV_STRING, &script, "SCRIPT",
		  "commands for every new program" },
		{ "version", 0, ARGV_FLAG, &want_version, NULL, "show the version" },
		{ "help", 'h', ARGV_FLAG, &want_help, NULL, "this text" },
		{ NULL },
	};
	const struct argv_option *const tables[] = { table, NULL };
	char error[160];
	int n = argv_parse(argc, argv, tables, error, sizeof(error));

	if (want_help) {
		help(table);
		return 0;
	}
	if (want_version) {
		puts("gpu-agent-cuda-sim " GPU_AGENT_VERSION);
		return 0;
	}
	if (n || !path) {
		fprintf(stderr, "gpu-agent-cuda-sim: %s\n",
			n < 0 ? error : "--socket PATH is needed, and nothing else");
		return 2;
	}
	return script_check(script) ? 2 : run(path, script);
}
