/* SPDX-License-Identifier: MIT */
/* gpu-agent-cuda-simapp: uses the CUDA driver as a program does, under a small script. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/out.h"
#include "base/str.h"
#include "sim/app/process.h"
#include "sim/cuda/driver/libcuda.h"

/* Bytes of the largest cubin. */
#define CUBIN_MAX      ((size_t)16 << 20)
#define DEFAULT_SCRIPT "init; context 0; listen"

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
	void *context, *module;
	struct out passed; /* A line for each launch that was given arguments. */
} app;

static struct process program;

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
	path = scene_file(program.script.directory, w->w[1]);
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

/* Spend all time in user space, so that a debugger does not find the thread in a system call. */
static int cmd_burn(const struct words *w)
{
	process_ready(&program);
	for (volatile uint64_t i = 0;; i++)
		;
	return 0;
}

/* A thread that ends soon. */
static void *short_life(void *arg)
{
	process_pause_us(100);
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
	uint64_t n;
	int r = 0;

	if (words_number(w, 1, 1, 16, &n))
		return -EINVAL;
	for (uint64_t i = 0; i < n && !r; i++)
		r = process_start_thread(storm, NULL, false);
	return r;
}

/*
 * A thread that has the lock that attaching needs nearly always: a debugger that stops it cannot
 * attach.
 */
static void *lock_holder(void *arg)
{
	for (;;) {
		cudasim_lock();
		process_pause_us(20000);
		cudasim_unlock();
		process_pause_us(100);
	}
	return NULL;
}

static int cmd_lock_holder(const struct words *w)
{
	return process_start_thread(lock_holder, NULL, false);
}

static void *signals_run(void *arg)
{
	for (;;) {
		kill(getpid(), PROCESS_SIGNAL);
		process_pause_us((uintptr_t)arg);
	}
	return NULL;
}

/* Raise a real-time signal against the process every US microseconds. */
static int cmd_signals(const struct words *w)
{
	uint64_t us;

	if (words_number(w, 1, 1000, 1000000, &us))
		return -EINVAL;
	process_count_signals(&program);
	return process_start_thread(signals_run, (void *)(uintptr_t)us, false);
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
	{ "burn", cmd_burn, "ready, then use the CPU until killed" },
	{ "thread-storm", cmd_thread_storm, "[N]: threads that make threads" },
	{ "lock-holder", cmd_lock_holder, "a thread with the lock that attaching needs" },
	{ "signals", cmd_signals, "[US]: real-time signals against itself" },
};

static int run_command(struct process *p, const struct words *w)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(commands[i].name, w->w[0]))
			return commands[i].run(w);
	return -ENOSYS;
}

static void print_ready(struct process *p)
{
	printf("ready pid=%d\n%s", getpid(), app.passed.data ? app.passed.data : "");
}

static struct process program = {
	.program = "cuda-simapp",
	.vendor = "cuda",
	.default_script = DEFAULT_SCRIPT,
	.print_ready = print_ready,
	.run = run_command,
};

/* ---- main ---- */

static void help(const struct argv_option *table)
{
	puts("usage: gpu-agent-cuda-simapp [OPTIONS]\n"
	     "Use the CUDA driver as a program does.  Default script: " DEFAULT_SCRIPT);
	argv_print_options(table);
	puts("Commands, separated by ';' or newlines:");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		printf("  %-16s %s\n", commands[i].name, commands[i].help);
	process_help();
}

static int run(const struct process_options *o)
{
	unsigned int threads;
	int r = process_begin(&program, o, &threads);

	if (r)
		return r;
	r = process_start_beats(&program, threads);
	if (r)
		return process_fail(&program, "threads", r);
	return process_run_script(&program, program.script.text, program.script.size) ? 1 : 0;
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
	struct process_options o = { 0 };
	bool library = false;
	const struct argv_option table[] = {
		{ "library", 0, ARGV_FLAG, &library, NULL, "print the path of the libcuda.so.1 that it uses" },
		PROCESS_OPTIONS(o),
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
	else if (library)
		print_library();
	else if (o.list_scenes)
		scene_list("cuda", o.scene_dir, stdout);
	else
		r = run(&o);
	scene_deinit(&program.script);
	return r;
}
