/* SPDX-License-Identifier: MIT */
/*
 * A core of the process: what its waves were doing is copied while they stand still; all other
 * memory is read when the client fetches the file.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "agentd/worker/mappings.h"
#include "agentd/worker/target_kfd_core.h"
#include "agentd/worker/target_kfd_registers.h"
#include "base/out.h"
#include "base/clock.h"
#include "symbols/code_list.h"
#include "symbols/uri.h"

/* For all threads together; less than what the guard of a stop leaves. */
#define HOST_MS	  500
#define CODE_MAX  (UINT64_C(64) << 20)
/* As glibc has them (link.h): struct r_debug and link_map of the runtime. */
#define R_DEBUG_SIZE  40u
#define LINK_MAP_SIZE 40u
#define LINK_MAP_NAME 8u
/* Entries behind today's end are kept up to this length. */
#define ENTRY_MAX 512u

static int no_memory(struct agent_err *err)
{
	return agent_err_set(err, RPC_ERROR_INTERNAL, ENOMEM, "core.begin", NULL, "out of memory");
}

/* ------------------------------------------------------------------ waves -------------------- */

static int copy_waves(struct kfd_core *c, const struct target_waves_from *from, struct rpc_arena *a,
		      struct target_core *ret, struct agent_err *err)
{
	struct work w = { .k = c->k, .arena = a, .from = from, .take = kfd_core_copy_round,
			  .take_ctx = c };
	struct target_waves waves;
	int r;

	kfd_core_make_room(c, from);
	r = work_run(&w, &waves, err);
	kfd_core_trim(c);
	if (r == 0) {
		ret->n_waves = waves.n_waves;
		ret->stopped_us = waves.stopped_us;
		ret->agent_us = waves.agent_us;
		ret->budget_exceeded = waves.budget_exceeded;
		ret->missing = rpc_arena_array(a, waves.n_missing + 5, sizeof(*ret->missing));
		for (size_t i = 0; ret->missing && i < waves.n_missing; i++)
			ret->missing[ret->n_missing++] = waves.missing[i];
	}
	work_deinit(&w);
	return r;
}

/* What would be copied at most, without stopping anything. */
static void estimate_waves(struct kfd_core *c, const struct target_waves_from *from)
{
	for (size_t i = 0; i < from->n_queues; i++) {
		const struct target_queue *q = &from->queues[i];

		for (size_t d = 0; d < from->n_devices; d++)
			if (from->devices[d].gpu_id == q->gpu_id)
				kfd_core_add(c, q->save_area,
					     (uint64_t)q->save_area_bytes *
						     device_dies(&from->devices[d]));
		kfd_core_add(c, q->ring_base, q->ring_bytes);
	}
}

/* ------------------------------------------------------------------ what is read later ------- */

/* Loaded code that is looked for by its bias. */
struct code_maps {
	struct kfd_core *core;
	const struct symbols_code_list *list;
};

static void on_code_mapping(void *arg, const struct mapping *m)
{
	const struct code_maps *c = arg;
	const struct symbols_code_list *l = c->list;

	if (!m->readable || m->end - m->begin > CODE_MAX)
		return;
	for (size_t i = 0; i < l->n_items; i++)
		if (l->items[i].bias >= m->begin && l->items[i].bias < m->end) {
			kfd_core_add(c->core, m->begin, m->end - m->begin);
			return;
		}
}

/* An entry of the list, its name, and the code object if it is in memory. */
static void add_entry(struct kfd_core *c, const struct symbols_code *e)
{
	const struct memory *memory = &c->k->t.memory;
	size_t length = strlen(e->uri);
	struct symbols_uri *uri = malloc(sizeof(*uri));
	uint64_t name;

	kfd_core_add(c, e->entry, LINK_MAP_SIZE);
	if (memory_read_exact(memory, e->entry + LINK_MAP_NAME, &name, sizeof(name)) == 0)
		kfd_core_add(c, name, length + 1);
	if (uri && symbols_uri_parse(e->uri, length, uri) == 0 && uri->kind == SYMBOLS_URI_MEMORY)
		kfd_core_add(c, uri->offset, uri->size);
	free(uri);
}

/* The list of code objects, and those in it. */
static void add_code(struct kfd_core *c)
{
	struct target *t = &c->k->t;
	struct symbols_code_list l = { 0 };

	if (!t->runtime.r_debug)
		return;
	kfd_core_add(c, t->runtime.r_debug, R_DEBUG_SIZE);
	if (kfd_read_code_list(t, &l) != 0)
		return;
	for (size_t i = 0; i < l.n_items; i++)
		add_entry(c, &l.items[i]);
	(void)mappings_read(t->maps_fd, on_code_mapping, &(struct code_maps){ c, &l });
	symbols_code_list_deinit(&l);
}

