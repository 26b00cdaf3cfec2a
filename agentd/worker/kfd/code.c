/* SPDX-License-Identifier: MIT */
/* Code objects of an AMD process: the list that its runtime keeps, and their bytes. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agentd/worker/kfd/kfd.h"
#include "agentd/worker/process/code_file.h"
#include "agentd/worker/snapshot/hash.h"
#include "base/fd.h"
#include "symbols/code_list.h"
#include "symbols/image.h"
#include "symbols/uri.h"

/* How often and after what pause a list is read again that the runtime is changing. */
#define LIST_TRIES   20
#define LIST_WAIT_NS 1000000
/* The first bytes of an object have its ELF header, program headers and, mostly, build-id. */
#define HEAD_BYTES 4096u
/* Objects without a build-id are compared by their headers, which have the offsets of the rest. */
#define HEADERS_BYTES 512u

static ssize_t read_target(void *arg, uint64_t address, void *buf, size_t size)
{
	const struct target *t = arg;

	return memory_read(&t->memory, address, buf, size);
}

int kfd_read_code_list(struct target *t, struct symbols_code_list *ret)
{
	const struct symbols_memory m = { read_target, t };
	const struct timespec pause = { .tv_nsec = LIST_WAIT_NS };
	int r = SYMBOLS_CODE_LIST_CHANGING;

	for (int i = 0; r == SYMBOLS_CODE_LIST_CHANGING && i < LIST_TRIES; i++) {
		if (i)
			nanosleep(&pause, NULL);
		r = symbols_code_list_read(&m, t->runtime.r_debug, ret);
	}
	return r;
}

static const char *end_text(enum symbols_code_list_end end)
{
	switch (end) {
	case SYMBOLS_CODE_LIST_CYCLE:
		return "leads back into itself";
	case SYMBOLS_CODE_LIST_TOO_MANY:
		return "is longer than the agent reads";
	case SYMBOLS_CODE_LIST_UNREADABLE:
		return "leads to memory that is not readable";
	default:
		return NULL;
	}
}

static const char *failure_text(int r)
{
	if (r == SYMBOLS_CODE_LIST_CHANGING)
		return "code objects: the runtime is changing the list; try again";
	if (r == -EPROTONOSUPPORT)
		return "code objects: the runtime is too old, its list has another layout";
	return "code objects: the list is not readable";
}

const char *kfd_code_list_problem(int r, const struct symbols_code_list *l, struct rpc_arena *a)
{
	const char *text = r == 0 ? end_text(l->end) : NULL;

	if (r != 0)
		return failure_text(r);
	if (text)
		return rpc_arena_printf(a, "code objects: the list %s after %zu entries", text,
					l->n_items);
	if (l->r_version > SYMBOLS_R_VERSION_KNOWN)
		return rpc_arena_printf(a, "code objects: the list has version %d, and the agent knows none "
					   "beyond %d", l->r_version, SYMBOLS_R_VERSION_KNOWN);
	return NULL;
}

static int copy_list(const struct symbols_code_list *l, struct rpc_arena *a, struct code_list *ret)
{
	ret->objects = rpc_arena_array(a, l->n_items, sizeof(*ret->objects));
	if (!ret->objects)
		return -ENOMEM;
	for (size_t i = 0; i < l->n_items; i++) {
		ret->objects[i].uri = rpc_arena_strdup(a, l->items[i].uri);
		ret->objects[i].bias = l->items[i].bias;
		if (!ret->objects[i].uri)
			return -ENOMEM;
	}
	ret->n_objects = l->n_items;
	return 0;
}

int kfd_code_list(struct target *t, struct rpc_arena *a, struct code_list *ret)
{
	struct symbols_code_list l = { 0 };
	int r;

	if (!t->runtime.r_debug)
		return 0;
	r = kfd_read_code_list(t, &l);
	if (r == -ENOMEM)
		return r;
	ret->problem = kfd_code_list_problem(r, &l, a);
	r = r == 0 ? copy_list(&l, a, ret) : 0;
	symbols_code_list_deinit(&l);
	return r;
}

/* ------------------------------------------------------------------ bytes -------------------- */

/* The file of the last question stays open, since a fat binary holds hundreds of code objects. */
static int open_file(struct target_kfd *k, const char *path)
{
	struct kfd_code_file *f = &k->code_file;
	int fd;

	if (f->fd >= 0 && strcmp(f->path, path) == 0)
		return 0;
	kfd_code_done(&k->t);
	f->path = strdup(path);
	if (!f->path)
		return -ENOMEM;
	fd = code_file_open(k->t.root_fd, path, &f->st);
	if (fd < 0) {
		kfd_code_done(&k->t);
		return fd;
	}
	f->fd = fd;
	return 0;
}

void kfd_code_done(struct target *t)
{
	struct kfd_code_file *f = &kfd_of(t)->code_file;

	if (f->fd >= 0)
		close(f->fd);
	free(f->path);
	f->fd = -1;
	f->path = NULL;
}

