/* SPDX-License-Identifier: MIT */
#include "agentd/worker/nccl/nccl.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/reader.h"
#include "base/vec.h"
#include "symbols/image.h"
#include "waits/collective/nccl.h"

#define NO_LAYOUT WAITS_NCCL_LAYOUTS

/* ------------------------------------------------------------------ kernels of an image ------ */

struct search {
	const struct symbols_image *image;
	struct nccl_kernels *found;
};

static int add_kernel(void *arg, uint64_t entry, const void *info, size_t size)
{
	struct search *s = arg;
	struct nccl_kernels *k = s->found;
	struct symbols_symbol symbol;

	(void)info;
	(void)size;
	if (!entry || symbols_image_kernel(s->image, entry, &symbol) < 0 || !waits_nccl_is_kernel(symbol.raw))
		return 0;
	if (vec_reserve(&k->list, k->n, 1, &k->capacity, sizeof(*k->list)) < 0)
		return -ENOMEM;
	k->list[k->n++] = entry;
	return 0;
}

static int compare(const void *x, const void *y)
{
	const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;

	return a < b ? -1 : a > b;
}

int nccl_kernels_find(const struct symbols_image *image, struct nccl_kernels *ret)
{
	struct search s = { .image = image, .found = ret };
	int r = symbols_image_each_nv_info(image, add_kernel, &s);

	if (ret->n)
		qsort(ret->list, ret->n, sizeof(*ret->list), compare);
	return r;
}

void nccl_kernels_deinit(struct nccl_kernels *k)
{
	free(k->list);
	*k = (struct nccl_kernels){ 0 };
}

bool nccl_kernels_has(const struct nccl_kernels *k, uint64_t entry)
{
	return k->n && bsearch(&entry, k->list, k->n, sizeof(*k->list), compare);
}

/* ------------------------------------------------------------------ reading ------------------ */

/* One look. */
struct reading {
	const struct nccl_source *from;
	struct rpc_arena *a;
	struct target_waves *waves;
	const struct wave *wave; /* Of the dispatch that is looked at. */
	uint32_t reads;
	bool cut; /* A read was not tried, for lack of time, or after too many. */
};

/* Each read is a call of the driver while the device stands still. */
static bool read_bytes(struct reading *r, uint64_t address, void *buf, uint32_t size)
{
	if (r->reads == NCCL_READS_MAX || (r->from->deadline_ns && clock_now_ns() >= r->from->deadline_ns)) {
		r->cut = true;
		return false;
	}
	r->reads++;
	return r->from->memory(r->from->ctx, r->wave, address, buf, size);
}

static bool read_u64(struct reading *r, uint64_t address, uint64_t *ret)
{
	uint8_t bytes[8];
	struct reader at;

	if (!read_bytes(r, address, bytes, sizeof(bytes)))
		return false;
	reader_init(&at, bytes, sizeof(bytes));
	*ret = reader_u64(&at);
	return true;
}

static bool read_u32(struct reading *r, uint64_t address, uint32_t *ret)
{
	uint8_t bytes[4];
	struct reader at;

	if (!read_bytes(r, address, bytes, sizeof(bytes)))
		return false;
	reader_init(&at, bytes, sizeof(bytes));
	*ret = reader_u32(&at);
	return true;
}

/* Read a channel, which has to have the ring that it says it has. */
static bool read_channel(struct reading *r, uint64_t address, const struct waits_rccl_comm *comm,
			 struct waits_rccl_channel *ret)
{
	uint8_t bytes[WAITS_RCCL_CHANNEL];
	uint32_t last;
	uint64_t two;

	if (!read_bytes(r, address, bytes, sizeof(bytes)) ||
	    waits_rccl_channel_read(bytes, sizeof(bytes), comm->ranks, ret) < 0)
		return false;
	if (comm->ranks == 1)
		return read_u32(r, ret->order, &last) && waits_rccl_is_order(comm, ret, last, last, last);
	return read_u64(r, ret->order, &two) && read_u32(r, ret->order + 4 * (uint64_t)(comm->ranks - 1), &last) &&
	       waits_rccl_is_order(comm, ret, (uint32_t)two, (uint32_t)(two >> 32), last);
}

/*
 * Which layout it is.  Where the communicator itself leaves several, the second channel says it: it is where only one
 * of them has it.
 */
static unsigned int find_layout(struct reading *r, uint64_t address, const struct waits_rccl_comm *comm,
				uint32_t layouts)
{
	struct waits_rccl_channel channel;
	unsigned int found = NO_LAYOUT;

	if (!(layouts & (layouts - 1)))
		return (unsigned int)__builtin_ctz(layouts);
	for (unsigned int i = 0; i < WAITS_NCCL_LAYOUTS; i++) {
		if (!(layouts >> i & 1) || !read_channel(r, address + waits_nccl_channel_at(i, 1), comm, &channel))
			continue;
		if (found != NO_LAYOUT)
			return NO_LAYOUT;
		found = i;
	}
	return found;
}

/* ------------------------------------------------------------------ one dispatch ------------- */

static bool is_of(const struct wave *a, const struct wave *b)
{
	return a->gpu_id == b->gpu_id && a->queue_id == b->queue_id && a->dispatch == b->dispatch;
}

