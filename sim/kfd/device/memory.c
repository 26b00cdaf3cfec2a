/* SPDX-License-Identifier: MIT */
/* Memory objects.  The checks and their errors are those of amdgpu's kfd_chardev.c. */
#include "memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/page.h"

/* The doorbells that a process has of a GPU (kfd_doorbell.c:kfd_doorbell_process_slice). */
#define DOORBELLS_SIZE UINT64_C(8192)
/* Objects of the store lie below the offsets of doorbells. */
#define STORE_START (UINT64_C(1) << 32)
#define STORE_END   (UINT64_C(1) << 61)
#define DOORBELLS   (UINT64_C(1) << 62)
/* Bytes that are moved at once. */
#define CHUNK (UINT64_C(1) << 20)

/* Stacks and what is mapped beside them are in the upper half of what a process can have, on every processor. */
uint64_t sim_user_end(void)
{
	return UINT64_C(2) << (63 - __builtin_clzll((uintptr_t)__builtin_frame_address(0)));
}

static uint64_t min_size(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static bool is_userptr(const struct sim_memory *m)
{
	return m->flags & KFDABI_ALLOC_USERPTR;
}

static bool is_doorbell(const struct sim_memory *m)
{
	return m->flags & KFDABI_ALLOC_DOORBELL;
}

static uint64_t gpu_bit(const struct sim_gpu *gpu)
{
	return UINT64_C(1) << (gpu->node - 1);
}

uint64_t sim_memory_doorbells(const struct sim_process *p, const struct sim_gpu *gpu)
{
	return DOORBELLS | (uint64_t)gpu->gpu_id << 46 | (uint64_t)p->pasid * DOORBELLS_SIZE;
}

uint64_t sim_memory_used(const struct sim *s, const struct sim_gpu *gpu)
{
	const struct sim_process *p;
	const struct sim_memory *m;
	uint64_t used = 0;

	TAILQ_FOREACH(p, &s->processes, link)
		TAILQ_FOREACH(m, &p->memory, link)
			if (m->gpu == gpu && (m->flags & KFDABI_ALLOC_VRAM))
				used += m->size;
	return used;
}

uint64_t sim_memory_of(const struct sim_process *p)
{
	const struct sim_memory *m;
	uint64_t bytes = 0;

	TAILQ_FOREACH(m, &p->memory, link)
		if (!is_userptr(m))
			bytes += m->size;
	return bytes;
}

struct sim_memory *sim_memory_find(struct sim_process *p, uint64_t handle)
{
	struct sim_memory *m;

	TAILQ_FOREACH(m, &p->memory, link)
		if (m->handle == handle)
			return m;
	return NULL;
}

/* Whether the driver would make such an object. */
static int check_alloc(const struct sim *s, const struct kfdabi_alloc_memory_args *a,
		       const struct sim_gpu *gpu)
{
	const uint64_t size = a->size, end = sim_user_end();

	if (!size || size >= end || a->va_addr >= end - size)
		return -EINVAL;
	if ((a->flags & KFDABI_ALLOC_DOORBELL) && size != DOORBELLS_SIZE)
		return -EINVAL;
	if ((a->flags & KFDABI_ALLOC_MMIO_REMAP) && size != page_bytes())
		return -EINVAL;
	if ((a->flags & KFDABI_ALLOC_VRAM) &&
	    size > gpu->profile->vram_size - sim_memory_used(s, gpu))
		return -ENOMEM;
	if ((a->flags & KFDABI_ALLOC_USERPTR) &&
	    (a->mmap_offset >= end - size || a->mmap_offset % page_bytes()))
		return -EINVAL;
	return 0;
}

/* Choose where the bytes of an object are. */
static int place(struct sim *s, struct sim_process *p, struct sim_memory *m, uint64_t address)
{
	if (is_userptr(m)) {
		m->offset = address;
		return 0;
	}
	if (is_doorbell(m)) {
		m->offset = sim_memory_doorbells(p, m->gpu);
		return 0;
	}
	if (s->store_next < STORE_START)
		s->store_next = STORE_START;
	if (m->size > STORE_END - s->store_next)
		return -ENOMEM;
	m->offset = s->store_next;
	s->store_next += m->size;
	return 0;
}

int sim_memory_alloc(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	struct kfdabi_alloc_memory_args *a = call->arg;
	struct sim_device *d = sim_device_find(p, a->gpu_id);
	struct sim_memory *m;
	int r;

	if (!d)
		return -EINVAL;
	r = check_alloc(s, a, d->gpu);
	if (r)
		return r;
	m = s->has_store ? calloc(1, sizeof(*m)) : NULL;
	if (!m)
		return -ENOMEM;
	m->va = a->va_addr;
	m->size = page_up(a->size);
	m->flags = a->flags;
	m->gpu = d->gpu;
	r = place(s, p, m, a->mmap_offset);
	if (r) {
		free(m);
		return r;
	}
	m->handle = (uint64_t)d->gpu->gpu_id << 32 | ++p->next_handle;
	TAILQ_INSERT_TAIL(&p->memory, m, link);
	p->has_memory = true;
	a->handle = m->handle;
	if (!is_userptr(m))
		a->mmap_offset = m->offset;
	return 0;
}

/* Give back what an object has of the store. */
static void memory_release(struct sim *s, struct sim_process *p, struct sim_memory *m)
{
	TAILQ_REMOVE(&p->memory, m, link);
	if (!is_userptr(m))
		s->os->store_free(m->offset, m->size);
	free(m);
}

int sim_memory_free(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	const struct kfdabi_free_memory_args *a = call->arg;
	struct sim_memory *m = sim_memory_find(p, a->handle);

	if (!m)
		return -EINVAL;
	if (m->mapped)
		return -EBUSY;
	memory_release(s, p, m);
	return 0;
}

void sim_memory_end(struct sim *s, struct sim_process *p)
{
	struct sim_memory *m;

	while ((m = TAILQ_FIRST(&p->memory)))
		memory_release(s, p, m);
}

/* Map or unmap an object on the GPUs of an array; n_success says how far that came. */
static int change_mapping(struct sim *s, struct sim_call *call, struct sim_process *p, bool map)
{
	struct kfdabi_map_memory_args *a = call->arg;
	struct sim_memory *m;
	struct sim_device *d;
	uint32_t id;

	if (!a->n_devices || a->n_success > a->n_devices)
		return -EINVAL;
	if (!sim_device_find(p, (uint32_t)(a->handle >> 32)))
		return -EINVAL;
	m = sim_memory_find(p, a->handle);
	if (!m)
		return map ? -ENOMEM : -ENODEV;
	for (uint32_t i = a->n_success; i < a->n_devices; i++) {
		if (s->os->mem_read(call->tid, a->device_ids_ptr + i * sizeof(id), &id, sizeof(id)))
			return -EFAULT;
		d = sim_device_find(p, id);
		if (!d)
			return -EINVAL;
		if (map)
			m->mapped |= gpu_bit(d->gpu);
		else
			m->mapped &= ~gpu_bit(d->gpu);
		a->n_success = i + 1;
	}
	return 0;
}

int sim_memory_map(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	return change_mapping(s, call, p, true);
}

int sim_memory_unmap(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	return change_mapping(s, call, p, false);
}

int sim_memory_available(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	struct kfdabi_available_memory_args *a = call->arg;
	struct sim_device *d = sim_device_find(p, a->gpu_id);

	if (!d)
		return -EINVAL;
	a->available = d->gpu->profile->vram_size - sim_memory_used(s, d->gpu);
	return 0;
}

/* ---- what a GPU sees ---- */

/* The object at an address as a GPU has it mapped; NULL: the access faults. */
static const struct sim_memory *memory_at(struct sim_process *p, const struct sim_gpu *gpu,
					  uint64_t va)
{
	const struct sim_memory *m;

	TAILQ_FOREACH(m, &p->memory, link)
		if (va - m->va < m->size && (m->mapped & gpu_bit(gpu)))
			return m;
	return NULL;
}

/* One access within one object. */
static int access_object(struct sim *s, const struct sim_process *p, const struct sim_memory *m,
			 uint64_t va, void *read_to, const void *write_from, size_t size)
{
	uint64_t at = m->offset + (va - m->va);

	if (is_userptr(m))
		return read_to ? s->os->mem_read(p->tgid, at, read_to, size)
			       : s->os->mem_write(p->tgid, at, write_from, size);
	return read_to ? s->os->store_read(at, read_to, size)
		       : s->os->store_write(at, write_from, size);
}

/* Read if there is something to read to, else write; the range may be that of several objects. */
static int access_range(struct sim *s, struct sim_process *p, const struct sim_gpu *gpu, uint64_t va,
			void *read_to, const void *write_from, size_t size)
{
	while (size) {
		const struct sim_memory *m = memory_at(p, gpu, va);
		size_t part;

		if (!m)
			return -EFAULT;
		part = (size_t)min_size(size, m->va + m->size - va);
		if (access_object(s, p, m, va, read_to, write_from, part))
			return -EFAULT;
		if (read_to)
			read_to = (uint8_t *)read_to + part;
		else
			write_from = (const uint8_t *)write_from + part;
		va += part;
		size -= part;
	}
	return 0;
}

int sim_memory_read(struct sim *s, struct sim_process *p, const struct sim_gpu *gpu, uint64_t va,
		    void *buf, size_t size)
{
	return access_range(s, p, gpu, va, buf, NULL, size);
}

int sim_memory_write(struct sim *s, struct sim_process *p, const struct sim_gpu *gpu, uint64_t va,
		     const void *buf, size_t size)
{
	return access_range(s, p, gpu, va, NULL, buf, size);
}

int sim_memory_copy(struct sim *s, struct sim_process *p, const struct sim_gpu *gpu, uint64_t to,
		    uint64_t from, uint64_t size)
{
	/* All of this runs in one thread. */
	static uint8_t buf[CHUNK];

	for (uint64_t done = 0; done < size;) {
		size_t part = (size_t)min_size(CHUNK, size - done);

		if (sim_memory_read(s, p, gpu, from + done, buf, part) ||
		    sim_memory_write(s, p, gpu, to + done, buf, part))
			return -EFAULT;
		done += part;
	}
	return 0;
}

int sim_memory_fill(struct sim *s, struct sim_process *p, const struct sim_gpu *gpu, uint64_t to,
		    uint32_t word, uint64_t size)
{
	static uint32_t buf[CHUNK / sizeof(uint32_t)];

	for (size_t i = 0; i < min_size(CHUNK, size) / sizeof(word); i++)
		buf[i] = word;
	for (uint64_t done = 0; done < size;) {
		size_t part = (size_t)min_size(CHUNK, size - done);

		if (sim_memory_write(s, p, gpu, to + done, buf, part))
			return -EFAULT;
		done += part;
	}
	return 0;
}
