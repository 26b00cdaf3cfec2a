/* SPDX-License-Identifier: MIT */
#include "corefile/amdgpu/model.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/reader.h"
#include "corefile/pack.h"

/* A member of an entry: its offset in the kernel's struct and in ours. */
struct field {
	uint16_t at, member;
	bool wide; /* 64 bits instead of 32. */
};

#define WIDE(type, at, name)   { at, offsetof(struct amdcore_##type, name), true }
#define NARROW(type, at, name) { at, offsetof(struct amdcore_##type, name), false }

static const struct field runtime_fields[] = {
	WIDE(runtime, 0, r_debug),
	NARROW(runtime, 8, state),
	NARROW(runtime, 12, ttmp_setup),
};

static const struct field device_fields[] = {
	WIDE(device, 0, exceptions),
	WIDE(device, 8, lds_base),
	WIDE(device, 16, lds_limit),
	WIDE(device, 24, scratch_base),
	WIDE(device, 32, scratch_limit),
	WIDE(device, 40, gpuvm_base),
	WIDE(device, 48, gpuvm_limit),
	NARROW(device, 56, gpu_id),
	NARROW(device, 60, location_id),
	NARROW(device, 64, vendor_id),
	NARROW(device, 68, device_id),
	NARROW(device, 72, revision_id),
	NARROW(device, 76, subsystem_vendor_id),
	NARROW(device, 80, subsystem_device_id),
	NARROW(device, 84, fw_version),
	NARROW(device, 88, gfx_target_version),
	NARROW(device, 92, simd_count),
	NARROW(device, 96, max_waves_per_simd),
	NARROW(device, 100, array_count),
	NARROW(device, 104, simd_arrays_per_engine),
	NARROW(device, 108, num_xcc),
	NARROW(device, 112, capability),
	NARROW(device, 116, debug_prop),
};

/* These members lie behind those that are written. */
static const struct field later_device_fields[] = {
	NARROW(device, 120, capability2),
};

static const struct field queue_fields[] = {
	WIDE(queue, 0, exceptions),
	WIDE(queue, 8, ring_base),
	WIDE(queue, 16, write_pointer),
	WIDE(queue, 24, read_pointer),
	WIDE(queue, 32, save_area),
	NARROW(queue, 40, queue_id),
	NARROW(queue, 44, gpu_id),
	NARROW(queue, 48, ring_size),
	NARROW(queue, 52, type),
	NARROW(queue, 56, save_area_size),
};

static void get(const struct amdcore_table *t, uint32_t i, const struct field *fields, size_t n,
		char *ret)
{
	struct reader r;

	for (size_t f = 0; f < n; f++) {
		/*
		 * Each member gets a reader of its own, because a read that failed would fail those
		 * that follow.
		 */
		reader_init(&r, (const char *)t->data + (size_t)i * t->entry_size, t->entry_size);
		reader_seek(&r, fields[f].at);
		if (fields[f].wide)
			*(uint64_t *)(void *)(ret + fields[f].member) = reader_u64(&r);
		else
			*(uint32_t *)(void *)(ret + fields[f].member) = reader_u32(&r);
	}
}

static void put(uint8_t *b, const struct field *fields, size_t n, const char *from)
{
	for (size_t f = 0; f < n; f++) {
		const void *member = from + fields[f].member;

		if (fields[f].wide)
			pack_u64(b + fields[f].at, *(const uint64_t *)member);
		else
			pack_u32(b + fields[f].at, *(const uint32_t *)member);
	}
}

void amdcore_get_runtime(const struct amdcore *c, struct amdcore_runtime *ret)
{
	get(&c->runtime, 0, runtime_fields, ARRAY_SIZE(runtime_fields), (char *)ret);
}

void amdcore_get_device(const struct amdcore *c, uint32_t i, struct amdcore_device *ret)
{
	get(&c->devices, i, device_fields, ARRAY_SIZE(device_fields), (char *)ret);
	get(&c->devices, i, later_device_fields, ARRAY_SIZE(later_device_fields), (char *)ret);
}

void amdcore_get_queue(const struct amdcore *c, uint32_t i, struct amdcore_queue *ret)
{
	get(&c->queues, i, queue_fields, ARRAY_SIZE(queue_fields), (char *)ret);
}

void amdcore_pack_runtime(uint8_t *b, const struct amdcore_runtime *r)
{
	put(b, runtime_fields, ARRAY_SIZE(runtime_fields), (const char *)r);
}

void amdcore_pack_device(uint8_t *b, const struct amdcore_device *d)
{
	put(b, device_fields, ARRAY_SIZE(device_fields), (const char *)d);
}

void amdcore_pack_queue(uint8_t *b, const struct amdcore_queue *q)
{
	put(b, queue_fields, ARRAY_SIZE(queue_fields), (const char *)q);
	pack_u32(b + 60, 0); /* The kernel's reserved member. */
}

void amdcore_deinit(struct amdcore *c)
{
	free(c->notes);
	free(c->segments);
	corefile_problems_deinit(&c->problems);
	*c = (struct amdcore){ 0 };
}

/* Find the last segment that does not begin behind the address. */
static const struct amdcore_segment *segment_at(const struct amdcore *c, uint64_t address)
{
	uint32_t low = 0, high = c->n_segments;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (c->segments[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &c->segments[low - 1] : NULL;
}

size_t amdcore_read_memory(const struct amdcore *c, uint64_t address, void *buf, size_t size)
{
	size_t done = 0;

	while (done < size) {
		const struct amdcore_segment *s = segment_at(c, address + done);
		uint64_t offset = s ? address + done - s->address : 0;
		size_t n;

		if (!s || offset >= s->bytes.size)
			break;
		n = s->bytes.size - offset < size - done ? (size_t)(s->bytes.size - offset) :
							   size - done;
		memcpy((char *)buf + done, (const char *)s->bytes.data + offset, n);
		done += n;
		if (address + done < address)
			break;
	}
	return done;
}
