/* SPDX-License-Identifier: MIT */
/*
 * What a ROCm runtime does with the device: it opens it, reads the topology, and creates events and
 * queues with save areas.  The layouts are those of libhsakmt and ROCR.
 */
#include "app.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "libkfdtrap/src/kfd_abi.h"
#include "sim/kfd/device/profile.h"

/* Bytes of a queue's ring, of an AQL packet in it, and of a huge page. */
#define RING_SIZE    65536u
#define PACKET_SIZE  64u
/* The address of the completion signal within it. */
#define PACKET_SIGNAL 56u
#define HUGE_PAGE    (2u << 20)
/* Least bytes of a kernel's arguments, and what is in them where a script does not say. */
#define ARGUMENTS_SIZE 4096u
#define ARGUMENTS_BYTE 0x5a
/* Version of the list of code objects, and one of a runtime to come. */
#define R_DEBUG_VERSION 10
#define R_DEBUG_NEWER   1000

/* The runtime's list of code objects, which debuggers find by its name. */
__attribute__((visibility("default"))) struct r_debug _amdgpu_r_debug;

static void list_changed(void)
{
	/* A debugger puts its breakpoint here. */
	__asm__ volatile("" ::: "memory");
}

static int kfd_ioctl(const struct app *a, uint32_t word, void *arg)
{
	return ioctl(a->kfd, (unsigned long)word, arg) < 0 ? -errno : 0;
}

/* ---- opening ---- */

/* The topology beside a simulated device, or else that of the machine. */
static void topology_path(const struct app *a, char *ret, size_t size)
{
	auto_free char *copy = strdup(a->kfd_path);

	snprintf(ret, size, "%s/topology/nodes", copy ? dirname(copy) : "");
	if (access(ret, X_OK))
		snprintf(ret, size, "/sys/class/kfd/kfd/topology/nodes");
}

/* The value of a property; 0 if it is not there. */
static uint64_t property(const char *text, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = text; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
		if (!strncmp(p, name, n) && p[n] == ' ')
			return strtoull(p + n, NULL, 10);
	return 0;
}

/*
 * Find the sizes of save areas.  Before Linux 6.12 the driver does not tell them, and the runtime
 * computes them itself.
 */
static void area_sizes(struct app_gpu *g, const char *text)
{
	uint64_t version = property(text, "gfx_target_version");
	const struct gpu_profile *p;

	g->num_xcc = (uint32_t)property(text, "num_xcc");
	if (!g->num_xcc)
		g->num_xcc = 1;
	g->area_size = (uint32_t)property(text, "cwsr_size");
	g->ctl_stack_size = (uint32_t)property(text, "ctl_stack_size");
	for (size_t i = 0; (p = gpu_profile_at(i)); i++) {
		if (p->gfx_target_version != version)
			continue;
		g->name = p->name;
		g->waves = gpu_profile_waves(p);
		if (!g->area_size) {
			g->area_size = gpu_profile_cwsr_size(p);
			g->ctl_stack_size = gpu_profile_ctl_stack_size(p);
		}
	}
}

/* Read a node of the topology; nodes without a GPU have the id 0. */
static void node_read(struct app *a, const char *dir, const char *node)
{
	auto_free char *id = NULL, *text = NULL;
	struct app_gpu *g = &a->gpus[a->n_gpus];
	char path[800];
	size_t size;

	snprintf(path, sizeof(path), "%s/%s/gpu_id", dir, node);
	if (fd_read_file(path, 64, &id, &size))
		return;
	memset(g, 0, sizeof(*g));
	g->gpu_id = (uint32_t)strtoul(id, NULL, 10);
	snprintf(path, sizeof(path), "%s/%s/properties", dir, node);
	if (!g->gpu_id || fd_read_file(path, 65536, &text, &size))
		return;
	area_sizes(g, text);
	a->n_gpus++;
}

static int by_number(const struct dirent **x, const struct dirent **y)
{
	return atoi((*x)->d_name) - atoi((*y)->d_name);
}

