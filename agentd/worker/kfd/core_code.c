/* SPDX-License-Identifier: MIT */
/*
 * What explains the saved waves of a core: code objects and their list, and for every wave the
 * pages of its instruction, of its kernel and of the kernel's arguments.  The addresses come from
 * memory that the target can write, so only addresses in its mappings go into the core.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentd/worker/kfd/core_write.h"
#include "agentd/worker/process/code_file.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/page.h"
#include "base/vec.h"
#include "symbols/code_list.h"
#include "symbols/image.h"
#include "symbols/uri.h"

/* Largest code object that is wanted whole: the host reads a GPU's memory slowly. */
#define CODE_MAX (UINT64_C(64) << 20)
/* Most bytes of all code objects; no program has loaded more. */
#define CODE_ALL_MAX (UINT64_C(4) << 30)
/* Most bytes of code objects out of files, as much as is read of one, and the time for all files. */
#define FILES_BYTES_MAX SYMBOLS_IMAGE_BYTES_MAX
#define FILES_MS	1000
/* Largest list that is copied; a larger one is read later. */
#define LIST_MAX (UINT64_C(16) << 20)
#define HEADERS_MAX  64u
/* Bytes in front of and behind a pc: debuggers look at the instructions there. */
#define AROUND_PC 256u
/* Bytes at the entry of a kernel, where a debugger puts its breakpoint. */
#define ENTRY_BYTES 64u
/* The runtime's struct r_debug and struct link_map are laid out as glibc's (link.h). */
#define R_DEBUG_SIZE  40u
#define LINK_MAP_SIZE 40u
#define LINK_MAP_NAME 8u

struct range {
	uint64_t begin, end;
};

/* The ranges that are wanted, and how much of them went into the core. */
struct code {
	struct kfd_core *core;
	struct symbols_code_list list;
	uint64_t *pcs; /* Of all waves, in ascending order. */
	size_t n_pcs;
	int own_root; /* The root directory of whoever reads the core on this machine. */
	uint64_t files_bytes, files_until_ns;
	const char *file_left_out; /* URI of the first file that is not in the core: no room or time, or unreadable. */
	struct range *ranges; /* Whole pages. */
	size_t n, capacity;
	size_t at;	/* The first range that ends behind the start of the mapping looked at. */
	uint64_t bytes; /* Bytes that went into the core. */
	bool too_much;
	/* How many code objects are too large to be wanted whole; size and URI of the first. */
	size_t n_large;
	uint64_t large_bytes;
	const char *large_uri;
};

/* Add the pages of a range to what is wanted. */
static void want(struct code *k, uint64_t address, uint64_t size)
{
	const uint64_t page = page_bytes(), begin = page_down(address);
	uint64_t end;

	if (!size || address > UINT64_MAX - page || size > UINT64_MAX - address - page)
		return;
	end = page_up(address + size);
	/* Neighbours in the list of waves are mostly neighbours in their code. */
	if (k->n && begin >= k->ranges[k->n - 1].begin && end <= k->ranges[k->n - 1].end)
		return;
	if (vec_reserve(&k->ranges, k->n, 1, &k->capacity, sizeof(*k->ranges)) < 0) {
		k->core->no_memory = true;
		return;
	}
	k->ranges[k->n++] = (struct range){ begin, end };
}

/* ------------------------------------------------------------------ code objects ------------- */

/* @return how many bytes a code object takes by its headers in memory; 0: it has none there. */
static uint64_t loaded_size(const struct memory *m, uint64_t bias)
{
	uint64_t size = 0;
	Elf64_Ehdr e;
	Elf64_Phdr p;

	if (memory_read_exact(m, bias, &e, sizeof(e)) < 0 || memcmp(e.e_ident, ELFMAG, SELFMAG) != 0)
		return 0;
	for (uint16_t i = 0; i < e.e_phnum && i < HEADERS_MAX; i++) {
		if (memory_read_exact(m, bias + e.e_phoff + i * sizeof(p), &p, sizeof(p)) < 0)
			return 0;
		if (p.p_type == PT_LOAD && p.p_memsz <= UINT64_MAX - p.p_vaddr &&
		    p.p_vaddr + p.p_memsz > size)
			size = p.p_vaddr + p.p_memsz;
	}
	return size;
}

