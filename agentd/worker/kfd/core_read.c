/* SPDX-License-Identifier: MIT */
/*
 * Reading an AMDGPU core.  The AMD back end sees it as a process whose queues are all off the
 * hardware, as under a suspend lease, and whose memory is in the file.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/worker/kfd/kfd.h"
#include "agentd/worker/target/core_file.h"
#include "base/str.h"
#include "corefile/amdgpu/read.h"
#include "corefile/process.h"

/* The stop budget is long, because a copy from a file stops no queue. */
#define COPY_MS 60000u

/* A core as a target. */
struct core_kfd {
	struct target_kfd k; /* The first member, so that core_of() may cast. */
	struct core_file file;
	struct amdcore core;
	uint32_t n_devices, n_queues; /* As many as the back end has room for. */
};

static struct core_kfd *core_of(struct target *t)
{
	return (struct core_kfd *)(void *)t;
}

static ssize_t read_memory(const void *source, uint64_t address, void *buf, size_t size)
{
	const struct core_kfd *c = source;
	size_t n = amdcore_read_memory(&c->core, address, buf, size);

	return n || !size ? (ssize_t)n : -EFAULT;
}

/* ------------------------------------------------------------------ tables ------------------- */

static struct kfdtrap_device device_of(const struct amdcore *core, uint32_t i)
{
	struct amdcore_device d;

	amdcore_get_device(core, i, &d);
	return (struct kfdtrap_device){
		.exceptions = d.exceptions,
		.lds_base = d.lds_base,
		.lds_limit = d.lds_limit,
		.scratch_base = d.scratch_base,
		.scratch_limit = d.scratch_limit,
		.gpuvm_base = d.gpuvm_base,
		.gpuvm_limit = d.gpuvm_limit,
		.gpu_id = d.gpu_id,
		.location_id = d.location_id,
		.vendor_id = d.vendor_id,
		.device_id = d.device_id,
		.revision_id = d.revision_id,
		.subsystem_vendor_id = d.subsystem_vendor_id,
		.subsystem_device_id = d.subsystem_device_id,
		.fw_version = d.fw_version,
		.gfx_target_version = d.gfx_target_version,
		.simd_count = d.simd_count,
		.max_waves_per_simd = d.max_waves_per_simd,
		.array_count = d.array_count,
		.simd_arrays_per_engine = d.simd_arrays_per_engine,
		.num_xcc = d.num_xcc,
		.capability = d.capability,
		.debug_prop = d.debug_prop,
		.capability2 = d.capability2,
		.has_capability2 = core->devices.entry_size >= AMDCORE_DEVICE_CAPABILITY2_END,
	};
}

static int core_devices(struct target *t, struct rpc_arena *a, struct target_device **ret,
			size_t *ret_n, struct agent_err *err)
{
	struct core_kfd *c = core_of(t);
	struct target_device *list = rpc_arena_array(a, c->n_devices, sizeof(*list));

	if (!list)
		return agent_err_no_memory(err, "read the core");
	for (uint32_t i = 0; i < c->n_devices; i++) {
		const struct kfdtrap_device d = device_of(&c->core, i);

		kfd_fill_device(&list[i], a, &d, NULL);
		core_file_complete_device(&c->file, &list[i].rpc);
	}
	if (rpc_arena_error(a) < 0)
		return agent_err_no_memory(err, "read the core");
	*ret = list;
	*ret_n = c->n_devices;
	return 0;
}

static void fill_queue(struct core_kfd *c, struct rpc_arena *a, uint32_t i, struct rpc_queue *ret)
{
	const struct rpc_queue *known;
	struct amdcore_queue q;

	amdcore_get_queue(&c->core, i, &q);
	kfd_fill_queue(&c->k, a, ret,
		       &(struct kfdtrap_queue){
			       .exceptions = q.exceptions,
			       .ring_base_address = q.ring_base,
			       .write_pointer_address = q.write_pointer,
			       .read_pointer_address = q.read_pointer,
			       .ctx_save_restore_address = q.save_area,
			       .queue_id = q.queue_id,
			       .gpu_id = q.gpu_id,
			       .ring_size = q.ring_size,
			       .type = q.type,
			       .ctx_save_restore_area_size = q.save_area_size,
		       });
	known = core_file_queue(&c->file, ret->queue_id);
	ret->suspended = known && known->suspended;
	/* The memory of a core has the counters of queues with waves only; the head has all. */
	if (known && !ret->has_read_index) {
		ret->has_read_index = known->has_read_index;
		ret->read_index = known->read_index;
	}
	if (known && !ret->has_write_index) {
		ret->has_write_index = known->has_write_index;
		ret->write_index = known->write_index;
	}
}

