/* SPDX-License-Identifier: MIT */
#include "agentd/worker/host/core_memory.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentd/worker/process/code_file.h"
#include "base/elf_view.h"

/* The first page has the headers, and mostly the build id: files that agree in it are of one build. */
#define FIRST_BYTES 4096u
/* Parts of one file lie beside each other, but for libraries that are loaded in between. */
#define NEAR_MAX 16
/* Files with a mapping of their first byte. */
#define LOADED_MAX 8192

/* ------------------------------------------------------------------ lists -------------------- */

static struct core_loaded *find_owner(struct core_memory *m, const struct corefile_mapping *p)
{
	for (size_t i = m->n_loaded; i-- > 0 && m->n_loaded - i <= NEAR_MAX;)
		if (!strcmp(m->loaded[i].path, p->path))
			return &m->loaded[i];
	return NULL;
}

static void assign_owners(struct core_memory *m)
{
	for (size_t i = 0; i < m->mappings.n; i++) {
		const struct corefile_mapping *p = &m->mappings.list[i];

		if (p->offset == 0 && m->n_loaded < LOADED_MAX)
			m->loaded[m->n_loaded++] = (struct core_loaded){ .base = p->begin, .path = p->path, .fd = -1 };
		m->owners[i] = find_owner(m, p);
	}
}

static void take_note(struct core_memory *m, const struct amdcore_note *n)
{
	if (strcmp(n->name, "CORE") != 0)
		return;
	if (n->type == NT_AUXV)
		m->vdso = elf_auxv_find(n->desc, n->size, AT_SYSINFO_EHDR);
	else if (n->type == NT_FILE && !m->mappings.list)
		(void)corefile_mappings_read(n->desc, n->size, &m->mappings);
}

int core_memory_init(struct core_memory *m, const struct amdcore *core, int root_fd)
{
	*m = (struct core_memory){ .core = core, .root_fd = root_fd };
	for (uint32_t i = 0; i < core->n_notes; i++)
		take_note(m, &core->notes[i]);
	m->owners = calloc(m->mappings.n + 1, sizeof(struct core_loaded *));
	m->loaded = calloc(m->mappings.n < LOADED_MAX ? m->mappings.n + 1 : LOADED_MAX, sizeof(*m->loaded));
	if (!m->owners || !m->loaded)
		return -ENOMEM;
	assign_owners(m);
	return 0;
}

void core_memory_deinit(struct core_memory *m)
{
	for (size_t i = 0; i < m->n_loaded; i++)
		if (m->loaded[i].fd >= 0)
			close(m->loaded[i].fd);
	free(m->mappings.list);
	free(m->owners);
	free(m->loaded);
	*m = (struct core_memory){ .root_fd = -1 };
}

int core_memory_list(const struct core_memory *m, struct memory_guard *g)
{
	bool has_vdso = !m->vdso;
	int r = 0;

	/* By address. */
	for (size_t i = 0; i < m->n_loaded && r == 0; i++) {
		if (!has_vdso && m->loaded[i].base > m->vdso) {
			has_vdso = true;
			r = memory_guard_add_file(g, m->vdso, "[vdso]");
		}
		if (r == 0)
			r = memory_guard_add_file(g, m->loaded[i].base, m->loaded[i].path);
	}
	return r == 0 && !has_vdso ? memory_guard_add_file(g, m->vdso, "[vdso]") : r;
}

size_t core_memory_not_read(const struct core_memory *m, const struct core_loaded **ret_first)
{
	size_t n = 0;

	for (size_t i = m->n_loaded; i-- > 0;)
		if (m->loaded[i].state == CORE_FILE_OTHER) {
			*ret_first = &m->loaded[i];
			n++;
		}
	return n;
}

/* ------------------------------------------------------------------ files -------------------- */

static bool read_core(const struct core_memory *m, uint64_t address, uint8_t *buf, size_t size)
{
	size_t done = 0, n = 1;

	while (done < size && n) {
		n = amdcore_read_memory(m->core, address + done, buf + done, size - done);
		done += n;
	}
	return done == size;
}