/* Is a wave in this code?  For an estimate, which has seen no waves: may one be there? */
static bool has_waves(const struct code *k, uint64_t address, uint64_t size)
{
	size_t low = 0, high = k->n_pcs;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (k->pcs[middle] < address)
			low = middle + 1;
		else
			high = middle;
	}
	return k->core->estimate || (low < k->n_pcs && k->pcs[low] - address < size);
}

static bool has_file(const struct code *k, const char *uri)
{
	const struct kfd_core *c = k->core;

	for (size_t i = 0; i < c->n_notes; i++)
		if (c->notes[i].type == COREFILE_AGENT_CODE_TYPE && !strcmp(c->notes[i].desc, uri))
			return true;
	return false;
}

/* Would a reader on this machine find the file that the target has opened? */
static bool is_found(const struct code *k, const struct kfd_code_file *f)
{
	struct stat st;
	auto_close int fd = code_file_open(k->own_root, f->path, &st);

	return fd >= 0 && st.st_dev == f->st.st_dev && st.st_ino == f->st.st_ino;
}

/*
 * Read a code object out of its file into a note; for an estimate, only count its bytes.
 * @return false: it is left out.
 */
static bool copy_file(struct code *k, const struct code_object *o, uint64_t size)
{
	struct kfd_core *c = k->core;
	size_t name = strlen(o->uri) + 1, kept = c->estimate ? 0 : size;
	char *desc = malloc(name + kept);

	if (!desc)
		return false;
	memcpy(desc, o->uri, name);
	if (kfd_code_read(&c->k->t, o, 0, desc + name, kept) != (ssize_t)kept) {
		free(desc);
		return false;
	}
	if (kfd_core_add_note(c, COREFILE_AGENT_CODE_TYPE, desc, name + kept) < 0)
		return false;
	k->files_bytes += size;
	c->told->bytes += (size - kept + 3) & ~UINT64_C(3); /* As notes are padded. */
	return true;
}

/*
 * Names and lines of code in a file are in that file only.  Readers find it by its path, but not that of a process
 * with another root directory, so it goes into the core.
 */
static void want_file(struct code *k, const struct symbols_code *e)
{
	struct kfd_core *c = k->core;
	struct code_object o = { .uri = e->uri, .bias = e->bias };
	struct code_stat st;

	if (!kfd_code_is_file(&o))
		return;
	if (clock_now_ns() < k->files_until_ns) {
		/* One that is gone, or is not what was loaded, is missing for readers as well, and they tell it. */
		if (has_file(k, e->uri) || kfd_code_stat(&c->k->t, &o, &st) < 0 || is_found(k, &c->k->code_file) ||
		    kfd_code_compare(&c->k->t, &o, st.size) != 0)
			return;
		if (st.size <= FILES_BYTES_MAX - k->files_bytes && copy_file(k, &o, st.size))
			return;
	}
	if (!k->file_left_out && !c->estimate)
		k->file_left_out = e->uri;
}

static void want_object(struct code *k, const struct symbols_code *e)
{
	uint64_t size = loaded_size(&k->core->k->t.memory, e->bias);

	if (has_waves(k, e->bias, size))
		want_file(k, e);
	if (size > CODE_MAX) {
		if (!k->n_large++) {
			k->large_bytes = size;
			k->large_uri = e->uri;
		}
		/* The first page lets a reader that has the file see that it is the loaded one. */
		size = page_bytes();
	}
	want(k, e->bias, size);
}

/* Add an entry's name, and ask for the bytes of its code object if they are in memory. */
static void want_entry(struct code *k, const struct symbols_code *e)
{
	struct kfd_core *c = k->core;
	size_t length = strlen(e->uri);
	struct symbols_uri *uri = malloc(sizeof(*uri));
	uint64_t name;

	if (memory_read_exact(&c->k->t.memory, e->entry + LINK_MAP_NAME, &name, sizeof(name)) == 0)
		kfd_core_add(c, name, length + 1);
	if (uri && symbols_uri_parse(e->uri, length, uri) == 0 && uri->kind == SYMBOLS_URI_MEMORY)
		want(k, uri->offset, uri->size);
	free(uri);
}

/* ------------------------------------------------------------------ waves -------------------- */

static const struct rpc_queue *queue_of(const struct target_waves_from *from, uint32_t id)
{
	for (size_t i = 0; i < from->n_queues; i++)
		if (from->queues[i].queue_id == id)
			return &from->queues[i];
	return NULL;
}

