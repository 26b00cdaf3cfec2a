/* SPDX-License-Identifier: MIT */
/*
 * A program that is no interpreter and says that it is one.
 * usage: forged circle | sizes | unmapped | random SEED | silent [nobody]
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIZE (1 << 16)

/* 3.11: the row of constants is used, so that everything behind it is ours. */
#define EXPORTED __attribute__((visibility("default")))
extern EXPORTED unsigned long Py_Version;
extern EXPORTED unsigned char _PyRuntime[SIZE];
unsigned long Py_Version = 0x030b02f0;
unsigned char _PyRuntime[SIZE] = { 1 };

static void put(size_t at, uint64_t value)
{
	memcpy(_PyRuntime + at, &value, sizeof(value));
}

static uint64_t address(size_t at)
{
	return (uint64_t)(uintptr_t)(_PyRuntime + at);
}

/* An interpreter at 4096 with one thread at 8192, of this process, whose frames are at 16384. */
static void make_thread(void)
{
	put(40, address(4096));
	put(4096 + 48, 0);
	put(4096 + 16, address(8192));
	put(8192 + 16, address(4096));
	put(8192 + 152, 1);
	put(8192 + 160, (uint64_t)getpid());
	put(8192 + 56, address(12288));
	put(12288 + 8, address(16384));
	put(16384 + 32, address(20480));
}

/* A page that nobody ever brings. */
static uint64_t silent_page(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_api api = { .api = UFFD_API };
	void *page = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register r = { .range = { (uintptr_t)page, 1 << 20 }, .mode = UFFDIO_REGISTER_MODE_MISSING };

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) < 0 || ioctl(fd, UFFDIO_REGISTER, &r) < 0)
		return 0;
	return (uintptr_t)page;
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";

	make_thread();
	if (!strcmp(kind, "circle")) {
		put(16384 + 48, address(24576));
		put(24576 + 32, address(20480));
		put(24576 + 48, address(16384));
		put(8192 + 8, address(8192));
		put(4096, address(4096));
	} else if (!strcmp(kind, "sizes")) {
		put(8192 + 296, address(28672));
		put(28672 + 8, UINT64_MAX);
		put(20480 + 16, UINT64_MAX);
	} else if (!strcmp(kind, "unmapped")) {
		put(8192 + 8, 0x10);
		put(4096, UINT64_MAX - 7);
		put(16384 + 48, UINT64_MAX - 7);
	} else if (!strcmp(kind, "random")) {
		srand((unsigned)atoi(argv[2]));
		for (size_t i = 64; i < SIZE; i += 8)
			if (rand() % 3 == 0)
				put(i, rand() % 2 ? address((size_t)rand() % SIZE & ~7u) :
						    (uint64_t)rand() << rand() % 33);
		put(40, address(4096));
	} else {
		uint64_t page = silent_page();

		if (!page) {
			puts("none");
			return 0;
		}
		put(8192 + 8, page);
		/* Of a user without rights the reader takes the direct way to the memory. */
		if (argc > 2 && (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0 ||
				 prctl(PR_SET_DUMPABLE, 1) < 0))
			return 1;
	}
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
