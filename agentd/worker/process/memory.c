/* SPDX-License-Identifier: MIT */
#include "agentd/worker/process/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/page.h"

/* Most bytes of one read; if it fails, no more than its pages have to be read one by one. */
#define CHUNK_MAX (UINT64_C(64) * 1024)
/* Most bytes between two pieces that are copied for nothing, so that the pieces are one run. */
#define GAP_MAX	  2048u

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

/* Read a chunk that crosses no CHUNK_MAX boundary: first as a whole, then page by page. */
static ssize_t read_chunk(const struct memory *m, uint64_t address, char *buf, size_t size)
{
	ssize_t n = read_once(m, address, buf, size);
	size_t done = n > 0 ? (size_t)n : 0;

	while (done < size) {
		uint64_t at = address + done;
		size_t piece = (size_t)(page_bytes() - at % page_bytes());

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

	if (m->read)
		return m->read(m->source, address, buf, size);
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

/* The arguments of one process_vm_readv(). */
struct vectors {
	struct iovec local[MEMORY_PIECES_MAX], remote[MEMORY_PIECES_MAX];
	size_t n_local, n_remote;
	uint8_t gap[GAP_MAX]; /* Takes the bytes between neighbours, which nobody reads. */
};

/* Does @p lower end at or below the start of @p upper, at most GAP_MAX bytes away? */
static bool is_below(const struct memory_piece *lower, const struct memory_piece *upper)
{
	return lower->address <= upper->address && lower->size <= upper->address - lower->address &&
	       upper->address - lower->address - lower->size <= GAP_MAX;
}

static void add_local(struct vectors *v, void *buf, size_t size)
{
	if (size)
		v->local[v->n_local++] = (struct iovec){ buf, size };
}

/*
 * Add the pieces of one run.  Neighbours, which come from high to low, become one remote vector:
 * the kernel takes longer to find a page than to copy half of it.
 * @return the number of pieces added; 0 if no further one fits.
 */
static size_t add_run(struct vectors *v, const struct memory_piece *pieces, size_t n)
{
	size_t room = (MEMORY_PIECES_MAX - v->n_local + 1) / 2, run = 1;

	/* Empty pieces have no local vector. */
	if (!room || v->n_remote == MEMORY_PIECES_MAX)
		return 0;
	while (run < n && run < room && is_below(&pieces[run], &pieces[run - 1]))
		run++;
	for (size_t i = run; i-- > 0;) {
		const struct memory_piece *p = &pieces[i];

		add_local(v, p->buf, p->size);
		if (i)
			add_local(v, v->gap,
				  (size_t)(pieces[i - 1].address - p->address - p->size));
	}
	v->remote[v->n_remote++] = (struct iovec){
		(void *)(uintptr_t)pieces[run - 1].address,
		(size_t)(pieces[0].address + pieces[0].size - pieces[run - 1].address),
	};
	return run;
}

/*
 * Read as many pieces as one system call takes.
 * @param ret_end  The pieces from the answer up to this one have to be read in another way.
 * @return the number of pieces read, from the first on; -errno if not even one byte was.
 */
static ssize_t read_runs(pid_t pid, const struct memory_piece *pieces, size_t n, size_t *ret_end)
{
	struct vectors v = { .n_local = 0 };
	size_t ends[MEMORY_PIECES_MAX], done = 0, end = 0;
	ssize_t left;

	for (size_t run; end < n && (run = add_run(&v, pieces + end, n - end)) > 0;) {
		end += run;
		ends[v.n_remote - 1] = end;
	}
	left = process_vm_readv(pid, v.local, v.n_local, v.remote, v.n_remote, 0);
	if (left < 0) {
		*ret_end = ends[0];
		return -errno;
	}
	while (done < v.n_remote && (size_t)left >= v.remote[done].iov_len)
		left -= (ssize_t)v.remote[done++].iov_len;
	*ret_end = done < v.n_remote ? ends[done] : end;
	return done ? (ssize_t)ends[done - 1] : 0;
}

void memory_read_pieces(const struct memory *m, struct memory_piece *pieces, size_t n)
{
	bool direct = m->pid > 0;

	for (size_t begin = 0; begin < n;) {
		size_t end = n - begin;
		ssize_t n_read = direct ? read_runs(m->pid, pieces + begin, n - begin, &end) : 0;

		/* The kernel refuses such reads of this target: the next would fail, too. */
		if (n_read < 0 && n_read != -EFAULT)
			direct = false;
		for (size_t i = 0; i < end; i++) {
			struct memory_piece *p = &pieces[begin + i];

			p->ok = (ssize_t)i < n_read ||
				memory_read_exact(m, p->address, p->buf, p->size) == 0;
		}
		begin += end;
	}
}
