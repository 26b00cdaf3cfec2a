/* SPDX-License-Identifier: MIT */
/*
 * A HIP program: copies to the GPU and back, launches a kernel, waits for it.
 *
 * usage: rocm_hip CODE_OBJECT KERNEL MIB
 * Each line of standard input is a step, which prints "ok STEP" and what it found: "copy"; "launch";
 * "fork", whose child sleeps for two minutes; "exec COMMAND...", which prints what that prints.
 * The few calls are declared here: the header wants a compiler of its own.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct hip_module *module;
typedef struct hip_function *function;
int hipMalloc(void **ret, size_t size);
int hipFree(void *p);
int hipMemcpy(void *to, const void *from, size_t size, int kind);
int hipModuleLoad(module *ret, const char *path);
int hipModuleGetFunction(function *ret, module m, const char *name);
int hipModuleLaunchKernel(function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
			  unsigned bz, unsigned shared, void *stream, void **arguments, void **extra);
int hipDeviceSynchronize(void);
enum { HOST_TO_DEVICE = 1, DEVICE_TO_HOST = 2 };

static void check(int r, const char *what)
{
	if (!r)
		return;
	printf("error %s %d\n", what, r);
	exit(1);
}

/* Copy there and back; a sum of what came back, and how many words differ. */
static void copy(size_t size)
{
	uint32_t *from = malloc(size), *to = calloc(1, size), state = 1;
	uint64_t sum = 0, wrong = 0;
	void *gpu;

	for (size_t i = 0; i < size / 4; i++)
		from[i] = state = state * 1664525u + 1013904223u;
	check(hipMalloc(&gpu, size), "hipMalloc");
	check(hipMemcpy(gpu, from, size, HOST_TO_DEVICE), "to the GPU");
	check(hipMemcpy(to, gpu, size, DEVICE_TO_HOST), "from the GPU");
	for (size_t i = 0; i < size / 4; i++) {
		sum = sum * 31 + to[i];
		wrong += to[i] != from[i];
	}
	check(hipFree(gpu), "hipFree");
	printf("ok copy %016llx wrong %llu\n", (unsigned long long)sum, (unsigned long long)wrong);
	free(from);
	free(to);
}

static void launch(const char *path, const char *name)
{
	static uint64_t arguments[64];
	void *list[64];
	function f;
	module m;

	for (size_t i = 0; i < 64; i++)
		list[i] = &arguments[i];
	check(hipModuleLoad(&m, path), "hipModuleLoad");
	check(hipModuleGetFunction(&f, m, name), "hipModuleGetFunction");
	check(hipModuleLaunchKernel(f, 4, 1, 1, 256, 1, 1, 0, NULL, list, NULL), "launch");
	printf("launched\n");
	fflush(stdout);
	check(hipDeviceSynchronize(), "hipDeviceSynchronize");
	printf("ok launch\n");
}

static void fork_child(void)
{
	pid_t child = fork();

	if (!child) {
		alarm(120);
		for (;;)
			pause();
	}
	check(child < 0, "fork");
	printf("ok fork %d\n", (int)child);
}

static void exec_command(char *words)
{
	char *argv[16], *save = NULL;
	size_t n = 0;

	for (char *w = strtok_r(words, " \n", &save); w && n < 15; w = strtok_r(NULL, " \n", &save))
		argv[n++] = w;
	argv[n] = NULL;
	execv(argv[0], argv);
	check(1, "exec");
}

int main(int argc, char **argv)
{
	char line[1024];
	void *gpu;

	if (argc != 4)
		return 2;
	check(hipMalloc(&gpu, 4096), "first hipMalloc");
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "copy\n"))
			copy((size_t)atoi(argv[3]) << 20);
		else if (!strcmp(line, "fork\n"))
			fork_child();
		else if (!strncmp(line, "exec ", 5))
			exec_command(line + 5);
		else
			launch(argv[1], argv[2]);
		fflush(stdout);
	}
	return 0;
}
