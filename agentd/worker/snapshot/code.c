/* SPDX-License-Identifier: MIT */
#include "agentd/worker/snapshot/code.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/worker/snapshot/hash.h"
#include "agentd/worker/target/target.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/elf_view.h"
#include "values/argument/arguments.h"

/* The first bytes of an object have its ELF header, program headers and, mostly, build-id. */
#define HEAD_BYTES 4096u
/* Most objects that are tried for an address: a hostile list has many on top of each other. */
#define OVERLAPS_MAX 16u

const char *code_problem_text(int error)
{
	switch (error) {
	case -EINVAL:
		return "its URI is not understood";
	case -EPROTONOSUPPORT:
		return "its URI is of an unknown kind";
	case -EXDEV:
		return "it lies in the memory of another process";
	case -ENOENT:
	case -ENOTDIR:
		return "its file is gone";
	case -EACCES:
	case -EPERM:
		return "its file may not be read";
	case -EMEDIUMTYPE:
		return "it is not a regular file";
	case -EFAULT:
	case -ESRCH:
		return "its memory is not readable";
	case -ELOOP:
	case -ENAMETOOLONG:
		return "its path cannot be followed";
	case -ENODATA:
		return "it is shorter than its URI says";
	case -ENOEXEC:
		return "it is not an ELF image for a GPU";
	case -EADDRNOTAVAIL:
		return "it is not relocated: none of its code has an address";
	case -ESTALE:
		return "its file is not the one that was loaded";
	case -EFBIG:
		return "it is larger than the agent reads";
	case -ENOMEM:
		return "there is not enough memory to read it";
	default:
		return "it cannot be read";
	}
}

static bool is_late(struct code_set *s)
{
	s->late = s->late || clock_now_ns() >= s->deadline_ns;
	return s->late;
}

/* ------------------------------------------------------------------ reading an object -------- */

/* Read exactly that many bytes, from the first one on. */
static int read_bytes(const struct code_set *s, const struct code_object *o, void *buf, size_t size)
{
	ssize_t n = s->target->ops->code_read(s->target, o, 0, buf, size);

	if (n < 0)
		return (int)n;
	return (size_t)n == size ? 0 : -ENODATA;
}

/* A range that makes no sense leaves start and end at 0. */
static void set_range(struct code_object *o, const struct symbols_image *head)
{
	uint64_t start, end;

	symbols_image_range(head, &start, &end);
	if (__builtin_add_overflow(start, o->bias, &start) ||
	    __builtin_add_overflow(end, o->bias, &end) || start >= end)
		return;
	o->start = start;
	o->end = end;
}

static void set_build_id(struct code_object *o, const struct symbols_image *image)
{
	const struct symbols_image_facts *f = symbols_image_facts(image);

	o->build_id_size = f->build_id_size;
	memcpy(o->build_id, f->build_id, f->build_id_size);
}

/*
 * Find out where an object lies.  Its headers say that, so the headers of each object are read, and
 * the rest of an object only when it is needed.
 */
static int probe(const struct code_set *s, struct code_object *o)
{
	const struct target_ops *ops = s->target->ops;
	struct symbols_image *head;
	uint8_t bytes[HEAD_BYTES];
	struct code_stat st;
	size_t n;
	int r = ops->code_stat(s->target, o, &st);

	if (r < 0)
		return r;
	if (st.size > SYMBOLS_IMAGE_BYTES_MAX)
		return -EFBIG;
	o->size = st.size;
	o->stamp = st.stamp;
	if (o->end)
		return 0;
	n = st.size < sizeof(bytes) ? (size_t)st.size : sizeof(bytes);
	r = read_bytes(s, o, bytes, n);
	if (r == 0)
		r = symbols_image_create(bytes, n, &head);
	if (r < 0)
		return r;
	set_range(o, head);
	set_build_id(o, head);
	symbols_image_destroy(head);
	return o->end ? 0 : -ENOEXEC;
}

