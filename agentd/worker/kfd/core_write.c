/* SPDX-License-Identifier: MIT */
/*
 * Writing a core of an AMD process.  What its waves were doing is copied while they stand still;
 * all other memory is read when the client fetches the file.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "agentd/worker/kfd/core_write.h"
#include "agentd/worker/kfd/registers.h"
#include "base/out.h"
#include "base/clock.h"
#include "base/page.h"
#include "base/vec.h"

/* Time for the stops of all threads together; less than what the deadline of a call leaves. */
#define HOST_MS	 500
/* Most sentences that a core adds to what is missing of its waves. */
#define MISSING_MAX 16u
/* Most bytes of a table's entry that are kept: a later kernel may have longer entries. */
#define ENTRY_MAX 512u

void kfd_core_missing(struct kfd_core *c, const char *text)
{
	struct target_core *told = c->told;

	if (text && told->n_missing < c->missing_capacity)
		told->missing[told->n_missing++] = text;
}

/* Make a list with the sentences about the waves, and room for those about the core. */
static int make_missing(struct kfd_core *c, const struct target_waves *waves)
{
	size_t capacity = waves->n_missing + MISSING_MAX;

	c->told->missing = rpc_arena_array(c->arena, capacity, sizeof(*c->told->missing));
	if (!c->told->missing)
		return -ENOMEM;
	c->missing_capacity = capacity;
	for (size_t i = 0; i < waves->n_missing; i++)
		kfd_core_missing(c, waves->missing[i]);
	return 0;
}

/* ------------------------------------------------------------------ waves -------------------- */

/* Capture the waves, with all of their saved bytes copied into the room made before the stop. */
static int copy_waves(struct kfd_core *c, const struct target_waves_from *from,
		      struct target_waves *ret, struct agent_err *err)
{
	struct wave_capture w = { .k = c->k,
				  .arena = c->arena,
				  .from = from,
				  .take = kfd_core_copy_round,
				  .ctx = c };
	int r;

	kfd_core_make_room(c, from);
	r = wave_capture_run(&w, ret, err);
	kfd_core_trim(c);
	if (r == 0) {
		c->told->n_waves = ret->n_waves;
		c->told->stopped_us = ret->stopped_us;
		c->told->agent_us = ret->agent_us;
		c->told->budget_exceeded = ret->budget_exceeded || c->late;
	}
	wave_capture_deinit(&w);
	return r;
}

/*
 * Only a queue without a packet has surely no waves: packets are taken in order, and a queue that
 * took the last one long ago may still have waves of it.
 */
static bool never_had_work(const struct rpc_queue *q)
{
	return q->has_write_index && !q->write_index;
}

/*
 * Add what is likely to be copied, without stopping anything.  The waves of all queues of a device
 * share its registers, for which one whole save area is enough.  So one whole area is counted once,
 * for queues that have not been suspended yet.
 */
static void estimate_device(struct kfd_core *c, const struct target_waves_from *from,
			    const struct target_device *device)
{
	bool whole = false;

	for (size_t i = 0; i < from->n_queues; i++) {
		const struct rpc_queue *q = &from->queues[i];

		if (q->gpu_id != device->rpc.gpu_id)
			continue;
		kfd_core_add(c, q->ring_base, q->ring_bytes);
		for (uint64_t die = 0; die < device_dies(device); die++) {
			uint64_t area = q->save_area + die * q->save_area_bytes;
			uint64_t size = kfd_core_likely_size(c, area, q->save_area_bytes);

			if (size == q->save_area_bytes && (whole || never_had_work(q)))
				size = 0;
			kfd_core_add(c, area, size ? size : 1);
		}
		whole = whole || kfd_core_likely_size(c, q->save_area, q->save_area_bytes) == q->save_area_bytes;
	}
}

/* Each copy is a segment of its own, and can cut one in two; its size is counted where its memory is. */
static uint64_t copies_headers(const struct target_waves_from *from, const struct target_device *device)
{
	/* Read and write pointer, ring, arguments of packets; header and the rest of each save area. */
	uint64_t copies = 3 + PACKETS_MAX + 2 * device_dies(device), n_queues = 0;

	for (size_t i = 0; i < from->n_queues; i++)
		n_queues += from->queues[i].gpu_id == device->rpc.gpu_id;
	return n_queues * copies * 2 * sizeof(Elf64_Phdr);
}

static void estimate_waves(struct kfd_core *c, const struct target_waves_from *from)
{
	for (size_t d = 0; d < from->n_devices; d++) {
		estimate_device(c, from, &from->devices[d]);
		c->told->bytes += copies_headers(from, &from->devices[d]);
	}
}

