/* SPDX-License-Identifier: MIT */
#include "agentd/worker/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define PAGE UINT64_C(4096)
#define CHUNK_MAX (UINT64_C(64) * 1024)

int memory_open(struct memory *m, pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	m->fd = open(path, O_RDONLY | O_CLOEXEC);
	return m->fd < 0 ? -errno : 0;
}

void memory_close(struct memory *m)
{
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
}

static ssize_t read_once(const struct memory *m, uint64_t address, void *buf, size_t size)
{
	ssize_t n;

	do
		n = m->pread ? m->pread(m->fd, buf, size, (off_t)address) :
			       pread(m->fd, buf, size, (off_t)address);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* One chunk, which does not cross a CHUNK_MAX boundary: whole, then page by page. */
static ssize_t read_chunk(const struct memory *m, uint64_t address, char *buf, size_t size)
{
	ssize_t n = read_once(m, address, buf, size);
	size_t done = n > 0 ? (size_t)n : 0;

	while (done < size) {
		uint64_t at = address + done;
		size_t piece = (size_t)(PAGE - at % PAGE);

		if (piece > size - done)
			piece = size - done;
		n = read_once(m, at, buf + done, piece);
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return done ? (ssize_t)done : n;
}

ssize_t memory_read(const struct memory *m, uint64_t address, void *buf, size_t size)
{
	size_t done = 0;
	ssize_t n = 0;

	if (m->fd < 0)
		return -EBADF;
	/* The file's offset is signed, and no user address is that high. */
	if (address > INT64_MAX || size > INT64_MAX - address)
		return -EFAULT;
	while (done < size) {
		uint64_t at = address + done;
		size_t piece = (size_t)(CHUNK_MAX - at % CHUNK_MAX);

		if (piece > size - done)
			piece = size - done;
		n = read_chunk(m, at, (char *)buf + done, piece);
		if (n <= 0)
			break;
		done += (size_t)n;
		if ((size_t)n < piece)
			break;
	}
	if (done)
		return (ssize_t)done;
	/* procfs calls an unmapped address EIO; 0 bytes mean that the address space is gone. */
	return n == -EIO ? -EFAULT : n == 0 && size ? -ESRCH : n;
}

int memory_read_exact(const struct memory *m, uint64_t address, void *buf, size_t size)
{
	ssize_t n = memory_read(m, address, buf, size);

	if (n < 0)
		return (int)n;
	return (size_t)n == size ? 0 : -EFAULT;
}
