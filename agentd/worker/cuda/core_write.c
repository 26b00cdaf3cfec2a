/* SPDX-License-Identifier: MIT */
/*
 * A core of a CUDA process: what its warps do is copied while the devices stand still, and written
 * from where it lies.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "agentd/worker/cuda/core_write.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/elf_view.h"
#include "base/out.h"
#include "base/str.h"

/* Copies are cut from pieces of this size, in large pages; larger ones have their own. */
#define CHUNK_BYTES ((size_t)16 << 20)
#define HUGE_BYTES  ((size_t)2 << 20)
/* Bytes of memory that are fetched between two looks at the clock. */
#define STEP_BYTES  (UINT64_C(1) << 20)
/* The deadline of a call is at 10 s. */
#define FETCH_MS    7000
#define REGIONS_MAX 4096u
/* The words of CUDA_COREDUMP_GENERATION_FLAGS that a core of ours does without. */
#define FLAG_NO_GLOBAL (UINT32_C(1) << 1)
#define FLAG_NO_LOCAL  (UINT32_C(1) << 3)
/* What a lane takes in a file at most, besides registers: its record, sections and their names. */
#define LANE_BYTES   1024u
#define SHARED_BYTES (UINT64_C(256) << 10)

struct cuda_core_chunk {
	struct cuda_core_chunk *next;
	size_t used, size; /* With this. */
};

/* ------------------------------------------------------------------ copies ------------------- */

static struct cuda_core_chunk *add_chunk(struct cuda_core *k, struct cuda_core_chunk **chunks,
					 uint64_t size)
{
	struct cuda_core_chunk *chunk;

	size = size < CHUNK_BYTES ? CHUNK_BYTES : (size + HUGE_BYTES - 1) & ~(HUGE_BYTES - 1);
	chunk = aligned_alloc(HUGE_BYTES, size);
	if (!chunk) {
		k->no_memory = true;
		return NULL;
	}
	/* Large pages mean fewer page faults while devices stand still. */
	(void)madvise(chunk, size, MADV_HUGEPAGE);
	*chunk = (struct cuda_core_chunk){ .next = *chunks, .used = sizeof(*chunk), .size = size };
	*chunks = chunk;
	return chunk;
}

static void *copy(struct cuda_core *k, struct cuda_core_chunk **chunks, uint64_t size)
{
	struct cuda_core_chunk *chunk = *chunks;
	void *at;

	if (size > CUDA_CORE_COPIED_MAX - k->copied) {
		k->too_much = true;
		return NULL;
	}
	if (!chunk || size > chunk->size - chunk->used)
		chunk = add_chunk(k, chunks, size + sizeof(*chunk));
	if (!chunk)
		return NULL;
	at = (uint8_t *)chunk + chunk->used;
	chunk->used += size;
	k->copied += size;
	return at;
}

void *cuda_core_copy(struct cuda_core *k, uint64_t size)
{
	return copy(k, &k->chunks, (size + 7) & ~UINT64_C(7));
}

uint32_t *cuda_core_copy_words(struct cuda_core *k, uint32_t n)
{
	return copy(k, &k->words, n * sizeof(uint32_t));
}

static void free_chunks(struct cuda_core_chunk *chunk)
{
	while (chunk) {
		struct cuda_core_chunk *next = chunk->next;

		free(chunk);
		chunk = next;
	}
}

static void core_free(struct cuda_core *k)
{
	if (!k)
		return;
	cudacore_image_destroy(k->image);
	cudacore_deinit(&k->core);
	free_chunks(k->chunks);
	free_chunks(k->words);
	free(k);
}

/* ------------------------------------------------------------------ memory ------------------- */

/* While the devices run. */
static uint64_t read_memory(struct cuda_core *k, uint64_t address, uint8_t *to, uint64_t size)
{
	uint64_t done = 0;

	while (done < size && clock_now_ns() < k->deadline_ns) {
		uint64_t n = size - done < STEP_BYTES ? size - done : STEP_BYTES;
		ssize_t got = cuda_memory(&k->c->t, address + done, to + done, (uint32_t)n, NULL);

		done += got > 0 ? (uint64_t)got : 0;
		if (got < (ssize_t)n)
			break;
	}
	return done;
}

static bool is_free(const struct cuda_core *k, uint64_t address, uint64_t size)
{
	if (!size || size > UINT64_MAX - address || k->core.n_memory >= REGIONS_MAX)
		return false;
	for (uint32_t i = 0; i < k->core.n_memory; i++) {
		const struct cudacore_memory *m = &k->core.memory[i];

		if (m->address < address + size && address < m->address + m->blob.size)
			return false;
	}
	return true;
}

