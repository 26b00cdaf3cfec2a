/* SPDX-License-Identifier: MIT */
#include "corefile/amdgpu/read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/reader.h"
#include "corefile/elf_read.h"
#include "corefile/processor.h"

/* Bytes in front of the tables of the note: versions, sizes and counts. */
#define STATE_HEAD 40u

struct load {
	const struct elf_view *elf;
	struct amdcore *core;
	struct corefile_problem *error;
	bool has_state;
	int result;
};

/*
 * A split core is told by its machine alone.  The core of a host process is ours only if it has the
 * AMDGPU note, which is looked for later.
 */
static bool is_ours(const struct elf_view *e)
{
	return e->header.e_type == ET_CORE &&
	       (e->header.e_machine == AMDCORE_MACHINE || corefile_processor_find(e->header.e_machine) != NULL);
}

static void problem(struct load *l, uint64_t at, const char *what)
{
	corefile_problem_add(&l->core->problems, COREFILE_NO_SECTION, at, "%s", what);
}

/* ------------------------------------------------------------------ notes -------------------- */

static int bad_state(struct load *l, uint64_t at, const char *why)
{
	corefile_problem_set(l->error, COREFILE_NO_SECTION, at, "%s", why);
	return -EBADMSG;
}

/*
 * Take a table of the note.
 * @return false when the table is not whole.
 */
static bool take_table(struct reader *r, uint32_t n, uint32_t entry_size, struct amdcore_table *ret)
{
	*ret = (struct amdcore_table){ .n = n, .entry_size = entry_size };
	if (entry_size == 0)
		return n == 0;
	if (n > reader_left(r) / entry_size)
		return false;
	ret->data = reader_bytes(r, (size_t)n * entry_size);
	return ret->data != NULL;
}

static int read_state(struct load *l, const uint8_t *desc, size_t size, uint64_t at)
{
	struct amdcore *c = l->core;
	uint32_t n_devices, device_size, n_queues, queue_size;
	uint64_t runtime_size;
	struct reader r;

	reader_init(&r, desc, size);
	if (size < STATE_HEAD)
		return bad_state(l, at, "the AMDGPU note ends inside its header");
	if (reader_u64(&r) != AMDCORE_NOTE_VERSION)
		return bad_state(l, at, "the AMDGPU note has a version that is not known");
	c->kfd_major = reader_u32(&r);
	c->kfd_minor = reader_u32(&r);
	if (c->kfd_major != AMDCORE_KFD_MAJOR)
		problem(l, at + 8, "the kernel interface has a version that is not known; what is shown may be wrong");
	runtime_size = reader_u64(&r);
	n_devices = reader_u32(&r);
	device_size = reader_u32(&r);
	n_queues = reader_u32(&r);
	queue_size = reader_u32(&r);
	if (runtime_size == 0 || runtime_size > reader_left(&r) ||
	    !take_table(&r, 1, (uint32_t)runtime_size, &c->runtime))
		return bad_state(l, at + 16, "the AMDGPU note has no runtime entry");
	if (!take_table(&r, n_devices, device_size, &c->devices))
		return bad_state(l, at + 24, "devices of the AMDGPU note do not fit into it");
	if (!take_table(&r, n_queues, queue_size, &c->queues))
		return bad_state(l, at + 32, "queues of the AMDGPU note do not fit into it");
	l->has_state = true;
	return 0;
}

static int add_note(struct load *l, const struct amdcore_note *note)
{
	struct amdcore *c = l->core;
	struct amdcore_note *notes;

	/* The list is doubled at each power of two. */
	if ((c->n_notes & (c->n_notes - 1)) == 0) {
		notes = realloc(c->notes, (c->n_notes ? c->n_notes * (size_t)2 : 1) * sizeof(*notes));
		if (!notes)
			return -ENOMEM;
		c->notes = notes;
	}
	c->notes[c->n_notes++] = *note;
	return 0;
}

/* Read the next note of a segment.  @return as elf_note_next(), or -ENOMEM. */
static int next_note(struct load *l, struct reader *r, uint64_t at)
{
	struct elf_note n;
	int more = elf_note_next(r, &n);

	if (more < 0)
		problem(l, at + r->pos, "a note does not end where its segment does");
	if (more <= 0)
		return 0;
	if (n.type == AMDCORE_NOTE_TYPE && strcmp(n.name, "AMDGPU") == 0 && !l->has_state)
		return read_state(l, n.desc, n.size, at + n.desc_at) < 0 ? -EBADMSG : 1;
	return add_note(l, &(struct amdcore_note){ .name = n.name, .type = n.type,
						   .desc = n.desc, .size = n.size }) < 0 ? -ENOMEM : 1;
}

