/* SPDX-License-Identifier: MIT */
/* gpu-agent-simapp: uses the KFD device as a ROCm program does, under a small scenario script. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "app.h"
#include "base/argv.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "sim/app/scene.h"

#define DEFAULT_SCRIPT "runtime on; queues 4; spin"
#define SCRIPT_MAX     65536
/* Microseconds between two beats: tests measure gaps with them, a scene is to cost nothing. */
#define TEST_BEAT_US   "100"
#define SCENE_BEAT_US  "10000"

/* The options as they were given. */
struct options {
	const char *kfd, *script, *scene, *scene_dir, *status, *threads, *beat_us;
	bool realtime, list_scenes, help, version;
};

/* Map the counters, shared if there is a file for them. */
static int status_map(const char *path, struct simapp_status **ret)
{
	auto_close int fd = -1;
	struct simapp_status *s;

	if (path) {
		fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		if (fd < 0 || ftruncate(fd, sizeof(*s)))
			return -errno;
	}
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
		 MAP_SHARED | (path ? 0 : MAP_ANONYMOUS), fd, 0);
	if (s == MAP_FAILED)
		return -errno;
	s->magic = SIMAPP_MAGIC;
	s->version = SIMAPP_VERSION;
	s->pid = getpid();
	*ret = s;
	return 0;
}

static int fail(const char *what, int r)
{
	fprintf(stderr, "simapp: %s: %s\n", what, strerror(-r));
	return 1;
}

/* Find the script: a scene, a file, the option, or the default. */
static int script_load(int n, char **files, const struct options *o, struct scene *ret)
{
	size_t size;

	if (n + !!o->script + !!o->scene > 1)
		return -EINVAL;
	if (o->scene)
		return scene_read("amd", o->scene_dir, o->scene, ret);
	if (n == 1)
		return fd_read_file(files[0], SCRIPT_MAX, &ret->text, &size);
	ret->text = strdup(o->script ? o->script : DEFAULT_SCRIPT);
	return ret->text ? 0 : -ENOMEM;
}

/* Say why there is no script; a name that no scene has is answered with those there are. */
static int no_script(const struct options *o, int r)
{
	if (!o->scene || r != -ENOENT)
		return fail("script", r);
	fprintf(stderr, "simapp: there is no scene '%s'; there are:\n", o->scene);
	scene_list("amd", o->scene_dir, stderr);
	return 2;
}

static int run(struct app *a, const struct options *o, const char *script)
{
	uint64_t threads;
	const char *beat_us = o->beat_us ? o->beat_us : o->scene ? SCENE_BEAT_US : TEST_BEAT_US;
	int r;

	if (str_to_u64(o->threads, 0, SIMAPP_THREADS_MAX, &threads) ||
	    str_to_u64(beat_us, 0, 1000000, &a->beat_us))
		return fail("--threads or --beat-us", -EINVAL);
	a->realtime = o->realtime;
	r = status_map(o->status, &a->status);
	if (r)
		return fail(o->status ? o->status : "status memory", r);
	r = device_open(a);
	if (r)
		return fail(a->kfd_path, r);
	r = threads_start(a, (unsigned int)threads);
	if (!r)
		r = threads_start_events(a);
	if (r)
		return fail("threads", r);
	return script_run(a, script) ? 1 : 0;
}

static void help(const struct argv_option *table)
{
	puts("usage: gpu-agent-simapp [OPTIONS] [SCRIPT-FILE]\n"
	     "Use a KFD device as a ROCm program does.  Default script: " DEFAULT_SCRIPT);
	argv_print_options(table);
	puts("Commands, separated by ';' or newlines:");
	script_help();
}

int main(int argc, char **argv)
{
	struct options o = { .threads = "1" };
	const struct argv_option table[] = {
		{ "kfd", 'k', ARGV_STRING, &o.kfd, "PATH",
		  "device (default: $GPU_AGENT_SIM_KFD, then /dev/kfd)" },
		{ "execute", 'e', ARGV_STRING, &o.script, "SCRIPT", "commands to run" },
		{ "scene", 'S', ARGV_STRING, &o.scene, "NAME", "run that scene" },
		{ "scene-dir", 0, ARGV_STRING, &o.scene_dir, "DIR", "where scenes lie, instead of the usual place" },
		{ "list-scenes", 'l', ARGV_FLAG, &o.list_scenes, NULL, "show all scenes" },
		{ "status-file", 's', ARGV_STRING, &o.status, "PATH", "publish counters there" },
		{ "threads", 't', ARGV_STRING, &o.threads, "N", "heartbeat threads" },
		{ "beat-us", 'b', ARGV_STRING, &o.beat_us, "US",
		  "pause between beats; 0 burns a CPU" },
		{ "realtime", 'r', ARGV_FLAG, &o.realtime, NULL,
		  "heartbeats under SCHED_FIFO if permitted" },
		{ "version", 0, ARGV_FLAG, &o.version, NULL, "show the version" },
		{ "help", 'h', ARGV_FLAG, &o.help, NULL, "this text" },
		{ NULL },
	};
	const struct argv_option *const tables[] = { table, NULL };
	struct scene script = { 0 };
	static struct app app;
	char error[160];
	int n = argv_parse(argc, argv, tables, error, sizeof(error)), r;

	if (n < 0) {
		fprintf(stderr, "simapp: %s\n", error);
		return 2;
	}
	if (o.help) {
		help(table);
		return 0;
	}
	if (o.version) {
		puts("gpu-agent-simapp " GPU_AGENT_VERSION);
		return 0;
	}
	if (o.list_scenes) {
		scene_list("amd", o.scene_dir, stdout);
		return 0;
	}
	app.kfd_path = o.kfd ? o.kfd : getenv("GPU_AGENT_SIM_KFD");
	if (!app.kfd_path)
		app.kfd_path = "/dev/kfd";
	r = script_load(n, argv, &o, &script);
	app.directory = script.directory;
	r = r ? no_script(&o, r) : run(&app, &o, script.text);
	scene_deinit(&script);
	return r;
}