static uint8_t *copy_memory(struct cuda_core *k, const struct cudbgshim_place *at, uint64_t address,
			    uint64_t size)
{
	uint8_t *to = size <= UINT32_MAX ? cuda_core_copy(k, size) : NULL;

	if (!to || cudbgshim_read_memory(k->c->shim, CUDBGSHIM_SPACE_GLOBAL, at, address, to,
					 (uint32_t)size) == 0)
		return to;
	return cudbgshim_read_memory(k->c->shim, CUDBGSHIM_SPACE_GENERIC, at, address, to,
				     (uint32_t)size) == 0 ? to : NULL;
}

void cuda_core_add_memory(struct cuda_core *k, uint64_t address, uint64_t size,
			  const struct cudbgshim_place *at)
{
	struct cudacore_memory *m;
	uint8_t *data = NULL;

	k->too_much |= k->core.n_memory >= REGIONS_MAX;
	if (!is_free(k, address, size))
		return;
	if (at) {
		data = copy_memory(k, at, address, size);
		if (!data)
			return;
	}
	m = cudacore_add_memory(&k->core);
	if (m)
		*m = (struct cudacore_memory){ .address = address,
					       .blob = { .data = data, .key = address, .size = size } };
	k->no_memory |= !m;
}

/* Variables of a module: they are sections of its image, at their addresses. */
static void add_variables(struct cuda_core *k, const struct corefile_blob *image)
{
	struct elf_view elf;

	if (!image->data || elf_view_init(&elf, image->data, image->size) < 0)
		return;
	for (uint32_t i = 0; i < elf.n_sections; i++) {
		Elf64_Shdr s = elf_view_section(&elf, i);

		if (s.sh_addr && str_starts_with(elf_view_section_name(&elf, &s), ".nv.global"))
			cuda_core_add_memory(k, s.sh_addr, s.sh_size, NULL);
	}
}

/* @return where the next part of the list begins: behind the last region of this one. */
static uint64_t add_part(struct cuda_core *k, const struct cudbgshim_region *regions, uint32_t n,
			 uint64_t from)
{
	for (uint32_t i = 0; i < n; i++) {
		cuda_core_add_memory(k, regions[i].start, regions[i].size, NULL);
		if (regions[i].start >= from && regions[i].size <= UINT64_MAX - regions[i].start)
			from = regions[i].start + regions[i].size;
	}
	return from;
}

/* The list comes in parts; whether it ever ends is up to the driver. */
static void add_regions(struct cuda_core *k)
{
	struct cudbgshim_region regions[64];
	uint64_t from = 0, next;
	uint32_t n;

	for (uint32_t parts = 0; parts < REGIONS_MAX / ARRAY_SIZE(regions); parts++) {
		if (cudbgshim_get_managed_regions(k->c->shim, from, regions, ARRAY_SIZE(regions),
						  &n) < 0)
			return;
		next = add_part(k, regions, n, from);
		if (n < ARRAY_SIZE(regions))
			return;
		if (next == from)
			break;
		from = next;
	}
	k->lost_regions = true;
}

/* All that the debugger API knows of: it has no list of what a program has allocated otherwise. */
static void add_all_memory(struct cuda_core *k)
{
	for (uint32_t i = 0; i < k->core.n[CUDACORE_MODULES]; i++)
		add_variables(k, &k->core.modules[i].relocated);
	add_regions(k);
}

/* ------------------------------------------------------------------ the file ----------------- */

static ssize_t fetch(void *arg, uint64_t key, uint64_t offset, void *buf, size_t size)
{
	return (ssize_t)read_memory(arg, key + offset, buf, size);
}

/* Would debuggers open it? */
static int make_file(struct cuda_core *k, struct agent_err *err)
{
	struct corefile_problem problem = { 0 };
	int r = cudacore_check(&k->core, &problem);

	k->source = (struct corefile_source){ fetch, k };
	if (r == 0)
		r = cudacore_image_create(&k->core, k->layout, &k->source, &k->image, &problem);
	if (r == -ENOMEM)
		return cuda_no_memory("core.begin", err);
	return r == 0 ? 0 : agent_err_set(err, RPC_ERROR_FAILED, 0, "core.begin", NULL,
					  "what the driver says makes no core: %s",
					  problem.text[0] ? problem.text : strerror(-r));
}

static uint32_t count_sections(const struct cudacore *c)
{
	uint32_t n = c->n_memory;

	for (int i = 0; i < CUDACORE_TABLE_COUNT; i++)
		n += c->n[i];
	return n;
}

