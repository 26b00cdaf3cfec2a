/* SPDX-License-Identifier: MIT */
/* The command table of the device: what each number does and which kernel has it. */
#include "sim.h"
#include "memory.h"

#include <errno.h>
#include <string.h>

/* Runs one command.  @return its result, or SIM_LATER. */
typedef int (*sim_handler)(struct sim *s, struct sim_call *call, struct sim_process *p);

static int get_version(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	struct kfdabi_get_version_args *a = call->arg;

	a->major_version = KFDABI_VERSION_MAJOR;
	a->minor_version = s->kernel->minor;
	return 0;
}

static int get_clock_counters(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	struct kfdabi_get_clock_counters_args *a = call->arg;
	uint64_t now = s->os->now_ns();

	a->gpu_clock_counter = sim_device_find(p, a->gpu_id) ? now / 10 : 0;
	a->cpu_clock_counter = now;
	a->system_clock_counter = now;
	a->system_clock_freq = UINT64_C(1000000000);
	return 0;
}

static int set_xnack_mode(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	struct kfdabi_set_xnack_mode_args *a = call->arg;

	if (!p->n_devices)
		return -EPERM;
	if (a->xnack_enabled > 0)
		return -EPERM;
	a->xnack_enabled = 0;
	return 0;
}

static int acquire_vm(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	struct kfdabi_acquire_vm_args *a = call->arg;

	return sim_device_find(p, a->gpu_id) ? 0 : -EINVAL;
}

static int set_trap_handler(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	struct kfdabi_set_trap_handler_args *a = call->arg;

	return sim_device_find(p, a->gpu_id) ? 0 : -EINVAL;
}

static int set_memory_policy(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	struct kfdabi_set_memory_policy_args *a = call->arg;

	return sim_device_find(p, a->gpu_id) ? 0 : -EINVAL;
}

static int set_scratch(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	struct kfdabi_set_scratch_args *a = call->arg;

	return sim_device_find(p, a->gpu_id) ? 0 : -EINVAL;
}

/* Tables that only older generations have; the driver cuts what it copies to its own sizes. */
static int get_tile_config(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	static const uint32_t none[32];
	struct kfdabi_get_tile_config_args *a = call->arg;

	if (!sim_device_find(p, a->gpu_id))
		return -EINVAL;
	a->num_tile_configs = a->num_tile_configs < 32 ? a->num_tile_configs : 32;
	a->num_macro_tile_configs = a->num_macro_tile_configs < 16 ? a->num_macro_tile_configs : 16;
	a->gb_addr_config = a->num_banks = a->num_ranks = 0;
	if (s->os->mem_write(call->tid, a->tile_config_ptr, none,
			     a->num_tile_configs * sizeof(none[0])) ||
	    s->os->mem_write(call->tid, a->macro_tile_config_ptr, none,
			     a->num_macro_tile_configs * sizeof(none[0])))
		return -EFAULT;
	return 0;
}

static int smi_events(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	struct kfdabi_smi_events_args *a = call->arg;

	return sim_device_find(p, a->gpu_id) ? -ENODEV : -EINVAL;
}

static int criu_op(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	return -ENODEV;
}

static int alloc_gws(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	uint32_t *queue_id = call->arg;
	struct sim_queue *q = sim_queue_find(p, *queue_id);

	if (!q)
		return -EINVAL;
	if (q->device->gpu->profile->cu_mask_excludes_debug && p->debugged)
		return -EBUSY;
	q->device->gws = true;
	return 0;
}

static int refuse_invalid(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	return -EINVAL;
}

/* Debian builds its kernels without CONFIG_HSA_AMD_SVM; the size is looked at all the same. */
static int refuse_svm(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	return call->arg_size < sizeof(struct kfdabi_svm_args) ? -EINVAL : -EPERM;
}

static int refuse_deprecated(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	return -EPERM;
}

#define SIZE(type) sizeof(struct kfdabi_##type)