static void topology_read(struct app *a)
{
	struct dirent **list = NULL;
	char dir[512];
	int n;

	topology_path(a, dir, sizeof(dir));
	n = scandir(dir, &list, NULL, by_number);
	for (int i = 0; i < n; i++) {
		if (list[i]->d_name[0] != '.' && a->n_gpus < APP_GPUS_MAX)
			node_read(a, dir, list[i]->d_name);
		free(list[i]);
	}
	free(list);
}

static int event_create(struct app *a, uint32_t type, bool auto_reset, uint32_t *ret_id)
{
	struct kfdabi_create_event_args e = { .event_type = type, .auto_reset = auto_reset };
	int r = kfd_ioctl(a, KFDABI_IOC_CREATE_EVENT, &e);

	if (!r)
		*ret_id = e.event_id;
	return r;
}

int device_event_create(struct app *a, uint32_t *ret_event)
{
	return event_create(a, KFDABI_EVENT_SIGNAL, true, ret_event);
}

int device_open(struct app *a)
{
	struct kfdabi_get_process_apertures_new_args ap = { 0 };
	struct kfdabi_get_version_args v = { 0 };
	int r;

	a->kfd = open(a->kfd_path, O_RDWR | O_CLOEXEC);
	if (a->kfd < 0)
		return -errno;
	r = kfd_ioctl(a, KFDABI_IOC_GET_VERSION, &v);
	if (r)
		return r;
	a->minor = v.minor_version;
	r = kfd_ioctl(a, KFDABI_IOC_GET_PROCESS_APERTURES_NEW, &ap);
	if (r)
		return r;
	topology_read(a);
	/*
	 * A GPU that the driver does not give to this process cannot be used, whatever sysfs shows.
	 */
	if (a->n_gpus > ap.num_of_nodes)
		a->n_gpus = ap.num_of_nodes;
	_amdgpu_r_debug.r_version = R_DEBUG_VERSION;
	_amdgpu_r_debug.r_brk = (ElfW(Addr))(uintptr_t)list_changed;
	_amdgpu_r_debug.r_state = RT_CONSISTENT;
	a->process.status->r_debug = (uint64_t)(uintptr_t)&_amdgpu_r_debug;
	/* Without auto_reset one fault would be delivered for ever. */
	r = event_create(a, KFDABI_EVENT_MEMORY, true, &a->memory_event);
	return r ? r : device_event_create(a, &a->wake_event);
}

int device_runtime(struct app *a, uint32_t mode)
{
	struct kfdabi_runtime_enable_args args;
	int r;

	for (;;) {
		args = (struct kfdabi_runtime_enable_args){
			.r_debug = a->process.status->r_debug,
			.mode_mask = mode,
		};
		r = kfd_ioctl(a, KFDABI_IOC_RUNTIME_ENABLE, &args);
		if (r != -EINTR)
			break;
		a->process.status->eintr_repeats++;
	}
	a->process.status->runtime_calls++;
	if (!r)
		a->process.status->runtime_on = mode & KFDABI_RUNTIME_ENABLE_MODE_ENABLE;
	return r;
}

/* ---- queues ---- */

