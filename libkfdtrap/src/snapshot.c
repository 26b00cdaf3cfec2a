/* SPDX-License-Identifier: MIT */
/* Queue and device snapshots, with entries of any size and lists that grow meanwhile. */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define SNAPSHOT_SPARE	   16
#define SNAPSHOT_TRIES	   8
#define SNAPSHOT_COUNT_MAX 65536

/*
 * The kernel writes straight into the public records, so their members must be where the kernel has
 * them.
 */
#define SAME_PLACE(type, member, abi, abi_member)                                                  \
	_Static_assert(offsetof(struct type, member) == offsetof(struct abi, abi_member) &&        \
			       sizeof(((struct type *)0)->member) ==                               \
				       sizeof(((struct abi *)0)->abi_member),                      \
		       #member)
#define SAME_QUEUE(member)  SAME_PLACE(kfdtrap_queue, member, kfdabi_queue_entry, member)
#define SAME_DEVICE(member) SAME_PLACE(kfdtrap_device, member, kfdabi_device_entry, member)

_Static_assert(sizeof(struct kfdtrap_queue) == sizeof(struct kfdabi_queue_entry), "queue");
SAME_PLACE(kfdtrap_queue, exceptions, kfdabi_queue_entry, exception_status);
SAME_PLACE(kfdtrap_queue, type, kfdabi_queue_entry, queue_type);
SAME_QUEUE(ring_base_address);
SAME_QUEUE(write_pointer_address);
SAME_QUEUE(read_pointer_address);
SAME_QUEUE(ctx_save_restore_address);
SAME_QUEUE(queue_id);
SAME_QUEUE(gpu_id);
SAME_QUEUE(ring_size);
SAME_QUEUE(ctx_save_restore_area_size);

_Static_assert(offsetof(struct kfdtrap_device, has_capability2) ==
		       sizeof(struct kfdabi_device_entry),
	       "device");
SAME_PLACE(kfdtrap_device, exceptions, kfdabi_device_entry, exception_status);
SAME_DEVICE(lds_base);
SAME_DEVICE(lds_limit);
SAME_DEVICE(scratch_base);
SAME_DEVICE(scratch_limit);
SAME_DEVICE(gpuvm_base);
SAME_DEVICE(gpuvm_limit);
SAME_DEVICE(gpu_id);
SAME_DEVICE(location_id);
SAME_DEVICE(vendor_id);
SAME_DEVICE(device_id);
SAME_DEVICE(revision_id);
SAME_DEVICE(subsystem_vendor_id);
SAME_DEVICE(subsystem_device_id);
SAME_DEVICE(fw_version);
SAME_DEVICE(gfx_target_version);
SAME_DEVICE(simd_count);
SAME_DEVICE(max_waves_per_simd);
SAME_DEVICE(array_count);
SAME_DEVICE(simd_arrays_per_engine);
SAME_DEVICE(num_xcc);
SAME_DEVICE(capability);
SAME_DEVICE(debug_prop);
SAME_DEVICE(capability2);

/* Both commands have the same layout; the member names of the queue's stand for both. */
_Static_assert(offsetof(struct kfdabi_dbg_args, queue_snapshot.num_queues) ==
		       offsetof(struct kfdabi_dbg_args, device_snapshot.num_devices),
	       "snapshot arguments");

static int snapshot_call(struct kfdtrap *kt, uint32_t op, uint64_t clear, void *buf,
			 size_t capacity, uint32_t entry_size, size_t *ret_n,
			 uint32_t *ret_entry_size)
{
	struct kfdabi_dbg_args args = {
		.queue_snapshot = {
			.exception_mask = clear,
			.snapshot_buf_ptr = trap_ptr(buf),
			.num_queues = (uint32_t)capacity,
			.entry_size = entry_size,
		},
	};
	int r;

	if (capacity > UINT32_MAX || (!buf && capacity))
		return -EINVAL;
	r = trap_call(kt, op, &args, trap_errnos_none);
	if (r < 0)
		return r;
	*ret_n = args.queue_snapshot.num_queues;
	if (ret_entry_size)
		*ret_entry_size = args.queue_snapshot.entry_size < entry_size ?
					  args.queue_snapshot.entry_size :
					  entry_size;
	return 0;
}

int kfdtrap_get_queue_snapshot(struct kfdtrap *kt, uint64_t clear, void *buf, size_t capacity,
			       uint32_t entry_size, size_t *ret_n, uint32_t *ret_entry_size)
{
	return snapshot_call(kt, KFDABI_DBG_GET_QUEUE_SNAPSHOT, clear, buf, capacity, entry_size,
			     ret_n, ret_entry_size);
}

int kfdtrap_get_device_snapshot(struct kfdtrap *kt, uint64_t clear, void *buf, size_t capacity,
				uint32_t entry_size, size_t *ret_n, uint32_t *ret_entry_size)
{
	if (!buf || entry_size == 0)
		return -EINVAL;
	return snapshot_call(kt, KFDABI_DBG_GET_DEVICE_SNAPSHOT, clear, buf, capacity, entry_size,
			     ret_n, ret_entry_size);
}

/* Clear the end of each record, which an older kernel leaves as it was. */
static void zero_tails(void *records, size_t n, size_t stride, size_t valid)
{
	for (size_t i = 0; i < n; i++)
		memset((char *)records + i * stride + valid, 0, stride - valid);
}

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

int kfdtrap_queue_snapshot(struct kfdtrap *kt, uint64_t clear, struct kfdtrap_queue *queues,
			   size_t capacity, size_t *ret_n)
{
	uint32_t valid;
	size_t n;
	int r;

	r = kfdtrap_get_queue_snapshot(kt, clear, queues, capacity, sizeof(*queues), &n, &valid);
	if (r < 0)
		return r;
	zero_tails(queues, min_size(n, capacity), sizeof(*queues), valid);
	*ret_n = n;
	return 0;
}

int kfdtrap_device_snapshot(struct kfdtrap *kt, uint64_t clear, struct kfdtrap_device *devices,
			    size_t capacity, size_t *ret_n)
{
	uint32_t valid;
	size_t n;
	int r;

	r = kfdtrap_get_device_snapshot(kt, clear, devices, capacity, sizeof(*devices), &n, &valid);
	if (r < 0)
		return r;
	zero_tails(devices, min_size(n, capacity), sizeof(*devices), valid);
	for (size_t i = 0; i < min_size(n, capacity); i++)
		devices[i].has_capability2 =
			valid >= offsetof(struct kfdtrap_device, capability2) + sizeof(uint32_t);
	*ret_n = n;
	return 0;
}

/* The functions by which snapshot_alloc() handles a kind of record. */
struct snapshot_kind {
	size_t size;
	int (*take)(struct kfdtrap *kt, uint64_t clear, void *records, size_t capacity,
		    size_t *ret_n);
	bool (*is_same)(const void *a, const void *b);
	uint64_t *(*exceptions)(void *record);
};

static int queue_take(struct kfdtrap *kt, uint64_t clear, void *records, size_t capacity,
		      size_t *ret_n)
{
	return kfdtrap_queue_snapshot(kt, clear, records, capacity, ret_n);
}

/*
 * Do two records stand for the same queue?  Ids are reused; a new queue at the same place under the
 * same id is as good as the old one.
 */
static bool queue_is_same(const void *a, const void *b)
{
	const struct kfdtrap_queue *p = a, *q = b;

	return p->queue_id == q->queue_id && p->gpu_id == q->gpu_id &&
	       p->ring_base_address == q->ring_base_address &&
	       p->ctx_save_restore_address == q->ctx_save_restore_address;
}

static uint64_t *queue_exceptions(void *record)
{
	return &((struct kfdtrap_queue *)record)->exceptions;
}

static const struct snapshot_kind queue_kind = {
	sizeof(struct kfdtrap_queue), queue_take, queue_is_same, queue_exceptions,
};

static int device_take(struct kfdtrap *kt, uint64_t clear, void *records, size_t capacity,
		       size_t *ret_n)
{
	return kfdtrap_device_snapshot(kt, clear, records, capacity, ret_n);
}

static bool device_is_same(const void *a, const void *b)
{
	return ((const struct kfdtrap_device *)a)->gpu_id ==
	       ((const struct kfdtrap_device *)b)->gpu_id;
}

static uint64_t *device_exceptions(void *record)
{
	return &((struct kfdtrap_device *)record)->exceptions;
}

static const struct snapshot_kind device_kind = {
	sizeof(struct kfdtrap_device), device_take, device_is_same, device_exceptions,
};

/* Carry over bits that an earlier round cleared, which would be lost with its buffer. */
static void carry_exceptions(const struct snapshot_kind *kind, char *records, size_t n, char *old,
			     size_t n_old)
{
	for (size_t i = 0; i < n_old; i++) {
		for (size_t j = 0; j < n; j++) {
			if (!kind->is_same(old + i * kind->size, records + j * kind->size))
				continue;
			*kind->exceptions(records + j * kind->size) |=
				*kind->exceptions(old + i * kind->size);
			break;
		}
	}
}

static int snapshot_alloc(struct kfdtrap *kt, const struct snapshot_kind *kind, uint64_t clear,
			  void **ret_records, size_t *ret_n)
{
	auto_free char *old = NULL;
	size_t n_old = 0, known = 0;

	for (unsigned int i = 0; i < SNAPSHOT_TRIES; i++) {
		size_t n, capacity = known + SNAPSHOT_SPARE;
		auto_free char *records = calloc(capacity, kind->size);
		char *swap;
		int r;

		if (!records)
			return -ENOMEM;
		r = kind->take(kt, clear, records, capacity, &n);
		if (r < 0)
			return r;
		if (n > SNAPSHOT_COUNT_MAX)
			return -EPROTO;
		carry_exceptions(kind, records, min_size(n, capacity), old, n_old);
		if (n <= capacity) {
			*ret_records = TAKE_PTR(records);
			*ret_n = n;
			return 0;
		}
		/* The two change places, so that auto_free releases the older buffer. */
		swap = old;
		old = records;
		records = swap;
		n_old = capacity;
		known = n;
	}
	return -EAGAIN;
}

int kfdtrap_queue_snapshot_alloc(struct kfdtrap *kt, uint64_t clear,
				 struct kfdtrap_queue **ret_queues, size_t *ret_n)
{
	void *records;
	int r = snapshot_alloc(kt, &queue_kind, clear, &records, ret_n);

	if (r == 0)
		*ret_queues = records;
	return r;
}

int kfdtrap_device_snapshot_alloc(struct kfdtrap *kt, uint64_t clear,
				  struct kfdtrap_device **ret_devices, size_t *ret_n)
{
	void *records;
	int r = snapshot_alloc(kt, &device_kind, clear, &records, ret_n);

	if (r == 0)
		*ret_devices = records;
	return r;
}