static int core_queues(struct target *t, struct rpc_arena *a, struct rpc_queue **ret,
		       size_t *ret_n, struct agent_err *err)
{
	struct core_kfd *c = core_of(t);
	struct rpc_queue *list = rpc_arena_array(a, c->n_queues, sizeof(*list));

	if (!list)
		return agent_err_no_memory(err, "read the core");
	for (uint32_t i = 0; i < c->n_queues; i++)
		fill_queue(c, a, i, &list[i]);
	if (rpc_arena_error(a) < 0)
		return agent_err_no_memory(err, "read the core");
	*ret = list;
	*ret_n = c->n_queues;
	return 0;
}

/* ------------------------------------------------------------------ waves -------------------- */

/* Copy the list of queues, with all of them suspended.  @return 0, or negative with @p err. */
static int stand_still(const struct target_waves_from *from, struct rpc_arena *a,
		       struct target_waves_from *ret, struct agent_err *err)
{
	struct rpc_queue *queues = rpc_arena_array(a, from->n_queues, sizeof(*queues));

	if (!queues)
		return agent_err_no_memory(err, "read the core");
	if (from->n_queues)
		memcpy(queues, from->queues, from->n_queues * sizeof(*queues));
	for (size_t i = 0; i < from->n_queues; i++)
		queues[i].suspended = true;
	*ret = *from;
	ret->queues = queues;
	ret->max_stop_ms = COPY_MS;
	return 0;
}

static int core_waves(struct target *t, const struct target_waves_from *from, struct rpc_arena *a,
		      struct target_waves *ret, struct agent_err *err)
{
	struct target_waves_from still;
	int r = stand_still(from, a, &still, err);

	return r < 0 ? r : kfd_waves(t, &still, a, ret, err);
}

static int core_registers(struct target *t, const struct target_waves_from *from,
			  const struct target_registers_wanted *what, struct rpc_arena *a,
			  struct rpc_wave_registers *ret, uint64_t *ret_stopped_us,
			  struct agent_err *err)
{
	struct target_waves_from still;
	int r = stand_still(from, a, &still, err);

	return r < 0 ? r : kfd_registers(t, &still, what, a, ret, ret_stopped_us, err);
}

static int core_wave_memory(struct target *t, const struct target_waves_from *from,
			    const struct target_wave_memory *what, struct rpc_arena *a,
			    struct agent_err *err)
{
	struct target_waves_from still;
	int r = stand_still(from, a, &still, err);

	return r < 0 ? r : kfd_wave_memory(t, &still, what, a, err);
}

/* ------------------------------------------------------------------ code objects ------------- */

/* @return the bytes of a code object whose file is in the core; NULL: it is not. */
static const uint8_t *file_in_core(struct target *t, const char *uri, size_t *ret_size)
{
	const struct amdcore *core = &core_of(t)->core;
	size_t name = strlen(uri) + 1;

	for (uint32_t i = 0; i < core->n_notes; i++) {
		const struct amdcore_note *n = &core->notes[i];

		if (n->type != COREFILE_AGENT_CODE_TYPE || strcmp(n->name, COREFILE_AGENT_NOTE) != 0 ||
		    n->size < name || memcmp(n->desc, uri, name) != 0)
			continue;
		*ret_size = n->size - name;
		return (const uint8_t *)n->desc + name;
	}
	return NULL;
}

/* A file on this machine may be of another build: it is believed only if the core proves it. */
static int core_code_stat(struct target *t, const struct code_object *o, struct code_stat *ret)
{
	size_t size;
	int r;

	if (file_in_core(t, o->uri, &size)) {
		*ret = (struct code_stat){ .size = size };
		return 0;
	}
	r = kfd_code_stat(t, o, ret);
	if (r == 0 && kfd_code_is_file(o))
		r = kfd_code_compare(t, o, ret->size);
	return r == KFD_CODE_UNSURE ? -ESTALE : r;
}

static ssize_t core_code_read(struct target *t, const struct code_object *o, uint64_t offset, void *buf, size_t size)
{
	size_t all;
	const uint8_t *bytes = file_in_core(t, o->uri, &all);

	if (!bytes)
		return kfd_code_read(t, o, offset, buf, size);
	if (offset >= all)
		return 0;
	size = size < all - offset ? size : all - (size_t)offset;
	memcpy(buf, bytes + offset, size);
	return (ssize_t)size;
}

/* ------------------------------------------------------------------ opening ------------------ */

