/* SPDX-License-Identifier: MIT */
/* gpu-agent-cuda-simapp: uses the CUDA driver as a program does, under a small script. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/argv.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/out.h"
#include "base/str.h"
#include "sim/cuda/driver/libcuda.h"
#include "tests/lib/words.h"
#include "sim/app/scene.h"
#include "sim/app/status.h"

/* Bytes of the largest cubin. */
#define CUBIN_MAX      ((size_t)16 << 20)
#define DEFAULT_SCRIPT "init; context 0; listen"
/* Microseconds between two beats: tests measure gaps with them, a scene is to cost nothing. */
#define TEST_BEAT_US   "100"
#define SCENE_BEAT_US  "10000"

/* The driver calls that are used; their header is not needed to build this. */
uint32_t cuInit(uint32_t flags);
uint32_t cuDeviceGetCount(int *count);
uint32_t cuCtxCreate_v2(void **context, uint32_t flags, int device);
uint32_t cuCtxDestroy_v2(void *context);
uint32_t cuModuleLoadData(void **module, const void *image);
uint32_t cuModuleGetFunction(void **function, void *module, const char *name);
uint32_t cuLaunchKernel(void *f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by,
			uint32_t bz, uint32_t shared, void *stream, void **params, void **extra);

static struct {
	struct simapp_status *status;
	uint64_t beat_us;
	void *context, *module;
	const char *directory; /* Where files lie that the script names; NULL: where it runs. */
	bool ready;
	struct out passed; /* A line for each launch that was given arguments. */
} app;

static int script_run(const char *text);

/* ---- heartbeat ---- */

static void pause_us(uint64_t us)
{
	struct timespec ts = { (time_t)(us / 1000000), (long)(us % 1000000) * 1000 };

	nanosleep(&ts, NULL);
}

/* A thread that counts, and measures how long it stood still at most. */
static void *beat(void *arg)
{
	struct simapp_thread *slot = arg;
	uint64_t last = clock_now_ns();

	slot->tid = (int32_t)syscall(SYS_gettid);
	for (;;) {
		uint64_t now = clock_now_ns();

		if (now - last > slot->max_gap_ns)
			slot->max_gap_ns = now - last;
		last = now;
		slot->beats++;
		if (app.beat_us)
			pause_us(app.beat_us);
	}
	return NULL;
}

/* Start heartbeat threads. */
static int beats_start(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		pthread_t t;

		if (app.status->n_threads == SIMAPP_THREADS_MAX)
			return -ENOSPC;
		if (pthread_create(&t, NULL, beat, &app.status->threads[app.status->n_threads]))
			return -EAGAIN;
		pthread_detach(t);
		app.status->n_threads++;
	}
	return 0;
}

/* ---- CUDA commands ---- */

/* Report a failed driver call. */
static int cuda(const char *what, uint32_t result)
{
	if (!result)
		return 0;
	fprintf(stderr, "cuda-simapp: %s: CUDA error %u\n", what, result);
	return -EIO;
}

static int cmd_init(const struct words *w)
{
	return cuda("cuInit", cuInit(0));
}

/* Call cuInit and print its result: a program may go on without a GPU. */
static int cmd_try_init(const struct words *w)
{
	printf("cuInit %u\n", cuInit(0));
	return 0;
}

static int cmd_context(const struct words *w)
{
	uint64_t device;

	if (words_number(w, 1, 0, 64, &device))
		return -EINVAL;
	return cuda("cuCtxCreate", cuCtxCreate_v2(&app.context, 0, (int)device));
}

static int cmd_context_destroy(const struct words *w)
{
	return cuda("cuCtxDestroy", cuCtxDestroy_v2(app.context));
}

static int cmd_module(const struct words *w)
{
	auto_free char *image = NULL, *path = NULL;
	size_t size;
	int r;

	if (w->n != 2)
		return -EINVAL;
	path = scene_file(app.directory, w->w[1]);
	if (!path)
		return -ENOMEM;
	r = fd_read_file(path, CUBIN_MAX, &image, &size);
	return r ? r : cuda("cuModuleLoadData", cuModuleLoadData(&app.module, image));
}