static int read_notes(struct load *l, const Elf64_Phdr *p)
{
	const struct elf_view *e = l->elf;
	const uint8_t *bytes;
	struct reader r;
	size_t size;
	int more = 1;

	if (p->p_offset >= e->size) {
		problem(l, p->p_offset, "notes lie behind the end of the file");
		return 0;
	}
	bytes = elf_view_range(e, p->p_offset, p->p_filesz, &size);
	if (size < p->p_filesz)
		problem(l, e->size, "the file ends inside its notes");
	reader_init(&r, bytes, size);
	while (more > 0)
		more = next_note(l, &r, p->p_offset);
	return more;
}

/* ------------------------------------------------------------------ memory ------------------- */

static void add_segment(struct load *l, const Elf64_Phdr *p)
{
	const struct elf_view *e = l->elf;
	struct amdcore_segment *s = &l->core->segments[l->core->n_segments];
	uint64_t there = p->p_offset < e->size ? e->size - p->p_offset : 0;

	if (p->p_memsz > UINT64_MAX - p->p_vaddr) {
		problem(l, p->p_offset, "a segment goes beyond the end of the address space");
		return;
	}
	*s = (struct amdcore_segment){ .address = p->p_vaddr, .flags = p->p_flags, .size = p->p_memsz };
	s->bytes.size = p->p_filesz < p->p_memsz ? p->p_filesz : p->p_memsz;
	if (s->bytes.size > there) {
		problem(l, e->size, "the file ends before, or inside, a segment");
		s->bytes.size = there;
	}
	if (s->bytes.size)
		s->bytes.data = e->data + p->p_offset;
	l->core->n_segments++;
}

static int by_address(const void *a, const void *b)
{
	const struct amdcore_segment *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

/*
 * Sort segments by address.  Of two that overlap, the first one is shortened, which is what a
 * lookup by address amounts to anyway.
 */
static void sort_segments(struct load *l)
{
	struct amdcore *c = l->core;

	if (c->n_segments)
		qsort(c->segments, c->n_segments, sizeof(*c->segments), by_address);
	for (uint32_t i = 1; i < c->n_segments; i++) {
		struct amdcore_segment *s = &c->segments[i - 1];
		uint64_t room = c->segments[i].address - s->address;

		if (s->size <= room)
			continue;
		problem(l, 0, "segments overlap");
		s->size = room;
		s->bytes.size = s->bytes.size < room ? s->bytes.size : room;
	}
}

/* ------------------------------------------------------------------ all of it ---------------- */

static int read_segments(struct load *l)
{
	const struct elf_view *e = l->elf;
	int r = 0;

	if (e->n_segments < e->n_segments_promised)
		problem(l, e->size, "the file ends inside its program headers");
	l->core->segments = calloc((size_t)e->n_segments + 1, sizeof(*l->core->segments));
	if (!l->core->segments)
		return -ENOMEM;
	for (uint32_t i = 0; r == 0 && i < e->n_segments; i++) {
		Elf64_Phdr p = elf_view_segment(e, i);

		if (p.p_type == PT_NOTE)
			r = read_notes(l, &p);
		else if (p.p_type == PT_LOAD)
			add_segment(l, &p);
	}
	sort_segments(l);
	return r;
}

static int refuse(struct corefile_problem *error)
{
	corefile_problem_set(error, COREFILE_NO_SECTION, 0, "not an AMDGPU core");
	return -ENOEXEC;
}

static int read_core(const void *data, size_t size, bool needs_state, struct amdcore *ret,
		     struct corefile_problem *error)
{
	struct elf_view e;
	struct amdcore c = { 0 };
	struct load l = { .elf = &e, .core = &c, .error = error };
	int r = corefile_elf_open(data, size, &e, error);

	if (r < 0)
		return r;
	if (!is_ours(&e))
		return refuse(error);
	c.unified = e.header.e_machine != AMDCORE_MACHINE;
	c.machine = c.unified ? e.header.e_machine : EM_NONE;
	r = read_segments(&l);
	if (r == 0 && !l.has_state && needs_state)
		r = c.unified ? refuse(error) : bad_state(&l, 0, "the AMDGPU note is missing");
	if (r < 0) {
		amdcore_deinit(&c);
		return r;
	}
	*ret = c;
	return 0;
}

int amdcore_read(const void *data, size_t size, struct amdcore *ret, struct corefile_problem *error)
{
	return read_core(data, size, true, ret, error);
}

int amdcore_read_process(const void *data, size_t size, struct amdcore *ret, struct corefile_problem *error)
{
	return read_core(data, size, false, ret, error);
}

bool amdcore_is(const void *data, size_t size)
{
	struct elf_view e;
	struct amdcore c;
	int r;

	if (corefile_elf_open(data, size, &e, NULL) < 0 || !is_ours(&e))
		return false;
	if (e.header.e_machine == AMDCORE_MACHINE)
		return true;
	r = amdcore_read(data, size, &c, NULL);
	if (r == 0)
		amdcore_deinit(&c);
	return r == 0 || r == -EBADMSG;
}
