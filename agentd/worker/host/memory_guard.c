/* SPDX-License-Identifier: MIT */
#include "agentd/worker/host/memory_guard.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "agentd/worker/process/mappings.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "base/vec.h"

/* A program that maps without pause is read as it was. */
#define REFRESH_MAX 64
#define PIECES_MAX  512

/* The kernel's own library, in each process. */
static bool is_vdso(const struct mapping *m)
{
	return !strcmp(m->path, "[vdso]");
}

/* Ordinary memory and files; /dev/shm is a file system, and /dev/zero is memory. */
static bool may_be_read(const struct mapping *m)
{
	if (!m->readable || m->path[0] == '[')
		return m->readable && (str_starts_with(m->path, "[heap]") || str_starts_with(m->path, "[stack") ||
				       str_starts_with(m->path, "[anon") || is_vdso(m));
	return !str_starts_with(m->path, "/dev/") || str_starts_with(m->path, "/dev/shm/") ||
	       str_starts_with(m->path, "/dev/zero");
}

int memory_guard_add_file(struct memory_guard *g, uint64_t begin, const char *path)
{
	char *copy;

	if (g->n_files >= MEMORY_GUARD_FILES_MAX) {
		g->is_cut = true;
		return 0;
	}
	if (vec_reserve(&g->files, g->n_files, 1, &g->files_capacity, sizeof(*g->files)) < 0)
		return -ENOMEM;
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	g->files[g->n_files++] = (struct guard_file){ .begin = begin, .path = copy };
	return 0;
}

static void forget_files(struct memory_guard *g)
{
	for (size_t i = 0; i < g->n_files; i++)
		free(g->files[i].path);
	g->n_files = 0;
}

/* What processes share has a path as well, such as each tensor that a worker of a data loader hands on. */
static bool is_shared_memory(const char *path)
{
	return str_starts_with(path, "/dev/") || str_starts_with(path, "/memfd:") || str_starts_with(path, "/SYSV");
}

/* There may be thousands of these in front of the libraries: the last file is one only if there was code of it. */
static void drop_data(struct memory_guard *g)
{
	const struct guard_file *last = g->n_files ? &g->files[g->n_files - 1] : NULL;

	if (!last || last->has_code || !is_shared_memory(last->path))
		return;
	free(last->path);
	g->n_files--;
}

static int take_file(struct memory_guard *g, const struct mapping *m)
{
	int r = 0;

	if ((m->offset == 0 && m->path[0] == '/') || is_vdso(m)) {
		drop_data(g);
		r = memory_guard_add_file(g, m->begin, m->path);
	}
	if (r == 0 && m->executable && g->n_files && !strcmp(g->files[g->n_files - 1].path, m->path))
		g->files[g->n_files - 1].has_code = true;
	return r;
}

static void take(void *ctx, const struct mapping *m)
{
	struct memory_guard *g = ctx;

	if (g->error || !may_be_read(m))
		return;
	g->error = take_file(g, m);
	if (g->error)
		return;
	if (g->n && g->ranges[g->n - 1].end == m->begin) {
		g->ranges[g->n - 1].end = m->end;
		return;
	}
	g->error = vec_reserve(&g->ranges, g->n, 1, &g->capacity, sizeof(*g->ranges));
	if (g->error == 0)
		g->ranges[g->n++] = (struct guard_range){ m->begin, m->end };
}

int memory_guard_refresh(struct memory_guard *g)
{
	int r;

	if (g->maps_fd < 0)
		return 0;
	forget_files(g);
	g->n = 0;
	g->error = 0;
	g->is_cut = false;
	r = mappings_read(g->maps_fd, take, g);
	drop_data(g);
	return r < 0 ? r : g->error;
}

void memory_guard_deinit(struct memory_guard *g)
{
	forget_files(g);
	free(g->ranges);
	free(g->files);
	g->ranges = NULL;
	g->files = NULL;
}

static bool is_inside(const struct memory_guard *g, uint64_t address, size_t size)
{
	size_t low = 0, high = g->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (g->ranges[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < g->n && g->ranges[low].begin <= address && size <= g->ranges[low].end - address;
}

static bool are_inside(const struct memory_guard *g, const struct hoststack_piece *pieces, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (pieces[i].size && !is_inside(g, pieces[i].address, pieces[i].size))
			return false;
	return true;
}

/* @return 0, -errno of the call; -EPERM also where it is not allowed to this process. */
static int read_direct(pid_t pid, const struct hoststack_piece *pieces, size_t n)
{
	struct iovec local[PIECES_MAX], remote[PIECES_MAX];
	size_t sum = 0;
	ssize_t done;

	for (size_t i = 0; i < n; i++) {
		local[i] = (struct iovec){ pieces[i].buf, pieces[i].size };
		remote[i] = (struct iovec){ (void *)(uintptr_t)pieces[i].address, pieces[i].size };
		sum += pieces[i].size;
	}
	done = process_vm_readv(pid, local, n, remote, n, 0);
	if (done < 0)
		return -errno;
	return (size_t)done == sum ? 0 : -EFAULT;
}

int memory_guard_read(void *ctx, const struct hoststack_piece *pieces, size_t n)
{
	struct memory_guard *g = ctx;
	int r = -EPERM;

	if (n > PIECES_MAX)
		return -EINVAL;
	/* It may have been mapped since. */
	if (!are_inside(g, pieces, n) &&
	    (g->n_refreshed++ >= REFRESH_MAX || memory_guard_refresh(g) < 0 || !are_inside(g, pieces, n)))
		return -EFAULT;
	if (!g->is_indirect)
		r = read_direct(g->memory->pid, pieces, n);
	g->is_indirect |= r == -EPERM;
	if (!g->is_indirect)
		return r;
	r = 0;
	for (size_t i = 0; r == 0 && i < n; i++)
		r = memory_read_exact(g->memory, pieces[i].address, pieces[i].buf, pieces[i].size);
	return r;
}
