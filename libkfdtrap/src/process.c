/* SPDX-License-Identifier: MIT */
/* Lists processes that use KFD, from sysfs. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "kfdtrap.h"
#include "sysfs.h"

/* Read a number.  The directory of a queue may vanish between any two reads. */
static bool read_u32(int dir_fd, const char *path, uint32_t *ret_value)
{
	uint64_t value;

	if (sysfs_read_u64(dir_fd, path, &value) < 0 || value > UINT32_MAX)
		return false;
	*ret_value = (uint32_t)value;
	return true;
}

static bool read_queue(int process_fd, uint32_t queue_id, struct kfdtrap_process_queue *queue)
{
	char path[64];

	queue->queue_id = queue_id;
	snprintf(path, sizeof(path), "queues/%u/gpuid", queue_id);
	if (!read_u32(process_fd, path, &queue->gpu_id))
		return false;
	snprintf(path, sizeof(path), "queues/%u/type", queue_id);
	if (!read_u32(process_fd, path, &queue->type))
		return false;
	snprintf(path, sizeof(path), "queues/%u/size", queue_id);
	return sysfs_read_u64(process_fd, path, &queue->size) == 0;
}

static int read_queues(int process_fd, struct kfdtrap_process *process)
{
	auto_free uint32_t *ids = NULL;
	size_t n_ids;
	int r;

	r = sysfs_list(process_fd, "queues", "", &ids, &n_ids);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	process->queues = calloc(n_ids ? n_ids : 1, sizeof(*process->queues));
	if (!process->queues)
		return -ENOMEM;
	for (size_t i = 0; i < n_ids; i++)
		if (read_queue(process_fd, ids[i], &process->queues[process->n_queues]))
			process->n_queues++;
	return 0;
}

static int read_memory(int process_fd, struct kfdtrap_process *process)
{
	auto_free uint32_t *gpus = NULL;
	size_t n_gpus;
	int r;

	r = sysfs_list(process_fd, ".", "vram_", &gpus, &n_gpus);
	if (r < 0)
		return r;
	process->memory = calloc(n_gpus ? n_gpus : 1, sizeof(*process->memory));
	if (!process->memory)
		return -ENOMEM;
	for (size_t i = 0; i < n_gpus; i++) {
		struct kfdtrap_process_memory *memory = &process->memory[process->n_memory];
		char path[32];

		snprintf(path, sizeof(path), "vram_%u", gpus[i]);
		memory->gpu_id = gpus[i];
		if (sysfs_read_u64(process_fd, path, &memory->vram_bytes) == 0)
			process->n_memory++;
	}
	return 0;
}

static int count_contexts(int process_fd, uint32_t *ret_n)
{
	auto_free uint32_t *contexts = NULL;
	size_t n;
	int r = sysfs_list(process_fd, ".", "context_", &contexts, &n);

	if (r < 0)
		return r;
	*ret_n = (uint32_t)n;
	return 0;
}

static void process_deinit(struct kfdtrap_process *process)
{
	free(process->queues);
	free(process->memory);
}

static int open_process(int root_fd, uint32_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "proc/%u", pid);
	return sysfs_open(root_fd, path);
}

/*
 * Read a process.
 * @return 1, 0 when the process is gone, -errno.
 */
static int read_process(int root_fd, uint32_t pid, struct kfdtrap_process *process)
{
	auto_close int process_fd = open_process(root_fd, pid);
	int r = process_fd;

	*process = (struct kfdtrap_process){ .pid = pid };
	if (r >= 0) {
		read_u32(process_fd, "pasid", &process->pasid);
		r = read_queues(process_fd, process);
	}
	if (r >= 0)
		r = read_memory(process_fd, process);
	if (r >= 0)
		r = count_contexts(process_fd, &process->n_secondary_contexts);
	if (r >= 0)
		return 1;
	process_deinit(process);
	return r == -ENOENT ? 0 : r;
}

static int public_error(int r)
{
	switch (r) {
	case -ENOENT:
	case -EACCES:
	case -EPERM:
	case -ENOMEM:
		return r;
	case -ENOTDIR:
		return -ENOENT;
	default:
		return -EIO;
	}
}

static void list_destroyp(struct kfdtrap_process_list **list)
{
	kfdtrap_process_list_destroy(*list);
}

static int read_list(int root_fd, struct kfdtrap_process_list **ret_list)
{
	__attribute__((cleanup(list_destroyp))) struct kfdtrap_process_list *list =
		calloc(1, sizeof(*list));
	auto_free uint32_t *pids = NULL;
	size_t n_pids;
	int r;

	if (!list)
		return -ENOMEM;
	r = sysfs_list(root_fd, "proc", "", &pids, &n_pids);
	if (r < 0)
		return r;
	list->processes = calloc(n_pids ? n_pids : 1, sizeof(*list->processes));
	if (!list->processes)
		return -ENOMEM;
	for (size_t i = 0; i < n_pids; i++) {
		r = read_process(root_fd, pids[i], &list->processes[list->n_processes]);
		if (r < 0)
			return r;
		list->n_processes += (size_t)r;
	}
	*ret_list = TAKE_PTR(list);
	return 0;
}

int kfdtrap_process_list_create(const char *sysfs_root, struct kfdtrap_process_list **ret_list)
{
	auto_close int root_fd = sysfs_open(AT_FDCWD, sysfs_root ? sysfs_root : KFDTRAP_SYSFS_ROOT);
	int r = root_fd < 0 ? root_fd : read_list(root_fd, ret_list);

	return r < 0 ? public_error(r) : 0;
}

int kfdtrap_process_secondary_contexts(const char *sysfs_root, uint32_t pid)
{
	auto_close int root_fd = sysfs_open(AT_FDCWD, sysfs_root ? sysfs_root : KFDTRAP_SYSFS_ROOT);
	auto_close int process_fd = -1;
	uint32_t n = 0;
	int r;

	if (root_fd < 0)
		return public_error(root_fd);
	r = process_fd = open_process(root_fd, pid);
	if (r >= 0)
		r = count_contexts(process_fd, &n);
	if (r >= 0 || r == -ENOENT)
		return (int)n;
	return public_error(r);
}

void kfdtrap_process_list_destroy(struct kfdtrap_process_list *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->n_processes; i++)
		process_deinit(&list->processes[i]);
	free(list->processes);
	free(list);
}