static void core_destroy(struct target *t)
{
	struct core_kfd *c = core_of(t);

	kfd_code_done(t);
	thread_pool_destroy(c->k.pool);
	target_deinit(t);
	amdcore_deinit(&c->core);
	core_file_deinit(&c->file);
	free(c);
}

static const struct target_ops target_core_kfd_ops = {
	.vendor = RPC_VENDOR_AMD,
	.destroy = core_destroy,
	.devices = core_devices,
	.queues = core_queues,
	.waves = core_waves,
	.registers = core_registers,
	.wave_memory = core_wave_memory,
	.wave_spaces = TARGET_SPACES_COMMON,
	.code_list = kfd_code_list,
	.code_stat = core_code_stat,
	.code_read = core_code_read,
	.code_done = kfd_code_done,
};

/* Take the facts about the process from the host's half of a unified core. */
static void take_prpsinfo(struct core_kfd *c, const struct amdcore_note *note)
{
	struct rpc_process *p = &c->file.origin.process;
	struct corefile_process told;

	if (corefile_process_read(note->desc, note->size, &told) < 0)
		return;
	p->uid = told.uid;
	p->pid = told.pid;
	p->comm = rpc_arena_strdup(&c->file.arena, told.comm);
}

static void take_notes(struct core_kfd *c)
{
	for (uint32_t i = 0; i < c->core.n_notes; i++) {
		const struct amdcore_note *note = &c->core.notes[i];

		if (note->type == COREFILE_AGENT_NOTE_TYPE &&
		    strcmp(note->name, COREFILE_AGENT_NOTE) == 0)
			core_file_set_head(&c->file, note->desc, note->size);
		else if (note->type == NT_PRPSINFO && strcmp(note->name, "CORE") == 0)
			take_prpsinfo(c, note);
	}
}

static void take_runtime(struct core_kfd *c)
{
	struct amdcore_runtime r;

	amdcore_get_runtime(&c->core, &r);
	kfd_set_runtime(&c->k, &(struct kfdtrap_runtime_info){ .r_debug = r.r_debug,
							       .state = r.state,
							       .ttmp_setup = r.ttmp_setup });
	snprintf(c->k.t.version, sizeof(c->k.t.version), "%u.%u", c->core.kfd_major,
		 c->core.kfd_minor);
}

/* The back end has room for as many devices and queues as a kernel hands out, not for more. */
static void take_tables(struct core_kfd *c)
{
	struct amdcore *core = &c->core;

	c->n_devices = core->devices.n < KFD_GPUS_MAX ? core->devices.n : KFD_GPUS_MAX;
	c->n_queues = core->queues.n < KFDTRAP_QUEUES_MAX ? core->queues.n : KFDTRAP_QUEUES_MAX;
	if (c->n_devices < core->devices.n || c->n_queues < core->queues.n)
		corefile_problem_add(&core->problems, COREFILE_NO_SECTION, 0,
				     "more devices or queues than a process can have");
	for (uint32_t i = 0; i < c->n_queues; i++) {
		struct amdcore_queue q;

		amdcore_get_queue(core, i, &q);
		c->k.suspended[i] = q.queue_id;
	}
	c->k.t.n_suspended = c->n_queues;
}

int core_kfd_create(const struct worker_options *o, const struct core_bytes *bytes,
		    struct target **ret, struct agent_err *err)
{
	const struct access_target nobody = { 0 };
	struct core_kfd *c = calloc(1, sizeof(*c));
	struct corefile_problem why = { 0 };
	int r;

	if (!c)
		return agent_err_no_memory(err, "read the core");
	target_init(&c->k.t, &target_core_kfd_ops, o, &nobody);
	c->k.fd = -1;
	c->k.code_file.fd = -1;
	c->k.t.memory.read = read_memory;
	c->k.t.memory.source = c;
	core_file_init(&c->file, bytes);
	r = amdcore_read(bytes->data, bytes->size, &c->core, &why);
	if (r < 0) {
		core_file_refuse(&c->file, r, &why, err);
		core_destroy(&c->k.t);
		return r;
	}
	take_notes(c);
	take_tables(c);
	take_runtime(c);
	/* Files that the core names are looked for below the root directory of this worker. */
	c->k.t.root_fd = open("/", O_RDONLY | O_PATH | O_DIRECTORY | O_CLOEXEC);
	r = core_file_describe(&c->file, c->core.unified ? "amdgpu unified" : "amdgpu", NULL,
			       &c->core.problems);
	if (r < 0) {
		core_destroy(&c->k.t);
		return agent_err_no_memory(err, "read the core");
	}
	c->k.t.origin = &c->file.origin;
	*ret = &c->k.t;
	return 0;
}