/* Launch NAME [BLOCKS [THREADS]] through the driver's own call. */
static int cmd_kernel(const struct words *w)
{
	uint64_t blocks, threads;
	void *f;
	int r;

	if (w->n < 2 || words_number(w, 2, 1, 1 << 20, &blocks) ||
	    words_number(w, 3, 32, 1024, &threads))
		return -EINVAL;
	r = cuda("cuModuleGetFunction", cuModuleGetFunction(&f, app.module, w->w[1]));
	return r ? r
		 : cuda("cuLaunchKernel",
			cuLaunchKernel(f, (uint32_t)blocks, 1, 1, (uint32_t)threads, 1, 1, 0, NULL,
				       NULL, NULL));
}

/* Send a command to the simulated GPU, which knows more than the driver calls. */
/* Note what a kernel was launched with, for the ready line: `passed kernel=scale p:0x0,i:160`. */
static void note_passed(const struct words *w)
{
	for (int i = 3; i < w->n; i++)
		if (!strcmp(w->w[1], "launch") && str_starts_with(w->w[i], "args="))
			out_fmt(&app.passed, "passed kernel=%s %s\n", w->w[2], w->w[i] + 5);
}

static int cmd_gpu(const struct words *w)
{
	auto_free char *answer = NULL;
	char line[1024] = "";
	size_t n = 0;
	uint32_t result;

	for (int i = 1; i < w->n; i++) {
		n += (size_t)snprintf(line + n, sizeof(line) - n, "%s%s", i > 1 ? " " : "",
				      w->w[i]);
		if (n >= sizeof(line))
			return -E2BIG;
	}
	result = cudasim_command(line, NULL, 0, &answer);
	if (!result)
		note_passed(w);
	return cuda(answer && *answer ? answer : line, result);
}

/* ---- as a debugger would do it, from inside ---- */

/* Find a symbol of libcuda, as a debugger does. */
static int variable(const struct words *w, int n, volatile uint32_t **ret)
{
	void *h;

	if (w->n != n)
		return -EINVAL;
	h = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	*ret = h ? dlsym(h, w->w[1]) : NULL;
	return *ret ? 0 : -ENOENT;
}

static int cmd_get(const struct words *w)
{
	volatile uint32_t *v;
	int r = variable(w, 2, &v);

	if (!r)
		printf("%s %u\n", w->w[1], *v);
	return r;
}

static int cmd_set(const struct words *w)
{
	volatile uint32_t *v;
	uint64_t n;
	int r = variable(w, 3, &v);

	if (r || str_to_u64(w->w[2], 0, UINT32_MAX, &n))
		return r ? r : -EINVAL;
	*v = (uint32_t)n;
	return 0;
}

/* Call a function of libcuda, as a debugger makes a debuggee do. */
static int cmd_call(const struct words *w)
{
	volatile uint32_t *v;
	int r = variable(w, 2, &v);

	if (!r)
		((void (*)(void))(uintptr_t)v)();
	return r;
}

/* ---- process commands ---- */

/* Print the line that tests wait for, once. */
static void ready(void)
{
	if (app.ready)
		return;
	app.ready = true;
	printf("ready pid=%d\n%s", getpid(), app.passed.data ? app.passed.data : "");
	fflush(stdout);
}

static int cmd_ready(const struct words *w)
{
	ready();
	return 0;
}

static int cmd_spin(const struct words *w)
{
	ready();
	for (;;)
		pause();
	return 0;
}

/* Spend all time in user space, so that a debugger does not find the thread in a system call. */
static int cmd_burn(const struct words *w)
{
	ready();
	for (volatile uint64_t i = 0;; i++)
		;
	return 0;
}