/*
 * The commands.  Sizes are those of the newest kernel; `since` is the first minor version that
 * knows the number.
 */
static const struct command {
	uint16_t size;
	uint8_t since;
	const char *op; /**< With a name it runs under the caller's own process lock. */
	sim_handler run;
} commands[] = {
	[KFDABI_NR_GET_VERSION] = { SIZE(get_version_args), 0, NULL, get_version },
	[KFDABI_NR_CREATE_QUEUE] = { SIZE(create_queue_args), 0, "create-queue", sim_queue_create },
	[KFDABI_NR_DESTROY_QUEUE] = { SIZE(destroy_queue_args), 0, "destroy-queue",
				      sim_queue_destroy },
	[KFDABI_NR_SET_MEMORY_POLICY] = { SIZE(set_memory_policy_args), 0, NULL,
					  set_memory_policy },
	[KFDABI_NR_GET_CLOCK_COUNTERS] = { SIZE(get_clock_counters_args), 0, NULL,
					   get_clock_counters },
	[KFDABI_NR_GET_PROCESS_APERTURES] = { SIZE(get_process_apertures_args), 0, NULL,
					      sim_apertures },
	[KFDABI_NR_UPDATE_QUEUE] = { SIZE(update_queue_args), 0, "update-queue", sim_queue_update },
	[KFDABI_NR_CREATE_EVENT] = { SIZE(create_event_args), 0, NULL, sim_event_create },
	[KFDABI_NR_DESTROY_EVENT] = { SIZE(event_args), 0, NULL, sim_event_destroy },
	[KFDABI_NR_SET_EVENT] = { SIZE(event_args), 0, NULL, sim_event_set },
	[KFDABI_NR_RESET_EVENT] = { SIZE(event_args), 0, NULL, sim_event_reset },
	[KFDABI_NR_WAIT_EVENTS] = { SIZE(wait_events_args), 0, NULL, sim_events_wait },
	[KFDABI_NR_DBG_REGISTER] = { SIZE(dbg_register_args), 0, NULL, refuse_deprecated },
	[KFDABI_NR_DBG_UNREGISTER] = { SIZE(dbg_register_args), 0, NULL, refuse_deprecated },
	[KFDABI_NR_DBG_ADDRESS_WATCH] = { SIZE(dbg_buffer_args), 0, NULL, refuse_deprecated },
	[KFDABI_NR_DBG_WAVE_CONTROL] = { SIZE(dbg_buffer_args), 0, NULL, refuse_deprecated },
	[KFDABI_NR_SET_SCRATCH_BACKING_VA] = { SIZE(set_scratch_args), 0, NULL, set_scratch },
	[KFDABI_NR_GET_TILE_CONFIG] = { SIZE(get_tile_config_args), 0, NULL, get_tile_config },
	[KFDABI_NR_SET_TRAP_HANDLER] = { SIZE(set_trap_handler_args), 0, NULL, set_trap_handler },
	[KFDABI_NR_GET_PROCESS_APERTURES_NEW] = { SIZE(get_process_apertures_new_args), 0, NULL,
						  sim_apertures_new },
	[KFDABI_NR_ACQUIRE_VM] = { SIZE(acquire_vm_args), 0, NULL, acquire_vm },
	[KFDABI_NR_ALLOC_MEMORY_OF_GPU] = { SIZE(alloc_memory_args), 0, NULL, sim_memory_alloc },
	[KFDABI_NR_FREE_MEMORY_OF_GPU] = { SIZE(free_memory_args), 0, NULL, sim_memory_free },
	[KFDABI_NR_MAP_MEMORY_TO_GPU] = { SIZE(map_memory_args), 0, NULL, sim_memory_map },
	[KFDABI_NR_UNMAP_MEMORY_FROM_GPU] = { SIZE(map_memory_args), 0, NULL, sim_memory_unmap },
	[KFDABI_NR_SET_CU_MASK] = { SIZE(set_cu_mask_args), 0, "cu-mask", sim_queue_set_cu_mask },
	[KFDABI_NR_GET_QUEUE_WAVE_STATE] = { SIZE(get_queue_wave_state_args), 0, NULL,
					     sim_queue_wave_state },
	[KFDABI_NR_GET_DMABUF_INFO] = { 32, 0, NULL, refuse_invalid },
	[KFDABI_NR_IMPORT_DMABUF] = { 24, 0, NULL, refuse_invalid },
	[KFDABI_NR_ALLOC_QUEUE_GWS] = { 16, 0, "gws", alloc_gws },
	[KFDABI_NR_SMI_EVENTS] = { SIZE(smi_events_args), 0, NULL, smi_events },
	[KFDABI_NR_SVM] = { SIZE(svm_args), 0, NULL, refuse_svm },
	[KFDABI_NR_SET_XNACK_MODE] = { SIZE(set_xnack_mode_args), 0, NULL, set_xnack_mode },
	[KFDABI_NR_CRIU_OP] = { SIZE(criu_args), 0, NULL, criu_op },
	[KFDABI_NR_AVAILABLE_MEMORY] = { SIZE(available_memory_args), 0, NULL, sim_memory_available },
	[KFDABI_NR_EXPORT_DMABUF] = { 16, 12, NULL, refuse_invalid },
	[KFDABI_NR_RUNTIME_ENABLE] = { SIZE(runtime_enable_args), 13, "runtime",
				       sim_runtime_enable },
	[KFDABI_NR_DBG_TRAP] = { SIZE(dbg_args), 13, NULL, NULL },
	[KFDABI_NR_CREATE_PROCESS] = { 0, 19, NULL, NULL },
	[KFDABI_NR_PROFILER] = { 16, 23, NULL, refuse_invalid },
};