/* ------------------------------------------------------------------ what is read later ------- */

bool kfd_core_is_memory(const struct mapping *m)
{
	const char *path = m->path;

	/* Linux 6.13 has [vvar_vclock] beside [vvar]. */
	if (!m->readable || strncmp(path, "[vvar", 5) == 0 || strcmp(path, "[vsyscall]") == 0)
		return false;
	return strncmp(path, "/dev/", 5) != 0 || strncmp(path, "/dev/dri/renderD", 16) == 0 ||
	       strncmp(path, "/dev/shm/", 9) == 0 || strcmp(path, "/dev/zero") == 0;
}

static void on_mapping(void *arg, const struct mapping *m)
{
	if (kfd_core_is_memory(m))
		kfd_core_add(arg, m->begin, m->end - m->begin);
}

/* ------------------------------------------------------------------ the kernel's tables ------ */

typedef int (*snapshot_fn)(struct kfdtrap *kt, uint64_t clear, void *buf, size_t capacity,
			   uint32_t entry_size, size_t *ret_n, uint32_t *ret_entry_size);

/*
 * Read a table of the kernel with more room for each entry than is needed today, so that the longer
 * entries of a later kernel are kept whole.
 */
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
	size = (size + 7) & ~UINT32_C(7); /* Readers take only lengths that are multiples of 8. */
	for (size_t i = 1; i < n; i++)
		memmove(data + i * size, data + i * ENTRY_MAX, size);
	*ret = (struct amdcore_table){ .data = data, .n = (uint32_t)n, .entry_size = size };
	return 0;
}

