/* SPDX-License-Identifier: MIT */
/* A file in the program's memory, at a place that is chosen. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>

#include "app.h"
#include "base/cleanup.h"

int device_map_file(uint64_t address, const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *at = fd < 0 ? MAP_FAILED : mmap((void *)(uintptr_t)address, 1 << 16, PROT_READ,
					      MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);

	return at == MAP_FAILED ? -errno : 0;
}