/* ------------------------------------------------------------------ begin, read, end --------- */

static void add_missing(struct target_core *ret, const char *text)
{
	if (text && ret->missing && ret->n_missing < CUDA_CORE_MISSING_MAX)
		ret->missing[ret->n_missing++] = text;
}

static void tell_missing(const struct cuda_core *k, struct rpc_arena *a, struct target_core *ret)
{
	for (uint32_t dev = 0; dev < k->c->n_devices; dev++)
		if (k->no_state >> dev & 1)
			add_missing(ret,
				    rpc_arena_printf(a, "device %u: its state could not be read%s",
						     dev, k->late ? " in time" : ""));
	if (k->left_out)
		add_missing(ret, rpc_arena_printf(a,
						  "%u warps that run no code known to the driver, "
						  "or no lane: no debugger opens a core with them",
						  k->left_out));
	if (k->no_image)
		add_missing(ret, rpc_arena_printf(a, "the code of %u modules", k->no_image));
	if (k->unread)
		add_missing(ret, rpc_arena_printf(a, "registers of %u warps: %s", k->unread,
						  k->late ? "the stop budget was used up" :
							    "the driver does not give them"));
	if (k->cut)
		add_missing(ret, rpc_arena_printf(a, "some registers of %u warps: the driver does "
						  "not give them", k->cut));
	if (k->too_much)
		add_missing(ret, "some memory: more than the agent has room for");
	if (k->lost_regions)
		add_missing(ret, "managed memory: the driver's list of it does not come to an end");
	if (k->c->lost_news)
		add_missing(ret, "contexts or code: more than the agent keeps");
	ret->budget_exceeded = k->late;
}

static int look(struct cuda_core *k, const struct target_waves_from *from, bool waves,
		struct rpc_arena *a, struct target_core *ret, struct agent_err *err)
{
	struct target_cuda *c = k->c;
	uint64_t devices = cuda_devices_of(from), began, stopped;
	int r, go;

	cuda_arguments_prepare(c);
	began = clock_now_ns();
	r = cuda_stop(c, devices, err);
	if (r < 0)
		return r;
	stopped = clock_now_ns();
	k->deadline_ns = began + (uint64_t)from->max_stop_ms * 1000000;
	if (waves)
		r = cuda_waves_read(c, from, k->deadline_ns, a, &ret->waves, &k->read);
	ret->has_waves = waves && r == 0;
	if (r == 0)
		r = cuda_core_add_warps(k, devices);
	ret->agent_us = (clock_now_ns() - stopped) / 1000;
	if (r < 0)
		cuda_error(c, r, "core.begin", err);
	go = cuda_go(c, r < 0 ? NULL : err);
	ret->stopped_us = (clock_now_ns() - began) / 1000;
	if (ret->has_waves)
		cuda_waves_stopped(from, ret->stopped_us, ret->agent_us, a, &ret->waves);
	if (ret->has_waves)
		cuda_waves_add_parts(c, a, &ret->waves);
	return r < 0 ? r : go;
}

/* More than a core with every lane of these devices would have. */
static uint64_t most_bytes(const struct target_cuda *c, uint64_t devices)
{
	uint64_t sum = 0;

	for (uint32_t dev = 0; dev < c->n_devices; dev++) {
		const struct cudbgshim_device *d = &c->devices[dev].facts;
		uint64_t lanes = (uint64_t)d->n_sms * d->n_warps * d->n_lanes;

		if (!(devices >> dev & 1))
			continue;
		sum += lanes * (LANE_BYTES + 4 * ((uint64_t)d->n_registers + d->n_predicates)) +
		       d->n_sms * SHARED_BYTES;
	}
	return sum;
}

static int add_meta(struct cuda_core *k)
{
	const struct cudbgshim_version v = cudbgshim_get_version(k->c->shim);
	struct cudacore_meta *m = cudacore_add(&k->core, CUDACORE_META, 0);

	if (!m)
		return -ENOMEM;
	*m = (struct cudacore_meta){ .generator = "gpu-agent",
				     .cuda_driver = { v.major, v.minor },
				     .flags = k->full ? 0 : FLAG_NO_GLOBAL | FLAG_NO_LOCAL,
				     .time_s = (uint32_t)(clock_wall_us() / 1000000) };
	return 0;
}

static int add_head(struct cuda_core *k, const struct out *head)
{
	void *text = cuda_core_copy(k, head->size);

	if (!text)
		return -ENOMEM;
	memcpy(text, head->data, head->size);
	k->core.agent = (struct corefile_blob){ .data = text, .size = head->size };
	return 0;
}