/* Read a packet as it was when the queue stood still; as it is now if there was no room for it. */
static bool read_packet(const struct kfd_core *c, const struct rpc_queue *q, uint64_t dispatch,
			struct symbols_aql_packet *ret)
{
	uint64_t n = q->ring_bytes / SYMBOLS_AQL_PACKET_SIZE;
	uint8_t bytes[SYMBOLS_AQL_PACKET_SIZE];

	/* The kernel lets a program have a queue without a ring. */
	if (!n)
		return false;
	if (memory_read_exact(&c->copies, q->ring_base + dispatch % n * sizeof(bytes), bytes,
			      sizeof(bytes)) < 0)
		return false;
	/* The device has marked the packet as invalid; a wave comes from nothing but a dispatch. */
	bytes[0] = SYMBOLS_AQL_KERNEL_DISPATCH;
	return symbols_aql_decode(bytes, sizeof(bytes), ret) == 0;
}

/* Ask for the descriptor, the entry and the arguments of the kernel of a dispatch. */
static void want_kernel(struct code *k, const struct rpc_queue *q, uint64_t dispatch)
{
	struct symbols_kernel_descriptor d;
	struct symbols_aql_packet p;
	uint8_t bytes[SYMBOLS_KERNEL_DESCRIPTOR_SIZE];

	if (!q || !read_packet(k->core, q, dispatch, &p) || !p.kernel_object)
		return;
	want(k, p.kernel_object, sizeof(bytes));
	if (memory_read_exact(&k->core->k->t.memory, p.kernel_object, bytes, sizeof(bytes)) < 0 ||
	    symbols_kernel_descriptor_decode(bytes, sizeof(bytes), p.kernel_object, &d) < 0)
		return;
	want(k, d.entry, ENTRY_BYTES);
	if (p.kernarg_address)
		want(k, p.kernarg_address, d.kernarg_bytes);
}