/* Give the image in use back to the cache, and note whether the cache threw an image away. */
static void put_current(struct code_set *s)
{
	struct symbols_cache *cache = s->target ? s->target->code_cache : NULL;
	size_t n = s->image ? symbols_cache_count(cache) : 0;

	if (s->image)
		symbols_cache_put(cache, s->image);
	s->dropped = s->dropped || (s->image && symbols_cache_count(cache) < n);
	s->image = NULL;
	s->current = NULL;
}

/* A key without build-id and stamp does not tell contents apart, so it finds nothing. */
static struct symbols_image *get_cached(const struct code_set *s, const struct symbols_key *key)
{
	if (!key->build_id_size && !key->stamp)
		return NULL;
	return symbols_cache_get(s->target->code_cache, key);
}

/*
 * Take the image from the cache, or read the bytes and make it.  A hash of the bytes stands in for
 * the stamp of an object that has neither a stamp nor a build-id.
 */
static int acquire(struct code_set *s, const struct code_object *o, struct symbols_image **ret)
{
	struct symbols_key key = { .uri = o->uri, .size = o->size, .stamp = o->stamp };
	auto_free uint8_t *bytes = NULL;
	int r;

	memcpy(key.build_id, o->build_id, o->build_id_size);
	key.build_id_size = o->build_id_size;
	*ret = get_cached(s, &key);
	if (*ret)
		return 0;
	bytes = malloc(o->size ? o->size : 1);
	if (!bytes)
		return -ENOMEM;
	r = read_bytes(s, o, bytes, o->size);
	if (r < 0)
		return r;
	if (!key.build_id_size && !key.stamp) {
		key.stamp = hash_bytes(hash_secret(), bytes, o->size) | 1;
		*ret = get_cached(s, &key);
		if (*ret)
			return 0;
	}
	return symbols_cache_add(s->target->code_cache, &key, bytes, o->size, ret);
}

/* Ask the back end whether the bytes are still those that were loaded. */
static int check(const struct code_set *s, const struct code_object *o)
{
	const struct target_ops *ops = s->target->ops;

	return ops->code_check ? ops->code_check(s->target, o, o->size) : 0;
}

static void note_debug_state(struct code_object *o, const struct symbols_image *image)
{
	int r = symbols_image_debug_state(image);

	if (r == -EFBIG)
		o->problem = "its debug information is too large to look at all of it";
	else if (r < 0)
		o->problem = "its debug information is broken";
}

int code_open(struct code_set *s, struct code_object *o)
{
	const struct symbols_image_facts *f;
	int r;

	o->is_asked = true;
	if (s->current == o)
		return 0;
	if (!o->end || (o->problem && !o->is_read))
		return -ENOENT;
	if (is_late(s))
		return -ETIMEDOUT;
	put_current(s);
	r = check(s, o);
	if (r == 0)
		r = acquire(s, o, &s->image);
	if (r < 0) {
		o->problem = code_problem_text(r);
		return r;
	}
	s->current = o;
	f = symbols_image_facts(s->image);
	o->is_read = true;
	o->has_dwarf = f->has_dwarf;
	o->n_symbols = f->n_symbols;
	set_build_id(o, s->image);
	if (!f->n_symbols && !f->has_dwarf)
		o->problem = "it has no symbols; it may be cut off";
	note_debug_state(o, s->image);
	return 0;
}

int code_examine(struct code_set *s, struct code_object *o)
{
	int r = code_open(s, o);

	if (r < 0)
		return r;
	o->has_lines = symbols_image_has_lines(s->image);
	note_debug_state(o, s->image);
	return 0;
}

/* ------------------------------------------------------------------ the set ------------------ */

static int by_start(const void *x, const void *y)
{
	const struct code_object *a = x, *b = y;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->end < b->end ? -1 : a->end > b->end;
}

static int list(struct code_set *s)
{
	struct target *t = s->target;
	struct code_list l = { 0 };
	int r = t->ops->code_list(t, s->arena, &l);

	if (r < 0)
		return r;
	s->objects = l.objects;
	s->n_objects = l.n_objects;
	s->list_problem = l.problem;
	for (size_t i = 0; i < s->n_objects; i++) {
		struct code_object *o = &s->objects[i];

		r = is_late(s) ? -ETIMEDOUT : probe(s, o);
		if (r < 0)
			o->problem = r == -ETIMEDOUT ? "there was no time to look at it" :
						       code_problem_text(r);
	}
	if (s->n_objects)
		qsort(s->objects, s->n_objects, sizeof(*s->objects), by_start);
	return 0;
}