static int read_tables(struct kfd_core *c, struct agent_err *err)
{
	struct target_kfd *k = c->k;
	const struct rpc_runtime *t = &k->t.runtime;
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

/* Read bytes of a segment that was not copied, from the running target. */
static ssize_t fetch(void *arg, uint64_t key, uint64_t offset, void *buf, size_t size)
{
	const struct target *t = arg;

	return memory_read(&t->memory, key + offset, buf, size);
}

static void free_notes(struct kfd_core *c)
{
	for (size_t i = 0; i < c->n_notes; i++)
		free((void *)c->notes[i].desc);
	free(c->notes);
	c->notes = NULL;
	c->n_notes = 0;
	c->core.n_notes = 0;
}

/*
 * Add a segment, or what is read later to the one before it.  Debuggers look for the ELF header of a library only where
 * a segment begins (dwfl_segment_report_module() of elfutils), and libraries often lie next to each other.
 */
static int add_segment(struct kfd_core *c, uint64_t address, uint64_t size, uint8_t *data)
{
	struct amdcore *core = &c->core;
	struct amdcore_segment *last = core->n_segments ? &core->segments[core->n_segments - 1] : NULL;

	if (last && !data && !last->bytes.data && last->address + last->size == address &&
	    kfd_core_next_file(c->host, last->address) > address) {
		last->size = last->bytes.size = last->size + size;
		return 0;
	}
	if (vec_reserve(&core->segments, core->n_segments, 1, &c->segments_capacity, sizeof(*core->segments)) < 0)
		return -ENOMEM;
	core->segments[core->n_segments++] = (struct amdcore_segment){
		.address = address,
		.flags = PF_R | PF_W,
		.size = size,
		.bytes = { .data = data, .key = address, .size = size },
	};
	return 0;
}

/* A copy of a stack goes on behind it, maybe into a library. */
static int add_segments(struct kfd_core *c, const struct kfd_core_piece *p)
{
	uint64_t done = 0;

	while (done < p->size) {
		const uint64_t address = p->address + done, next = kfd_core_next_file(c->host, address);
		const uint64_t size = next - address < p->size - done ? next - address : p->size - done;
		int r = add_segment(c, address, size, p->data ? p->data + done : NULL);

		if (r < 0)
			return r;
		done += size;
	}
	return 0;
}

/* Make the file's layout of the pieces. */
static int make_image(struct kfd_core *c)
{
	int r = c->no_memory ? -ENOMEM : 0;

	kfd_core_sort_pieces(c);
	for (size_t i = 0; i < c->n_pieces && r == 0; i++)
		r = add_segments(c, &c->pieces[i]);
	if (r < 0)
		return r;
	r = amdcore_image_create(&c->core, &c->image);
	/* The image has copies of them, and they can be large. */
	free_notes(c);
	return r;
}

static void core_free(struct kfd_core *c)
{
	if (!c)
		return;
	amdcore_image_destroy(c->image);
	if (c->store)
		munmap(c->store, c->store_size);
	free(c->list);
	free(c->pieces);
	free_notes(c);
	free(c->devices);
	free(c->queues);
	free(c->core.segments);
	kfd_core_host_free(c->host);
	free(c);
}

/* The undo function of a core: its client has left, so nobody will fetch the rest. */
static int undo_core(void *ctx, uint64_t arg, struct agent_err *err)
{
	struct target_kfd *k = ctx;

	core_free(k->core);
	k->core = NULL;
	return 0;
}

int kfd_core_add_note(struct kfd_core *c, uint32_t type, void *desc, size_t size)
{
	if (vec_reserve(&c->notes, c->n_notes, 1, &c->notes_capacity, sizeof(*c->notes)) < 0) {
		free(desc);
		return -ENOMEM;
	}
	c->notes[c->n_notes++] = (struct amdcore_note){ .name = COREFILE_AGENT_NOTE, .type = type,
							.desc = desc, .size = (uint32_t)size };
	c->core.notes = c->notes;
	c->core.n_notes = (uint32_t)c->n_notes;
	return 0;
}

static int take_head(struct kfd_core *c, const struct out *head)
{
	void *text = malloc(head->size + 1);

	if (!text)
		return -ENOMEM;
	memcpy(text, head->data, head->size);
	return kfd_core_add_note(c, COREFILE_AGENT_NOTE_TYPE, text, head->size);
}

static int add_host(struct kfd_core *c, const struct target_core_wanted *what,
		    struct agent_err *err)
{
	struct kfd_core_threads threads;
	int r;

	if (what->estimate) {
		c->told->bytes += kfd_core_estimate_host(c);
		return 0;
	}
	r = kfd_core_add_host(c, clock_deadline_ms(HOST_MS), &threads);
	if (r == -ENOTSUP)
		return agent_err_set(err, RPC_ERROR_UNSUPPORTED, EOPNOTSUPP, "core.begin",
				     "leave out the host's half: no --unified",
				     "cores of the host are not written on this architecture");
	if (r < 0)
		return agent_err_no_memory(err, "core.begin");
	c->told->n_threads = threads.n;
	c->told->n_missed_threads = threads.n_missed;
	c->told->thread_stopped_us = threads.stopped_us;
	if (threads.n_missed)
		kfd_core_missing(c, rpc_arena_printf(c->arena, "registers of %u threads, which did not stop, "
							       "which the kernel does not show to the "
							       "process's own user, or which are more "
							       "than a core has room for",
						     threads.n_missed));
	return 0;
}

/*
 * Collect the core.  Earlier pieces win: the copies of the waves' memory come first, then what
 * explains them, then the host, and at last all other mappings of a full core.
 */
static int collect(struct kfd_core *c, const struct target_waves_from *from,
		   const struct target_core_wanted *what, struct agent_err *err)
{
	struct target_waves *waves = &c->told->waves;
	int r = take_head(c, what->head) < 0 ? agent_err_no_memory(err, "core.begin") : read_tables(c, err);

	if (r == 0 && what->estimate)
		estimate_waves(c, from);
	else if (r == 0)
		r = copy_waves(c, from, waves, err);
	c->told->has_waves = r == 0 && what->waves;
	if (r == 0 && make_missing(c, waves) < 0)
		r = agent_err_no_memory(err, "core.begin");
	if (r < 0)
		return r;
	kfd_core_missing(c, kfd_hidden_queues(&c->k->t, c->arena));
	if (c->late && c->shares_stop)
		kfd_core_missing(c, "saved waves of some queues: the stop budget was used up");
	if (c->too_much)
		kfd_core_missing(c, "saved waves of some queues: more than the agent has memory for");
	kfd_core_add_code(c, from, waves, what->full);
	/* The host comes after the waves: pages copied with them must not be of a later moment. */
	if (what->unified)
		r = add_host(c, what, err);
	if (r < 0)
		return r;
	if (what->full && mappings_read(c->k->t.maps_fd, on_mapping, c) < 0)
		kfd_core_missing(c, "memory: /proc/PID/maps is not readable");
	return make_image(c) < 0 ? agent_err_no_memory(err, "core.begin") : 0;
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
		return agent_err_no_memory(err, "core.begin");
	c->k = k;
	c->arena = a;
	c->told = ret;
	c->shares_stop = what->waves;
	c->estimate = what->estimate;
	*ret = (struct target_core){ 0 };
	r = collect(c, from, what, err);
	if (r == 0 && !what->estimate && !what->ours)
		r = undo_push(&t->undo, "forget a core", undo_core, k, 0, &c->ticket, err);
	if (r == 0) {
		/* What an estimate has only counted goes in front of the segments, which begin at a page. */
		ret->bytes = amdcore_image_size(c->image) + page_up(ret->bytes);
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
