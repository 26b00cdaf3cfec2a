/* SPDX-License-Identifier: MIT */
/* What is in the program's memory, at a place that is chosen. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "app.h"
#include "base/cleanup.h"

int device_map_file(uint64_t address, const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *at = fd < 0 ? MAP_FAILED : mmap((void *)(uintptr_t)address, 1 << 16, PROT_READ,
					      MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);

	return at == MAP_FAILED ? -errno : 0;
}

int device_write_memory(uint64_t address, const void *bytes, size_t size)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), begin = address / page * page;
	auto_close int fd = open("/proc/self/mem", O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	if (address > UINT64_MAX - size - page)
		return -EINVAL;
	for (uint64_t at = begin; at < address + size; at += page)
		if (mmap((void *)(uintptr_t)at, page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED && errno != EEXIST)
			return -errno;
	/* What is there already may be no memory to write to: so it fails rather than end the program. */
	n = pwrite(fd, bytes, size, (off_t)address);
	return n < 0 ? -errno : (size_t)n == size ? 0 : -EIO;
}
