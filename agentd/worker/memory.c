/* SPDX-License-Identifier: MIT */
#include "agentd/worker/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE UINT64_C(4096)
#define CHUNK_MAX (UINT64_C(64) * 1024)

int memory_open(struct memory *m, pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	m->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (m->fd < 0)
		return -errno;
	m->pid = pid;
	return 0;
}

void memory_close(struct memory *m)
{
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
	m->pid = 0;
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

/* @return how many pieces were read, from the first on; -errno when not even one byte was. */
static ssize_t read_run(pid_t pid, const struct memory_piece *pieces, size_t n)
{
	struct iovec local[MEMORY_PIECES_MAX], remote[MEMORY_PIECES_MAX];
	size_t done = 0;
	ssize_t left;

	for (size_t i = 0; i < n; i++) {
		local[i] = (struct iovec){ pieces[i].buf, pieces[i].size };
		remote[i] = (struct iovec){ (void *)(uintptr_t)pieces[i].address, pieces[i].size };
	}
	left = process_vm_readv(pid, local, n, remote, n, 0);
	if (left < 0)
		return -errno;
	while (done < n && (size_t)left >= pieces[done].size)
		left -= (ssize_t)pieces[done++].size;
	return (ssize_t)done;
}

void memory_read_pieces(const struct memory *m, struct memory_piece *pieces, size_t n)
{
	bool direct = m->pid > 0;

	for (size_t i = 0; i < n;) {
		size_t at_once = n - i < MEMORY_PIECES_MAX ? n - i : MEMORY_PIECES_MAX;
		ssize_t run = direct ? read_run(m->pid, pieces + i, at_once) : 0;

		/* Refused as a whole, by whatever guards the process: no use to ask again. */
		if (run < 0 && run != -EFAULT)
			direct = false;
		for (ssize_t end = run; end > 0; end--)
			pieces[i++].ok = true;
		if (run < (ssize_t)at_once) {
			struct memory_piece *p = &pieces[i++];

			p->ok = memory_read_exact(m, p->address, p->buf, p->size) == 0;
		}
	}
}
