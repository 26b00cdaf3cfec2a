/* SPDX-License-Identifier: MIT */
/* gpu-agent-simapp: uses the KFD device as a ROCm program does, under a small scenario script. */

#include <stdio.h>
#include <stdlib.h>

#include "app.h"
#include "base/argv.h"

#define DEFAULT_SCRIPT "runtime on; queues 4; spin"

/* Keep every queue supplied with packets. */
static void on_beat(struct process *p)
{
	struct app *a = (struct app *)p;

	if (!a->idle)
		device_queues_feed(a);
}

static struct app app = {
	.process = {
		.program = "simapp",
		.vendor = "amd",
		.default_script = DEFAULT_SCRIPT,
		.print_ready = script_ready,
		.run = script_command,
		.on_beat = on_beat,
	},
};

static int run(struct process *p, const struct process_options *o)
{
	unsigned int threads;
	int r = process_begin(p, o, &threads);

	if (r)
		return r;
	r = device_open(&app);
	if (r)
		return process_fail(p, app.kfd_path, r);
	r = process_start_beats(p, threads);
	if (!r)
		r = threads_start_events(&app);
	if (r)
		return process_fail(p, "threads", r);
	return process_run_script(p, p->script.text, p->script.size) ? 1 : 0;
}

static void help(const struct argv_option *table)
{
	puts("usage: gpu-agent-simapp [OPTIONS] [SCRIPT-FILE]\n"
	     "Use a KFD device as a ROCm program does.  Default script: " DEFAULT_SCRIPT);
	argv_print_options(table);
	puts("Commands, separated by ';' or newlines:");
	script_help();
	process_help();
}

int main(int argc, char **argv)
{
	struct process_options o = { 0 };
	const struct argv_option table[] = {
		{ "kfd", 'k', ARGV_STRING, &app.kfd_path, "PATH",
		  "device (default: $GPU_AGENT_SIM_KFD, then /dev/kfd)" },
		{ "realtime", 'r', ARGV_FLAG, &app.process.realtime, NULL,
		  "heartbeats under SCHED_FIFO if permitted" },
		PROCESS_OPTIONS(o),
		{ NULL },
	};
	const struct argv_option *const tables[] = { table, NULL };
	char error[160];
	int n = argv_parse(argc, argv, tables, error, sizeof(error)), r = 0;

	if (n < 0 || n > 1) {
		fprintf(stderr, "simapp: %s\n", n < 0 ? error : "more than one script");
		return 2;
	}
	o.file = n ? argv[0] : NULL;
	if (!app.kfd_path)
		app.kfd_path = getenv("GPU_AGENT_SIM_KFD");
	if (!app.kfd_path)
		app.kfd_path = "/dev/kfd";
	if (o.help)
		help(table);
	else if (o.version)
		puts("gpu-agent-simapp " GPU_AGENT_VERSION);
	else if (o.list_scenes)
		scene_list("amd", o.scene_dir, stdout);
	else
		r = run(&app.process, &o);
	scene_deinit(&app.process.script);
	return r;
}