static int collect(struct cuda_core *k, const struct target_waves_from *from,
		   const struct target_core_wanted *what, struct rpc_arena *a,
		   struct target_core *ret, struct agent_err *err)
{
	int r = add_meta(k);

	if (r == 0)
		r = add_head(k, what->head);
	if (r == 0)
		r = cuda_core_add_devices(k);
	if (r == 0 && (!what->estimate || what->count))
		r = look(k, from, what->waves, a, ret, err);
	if (r < 0)
		return r == -ENOMEM ? cuda_no_memory("core.begin", err) : r;
	if (k->full)
		add_all_memory(k);
	tell_missing(k, a, ret);
	return k->no_memory ? cuda_no_memory("core.begin", err) : make_file(k, err);
}

static enum cudacore_layout layout_of(const struct target_core_wanted *what)
{
	_Static_assert(RPC_CORE_LAYOUT_R346 == (int)CUDACORE_LAYOUT_R346 &&
			       RPC_CORE_LAYOUT_R615 == (int)CUDACORE_LAYOUT_R615,
		       "the schema counts layouts as the writer does");

	return what->has_layout ? (enum cudacore_layout)what->layout : CUDACORE_LAYOUT_DEFAULT;
}

static int undo_core(void *ctx, uint64_t arg, struct agent_err *err)
{
	struct target_cuda *c = ctx;

	core_free(c->core);
	c->core = NULL;
	return 0;
}

int cuda_core_begin(struct target *t, const struct target_waves_from *from,
		    const struct target_core_wanted *what, struct rpc_arena *a,
		    struct target_core *ret, struct agent_err *err)
{
	struct target_cuda *c = cuda_of(t);
	struct cuda_core *k;
	int r;

	cuda_core_end(t);
	*ret = (struct target_core){ 0 };
	if (what->unified)
		return agent_err_set(err, RPC_ERROR_UNSUPPORTED, EOPNOTSUPP, "core.begin",
				     "leave out the host's half: no --unified",
				     "a CUDA core is a file of its own");
	if (!c->shim)
		return agent_err_set(err, RPC_ERROR_NOT_DEBUGGABLE, ENODEV, "core.begin",
				     "wait until it has a context",
				     "process %d does nothing on a GPU yet", (int)t->facts.pid);
	k = calloc(1, sizeof(*k));
	if (!k)
		return cuda_no_memory("core.begin", err);
	*k = (struct cuda_core){ .c = c,
				 .full = what->full,
				 .estimate = what->estimate,
				 .layout = layout_of(what) };
	ret->missing = rpc_arena_array(a, CUDA_CORE_MISSING_MAX, sizeof(*ret->missing));
	r = collect(k, from, what, a, ret, err);
	if (r == 0 && !what->estimate && !what->ours)
		r = undo_push(&t->undo, "forget a core", undo_core, c, 0, &k->ticket, err);
	if (r == 0) {
		ret->bytes = cudacore_image_size(k->image);
		if (what->estimate) {
			uint64_t full = what->count && !k->late ? k->no_state : UINT64_MAX;

			ret->bytes += most_bytes(c, full);
			ret->at_most = full;
		}
		ret->n_segments = count_sections(&k->core);
		ret->n_waves = k->core.n[CUDACORE_WARPS];
		ret->copied_bytes = what->estimate ? 0 : k->copied;
	}
	if (r < 0 || what->estimate)
		core_free(k);
	else
		c->core = k;
	return r;
}

int cuda_core_read(struct target *t, uint64_t offset, void *buf, uint32_t size, uint64_t *ret_lost,
		   struct agent_err *err)
{
	struct cuda_core *k = cuda_of(t)->core;

	if (!k)
		return agent_err_set(err, RPC_ERROR_FAILED, ENOENT, "core.read",
				     "call core.begin first", "no core is being read");
	k->deadline_ns = clock_deadline_ms(FETCH_MS);
	return (int)cudacore_image_read(k->image, offset, buf, size, ret_lost);
}

const void *cuda_core_at(struct target *t, uint64_t offset, uint64_t *ret_size)
{
	const struct cuda_core *k = cuda_of(t)->core;

	return k ? cudacore_image_at(k->image, offset, ret_size) : NULL;
}

void cuda_core_end(struct target *t)
{
	struct target_cuda *c = cuda_of(t);

	if (!c->core)
		return;
	undo_drop(&t->undo, c->core->ticket);
	undo_core(c, 0, NULL);
}