/* Mappings of devices other than a GPU's memory (doorbells, for one) are not memory. */
static bool is_memory(const char *path)
{
	return strncmp(path, "/dev/", 5) != 0 || strncmp(path, "/dev/dri/renderD", 16) == 0 ||
	       strncmp(path, "/dev/shm/", 9) == 0 || strcmp(path, "/dev/zero") == 0;
}

static void on_mapping(void *arg, const struct mapping *m)
{
	if (m->readable && is_memory(m->path) && strcmp(m->path, "[vvar]") != 0 &&
	    strcmp(m->path, "[vsyscall]") != 0)
		kfd_core_add(arg, m->begin, m->end - m->begin);
}

/* ------------------------------------------------------------------ the kernel's tables ------ */

typedef int (*snapshot_fn)(struct kfdtrap *kt, uint64_t clear, void *buf, size_t capacity,
			   uint32_t entry_size, size_t *ret_n, uint32_t *ret_entry_size);

/* Asked with more room than is known today: a later kernel's entries are kept whole. */
static int read_table(struct target_kfd *k, snapshot_fn fn, size_t most, struct amdcore_table *ret)
{
	char *data = calloc(most, ENTRY_MAX);
	uint32_t size = 0;
	size_t n = 0;
	int r = data ? fn(k->kt, 0, data, most, ENTRY_MAX, &n, &size) : -ENOMEM;

	if (r < 0) {
		free(data);
		return r;
	}
	n = n < most ? n : most;
	size = (size + 7) & ~UINT32_C(7); /* no reader takes another length */
	for (size_t i = 1; i < n; i++)
		memmove(data + i * size, data + i * ENTRY_MAX, size);
	*ret = (struct amdcore_table){ .data = data, .n = (uint32_t)n, .entry_size = size };
	return 0;
}

static int read_tables(struct kfd_core *c, struct agent_err *err)
{
	struct target_kfd *k = c->k;
	const struct target_runtime *t = &k->t.runtime;
	const struct amdcore_runtime runtime = { .r_debug = t->r_debug,
						 .state = (uint32_t)t->state,
						 .ttmp_setup = t->ttmp_setup };
	unsigned major = 0, minor = 0;
	int r;

	amdcore_pack_runtime(c->runtime, &runtime);
	c->core.runtime = (struct amdcore_table){ .data = c->runtime,
						  .n = 1,
						  .entry_size = sizeof(c->runtime) };
	if (sscanf(k->t.version, "%u.%u", &major, &minor) == 2) {
		c->core.kfd_major = major;
		c->core.kfd_minor = minor;
	}
	r = read_table(k, kfdtrap_get_device_snapshot, KFD_GPUS_MAX, &c->core.devices);
	if (r < 0)
		return kfd_error(k, r, "KFD GET_DEVICE_SNAPSHOT", err);
	c->devices = (void *)c->core.devices.data;
	r = read_table(k, kfdtrap_get_queue_snapshot, KFDTRAP_QUEUES_MAX, &c->core.queues);
	if (r < 0)
		return kfd_error(k, r, "KFD GET_QUEUE_SNAPSHOT", err);
	c->queues = (void *)c->core.queues.data;
	return 0;
}

/* ------------------------------------------------------------------ the file ----------------- */

static ssize_t fetch(void *arg, uint64_t key, uint64_t offset, void *buf, size_t size)
{
	const struct target *t = arg;

	return memory_read(&t->memory, key + offset, buf, size);
}

/* Neighbours of one kind become one segment. */
static int make_image(struct kfd_core *c)
{
	struct amdcore *core = &c->core;

	core->segments = calloc(c->n_pieces + 1, sizeof(*core->segments));
	if (!core->segments || c->no_memory)
		return -ENOMEM;
	kfd_core_sort_pieces(c);
	for (size_t i = 0; i < c->n_pieces; i++) {
		const struct kfd_core_piece *p = &c->pieces[i];
		struct amdcore_segment *last =
			core->n_segments ? &core->segments[core->n_segments - 1] : NULL;

		if (last && !p->data && !last->bytes.data &&
		    last->address + last->size == p->address) {
			last->size = last->bytes.size = last->size + p->size;
			continue;
		}
		core->segments[core->n_segments++] = (struct amdcore_segment){
			.address = p->address,
			.flags = PF_R | PF_W,
			.size = p->size,
			.bytes = { .data = p->data, .key = p->address, .size = p->size },
		};
	}
	return amdcore_image_create(core, &c->image);
}

static void core_free(struct kfd_core *c)
{
	if (!c)
		return;
	amdcore_image_destroy(c->image);
	if (c->store)
		munmap(c->store, c->store_size);
	free(c->pieces);
	free(c->head_text);
	free(c->devices);
	free(c->queues);
	free(c->core.segments);
	kfd_core_host_free(c->host);
	free(c);
}

/* The writer has left: nobody will fetch the rest. */
static int undo_core(void *ctx, uint64_t arg, struct agent_err *err)
{
	struct target_kfd *k = ctx;

	core_free(k->core);
	k->core = NULL;
	return 0;
}

