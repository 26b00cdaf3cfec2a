/* SPDX-License-Identifier: MIT */
/*
 * What a ROCm runtime does to /dev/kfd on a machine without GPU, and nothing else: open it, turn
 * the runtime on and off with an own r_debug, repeating interrupted calls.
 *
 * One word a line on standard input; "WORD RESULT" on standard output, RESULT being 0 or -errno:
 *	open, close, on, off, exec, exit, nodump (become undumpable), disable (end whatever session there is
 *	on this process), leader (the main thread ends, the other one stays); pid is answered with the process id.
 * Two threads, as any real program: a target with one thread hides who is signalled.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "libkfdtrap/src/kfd_abi.h"

/* As ROCr 6.1 publishes it before the first code object is loaded. */
static struct {
	int32_t version;
	void *map;
	uint64_t brk;
	int32_t state;
	uint64_t base;
} r_debug = { .version = 9 };

static const char *device = "/dev/kfd";
static int kfd = -1;

static int do_open(void)
{
	kfd = open(device, O_RDWR | O_CLOEXEC);
	return kfd < 0 ? -errno : 0;
}

static int do_close(void)
{
	return close(TAKE_FD(kfd)) < 0 ? -errno : 0;
}

static int set_runtime(bool on)
{
	struct kfdabi_runtime_enable_args args = {
		.r_debug = on ? (uint64_t)(uintptr_t)&r_debug : 0,
		.mode_mask = on ? 1 : 0,
	};
	int r;

	do
		r = ioctl(kfd, KFDABI_IOC_RUNTIME_ENABLE, &args);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

/* Every process may do that to itself. */
static int do_disable(void)
{
	struct kfdabi_dbg_args args = { .pid = (uint32_t)getpid(), .op = KFDABI_DBG_DISABLE };

	return ioctl(kfd, KFDABI_IOC_DBG_TRAP, &args) < 0 ? -errno : 0;
}

static void *idle(void *arg)
{
	while (pause() < 0)
		;
	return arg;
}

static int do_exec(char **argv)
{
	execv("/proc/self/exe", argv);
	return -errno;
}

static int command(const char *word, char **argv)
{
	if (!strcmp(word, "pid"))
		return getpid();
	if (!strcmp(word, "open"))
		return do_open();
	if (!strcmp(word, "close"))
		return do_close();
	if (!strcmp(word, "on") || !strcmp(word, "off"))
		return set_runtime(!strcmp(word, "on"));
	if (!strcmp(word, "nodump"))
		return prctl(PR_SET_DUMPABLE, 0) < 0 ? -errno : 0;
	if (!strcmp(word, "exec"))
		return do_exec(argv);
	if (!strcmp(word, "disable"))
		return do_disable();
	if (!strcmp(word, "leader"))
		pthread_exit(NULL);
	if (!strcmp(word, "exit"))
		_exit(0);
	return -EINVAL;
}

int main(int argc, char **argv)
{
	char line[64];
	pthread_t thread;

	if (argc > 1)
		device = argv[1];
	r_debug.brk = (uint64_t)(uintptr_t)&set_runtime;
	if (pthread_create(&thread, NULL, idle, NULL))
		return 1;
	printf("ready %llx\n", (unsigned long long)(uintptr_t)&r_debug);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		printf("%s %d\n", line, command(line, argv));
		fflush(stdout);
	}
	return 0;
}