int code_set_init(struct code_set *s, struct target *t, struct rpc_arena *a, uint32_t ms)
{
	int r = 0;

	*s = (struct code_set){ .target = t, .arena = a, .deadline_ns = clock_deadline_ms(ms) };
	if (!t->ops->code_list)
		return 0;
	if (!t->code_cache)
		r = symbols_cache_create(CODE_CACHE_BYTES, &t->code_cache);
	if (r < 0)
		return r;
	s->location = malloc(sizeof(*s->location));
	return s->location ? list(s) : -ENOMEM;
}

void code_set_deinit(struct code_set *s)
{
	put_current(s);
	/*
	 * The debug information of a large image leaves hundreds of MiB of small free pieces in the
	 * heap, which free() does not give back to the kernel.
	 */
#ifdef __GLIBC__
	if (s->dropped)
		malloc_trim(0);
#endif
	s->dropped = false;
	if (s->target && s->target->ops->code_done)
		s->target->ops->code_done(s->target);
	free(s->location);
	s->location = NULL;
}

/* Of objects that overlap, the one that starts last below the address is taken. */
struct code_object *code_find(const struct code_set *s, uint64_t address)
{
	size_t low = 0, high = s->n_objects;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->objects[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t tries = 0; low && tries < OVERLAPS_MAX; tries++) {
		struct code_object *o = &s->objects[--low];

		if (address >= o->start && address < o->end)
			return o;
	}
	return NULL;
}

/* Make the object at the address the one in use.  @return 0, -ENOENT. */
static int enter(struct code_set *s, uint64_t address)
{
	struct code_object *o = code_find(s, address);

	return o && code_open(s, o) == 0 && !is_late(s) ? 0 : -ENOENT;
}

int code_locate(struct code_set *s, uint64_t address, const struct symbols_location **ret)
{
	int r = enter(s, address);

	if (r < 0)
		return r;
	symbols_image_locate(s->image, address - s->current->bias, s->location);
	note_debug_state(s->current, s->image);
	*ret = s->location;
	return 0;
}

int code_source(struct code_set *s, uint64_t address, const char *file, const char **ret, size_t *ret_size)
{
	int r = enter(s, address);

	if (r < 0)
		return r;
	r = symbols_image_source(s->image, address - s->current->bias, file, ret, ret_size);
	note_debug_state(s->current, s->image);
	if (r != -EBADMSG)
		return r;
	s->current->problem = "its debug information is broken";
	return -ENOENT;
}

static int export_symbol(const struct code_set *s, const struct symbols_symbol *symbol,
			 struct code_symbol *ret)
{
	ret->address = symbol->address + s->current->bias;
	ret->size = symbol->size;
	ret->name = rpc_arena_strdup(s->arena, symbol->name);
	ret->raw = rpc_arena_strdup(s->arena, symbol->raw);
	return ret->name && ret->raw ? 0 : -ENOENT;
}

int code_function(struct code_set *s, uint64_t address, struct code_symbol *ret)
{
	struct symbols_symbol symbol;
	int r = enter(s, address);

	if (r == 0)
		r = symbols_image_function(s->image, address - s->current->bias, &symbol);
	return r < 0 ? r : export_symbol(s, &symbol, ret);
}

int code_kernel(struct code_set *s, uint64_t handle, struct code_symbol *ret)
{
	struct symbols_symbol symbol;
	int r = enter(s, handle);

	if (r == 0)
		r = symbols_image_kernel(s->image, handle - s->current->bias, &symbol);
	return r < 0 ? r : export_symbol(s, &symbol, ret);
}