/* What is loaded from the file and cannot be written, as the headers in its first page say. */
static void find_parts(struct core_loaded *l, const uint8_t *first, size_t size)
{
	struct elf_view v;

	l->n_parts = 0;
	if (elf_view_init(&v, first, size) < 0)
		return;
	for (size_t i = 0; i < v.n_segments && l->n_parts < CORE_PARTS_MAX; i++) {
		const Elf64_Phdr p = elf_view_segment(&v, i);

		if (p.p_type != PT_LOAD || p.p_flags & PF_W || p.p_filesz > UINT64_MAX - p.p_offset)
			continue;
		l->parts[l->n_parts].begin = p.p_offset;
		l->parts[l->n_parts++].end = p.p_offset + p.p_filesz;
	}
}

/* The descriptor that was opened longest ago makes room. */
static void keep_open(struct core_memory *m, struct core_loaded *l, int fd)
{
	struct core_loaded **slot = &m->open[m->n_opened++ % CORE_FILES_OPEN];

	if (*slot) {
		close((*slot)->fd);
		(*slot)->fd = -1;
	}
	*slot = l;
	l->fd = fd;
}

static void open_file(struct core_memory *m, struct core_loaded *l)
{
	uint8_t ours[FIRST_BYTES], theirs[FIRST_BYTES];
	struct stat st;
	ssize_t n;
	int fd;

	/* Data files are mapped, too: what the core does not show as a program or library is of no use. */
	l->state = CORE_FILE_NONE;
	if (!read_core(m, l->base, theirs, sizeof(theirs)) || memcmp(theirs, ELFMAG, SELFMAG) != 0)
		return;
	l->state = CORE_FILE_OTHER;
	fd = code_file_open(m->root_fd, l->path, &st);
	if (fd < 0) {
		l->error = fd;
		return;
	}
	n = pread(fd, ours, sizeof(ours), 0);
	/* A short file ends with zeros in memory. */
	if (n > 0)
		memset(ours + n, 0, sizeof(ours) - (size_t)n);
	if (n <= 0 || memcmp(ours, theirs, sizeof(ours)) != 0) {
		close(fd);
		return;
	}
	l->state = CORE_FILE_SAME;
	find_parts(l, ours, sizeof(ours));
	keep_open(m, l, fd);
}

/* @return the mapping that has an address, by its place in the list; the list's length if none has. */
static size_t find_mapping(const struct core_memory *m, uint64_t address)
{
	size_t low = 0, high = m->mappings.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (m->mappings.list[middle].begin <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address < m->mappings.list[low - 1].end ? low - 1 : m->mappings.n;
}

/* @return bytes that were read, 0: this address is of no file that may be read. */
static size_t read_file(struct core_memory *m, uint64_t address, uint8_t *buf, size_t size)
{
	const size_t at = find_mapping(m, address);
	struct core_loaded *l = at < m->mappings.n ? m->owners[at] : NULL;
	const struct corefile_mapping *p;
	uint64_t offset;
	ssize_t n;

	if (!l)
		return 0;
	p = &m->mappings.list[at];
	if (l->state == CORE_FILE_UNTRIED || (l->state == CORE_FILE_SAME && l->fd < 0))
		open_file(m, l);
	if (l->state != CORE_FILE_SAME)
		return 0;
	offset = address - p->begin + p->offset;
	size = size < p->end - address ? size : (size_t)(p->end - address);
	for (size_t i = 0; i < l->n_parts; i++) {
		if (offset < l->parts[i].begin || offset >= l->parts[i].end)
			continue;
		if (size > l->parts[i].end - offset)
			size = (size_t)(l->parts[i].end - offset);
		n = pread(l->fd, buf, size, (off_t)offset);
		return n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* ------------------------------------------------------------------ memory ------------------- */

static int read_piece(struct core_memory *m, const struct hoststack_piece *piece)
{
	uint8_t *buf = piece->buf;
	size_t done = 0;

	while (done < piece->size) {
		const uint64_t address = piece->address + done;
		size_t n = amdcore_read_memory(m->core, address, buf + done, piece->size - done);

		if (!n)
			n = read_file(m, address, buf + done, piece->size - done);
		if (!n)
			return -EFAULT;
		done += n;
	}
	return 0;
}

int core_memory_read(void *ctx, const struct hoststack_piece *pieces, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = read_piece(ctx, &pieces[i]);
	return r;
}