static int by_pc(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void sort_pcs(struct code *k, const struct target_waves *waves)
{
	k->pcs = waves->n_waves ? malloc(waves->n_waves * sizeof(*k->pcs)) : NULL;
	if (!k->pcs) {
		k->core->no_memory = k->core->no_memory || waves->n_waves;
		return;
	}
	for (size_t i = 0; i < waves->n_waves; i++)
		k->pcs[k->n_pcs++] = waves->waves[i].pc;
	qsort(k->pcs, k->n_pcs, sizeof(*k->pcs), by_pc);
}

static void want_waves(struct code *k, const struct target_waves_from *from,
		       const struct target_waves *waves)
{
	const struct wave *last = NULL;

	sort_pcs(k, waves);
	for (size_t i = 0; i < waves->n_waves; i++) {
		const struct wave *w = &waves->waves[i];

		want(k, w->pc > AROUND_PC ? w->pc - AROUND_PC : 0, 2 * AROUND_PC);
		if (!w->has_dispatch || (last && last->queue_id == w->queue_id &&
					 last->dispatch == w->dispatch))
			continue;
		want_kernel(k, queue_of(from, w->queue_id), w->dispatch);
		last = w;
	}
}

/* ------------------------------------------------------------------ into the core ------------ */

static int by_begin(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/*
 * Sort the ranges and join those that touch.  Fewer pieces save time, because each piece that is
 * added is compared with all others.
 */
static void merge(struct code *k)
{
	size_t n = 0;

	if (k->n)
		qsort(k->ranges, k->n, sizeof(*k->ranges), by_begin);
	for (size_t i = 0; i < k->n; i++) {
		struct range *last = n ? &k->ranges[n - 1] : NULL;

		if (!last || k->ranges[i].begin > last->end)
			k->ranges[n++] = k->ranges[i];
		else if (k->ranges[i].end > last->end)
			last->end = k->ranges[i].end;
	}
	k->n = n;
}

/* Add what is wanted of a mapping.  Mappings come in ascending order, as the ranges do. */
static void on_mapping(void *arg, const struct mapping *m)
{
	struct code *k = arg;

	while (k->at < k->n && k->ranges[k->at].end <= m->begin)
		k->at++;
	for (size_t i = k->at; i < k->n && k->ranges[i].begin < m->end; i++) {
		uint64_t begin = k->ranges[i].begin > m->begin ? k->ranges[i].begin : m->begin;
		uint64_t end = k->ranges[i].end < m->end ? k->ranges[i].end : m->end;

		if (!kfd_core_is_memory(m))
			continue;
		if (end - begin > CODE_ALL_MAX - k->bytes) {
			k->too_much = true;
			end = begin + (CODE_ALL_MAX - k->bytes);
		}
		k->bytes += end - begin;
		kfd_core_add(k->core, begin, end - begin);
	}
}

/*
 * Put what is wanted so far into the core, as far as there are mappings, and empty the list.
 * @return 0, or negative: the mappings cannot be read, and none of it is in the core.
 */
static int put(struct code *k)
{
	int r;

	merge(k);
	k->at = 0;
	r = mappings_read(k->core->k->t.maps_fd, on_mapping, k);
	k->n = 0;
	return r;
}

static void tell(const struct code *k, bool full)
{
	struct kfd_core *c = k->core;

	if (k->file_left_out)
		kfd_core_missing(c, rpc_arena_printf(c->arena,
						     "code object %.200s: its file is not in the core, into which at "
						     "most %zu MiB of files in another root directory are read, in at "
						     "most a second",
						     k->file_left_out, FILES_BYTES_MAX >> 20));
	if (full)
		return;
	if (k->n_large)
		kfd_core_missing(c, rpc_arena_printf(c->arena,
						     "code object %.200s: of its %llu MiB, a core that is "
						     "not full has only what its waves are at%s",
						     k->large_uri,
						     (unsigned long long)(k->large_bytes >> 20),
						     k->n_large > 1 ? "; others are as large" : ""));
	if (k->too_much)
		kfd_core_missing(c, "code objects: more than 4 GiB in all");
}

/*
 * Copy the list as it is now, because the target may have changed it when the file is fetched, and
 * a list that goes on into pages that are not in the core is useless.  Its names do not move.
 */
static void copy_list(struct kfd_core *c, const struct symbols_code_list *l)
{
	struct code pages = { .core = c };
	uint64_t size = 0;

	want(&pages, c->k->t.runtime.r_debug, R_DEBUG_SIZE);
	for (size_t i = 0; i < l->n_items; i++)
		want(&pages, l->items[i].entry, LINK_MAP_SIZE);
	merge(&pages);
	for (size_t i = 0; i < pages.n; i++)
		size += pages.ranges[i].end - pages.ranges[i].begin;
	c->list = size <= LIST_MAX ? malloc(size) : NULL;
	size = 0;
	for (size_t i = 0; c->list && i < pages.n; i++) {
		const struct range *r = &pages.ranges[i];
		uint8_t *to = c->list + size;

		size += r->end - r->begin;
		if (memory_read_exact(&c->k->t.memory, r->begin, to, r->end - r->begin) == 0)
			kfd_core_add_copy(c, r->begin, r->end - r->begin, to);
	}
	for (size_t i = 0; i < pages.n; i++)
		kfd_core_add(c, pages.ranges[i].begin, pages.ranges[i].end - pages.ranges[i].begin);
	free(pages.ranges);
}

/* Copy the list of code objects, and ask for the objects in it. */
static void want_list(struct code *k, bool has_waves)
{
	struct kfd_core *c = k->core;
	struct symbols_code_list *l = &k->list;
	int r;

	if (!c->k->t.runtime.r_debug)
		return;
	r = kfd_read_code_list(&c->k->t, l);
	copy_list(c, l);
	kfd_core_missing(c, kfd_code_list_problem(r, l, c->arena));
	if (r == 0 && !l->n_items && has_waves)
		kfd_core_missing(c, "code objects: the list is empty although there are waves");
	for (size_t i = 0; i < l->n_items; i++) {
		want_entry(k, &l->items[i]);
		want_object(k, &l->items[i]);
	}
}

void kfd_core_add_code(struct kfd_core *c, const struct target_waves_from *from,
		       const struct target_waves *waves, bool full)
{
	struct code k = { .core = c,
			  .own_root = open("/", O_RDONLY | O_PATH | O_DIRECTORY | O_CLOEXEC),
			  .files_until_ns = clock_deadline_ms(FILES_MS) };
	int r;

	want_waves(&k, from, waves);
	/* The waves' pages go first, so that alleged code objects cannot take their room. */
	r = put(&k);
	want_list(&k, waves->n_waves);
	r = r < 0 ? r : put(&k);
	if (r < 0)
		kfd_core_missing(c, "code objects: /proc/PID/maps is not readable");
	tell(&k, full);
	kfd_code_done(&c->k->t);
	if (k.own_root >= 0)
		close(k.own_root);
	symbols_code_list_deinit(&k.list);
	free(k.pcs);
	free(k.ranges);
}
