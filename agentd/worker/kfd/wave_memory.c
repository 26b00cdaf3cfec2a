/* SPDX-License-Identifier: MIT */
/* The LDS of a wave's workgroup, and the private memory of its lanes. */
#include <errno.h>
#include <stdlib.h>

#include "agentd/worker/kfd/registers.h"
#include "base/cleanup.h"

/*
 * Offsets of members of amd_queue_t behind the read counter, which is its member read_dispatch_id
 * (amd_hsa_queue.h of ROCr).
 */
#define QUEUE_TMPRING	     12u
#define QUEUE_SCRATCH_BASE   32u
#define QUEUE_SCRATCH_BYTES  40u
/* The last version of the runtime whose queues have the member at QUEUE_SCRATCH_BYTES. */
#define SCRATCH_BYTES_UNTIL 10u

#define CHUNK ((size_t)64 << 10)

/* Why nothing was read. */
enum shortfall {
	NO_SHORTFALL,
	OUTSIDE,      /* The address is at or above the end of the memory. */
	NO_MEMORY_OF_ITS_OWN, /* The member `problem` says why. */
	NO_LANE,
	QUEUE_UNREADABLE,
	BASE_DIFFERS, /* The wave's flat_scratch register has another address. */
	UNREADABLE,
};

/* One read of LDS or scratch. */
struct transfer {
	struct one_wave one;
	const struct target_wave_memory *what;
	uint64_t address; /* The offset in the memory, from 0 on. */
	uint64_t end;	  /* Bytes that the memory has. */
	uint8_t *chunk;	  /* Room for CHUNK bytes. */
	uint32_t done;	  /* Bytes read so far. */
	enum shortfall shortfall;
	enum kfdtrap_wave_problem problem;
};

static uint32_t bytes_left(const struct transfer *t)
{
	uint64_t left = t->address < t->end ? t->end - t->address : 0;

	return left < t->what->size ? (uint32_t)left : t->what->size;
}

static enum shortfall copy_lds(struct wave_capture *w, struct transfer *t)
{
	const struct saved_wave *r = &t->one.record;
	ssize_t n;

	t->end = r->layout.lds_size;
	if (!bytes_left(t))
		return OUTSIDE;
	n = memory_read(&w->k->t.memory, r->area->address + r->layout.lds_offset + t->address,
			t->what->buf, bytes_left(t));
	t->done = n > 0 ? (uint32_t)n : 0;
	return n > 0 ? NO_SHORTFALL : UNREADABLE;
}

/*
 * Find the scratch memory of the wave by what the runtime has written into the queue, and check it
 * against the wave's own register where the wave has one.
 */
static enum shortfall find_scratch(struct wave_capture *w, struct transfer *t,
				   struct kfdtrap_wave_scratch_place *place)
{
	const struct saved_wave *r = &t->one.record;
	const struct queue_capture *l = r->area->capture;
	const struct memory *m = &w->k->t.memory;
	struct kfdtrap_wave_scratch s = { .gfx_target_version = l->device->rpc.gfx_target_version,
					  .shader_engines = l->device->shader_engines };
	uint32_t offset, size;
	uint64_t base = 0;

	if (l->queue->type != RPC_QUEUE_TYPE_COMPUTE_AQL ||
	    memory_read_exact(m, l->queue->read_pointer + QUEUE_TMPRING, &s.tmpring, 4) < 0 ||
	    memory_read_exact(m, l->queue->read_pointer + QUEUE_SCRATCH_BASE, &s.base, 8) < 0)
		return QUEUE_UNREADABLE;
	if (wave_capture_context(w, r->area).r_version <= SCRATCH_BYTES_UNTIL &&
	    memory_read_exact(m, l->queue->read_pointer + QUEUE_SCRATCH_BYTES, &s.xcc_bytes, 8) < 0)
		return QUEUE_UNREADABLE;
	t->problem = kfdtrap_wave_scratch_find(&s, &r->layout, r->area->xcc, place);
	if (t->problem)
		return NO_MEMORY_OF_ITS_OWN;
	if (!place->in_register)
		return NO_SHORTFALL;
	if (!kfdtrap_wave_register_find(l->arch, &r->layout, KFDTRAP_WAVE_BANK_SPECIAL,
					KFDTRAP_WAVE_FLAT_SCRATCH, &offset, &size) ||
	    memory_read_exact(m, r->area->address + offset, &base, size) < 0)
		return UNREADABLE;
	return base == place->address ? NO_SHORTFALL : BASE_DIFFERS;
}

/* The words of all lanes lie side by side: take those of one lane out of so many. */
static uint32_t take_lane(const struct transfer *t, uint32_t lane, uint32_t skip, uint32_t end, uint8_t *to)
{
	const uint32_t lanes = t->one.record.layout.lanes;

	for (uint32_t i = skip; i < end; i++)
		*to++ = t->chunk[kfdtrap_wave_scratch_offset(lanes, lane, i)];
	return end - skip;
}

static void take_lanes(struct transfer *t, uint32_t skip, uint32_t end)
{
	const struct target_wave_memory *what = t->what;
	uint8_t *buf = what->buf;

	if (!what->lanes)
		take_lane(t, what->lane, skip, end, buf + t->done);
	for (uint64_t left = what->lanes; left; left &= left - 1) {
		uint32_t lane = (uint32_t)__builtin_ctzll(left);

		what->got[lane] += take_lane(t, lane, skip, end, buf + (size_t)lane * what->size + t->done);
	}
	t->done += end - skip;
}