/* A bit for each block of which waves were seen. */
static uint64_t blocks_of(const struct reading *r)
{
	uint64_t blocks = 0;

	for (size_t i = 0; i < r->waves->n_waves; i++) {
		const struct wave *w = &r->waves->waves[i];

		if (is_of(w, r->wave) && w->has_workgroup && w->workgroup[0] < WAITS_NCCL_CHANNELS_MAX &&
		    !w->workgroup[1] && !w->workgroup[2])
			blocks |= UINT64_C(1) << w->workgroup[0];
	}
	return blocks;
}

/* @return whether the connection by which a channel receives along its ring was read. */
static bool read_receive(struct reading *r, unsigned int layout, uint64_t address, const struct waits_rccl_comm *comm,
			 struct target_receive *ret)
{
	uint8_t bytes[WAITS_NCCL_CONNECTION];
	struct waits_rccl_channel channel;
	struct waits_rccl_connection c;
	uint64_t peer;

	if (!read_channel(r, address, comm, &channel) || channel.previous == comm->rank ||
	    !read_u64(r, channel.peers + 8 * (uint64_t)channel.previous, &peer) ||
	    !read_bytes(r, peer + waits_nccl_connection_at(layout), bytes, sizeof(bytes)) ||
	    waits_nccl_connection_read(layout, bytes, sizeof(bytes), &c) < 0 || !read_u64(r, c.arrived, &ret->arrived))
		return false;
	ret->from = channel.previous;
	ret->taken = c.taken;
	return true;
}

static void read_receives(struct reading *r, unsigned int layout, const struct waits_nccl_launch *launch,
			  const struct waits_rccl_comm *comm, struct target_collective *to)
{
	to->receives = rpc_arena_array(r->a, WAITS_NCCL_CHANNELS_MAX, sizeof(*to->receives));
	if (!to->receives || comm->ranks < 2)
		return;
	for (uint64_t left = blocks_of(r); left; left &= left - 1) {
		const uint32_t block = (uint32_t)__builtin_ctzll(left);
		const uint32_t channel = waits_nccl_channel_of(launch->channels, block);
		const uint32_t at = waits_nccl_channel_at(layout, channel);
		struct target_receive *receive = &to->receives[to->n_receives];

		r->cut = false;
		receive->block = block;
		if (at && read_receive(r, layout, launch->comm + at, comm, receive))
			to->n_receives += receive->arrived <= receive->taken;
		else if (r->cut)
			to->left |= UINT64_C(1) << block;
		else
			to->unread |= UINT64_C(1) << block;
	}
}

/* @return whether what the kernel was given was copied. */
static bool find_arguments(const struct reading *r, struct waits_nccl_launch *ret)
{
	for (size_t i = 0; i < r->waves->n_arguments; i++) {
		const struct target_arguments *k = &r->waves->arguments[i];

		if (k->gpu_id == r->wave->gpu_id && k->dispatch == r->wave->dispatch)
			return k->bytes && waits_nccl_launch_read(k->bytes, k->size, ret) == 0;
	}
	return false;
}

static void read_launch(struct reading *r, struct target_collective *to)
{
	uint8_t bytes[WAITS_NCCL_COMM];
	struct waits_nccl_launch launch;
	struct waits_rccl_channel first = { 0 };
	struct waits_rccl_comm comm;
	unsigned int layout;
	uint32_t layouts;

	if (!find_arguments(r, &launch) || !read_bytes(r, launch.comm, bytes, sizeof(bytes)))
		return;
	to->communicator = launch.comm;
	r->cut = false;
	layout = waits_nccl_comm_read(bytes, sizeof(bytes), launch.comm, &comm, &layouts) < 0 ?
			 NO_LAYOUT :
			 find_layout(r, launch.comm, &comm, layouts);
	to->is_other = layout == NO_LAYOUT ||
		       !read_channel(r, launch.comm + waits_nccl_channel_at(layout, 0), &comm, &first);
	/* What was not tried says nothing of the layout. */
	if (r->cut) {
		to->is_other = false;
		to->communicator = 0;
		return;
	}
	if (to->is_other)
		return;
	to->is_read = true;
	to->rank = comm.rank;
	to->ranks = comm.ranks;
	to->previous = first.previous;
	to->next = first.next;
	read_receives(r, layout, &launch, &comm, to);
}

/* ------------------------------------------------------------------ one look ----------------- */

static bool is_known(const struct target_waves *waves, const struct wave *w)
{
	for (size_t i = waves->n_collectives; i--;)
		if (is_of(&waves->waves[waves->collectives[i].wave], w))
			return true;
	return false;
}

void nccl_read(const struct nccl_source *from, struct rpc_arena *a, struct target_waves *waves)
{
	struct reading r = { .from = from, .a = a, .waves = waves };

	waves->n_collectives = 0;
	waves->collectives = rpc_arena_array(a, NCCL_LAUNCHES_MAX, sizeof(*waves->collectives));
	waves->collectives_us = clock_wall_us();
	for (size_t i = 0; waves->collectives && i < waves->n_waves; i++) {
		const struct wave *w = &waves->waves[i];

		/* Neighbours are mostly of the same dispatch. */
		if ((i && is_of(w, w - 1)) || !from->is_kernel(from->ctx, w) || is_known(waves, w))
			continue;
		if (waves->n_collectives == NCCL_LAUNCHES_MAX)
			return;
		r.wave = w;
		waves->collectives[waves->n_collectives] = (struct target_collective){ .wave = (uint32_t)i };
		read_launch(&r, &waves->collectives[waves->n_collectives++]);
	}
}
