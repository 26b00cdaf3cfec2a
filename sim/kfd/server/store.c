/* SPDX-License-Identifier: MIT */
/* The store is a memory file as long as a file can be: nothing of it exists before it is touched. */
#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int store = -1;

int store_fd(void)
{
	if (store >= 0)
		return store;
	store = memfd_create("gpu-agent-sim", MFD_CLOEXEC);
	if (store < 0)
		return -errno;
	/* Behind the end of the file, what is mapped could not be touched. */
	if (ftruncate(store, INT64_MAX)) {
		int r = -errno;

		close(store);
		store = -1;
		return r;
	}
	return store;
}

int store_read(uint64_t offset, void *buf, size_t size)
{
	return pread(store, buf, size, (off_t)offset) == (ssize_t)size ? 0 : -EFAULT;
}

int store_write(uint64_t offset, const void *buf, size_t size)
{
	return pwrite(store, buf, size, (off_t)offset) == (ssize_t)size ? 0 : -EFAULT;
}

void store_free(uint64_t offset, uint64_t size)
{
	fallocate(store, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)size);
}

uint64_t store_used(void)
{
	struct stat st;

	return store >= 0 && !fstat(store, &st) ? (uint64_t)st.st_blocks * 512 : 0;
}