/* Find a command by the number in its ioctl word; NULL if this kernel does not have it. */
static const struct command *command_find(const struct sim *s, uint32_t word)
{
	unsigned int nr = KFDABI_NR(word);

	if (!nr || nr >= sizeof(commands) / sizeof(commands[0]) ||
	    !(commands[nr].size || nr == KFDABI_NR_CREATE_PROCESS))
		return NULL;
	return s->kernel->minor >= commands[nr].since ? &commands[nr] : NULL;
}

size_t sim_command_size(const struct sim *s, uint32_t command)
{
	const struct command *c = command_find(s, command);

	if (!c)
		return 0;
	/* The argument grew with 1.17. */
	if (KFDABI_NR(command) == KFDABI_NR_CREATE_QUEUE && s->kernel->minor < 17)
		return KFDABI_CREATE_QUEUE_SIZE_V1_16;
	return c->size;
}

bool sim_op_is_known(const char *op)
{
	static const char *const trap_ops[] = {
		"enable", "disable", "send",  "exceptions", "override", "launch-mode", "suspend",
		"resume", "watch",   "unwatch", "flags",    "query",	"info",	       "queues",
		"devices",
	};

	for (size_t i = 0; i < sizeof(trap_ops) / sizeof(trap_ops[0]); i++)
		if (!strcmp(op, trap_ops[i]))
			return true;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (commands[i].op && !strcmp(op, commands[i].op))
			return true;
	return false;
}

int sim_dispatch(struct sim *s, struct sim_call *call)
{
	const struct command *c = command_find(s, call->command);
	struct sim_process *p = call->file->process;

	if (!c)
		return -ENOTTY;
	/*
	 * A descriptor that outlived an exec ends here as well: its context has no address space.
	 */
	if (call->tgid != call->file->tgid || !p || p->gone)
		return -EBADF;
	switch (KFDABI_NR(call->command)) {
	case KFDABI_NR_DBG_TRAP:
		return sim_trap(s, call);
	case KFDABI_NR_CREATE_PROCESS:
		return sim_context_create(s, call);
	}
	return c->op ? sim_call_locked(s, call, p, c->op, c->run) : c->run(s, call, p);
}