static int cmd_sleep(const struct words *w)
{
	uint64_t ms;

	if (w->n != 2 || words_number(w, 1, 0, 86400000, &ms))
		return -EINVAL;
	pause_us(ms * 1000);
	return 0;
}

static int cmd_listen(const struct words *w)
{
	char line[4096];
	int r;

	ready();
	for (;;) {
		if (!fgets(line, sizeof(line), stdin)) {
			if (!ferror(stdin) || errno != EINTR)
				return 0;
			/* A signal interrupted the read. */
			clearerr(stdin);
			continue;
		}
		r = script_run(line);
		if (r)
			printf("error %s\n", strerrorname_np(-r));
		else
			puts("ok");
		fflush(stdout);
	}
}

static int cmd_exec(const struct words *w)
{
	if (w->n < 2)
		return -EINVAL;
	fflush(stdout);
	execvp(w->w[1], (char *const *)&w->w[1]);
	return -errno;
}

/* The child does nothing, and ends when its parent does. */
static int cmd_fork(const struct words *w)
{
	pid_t parent = getpid(), pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(0);
		for (;;)
			pause();
	}
	return 0;
}

static int cmd_exit(const struct words *w)
{
	uint64_t code;

	if (words_number(w, 1, 0, 255, &code))
		return -EINVAL;
	fflush(stdout);
	_exit((int)code);
}

static int cmd_threads(const struct words *w)
{
	uint64_t n;

	return w->n != 2 || words_number(w, 1, 0, SIMAPP_THREADS_MAX, &n) ? -EINVAL : beats_start(n);
}

/* A thread that ends soon. */
static void *short_life(void *arg)
{
	pause_us(100);
	return NULL;
}

/* A thread that makes one thread after the other. */
static void *storm(void *arg)
{
	for (;;) {
		pthread_t t;

		if (pthread_create(&t, NULL, short_life, NULL))
			continue;
		pthread_join(t, NULL);
	}
	return NULL;
}

/* Start N threads that make and end threads for ever. */
static int cmd_thread_storm(const struct words *w)
{
	pthread_t t;
	uint64_t n;

	if (words_number(w, 1, 1, 16, &n))
		return -EINVAL;
	for (uint64_t i = 0; i < n; i++)
		if (pthread_create(&t, NULL, storm, NULL) || pthread_detach(t))
			return -EAGAIN;
	return 0;
}

/*
 * A thread that has the lock that attaching needs nearly always: a debugger that stops it cannot
 * attach.
 */
static void *lock_holder(void *arg)
{
	for (;;) {
		cudasim_lock();
		pause_us(20000);
		cudasim_unlock();
		pause_us(100);
	}
	return NULL;
}

static int cmd_lock_holder(const struct words *w)
{
	pthread_t t;

	return pthread_create(&t, NULL, lock_holder, NULL) || pthread_detach(t) ? -EAGAIN : 0;
}

static void on_signal(int sig)
{
	__atomic_add_fetch(&app.status->signals, 1, __ATOMIC_RELAXED);
}

static void *signals_run(void *arg)
{
	for (;;) {
		kill(getpid(), SIGRTMIN + 3);
		pause_us((uintptr_t)arg);
	}
	return NULL;
}

/* Raise a real-time signal against the process every US microseconds. */
static int cmd_signals(const struct words *w)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	pthread_t t;
	uint64_t us;

	if (words_number(w, 1, 1000, 1000000, &us))
		return -EINVAL;
	sigaction(SIGRTMIN + 3, &sa, NULL);
	return pthread_create(&t, NULL, signals_run, (void *)(uintptr_t)us) || pthread_detach(t)
		       ? -EAGAIN
		       : 0;
}

static int cmd_setuid(const struct words *w)
{
	uint64_t uid;

	if (w->n != 2 || words_number(w, 1, 0, UINT32_MAX - 1, &uid))
		return -EINVAL;
	if (setresgid((gid_t)uid, (gid_t)uid, (gid_t)uid) ||
	    setresuid((uid_t)uid, (uid_t)uid, (uid_t)uid))
		return -errno;
	return 0;
}