static void copy_lanes(struct wave_capture *w, struct transfer *t, uint64_t base)
{
	const uint32_t lanes = t->one.record.layout.lanes;
	const uint32_t words_at_once = (uint32_t)(CHUNK / 4 / lanes);
	const uint32_t want = bytes_left(t);

	while (t->done < want && !wave_capture_is_late(w)) {
		uint64_t at = t->address + t->done;
		uint32_t word = (uint32_t)(at / 4), skip = (uint32_t)(at % 4);
		uint32_t left = want - t->done, n = (skip + left + 3) / 4;

		n = n < words_at_once ? n : words_at_once;
		if (memory_read_exact(&w->k->t.memory,
				      base + kfdtrap_wave_scratch_offset(lanes, 0, word * 4),
				      t->chunk, (size_t)n * lanes * 4) < 0)
			break;
		take_lanes(t, skip, n * 4 - skip < left ? n * 4 : skip + left);
	}
	if (!t->done && !w->late)
		t->shortfall = UNREADABLE;
}

static void copy_scratch(struct wave_capture *w, struct transfer *t)
{
	struct kfdtrap_wave_scratch_place place = { 0 };

	uint32_t lanes = t->one.record.layout.lanes;

	if (t->what->lane >= lanes || (lanes < 64 && t->what->lanes >> lanes))
		t->shortfall = NO_LANE;
	else
		t->shortfall = find_scratch(w, t, &place);
	if (t->shortfall)
		return;
	t->end = place.size / lanes / 4 * 4;
	for (uint64_t left = t->what->lanes; left; left &= left - 1)
		t->what->got[__builtin_ctzll(left)] = 0;
	if (bytes_left(t))
		copy_lanes(w, t, place.address);
	else
		t->shortfall = OUTSIDE;
}

/* A flat address within the aperture means the same as its offset in it. */
static uint64_t offset_of(const struct transfer *t, const struct target_device *d)
{
	bool lds = t->what->space == RPC_MEMORY_SPACE_LDS;
	uint64_t base = lds ? d->rpc.lds_base : d->rpc.scratch_base;
	uint64_t limit = lds ? d->rpc.lds_limit : d->rpc.scratch_limit;
	uint64_t a = t->what->address;

	return base && a >= base && a <= limit ? a - base : a;
}

static void copy_memory(struct wave_capture *w, uint32_t round)
{
	struct transfer *t = w->ctx;

	(void)round;
	if (wave_capture_is_late(w) || t->one.record.area || !one_wave_find(w, &t->one))
		return;
	t->address = offset_of(t, t->one.record.area->capture->device);
	if (t->what->space == RPC_MEMORY_SPACE_SCRATCH)
		copy_scratch(w, t);
	else
		t->shortfall = copy_lds(w, t);
}

static int explain(const struct transfer *t, struct agent_err *err)
{
	const char *space = rpc_memory_space_name(t->what->space);
	static const char op[] = "read memory of a wave";

	switch (t->shortfall) {
	case OUTSIDE:
		return agent_err_set(err, RPC_ERROR_FAILED, EFAULT, op, NULL,
				     "0x%llx is outside: there are 0x%llx bytes of %s",
				     (unsigned long long)t->address, (unsigned long long)t->end,
				     space);
	case NO_MEMORY_OF_ITS_OWN:
		return agent_err_set(err, RPC_ERROR_FAILED, ENXIO, op, NULL, "%s",
				     kfdtrap_wave_problem_text(t->problem));
	case NO_LANE:
		return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, EINVAL, op, NULL,
				     "params.lane: the wave has only %u lanes",
				     t->one.record.layout.lanes);
	case QUEUE_UNREADABLE:
		return agent_err_set(
			err, RPC_ERROR_FAILED, EFAULT, op, NULL,
			"what the runtime says of the queue's scratch memory is not readable");
	case BASE_DIFFERS:
		return agent_err_set(err, RPC_ERROR_FAILED, EINVAL, op, NULL,
				     "the wave's flat_scratch register does not hold the address that its queue says");
	case UNREADABLE:
	case NO_SHORTFALL:
		break;
	}
	return agent_err_set(err, RPC_ERROR_FAILED, EFAULT, op, NULL,
			     "%s at 0x%llx is not readable", space, (unsigned long long)t->address);
}

int kfd_wave_memory(struct target *t, const struct target_waves_from *from,
		    const struct target_wave_memory *what, struct rpc_arena *a,
		    struct agent_err *err)
{
	auto_free uint8_t *chunk = malloc(CHUNK);
	struct transfer transfer = { .one = { .name = what->wave }, .what = what, .chunk = chunk };
	struct wave_capture w = {
		.k = kfd_of(t), .arena = a, .from = from, .more = copy_memory, .ctx = &transfer
	};
	struct target_waves waves = { 0 };
	int r;

	if (!chunk)
		return agent_err_no_memory(err, NULL);
	r = one_wave_take(&w, &transfer.one, &waves, err);
	if (r == 0 && !transfer.done)
		r = w.late ? one_wave_is_late(&w, err) : explain(&transfer, err);
	wave_capture_deinit(&w);
	return r < 0 ? r : (int)transfer.done;
}