static void add_missing(struct target_core *ret, const char *text)
{
	if (text && ret->missing)
		ret->missing[ret->n_missing++] = text;
}

static int take_head(struct kfd_core *c, const struct out *head)
{
	c->head_text = malloc(head->size + 1);
	if (!c->head_text)
		return -ENOMEM;
	memcpy(c->head_text, head->data, head->size);
	c->head = (struct amdcore_note){ .name = COREFILE_AGENT_NOTE,
					 .type = COREFILE_AGENT_NOTE_TYPE,
					 .desc = c->head_text,
					 .size = (uint32_t)head->size };
	c->core.notes = &c->head;
	c->core.n_notes = 1;
	return 0;
}

static int add_host(struct kfd_core *c, const struct target_core_wanted *what,
		    struct target_core *ret, struct agent_err *err)
{
	struct kfd_core_threads threads;
	int r;

	if (what->estimate) {
		ret->bytes = kfd_core_estimate_host(c);
		return 0;
	}
	r = kfd_core_add_host(c, clock_deadline_ms(HOST_MS), &threads);
	if (r == -ENOTSUP)
		return agent_err_set(err, RPC_ERROR_UNSUPPORTED, EOPNOTSUPP, "core.begin",
				     "leave out the host's half: no --unified",
				     "cores of the host are not written on this architecture");
	if (r < 0)
		return no_memory(err);
	ret->n_threads = threads.n;
	ret->n_missed_threads = threads.n_missed;
	ret->thread_stopped_us = threads.stopped_us;
	return 0;
}

static int collect(struct kfd_core *c, const struct target_waves_from *from,
		   const struct target_core_wanted *what, struct rpc_arena *a,
		   struct target_core *ret, struct agent_err *err)
{
	int r = take_head(c, what->head) < 0 ? no_memory(err) : read_tables(c, err);

	if (r == 0 && !what->estimate)
		r = copy_waves(c, from, a, ret, err);
	/* Afterwards: what was copied with the queues off is not to be taken from another moment. */
	if (r == 0 && what->unified)
		r = add_host(c, what, ret, err);
	if (r < 0)
		return r;
	if (what->estimate) {
		estimate_waves(c, from);
		ret->missing = rpc_arena_array(a, 4, sizeof(*ret->missing));
	}
	if (ret->n_missed_threads)
		add_missing(ret, rpc_arena_printf(a, "registers of %u threads, which did not stop, "
						     "which the kernel does not show to the "
						     "process's own user, or which are more than a "
						     "core has room for",
						  ret->n_missed_threads));
	if (c->too_much)
		add_missing(ret, "saved waves of some queues: more than the agent has memory for");
	add_code(c);
	if (what->full && mappings_read(c->k->t.maps_fd, on_mapping, c) < 0)
		add_missing(ret, "memory: /proc/PID/maps is not readable");
	return make_image(c) < 0 ? no_memory(err) : 0;
}

int kfd_core_begin(struct target *t, const struct target_waves_from *from,
		   const struct target_core_wanted *what, struct rpc_arena *a,
		   struct target_core *ret, struct agent_err *err)
{
	struct target_kfd *k = kfd_of(t);
	struct kfd_core *c;
	int r;

	kfd_core_end(t);
	if (what->has_layout)
		return agent_err_set(err, RPC_ERROR_UNSUPPORTED, EOPNOTSUPP, "core.begin",
				     "leave out the layout: no --layout",
				     "cores of AMD devices have one layout only");
	c = calloc(1, sizeof(*c));
	if (!c)
		return no_memory(err);
	c->k = k;
	*ret = (struct target_core){ 0 };
	r = collect(c, from, what, a, ret, err);
	if (r == 0 && !what->estimate && !what->ours)
		r = undo_push(&t->undo, "forget a core", undo_core, k, 0, &c->ticket, err);
	if (r == 0) {
		ret->bytes += amdcore_image_size(c->image);
		ret->n_segments = c->core.n_segments;
		ret->copied_bytes = c->store_used;
	}
	if (r < 0 || what->estimate)
		core_free(c);
	else
		k->core = c;
	return r;
}

int kfd_core_read(struct target *t, uint64_t offset, void *buf, uint32_t size, uint64_t *ret_lost,
		  struct agent_err *err)
{
	const struct kfd_core *c = kfd_of(t)->core;
	const struct corefile_source source = { fetch, t };

	if (!c)
		return agent_err_set(err, RPC_ERROR_FAILED, ENOENT, "core.read",
				     "call core.begin first", "no core is being read");
	return (int)amdcore_image_read(c->image, &source, offset, buf, size, ret_lost);
}

void kfd_core_end(struct target *t)
{
	struct target_kfd *k = kfd_of(t);

	if (!k->core)
		return;
	undo_drop(&t->undo, k->core->ticket);
	undo_core(k, 0, NULL);
}