static int cmd_name(const struct words *w)
{
	if (w->n != 2)
		return -EINVAL;
	return prctl(PR_SET_NAME, w->w[1]) < 0 ? -errno : 0;
}

static int cmd_nodump(const struct words *w)
{
	return prctl(PR_SET_DUMPABLE, 0) ? -errno : 0;
}

static const struct {
	const char *name;
	int (*run)(const struct words *w);
	const char *help;
} commands[] = {
	{ "init", cmd_init, "cuInit" },
	{ "try-init", cmd_try_init, "cuInit, which may fail; prints its result" },
	{ "context", cmd_context, "[DEVICE]: cuCtxCreate" },
	{ "context-destroy", cmd_context_destroy, "the last context" },
	{ "module", cmd_module, "FILE: cuModuleLoadData" },
	{ "kernel", cmd_kernel, "NAME [BLOCKS [THREADS]]: cuLaunchKernel" },
	{ "gpu", cmd_gpu, "COMMAND...: see gpu-agent-cuda-sim --help" },
	{ "get", cmd_get, "VARIABLE of libcuda (32 bits)" },
	{ "set", cmd_set, "VARIABLE VALUE" },
	{ "call", cmd_call, "FUNCTION of libcuda, without arguments" },
	{ "ready", cmd_ready, "print the ready line" },
	{ "spin", cmd_spin, "ready, then sleep until killed" },
	{ "burn", cmd_burn, "ready, then use the CPU until killed" },
	{ "sleep", cmd_sleep, "MS" },
	{ "listen", cmd_listen, "ready, then commands from stdin, each answered ok or error NAME" },
	{ "exec", cmd_exec, "PROGRAM [ARG...]" },
	{ "fork", cmd_fork, "a child that only waits" },
	{ "exit", cmd_exit, "[CODE]" },
	{ "threads", cmd_threads, "N: more heartbeat threads" },
	{ "thread-storm", cmd_thread_storm, "[N]: threads that make threads" },
	{ "lock-holder", cmd_lock_holder, "a thread with the lock that attaching needs" },
	{ "signals", cmd_signals, "[US]: real-time signals against itself" },
	{ "name", cmd_name, "NAME of the process" },
	{ "setuid", cmd_setuid, "UID" },
	{ "nodump", cmd_nodump, "become undumpable" },
};

static int run_command(void *ctx, const struct words *w)
{
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(commands[i].name, w->w[0])) {
			r = commands[i].run(w);

			app.status->commands += !r;
			return r;
		}
	return -EINVAL;
}

/* Run commands up to the first that fails. */
static int script_run(const char *text)
{
	return words_run_script(text, "cuda-simapp", run_command, NULL);
}

/* ---- main ---- */

/* Map the counters, shared if there is a file for them. */
static int status_map(const char *path)
{
	auto_close int fd = -1;

	if (path) {
		fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		if (fd < 0 || ftruncate(fd, sizeof(*app.status)))
			return -errno;
	}
	app.status = mmap(NULL, sizeof(*app.status), PROT_READ | PROT_WRITE,
			  MAP_SHARED | (path ? 0 : MAP_ANONYMOUS), fd, 0);
	if (app.status == MAP_FAILED)
		return -errno;
	app.status->magic = SIMAPP_MAGIC;
	app.status->version = SIMAPP_VERSION;
	app.status->pid = getpid();
	return 0;
}

static void help(const struct argv_option *table)
{
	puts("usage: gpu-agent-cuda-simapp [OPTIONS]\n"
	     "Use the CUDA driver as a program does.  Default script: " DEFAULT_SCRIPT);
	argv_print_options(table);
	puts("Commands, separated by ';' or newlines:");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		printf("  %-16s %s\n", commands[i].name, commands[i].help);
}