int code_kernel_around(struct code_set *s, uint64_t address, struct code_symbol *ret)
{
	struct symbols_symbol symbol;
	int r = enter(s, address);

	if (r == 0)
		r = symbols_image_function(s->image, address - s->current->bias, &symbol);
	if (r == 0)
		r = symbols_image_kernel_of(s->image, symbol.raw, &symbol);
	return r < 0 ? r : export_symbol(s, &symbol, ret);
}

/* Images of NVIDIA's driver have addresses in their section headers alone. */
static int section_bytes(const struct elf_view *v, uint64_t address, void *buf, size_t size)
{
	if (v->header.e_machine != SYMBOLS_MACHINE_CUDA)
		return -ENOENT;
	for (size_t i = 0; i < v->n_sections; i++) {
		Elf64_Shdr h = elf_view_section(v, i);
		const uint8_t *bytes;
		size_t n;

		if (h.sh_type != SHT_PROGBITS || !(h.sh_flags & SHF_EXECINSTR) || address < h.sh_addr ||
		    address - h.sh_addr >= h.sh_size || size > h.sh_size - (address - h.sh_addr))
			continue;
		bytes = elf_view_range(v, h.sh_offset + (address - h.sh_addr), size, &n);
		if (!bytes || n < size)
			continue;
		memcpy(buf, bytes, size);
		return 0;
	}
	return -ENOENT;
}

int code_bytes(struct code_set *s, uint64_t address, void *buf, size_t size)
{
	const struct elf_view *v;
	int r = enter(s, address);

	if (r < 0)
		return r;
	v = symbols_image_elf(s->image);
	address -= s->current->bias;
	for (size_t i = 0; i < v->n_segments; i++) {
		Elf64_Phdr p = elf_view_segment(v, i);
		const uint8_t *bytes;
		size_t n;

		if (p.p_type != PT_LOAD || !(p.p_flags & PF_X) || address < p.p_vaddr ||
		    address - p.p_vaddr >= p.p_filesz || size > p.p_filesz - (address - p.p_vaddr))
			continue;
		bytes = elf_view_range(v, p.p_offset + (address - p.p_vaddr), size, &n);
		if (!bytes || n < size)
			continue;
		memcpy(buf, bytes, size);
		return 0;
	}
	return section_bytes(v, address, buf, size);
}

int code_arguments(struct code_set *s, uint64_t handle, bool hidden, struct values_arguments *ret)
{
	int r = enter(s, handle);

	return r < 0 ? r : values_arguments_find(s->image, handle - s->current->bias, hidden, ret);
}

int code_hidden_argument(struct code_set *s, uint64_t handle, const char *kind, uint32_t *ret_offset)
{
	struct values_arguments all = { 0 };
	int r = code_arguments(s, handle, true, &all);
	bool found = false;

	for (size_t i = 0; r == 0 && !found && i < all.n; i++) {
		found = all.list[i].hidden && !strcmp(all.list[i].name, kind);
		if (found)
			*ret_offset = all.list[i].offset;
	}
	values_arguments_deinit(&all);
	return r < 0 || found ? r : -ENOENT;
}

/* An object is loaded once for each device, and all of them have the same problem. */
static bool is_said(const char *text, const char *const *said, size_t n)
{
	while (n--)
		if (!strcmp(said[n], text))
			return true;
	return false;
}

size_t code_missing(const struct code_set *s, bool all, const char *ret[CODE_MISSING_MAX])
{
	size_t n = 0, left_out = 0;

	if (s->list_problem)
		ret[n++] = s->list_problem;
	if (s->late)
		ret[n++] = "code objects: there was no time to look all places up";
	for (size_t i = 0; i < s->n_objects; i++) {
		const struct code_object *o = &s->objects[i];
		const char *text;

		if (!o->problem || !(all || o->is_asked))
			continue;
		text = rpc_arena_printf(s->arena, "code object %.200s: %s", o->uri, o->problem);
		if (text && is_said(text, ret, n))
			continue;
		if (n == CODE_MISSING_MAX - 1)
			left_out++;
		else
			ret[n++] = text;
	}
	if (left_out)
		ret[n++] = rpc_arena_printf(s->arena, "code objects: %zu more have problems",
					    left_out);
	return n;
}
