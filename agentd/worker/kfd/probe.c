/* SPDX-License-Identifier: MIT */
/* What can be said of AMD processes without a session: which there are, and what is in the way. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agentd/worker/kfd/kfd.h"
#include "base/cleanup.h"

DEFINE_AUTO(struct kfdtrap_process_list *, kfdtrap_process_list_destroy);
DEFINE_AUTO(struct kfdtrap_topology *, kfdtrap_topology_destroy);

/* Convert one process; each device is listed once, in ascending order. */
static void fill_user(struct rpc_arena *a, const struct kfdtrap_process *p, struct target_user *u)
{
	*u = (struct target_user){ .pid = (pid_t)p->pid, .n_queues = (uint32_t)p->n_queues };
	u->hidden = kfd_hidden_contexts(a, p->n_secondary_contexts);
	u->gpu_ids = rpc_arena_array(a, p->n_queues, sizeof(*u->gpu_ids));
	for (size_t i = 0; u->gpu_ids && i < p->n_queues; i++) {
		uint32_t id = p->queues[i].gpu_id;
		size_t at = 0;

		while (at < u->n_gpu_ids && u->gpu_ids[at] < id)
			at++;
		if (at < u->n_gpu_ids && u->gpu_ids[at] == id)
			continue;
		memmove(&u->gpu_ids[at + 1], &u->gpu_ids[at],
			(u->n_gpu_ids - at) * sizeof(*u->gpu_ids));
		u->gpu_ids[at] = id;
		u->n_gpu_ids++;
	}
}

int kfd_users(const struct worker_options *o, struct seen *seen, struct rpc_arena *a,
	      struct target_user **ret, size_t *ret_n, struct agent_err *err)
{
	auto_call(kfdtrap_process_list_destroyp) struct kfdtrap_process_list *list = NULL;
	struct target_user *users;
	int r = kfdtrap_process_list_create(o->kfd_sysfs, &list);

	if (r < 0)
		return agent_err_set(
			err, RPC_ERROR_NOT_DEBUGGABLE, -r, "list KFD processes",
			"load the amdgpu module; check the [kfd] section of agentd.conf",
			"cannot read %s/proc", o->kfd_sysfs);
	users = rpc_arena_array(a, list->n_processes, sizeof(*users));
	if (!users)
		return agent_err_no_memory(err, NULL);
	for (size_t i = 0; i < list->n_processes; i++)
		fill_user(a, &list->processes[i], &users[i]);
	*ret = users;
	*ret_n = list->n_processes;
	return 0;
}

/* ------------------------------------------------------------------ doctor ------------------- */

/* The checks made so far. */
struct sheet {
	struct rpc_arena *arena;
	struct rpc_check *checks;
	size_t n, capacity;
};

static void put(struct sheet *s, const char *name, enum rpc_verdict verdict, const char *detail,
		const char *fix)
{
	if (s->n < s->capacity && name && detail)
		s->checks[s->n++] = (struct rpc_check){
			.name = name, .verdict = verdict, .detail = detail, .fix = fix
		};
}

static void put_open_error(struct sheet *s, const struct worker_options *o, int err_no)
{
	const char *detail = rpc_arena_printf(s->arena, "%s: %s", o->kfd_device, strerror(err_no));

	if (err_no == EACCES && o->privileged)
		put(s, "kfd_device", RPC_VERDICT_UNKNOWN,
		    rpc_arena_printf(s->arena, "%s: uid %u may not open it, but the agent's worker opens it as root",
				     o->kfd_device, o->peer_uid), NULL);
	else if (err_no == EACCES || err_no == EPERM)
		put(s, "kfd_device", RPC_VERDICT_FAIL, detail,
		    "join the group render; in a container or unit, allow the device");
	else if (err_no == ENOENT && access("/sys/module/amdgpu", F_OK) == 0)
		put(s, "kfd_device", RPC_VERDICT_FAIL, detail,
		    "amdgpu is loaded: in a container, pass the device in; else this kernel was built without "
		    "CONFIG_HSA_AMD, as those of Debian 12 and 13 for arm64, and another one is needed");
	else
		put(s, "kfd_device", RPC_VERDICT_FAIL, detail,
		    "load the amdgpu module; in a container, pass the device in");
}

static void check_device(struct sheet *s, const struct worker_options *o)
{
	/* A read-only descriptor is enough for the version, and the sandbox allows no other. */
	auto_close int fd = open(o->kfd_device, O_RDONLY | O_CLOEXEC);
	uint32_t major = 0, minor = 0;
	const char *version;
	int r;

	if (fd < 0) {
		put_open_error(s, o, errno);
		put(s, "kfd_version", RPC_VERDICT_UNKNOWN, "the device could not be opened", NULL);
		return;
	}
	put(s, "kfd_device", RPC_VERDICT_PASS, o->kfd_device, NULL);
	r = kfd_check_version(fd, &major, &minor);
	version = rpc_arena_printf(s->arena, "%u.%u", major, minor);
	if (r == 0)
		put(s, "kfd_version", RPC_VERDICT_PASS, version, NULL);
	else if (r == -EOPNOTSUPP)
		put(s, "kfd_version", RPC_VERDICT_FAIL,
		    rpc_arena_printf(s->arena, "%s, debugging needs 1.13", version),
		    "use kernel 6.5 or newer");
	else
		put(s, "kfd_version", RPC_VERDICT_FAIL,
		    rpc_arena_printf(s->arena, "%s is not a KFD device", o->kfd_device),
		    "check the [kfd] section of agentd.conf");
}