/* The options as they were given. */
struct options {
	const char *script, *scene, *scene_dir, *status, *threads, *beat_us;
	bool list_scenes, library, help, version;
};

/* Find the script: a scene, the option, or the default.  @return 0, or an exit status. */
static int script_load(const struct options *o, struct scene *ret)
{
	int r;

	if (!o->scene) {
		ret->text = strdup(o->script ? o->script : DEFAULT_SCRIPT);
		return ret->text ? 0 : 1;
	}
	r = scene_read("cuda", o->scene_dir, o->scene, ret);
	if (r == -ENOENT) {
		fprintf(stderr, "cuda-simapp: there is no scene '%s'; there are:\n", o->scene);
		scene_list("cuda", o->scene_dir, stderr);
		return 2;
	}
	if (r)
		fprintf(stderr, "cuda-simapp: scene %s: %s\n", o->scene, strerror(-r));
	return r ? 1 : 0;
}

static int run(const struct options *o)
{
	const char *beat_us = o->beat_us ? o->beat_us : o->scene ? SCENE_BEAT_US : TEST_BEAT_US;
	struct scene script = { 0 };
	uint64_t threads;
	int r;

	if ((o->scene && o->script) || str_to_u64(o->threads, 0, SIMAPP_THREADS_MAX, &threads) ||
	    str_to_u64(beat_us, 0, 1000000, &app.beat_us)) {
		fputs("cuda-simapp: --threads, --beat-us, or both of --execute and --scene\n", stderr);
		return 2;
	}
	r = script_load(o, &script);
	if (r)
		goto out;
	app.directory = script.directory;
	r = status_map(o->status);
	if (!r)
		r = beats_start(threads);
	if (r)
		fprintf(stderr, "cuda-simapp: %s\n", strerror(-r));
	r = r || script_run(script.text) ? 1 : 0;
out:
	scene_deinit(&script);
	return r;
}

/* Who debugs this program has to load the same library, wherever it is installed. */
static void print_library(void)
{
	Dl_info info;

	if (dladdr((const void *)cuInit, &info) && info.dli_fname)
		puts(info.dli_fname);
}

int main(int argc, char **argv)
{
	struct options o = { .threads = "1" };
	const struct argv_option table[] = {
		{ "execute", 'e', ARGV_STRING, &o.script, "SCRIPT", "commands to run" },
		{ "scene", 'S', ARGV_STRING, &o.scene, "NAME", "run that scene" },
		{ "scene-dir", 0, ARGV_STRING, &o.scene_dir, "DIR", "where scenes lie, instead of the usual place" },
		{ "list-scenes", 'l', ARGV_FLAG, &o.list_scenes, NULL, "show all scenes" },
		{ "library", 0, ARGV_FLAG, &o.library, NULL, "print the path of the libcuda.so.1 that it uses" },
		{ "status-file", 's', ARGV_STRING, &o.status, "PATH", "publish counters there" },
		{ "threads", 't', ARGV_STRING, &o.threads, "N", "heartbeat threads" },
		{ "beat-us", 'b', ARGV_STRING, &o.beat_us, "US",
		  "pause between beats; 0 burns a CPU" },
		{ "version", 0, ARGV_FLAG, &o.version, NULL, "show the version" },
		{ "help", 'h', ARGV_FLAG, &o.help, NULL, "this text" },
		{ NULL },
	};
	const struct argv_option *const tables[] = { table, NULL };
	char error[160] = "unexpected argument";
	int r = argv_parse(argc, argv, tables, error, sizeof(error));

	if (r) {
		fprintf(stderr, "cuda-simapp: %s\n", error);
		return 2;
	}
	if (o.help)
		help(table);
	else if (o.version)
		puts("gpu-agent-cuda-simapp " GPU_AGENT_VERSION);
	else if (o.library)
		print_library();
	else if (o.list_scenes)
		scene_list("cuda", o.scene_dir, stdout);
	else
		return run(&o);
	return 0;
}