bool kfd_code_is_file(const struct code_object *o)
{
	struct symbols_uri u;

	return symbols_uri_parse(o->uri, strlen(o->uri), &u) == 0 && u.kind != SYMBOLS_URI_MEMORY;
}

static int parse_uri(const struct target *t, const struct code_object *o, struct symbols_uri *ret)
{
	int r = symbols_uri_parse(o->uri, strlen(o->uri), ret);

	if (r == -EPROTONOSUPPORT)
		return r;
	if (r < 0)
		return -EINVAL;
	/* A core may not know the pid of its process, but has the memory of no other process. */
	if (ret->kind == SYMBOLS_URI_MEMORY && !t->origin &&
	    ret->pid != (uint32_t)t->facts.ns_pid && ret->pid != (uint32_t)t->facts.pid)
		return -EXDEV;
	return 0;
}

/* The object is the rest of the file behind the offset, or the part of it that the URI names. */
static int stat_file(const struct kfd_code_file *f, const struct symbols_uri *u,
		     struct code_stat *ret)
{
	uint64_t file_size = (uint64_t)f->st.st_size, rest, h = hash_secret();

	if (u->offset > file_size)
		return -ENODATA;
	rest = file_size - u->offset;
	if (u->has_size && u->size > rest)
		return -ENODATA;
	h = hash_mix(h ^ f->st.st_dev);
	h = hash_mix(h ^ f->st.st_ino);
	h = hash_mix(h ^ file_size);
	h = hash_mix(h ^ (uint64_t)f->st.st_mtim.tv_sec);
	h = hash_mix(h ^ (uint64_t)f->st.st_mtim.tv_nsec);
	*ret = (struct code_stat){ .size = u->has_size ? u->size : rest, .stamp = h | 1 };
	return 0;
}

int kfd_code_stat(struct target *t, const struct code_object *o, struct code_stat *ret)
{
	struct target_kfd *k = kfd_of(t);
	struct symbols_uri u;
	int r = parse_uri(t, o, &u);

	if (r < 0)
		return r;
	if (u.kind == SYMBOLS_URI_MEMORY) {
		*ret = (struct code_stat){ .size = u.size };
		return 0;
	}
	r = open_file(k, u.path);
	return r < 0 ? r : stat_file(&k->code_file, &u, ret);
}

ssize_t kfd_code_read(struct target *t, const struct code_object *o, uint64_t offset, void *buf,
		      size_t size)
{
	struct target_kfd *k = kfd_of(t);
	struct symbols_uri u;
	uint64_t at;
	int r = parse_uri(t, o, &u);

	if (r < 0)
		return r;
	if (__builtin_add_overflow(u.offset, offset, &at))
		return -EINVAL;
	if (u.kind == SYMBOLS_URI_MEMORY)
		return memory_read(&t->memory, at, buf, size);
	r = open_file(k, u.path);
	return r < 0 ? r : fd_pread_all(k->code_file.fd, buf, size, at);
}

/* ------------------------------------------------------------------ what was loaded ---------- */

/* Do the build-ids agree or, where there are none, the headers? */
static bool same_build(const struct symbols_image *a, const uint8_t *x,
		       const struct symbols_image *b, const uint8_t *y, size_t size)
{
	const struct symbols_image_facts *f = symbols_image_facts(a), *g = symbols_image_facts(b);

	if (f->build_id_size != g->build_id_size ||
	    memcmp(f->build_id, g->build_id, f->build_id_size) != 0)
		return false;
	return f->build_id_size || memcmp(x, y, size < HEADERS_BYTES ? size : HEADERS_BYTES) == 0;
}

int kfd_code_compare(struct target *t, const struct code_object *o, uint64_t size)
{
	struct symbols_image *f = NULL, *l = NULL;
	uint8_t file[HEAD_BYTES], loaded[HEAD_BYTES];
	ssize_t n = kfd_code_read(t, o, 0, file, size < HEAD_BYTES ? (size_t)size : HEAD_BYTES);
	int r = KFD_CODE_UNSURE;

	if (n < 0)
		return (int)n;
	if (memory_read_exact(&t->memory, o->bias, loaded, (size_t)n) == 0 &&
	    symbols_image_create(loaded, (size_t)n, &l) == 0)
		r = symbols_image_create(file, (size_t)n, &f) == 0 &&
				    same_build(f, file, l, loaded, (size_t)n) ?
			    0 :
			    -ESTALE;
	symbols_image_destroy(f);
	symbols_image_destroy(l);
	return r;
}

int kfd_code_check(struct target *t, const struct code_object *o, uint64_t size)
{
	int r = kfd_code_is_file(o) ? kfd_code_compare(t, o, size) : 0;

	return r == KFD_CODE_UNSURE ? 0 : r;
}