static void check_contexts(struct sheet *s, const struct worker_options *o, pid_t pid)
{
	int n = kfdtrap_process_secondary_contexts(o->kfd_sysfs, (uint32_t)pid);

	if (n > 0)
		put(s, "queues", RPC_VERDICT_UNKNOWN, kfd_hidden_contexts(s->arena, (uint32_t)n), NULL);
}

static void check_use(struct sheet *s, int uses)
{
	switch (uses) {
	case 1:
		put(s, "gpu_use", RPC_VERDICT_PASS, "it has opened the GPU", NULL);
		break;
	case 0:
		put(s, "gpu_use", RPC_VERDICT_FAIL, "it has not opened the GPU",
		    "try again when the program has initialised ROCm");
		break;
	default:
		put(s, "gpu_use", RPC_VERDICT_UNKNOWN,
		    "not in the driver's list, and its descriptors are not readable", NULL);
	}
}

static void check_gpu(struct sheet *s, const struct kfdtrap_node *node)
{
	const char *name = rpc_arena_printf(s->arena, "gpu_%u", node->gpu_id);
	char gfx[16];

	kfdtrap_gfx_name(node->gfx_target_version, gfx, sizeof(gfx));
	if (!(node->capability & KFDTRAP_CAP_DEBUG))
		put(s, name, RPC_VERDICT_FAIL,
		    rpc_arena_printf(s->arena, "%s (%s) cannot be debugged", node->name, gfx),
		    "gfx9 or newer is needed; hide this device from the program");
	else if (!(node->capability & KFDTRAP_CAP_DEBUG_FIRMWARE))
		put(s, name, RPC_VERDICT_FAIL,
		    rpc_arena_printf(s->arena, "%s (%s): firmware %u has no debug support",
				     node->name, gfx, node->fw_version),
		    "update the GPU's firmware (linux-firmware) and reload amdgpu");
	else
		put(s, name, RPC_VERDICT_PASS,
		    rpc_arena_printf(s->arena, "%s (%s), firmware %u", node->name, gfx,
				     node->fw_version), NULL);
}

static const struct kfdtrap_process *find_process(const struct kfdtrap_process_list *list, pid_t pid)
{
	for (size_t i = 0; list && i < list->n_processes; i++)
		if (list->processes[i].pid == (uint32_t)pid)
			return &list->processes[i];
	return NULL;
}

/* A process in a container may have some of the GPUs only.  Of one that KFD does not know, all are checked. */
static bool may_use_gpu(const struct kfdtrap_process *p, uint32_t gpu_id)
{
	for (size_t i = 0; p && i < p->n_memory; i++)
		if (p->memory[i].gpu_id == gpu_id)
			return true;
	return !p || !p->n_memory;
}

/* The order is that in which gpu.devices lists the GPUs of the process: that of the topology, which KFD keeps. */
static void check_gpus(struct sheet *s, const struct worker_options *o, pid_t pid)
{
	auto_call(kfdtrap_topology_destroyp) struct kfdtrap_topology *topology = NULL;
	auto_call(kfdtrap_process_list_destroyp) struct kfdtrap_process_list *list = NULL;
	const struct kfdtrap_process *process;
	size_t n = 0, hidden = 0;
	int r = kfdtrap_topology_create(o->kfd_sysfs, &topology);

	if (r < 0) {
		put(s, "gpus", r == -ENOENT ? RPC_VERDICT_FAIL : RPC_VERDICT_UNKNOWN,
		    rpc_arena_printf(s->arena, "%s/topology: %s", o->kfd_sysfs, strerror(-r)),
		    "load the amdgpu module");
		return;
	}
	if (kfdtrap_process_list_create(o->kfd_sysfs, &list) < 0)
		list = NULL;
	process = find_process(list, pid);
	for (size_t i = 0; i < topology->n_nodes; i++) {
		const struct kfdtrap_node *node = &topology->nodes[i];

		hidden += node->error != 0;
		if (node->error || !node->gpu_id || !may_use_gpu(process, node->gpu_id))
			continue;
		check_gpu(s, node);
		n++;
	}
	if (!n)
		put(s, "gpus", hidden ? RPC_VERDICT_UNKNOWN : RPC_VERDICT_FAIL,
		    hidden ? "the devices are outside the device cgroup of the agent" :
			     "the driver has found no GPU", "look at the kernel log of amdgpu");
}

int kfd_checks(const struct worker_options *o, const struct access_target *facts,
	       struct rpc_arena *a, struct rpc_check *checks, size_t capacity, size_t *ret_n)
{
	struct sheet s = { .arena = a, .checks = checks, .capacity = capacity };
	/* This comes first: when the device is open, this process is in KFD's list itself. */
	int uses = kfd_process_uses(o, facts->pid);

	check_device(&s, o);
	check_use(&s, uses);
	check_contexts(&s, o, facts->pid);
	check_gpus(&s, o, facts->pid);
	*ret_n = s.n;
	return uses == 1 ? 0 : TARGET_NOT_MINE;
}