/* Pages that are zero and cost nothing until they are touched. */
static void *pages(uint64_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/*
 * Pages for a save area.  libhsakmt aligns save areas to 2 MiB (queues.c: GPU_HUGE_PAGE_SIZE): the
 * kernel backs them with huge pages where transparent_hugepage/enabled is "always".  What that file
 * says here shall make no difference.
 */
static void *area_pages(const struct app *a, uint64_t size)
{
	uint8_t *start = pages(size + HUGE_PAGE), *area;

	if (!start)
		return NULL;
	area = (uint8_t *)(((uintptr_t)start + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
	madvise(area, size, a->huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	return area;
}

/* Write user mode's part of the header, one per XCC (libhsakmt's layout). */
static void area_init(const struct app_gpu *g, uint8_t *area, uint64_t debug_size,
		      uint64_t error_word, uint32_t event)
{
	for (uint32_t i = 0; i < g->num_xcc; i++) {
		struct kfdabi_save_area_header *h = (void *)(area + (uint64_t)i * g->area_size);

		h->debug_offset = (g->num_xcc - i) * g->area_size;
		h->debug_size = (uint32_t)debug_size;
		h->err_payload_addr = error_word;
		h->err_event_id = event;
	}
}

/* Make the save area of a queue with room for the debugger behind it: 32 bytes for each wave. */
static int area_create(struct app *a, const struct app_gpu *g, struct simapp_queue *q,
		       uint64_t error_word)
{
	uint64_t debug = ((uint64_t)g->waves * 32 + 63) / 64 * 64 * g->num_xcc;
	uint8_t *area = area_pages(a, (uint64_t)g->area_size * g->num_xcc + debug);
	int r;

	if (!area)
		return -ENOMEM;
	r = device_event_create(a, &q->error_event);
	if (r)
		return r;
	area_init(g, area, debug, error_word, q->error_event);
	q->area = (uint64_t)(uintptr_t)area;
	q->area_size = g->area_size;
	q->num_xcc = g->num_xcc;
	return 0;
}

/* Fill in amd_queue_t: it begins with hsa_queue_t, and has the indices at fixed offsets. */
static void queue_struct_init(uint8_t *s, const uint8_t *ring, uint64_t id)
{
	uint32_t packets = RING_SIZE / PACKET_SIZE;
	uint64_t base = (uint64_t)(uintptr_t)ring;

	memcpy(s + 8, &base, 8);
	memcpy(s + 24, &packets, 4);
	memcpy(s + 32, &id, 8);
}

/* Fill the ring with packets. */
static void ring_fill(uint8_t *ring)
{
	for (uint32_t i = 0; i < RING_SIZE; i += PACKET_SIZE) {
		/* A kernel dispatch in one dimension: 64 work-items in groups of 64. */
		const uint16_t head[] = { 2, 1, 64, 1, 1, 0 };
		const uint32_t grid[] = { 64, 1, 1 };

		memcpy(ring + i, head, sizeof(head));
		memcpy(ring + i + 12, grid, sizeof(grid));
	}
}

/* Make everything in memory that a queue of a type needs. */
static int queue_memory(struct app *a, const struct app_gpu *g, uint32_t type,
			struct simapp_queue *q)
{
	uint8_t *ring = pages(RING_SIZE), *control = pages(4096);

	if (!ring || !control)
		return -ENOMEM;
	q->ring = (uint64_t)(uintptr_t)ring;
	q->ring_size = RING_SIZE;
	q->write_index_addr = (uint64_t)(uintptr_t)(control + 56);
	q->read_index_addr = (uint64_t)(uintptr_t)(control + 128);
	if (type != KFDABI_QUEUE_TYPE_COMPUTE_AQL && type != KFDABI_QUEUE_TYPE_COMPUTE)
		return 0;
	ring_fill(ring);
	queue_struct_init(control, ring, a->process.status->n_queues);
	/* The error word lies behind the queue structure. */
	return area_create(a, g, q, (uint64_t)(uintptr_t)(control + 256));
}

/* Tell the driver of a queue. */
static int queue_register(struct app *a, const struct app_gpu *g, struct simapp_queue *q)
{
	struct kfdabi_create_queue_args c = {
		.ring_base_address = q->ring,
		.write_pointer_address = q->write_index_addr,
		.read_pointer_address = q->read_index_addr,
		.ring_size = (uint32_t)q->ring_size,
		.gpu_id = g->gpu_id,
		.queue_type = q->queue_type,
		.queue_percentage = 100,
		.queue_priority = 7,
		.ctx_save_restore_address = q->area,
		.ctx_save_restore_size = (uint32_t)q->area_size,
		.ctl_stack_size = q->area ? g->ctl_stack_size : 0,
	};
	int r = kfd_ioctl(a,
			  a->minor < 17 ? KFDABI_IOC_CREATE_QUEUE_V1_16 : KFDABI_IOC_CREATE_QUEUE,
			  &c);

	if (!r)
		q->queue_id = c.queue_id;
	return r;
}

/* Publish packets, before the last ones are done. */
static void queue_feed(const struct simapp_queue *q)
{
	volatile uint64_t *rd = (void *)(uintptr_t)q->read_index_addr;
	volatile uint64_t *wr = (void *)(uintptr_t)q->write_index_addr;

	if (q->alive && *wr < *rd + 8)
		*wr = *rd + RING_SIZE / PACKET_SIZE / 2;
}

int device_queue_create(struct app *a, size_t gpu, uint32_t type, uint32_t *ret_id)
{
	struct simapp_queue q = { .alive = 1, .queue_type = type };
	struct kfdabi_event_args wake = { .event_id = a->wake_event };
	int r;

	if (gpu >= a->n_gpus)
		return -ENODEV;
	if (a->process.status->n_queues == SIMAPP_QUEUES_MAX)
		return -ENOSPC;
	q.gpu_id = a->gpus[gpu].gpu_id;
	r = queue_memory(a, &a->gpus[gpu], type, &q);
	if (r)
		return r;
	/*
	 * The queue has packets from the beginning, whenever the thread that goes on with them
	 * runs.
	 */
	if (!a->idle)
		queue_feed(&q);
	r = queue_register(a, &a->gpus[gpu], &q);
	if (r)
		return r;
	a->process.status->queues[a->process.status->n_queues] = q;
	/* Other threads read the slot once they see the new number. */
	__atomic_add_fetch(&a->process.status->n_queues, 1, __ATOMIC_RELEASE);
	*ret_id = q.queue_id;
	return kfd_ioctl(a, KFDABI_IOC_SET_EVENT, &wake);
}

int device_context_create(struct app *a, size_t gpu)
{
	struct simapp_queue q = { .alive = 1, .queue_type = KFDABI_QUEUE_TYPE_COMPUTE_AQL };
	struct app own = *a;
	int r;

	if (gpu >= a->n_gpus)
		return -ENODEV;
	own.kfd = open(a->kfd_path, O_RDWR | O_CLOEXEC);
	if (own.kfd < 0)
		return -errno;
	/* The file leaves the process's first context. */
	r = kfd_ioctl(&own, KFDABI_IOC_CREATE_PROCESS, NULL);
	if (!r)
		r = queue_memory(&own, &own.gpus[gpu], q.queue_type, &q);
	if (!r)
		r = queue_register(&own, &own.gpus[gpu], &q);
	/* The context ends with its file. */
	if (r)
		close(own.kfd);
	return r;
}

static struct simapp_queue *queue_find(struct app *a, uint32_t id)
{
	for (uint32_t i = 0; i < a->process.status->n_queues; i++)
		if (a->process.status->queues[i].alive && a->process.status->queues[i].queue_id == id)
			return &a->process.status->queues[i];
	return NULL;
}

/* Make the kernarg segment of a dispatch.  @return its address; 0 without memory. */
static uint64_t make_arguments(const struct app_arguments *a)
{
	size_t size = a->size > ARGUMENTS_SIZE ? a->size : ARGUMENTS_SIZE;
	uint8_t *bytes = a->at ? NULL : pages(size);

	if (!bytes)
		return a->at;
	memset(bytes, ARGUMENTS_BYTE, size);
	if (a->bytes)
		memcpy(bytes, a->bytes, a->size);
	return (uint64_t)(uintptr_t)bytes;
}

int device_queue_dispatch(struct app *a, uint32_t id, uint64_t descriptor, const uint32_t grid[3],
			  const uint16_t group[3], const struct app_arguments *given)
{
	struct simapp_queue *q = queue_find(a, id);
	uint64_t arguments;

	if (!q || q->queue_type != KFDABI_QUEUE_TYPE_COMPUTE_AQL)
		return -ENOENT;
	arguments = make_arguments(given);
	if (!arguments)
		return -ENOMEM;
	for (uint32_t i = 0; i < q->ring_size; i += PACKET_SIZE) {
		uint8_t *packet = (uint8_t *)(uintptr_t)q->ring + i;

		packet[2] = 3; /* The number of dimensions. */
		memcpy(packet + 4, group, 3 * sizeof(*group));
		memcpy(packet + 12, grid, 3 * sizeof(*grid));
		memcpy(packet + 32, &descriptor, sizeof(descriptor));
		memcpy(packet + 40, &arguments, sizeof(arguments));
	}
	return 0;
}

/* The first members of amd_signal_t (amd_hsa_signal.h of ROCr), which is 64 bytes long and so aligned. */
struct signal {
	int64_t kind, value;
	uint64_t mailbox;
	uint32_t event;
};

static void set_signals(const struct simapp_queue *q, uint64_t signal)
{
	for (uint32_t i = 0; i < q->ring_size; i += PACKET_SIZE)
		memcpy((uint8_t *)(uintptr_t)q->ring + i + PACKET_SIGNAL, &signal, sizeof(signal));
}

int device_queue_signal(struct app *a, uint32_t id, int64_t value, uint32_t *ret_event)
{
	struct simapp_queue *q = queue_find(a, id);
	struct signal *s = q && q->queue_type == KFDABI_QUEUE_TYPE_COMPUTE_AQL ? pages(4096) : NULL;
	int r;

	if (!q || q->queue_type != KFDABI_QUEUE_TYPE_COMPUTE_AQL)
		return -ENOENT;
	if (!s)
		return -ENOMEM;
	r = device_event_create(a, ret_event);
	/* The mailbox would be a slot of the driver's page of events. */
	*s = (struct signal){ .kind = 1, .value = value, .mailbox = (uint64_t)(uintptr_t)s + 128, .event = *ret_event };
	if (!r)
		set_signals(q, (uint64_t)(uintptr_t)s);
	return r;
}

int device_queues_swap_signals(struct app *a, uint32_t one, uint32_t other)
{
	const struct simapp_queue *q[] = { queue_find(a, one), queue_find(a, other) };
	uint64_t signals[2];

	for (int i = 0; i < 2; i++) {
		if (!q[i] || q[i]->queue_type != KFDABI_QUEUE_TYPE_COMPUTE_AQL)
			return -ENOENT;
		memcpy(&signals[i], (const uint8_t *)(uintptr_t)q[i]->ring + PACKET_SIGNAL, sizeof(signals[i]));
	}
	set_signals(q[0], signals[1]);
	set_signals(q[1], signals[0]);
	return 0;
}

int device_queue_destroy(struct app *a, uint32_t id)
{
	struct kfdabi_destroy_queue_args d = { .queue_id = id };
	struct simapp_queue *q = queue_find(a, id);
	int r = kfd_ioctl(a, KFDABI_IOC_DESTROY_QUEUE, &d);

	if (!r && q)
		q->alive = 0;
	return r;
}

void device_queues_feed(struct app *a)
{
	uint32_t n = __atomic_load_n(&a->process.status->n_queues, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < n; i++)
		queue_feed(&a->process.status->queues[i]);
}

/* ---- the rest ---- */

int device_control(const struct app *a, const char *line)
{
	auto_free char *copy = strdup(a->kfd_path);
	auto_close int fd = -1;
	char path[800];

	if (!copy)
		return -ENOMEM;
	snprintf(path, sizeof(path), "%s/control", dirname(copy));
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return write(fd, line, strlen(line)) < 0 ? -errno : 0;
}

int device_object_add(struct app *a, const char *uri, uint64_t bias)
{
	struct link_map *m = calloc(1, sizeof(*m)), *last = _amdgpu_r_debug.r_map;

	if (!m || !(m->l_name = strdup(uri))) {
		free(m);
		return -ENOMEM;
	}
	m->l_addr = bias;
	_amdgpu_r_debug.r_state = RT_ADD;
	list_changed();
	while (last && last->l_next)
		last = last->l_next;
	m->l_prev = last;
	if (last)
		last->l_next = m;
	else
		_amdgpu_r_debug.r_map = m;
	_amdgpu_r_debug.r_state = RT_CONSISTENT;
	list_changed();
	return 0;
}

int device_list_state(struct app *a, const char *state)
{
	struct link_map *last = _amdgpu_r_debug.r_map;

	if (!strcmp(state, "busy")) {
		_amdgpu_r_debug.r_state = RT_ADD;
	} else if (!strcmp(state, "whole")) {
		_amdgpu_r_debug.r_state = RT_CONSISTENT;
	} else if (!strcmp(state, "gone")) {
		_amdgpu_r_debug.r_map = NULL;
	} else if (!strcmp(state, "newer")) {
		_amdgpu_r_debug.r_version = R_DEBUG_NEWER;
	} else if (!strcmp(state, "cycle") && last) {
		while (last->l_next)
			last = last->l_next;
		last->l_next = _amdgpu_r_debug.r_map;
	} else {
		return -EINVAL;
	}
	return 0;
}
