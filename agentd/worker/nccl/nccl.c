/* SPDX-License-Identifier: MIT */
#include "agentd/worker/nccl/nccl.h"

#include <errno.h>
#include <stdlib.h>

#include "agentd/worker/nccl/reading.h"
#include "base/clock.h"
#include "base/reader.h"
#include "base/vec.h"
#include "symbols/image.h"
#include "waits/collective/nccl.h"

#define NO_LAYOUT WAITS_NCCL_LAYOUTS
/* Ranks of which the order in a ring is read by one call, although three of them are enough. */
#define ORDER_AT_ONCE 256u

/* ------------------------------------------------------------------ code of an image --------- */

static int add_function(void *arg, uint64_t address, uint64_t size, const char *raw)
{
	struct nccl_functions *f = arg;
	struct nccl_function found = { .start = address, .size = size };

	if (!address || waits_nccl_function_read(raw, &found.is) < 0)
		return 0;
	if (vec_reserve(&f->list, f->n, 1, &f->capacity, sizeof(*f->list)) < 0)
		return -ENOMEM;
	f->list[f->n++] = found;
	return 0;
}

int nccl_functions_find(const struct symbols_image *image, struct nccl_functions *ret)
{
	/* Of AMD's code nothing is read here. */
	return symbols_image_facts(image)->machine == SYMBOLS_MACHINE_CUDA ?
		       symbols_image_each_function(image, add_function, ret) :
		       0;
}

void nccl_functions_deinit(struct nccl_functions *f)
{
	free(f->list);
	*f = (struct nccl_functions){ 0 };
}

const struct nccl_function *nccl_functions_around(const struct nccl_functions *f, uint64_t pc)
{
	size_t low = 0, high = f->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (f->list[middle].start <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low && pc - f->list[low - 1].start < f->list[low - 1].size ? &f->list[low - 1] : NULL;
}

bool nccl_functions_has_kernel(const struct nccl_functions *f, uint64_t entry)
{
	const struct nccl_function *k = nccl_functions_around(f, entry);

	return k && k->is.is_kernel && k->start == entry;
}

size_t nccl_code_add(struct nccl_code *list, size_t n, uint32_t gpu_id, const struct nccl_functions *found)
{
	if (found->n)
		list[n++] = (struct nccl_code){ .gpu_id = gpu_id, .functions = found };
	return n;
}

static bool is_kernel(const struct nccl_source *from, const struct wave *w)
{
	for (size_t i = 0; w->has_dispatch && w->kernel_handle && i < from->n_code; i++)
		if (from->code[i].gpu_id == w->gpu_id &&
		    nccl_functions_has_kernel(from->code[i].functions, w->kernel_handle))
			return true;
	return false;
}

static const struct nccl_function *function_of(const struct nccl_source *from, const struct wave *w)
{
	const struct nccl_function *found = NULL;

	for (size_t i = 0; !found && i < from->n_code; i++)
		if (from->code[i].gpu_id == w->gpu_id)
			found = nccl_functions_around(from->code[i].functions, w->pc);
	return found;
}

/* ------------------------------------------------------------------ reading ------------------ */

/* The first two ranks of a ring and the last one, in one call where there are not very many between them. */
static bool read_order(struct nccl_reading *r, uint64_t address, uint32_t ranks, uint32_t ret[3])
{
	uint8_t bytes[4 * ORDER_AT_ONCE];
	struct reader at;
	const bool all = ranks <= ORDER_AT_ONCE;

	if (!nccl_read_bytes(r, address, bytes, all ? 4 * ranks : 8))
		return false;
	reader_init(&at, bytes, all ? 4 * (size_t)ranks : 8);
	ret[0] = reader_u32(&at);
	ret[1] = ranks == 1 ? ret[0] : reader_u32(&at);
	if (!all)
		return nccl_read_u32(r, address + 4 * (uint64_t)(ranks - 1), &ret[2]);
	reader_seek(&at, 4 * (size_t)(ranks - 1));
	ret[2] = reader_u32(&at);
	return true;
}

/* Read a channel, which has to have the ring that it says it has. */
static bool read_channel(struct nccl_reading *r, uint64_t address, const struct waits_rccl_comm *comm,
			 struct waits_rccl_channel *ret)
{
	uint8_t bytes[WAITS_RCCL_CHANNEL];
	uint32_t order[3];

	return nccl_read_bytes(r, address, bytes, sizeof(bytes)) &&
	       waits_rccl_channel_read(bytes, sizeof(bytes), comm->ranks, ret) == 0 &&
	       read_order(r, ret->order, comm->ranks, order) &&
	       waits_rccl_is_order(comm, ret, order[0], order[1], order[2]);
}

/*
 * Which layout it is.  Where the communicator itself leaves several, the second channel says it: it is where only one
 * of them has it.
 */
static unsigned int find_layout(struct nccl_reading *r, uint64_t address, const struct waits_rccl_comm *comm,
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

static void take_wave(const struct nccl_reading *r, const struct wave *w, struct nccl_block *b)
{
	const struct nccl_function *f = w->has_wave_in_group ? function_of(r->from, w) : NULL;

	if (w->has_wave_in_group && w->wave_in_group == 0)
		b->first = f;
	if (!b->is_seen)
		b->any = f;
	b->differs |= f != b->any;
	b->is_seen = true;
	b->wave = w;
	if (w->has_wave_in_group && w->wave_in_group < WAITS_NCCL_WARPS_MAX)
		b->in[w->wave_in_group] = f;
	b->has_other |= !f || w->wave_in_group >= WAITS_NCCL_WARPS_MAX;
}

/*
 * @param ret_there  A bit for each block that is there.
 * @return false: the time was over before all of their waves were looked at.
 */
static bool find_blocks(const struct nccl_reading *r, struct nccl_block *blocks, uint64_t *ret_there)
{
	bool late = false;

	*ret_there = 0;
	for (size_t i = 0; i < r->waves->n_waves; i++) {
		const struct wave *w = &r->waves->waves[i];

		if (!is_of(w, r->wave) || !w->has_workgroup || w->workgroup[0] >= WAITS_NCCL_CHANNELS_MAX ||
		    w->workgroup[1] || w->workgroup[2])
			continue;
		*ret_there |= UINT64_C(1) << w->workgroup[0];
		late = late || nccl_is_over(r);
		if (!late)
			take_wave(r, w, &blocks[w->workgroup[0]]);
	}
	return !late;
}

/*
 * The first warp has the lane that waits for data, and no other one goes on before it: of the others nothing has to be
 * known.  It may wait for room to send first, so that what is told is what has not come, and no more.  But one that
 * stands in the kernel itself may wait there for others, which are in a function.
 */
static const struct waits_nccl_function *receives_in(const struct nccl_block *b)
{
	if (!b->first || b->first->is.way != WAITS_NCCL_RING || (b->first->is.is_kernel && b->differs))
		return NULL;
	return &b->first->is;
}

/*
 * Has nothing come by the slots of a connection?  The step that is next has one of them.  Where it may have been empty,
 * a later one may have come by any.
 */
static bool read_slots(struct nccl_reading *r, enum waits_nccl_protocol protocol, bool has_empty_steps,
		       const uint8_t *connection, struct target_receive *to)
{
	const uint64_t at = waits_nccl_flag_at(connection, WAITS_NCCL_CONNECTION, protocol);
	const uint32_t bytes = waits_nccl_slot_bytes(r->layout, r->bytes, sizeof(r->bytes), protocol);
	uint8_t flag[WAITS_NCCL_FLAG];

	to->arrived = to->taken;
	for (uint32_t i = 0; at && bytes && i < (has_empty_steps ? WAITS_NCCL_SLOTS : 1); i++) {
		const uint32_t slot = (uint32_t)((to->taken + i) % WAITS_NCCL_SLOTS);
		enum waits_nccl_slot is;

		if (!nccl_read_once(r, at + (uint64_t)slot * bytes, flag, sizeof(flag)))
			return false;
		is = waits_nccl_slot_read(flag, protocol, slot, to->taken);
		if (is == WAITS_NCCL_SLOT_WRONG)
			return false;
		to->arrived += is == WAITS_NCCL_SLOT_CAME;
		if (to->arrived > to->taken)
			break;
	}
	return at && bytes;
}

bool nccl_read_connection(struct nccl_reading *r, uint64_t peers, uint32_t from, uint32_t i,
			  enum waits_nccl_protocol protocol, bool has_empty_steps, struct target_receive *ret)
{
	uint8_t bytes[WAITS_NCCL_CONNECTION];
	struct waits_rccl_connection c;
	uint64_t peer;

	if (!nccl_read_u64(r, peers + 8 * (uint64_t)from, &peer) ||
	    !nccl_read_bytes(r, peer + waits_nccl_connection_of(r->layout, i), bytes, sizeof(bytes)) ||
	    waits_nccl_connection_read(r->layout, bytes, sizeof(bytes), &c) < 0)
		return false;
	ret->from = from;
	ret->connection = i;
	ret->taken = c.taken;
	ret->word = protocol == WAITS_NCCL_SIMPLE ? c.arrived : 0;
	return protocol == WAITS_NCCL_SIMPLE ? nccl_read_u64(r, c.arrived, &ret->arrived) :
					       read_slots(r, protocol, has_empty_steps, bytes, ret);
}

/* @return whether the connection by which a channel receives along its ring was read. */
static bool read_receive(struct nccl_reading *r, const struct waits_nccl_function *f, uint64_t address,
			 struct target_receive *ret)
{
	struct waits_rccl_channel channel;

	return read_channel(r, address, &r->comm, &channel) && channel.previous != r->comm.rank &&
	       nccl_read_connection(r, channel.peers, channel.previous, 0, f->protocol, f->has_empty_steps, ret);
}

struct target_receive *nccl_next_receive(struct nccl_reading *r, struct target_collective *to, uint32_t block)
{
	if (to->n_receives == NCCL_RECEIVES_MAX) {
		r->cut = true;
		return NULL;
	}
	to->receives[to->n_receives].block = block;
	return &to->receives[to->n_receives];
}

static void read_block(struct nccl_reading *r, const struct waits_nccl_launch *launch,
		       const struct waits_nccl_function *f, uint32_t block, struct target_collective *to)
{
	const uint64_t bit = UINT64_C(1) << block;
	const uint32_t at = waits_nccl_channel_at(r->layout, waits_nccl_channel_of(launch->channels, block));
	struct target_receive *receive;

	if (f->protocol != WAITS_NCCL_SIMPLE && launch->has_empty_channels) {
		to->empty |= bit;
		return;
	}
	r->cut = false;
	receive = nccl_next_receive(r, to, block);
	if (receive && at && read_receive(r, f, launch->comm + at, receive))
		to->n_receives += receive->arrived <= receive->taken;
	else if (r->cut)
		to->left |= bit;
	else
		to->unread |= bit;
}

static void read_receives(struct nccl_reading *r, const struct waits_nccl_launch *launch, struct target_collective *to)
{
	struct nccl_block blocks[WAITS_NCCL_CHANNELS_MAX] = { 0 };
	uint64_t there;

	to->receives = rpc_arena_array(r->a, NCCL_RECEIVES_MAX, sizeof(*to->receives));
	if (!to->receives || r->comm.ranks < 2)
		return;
	if (!find_blocks(r, blocks, &there)) {
		to->left = there;
		return;
	}
	for (uint32_t i = 0; i < WAITS_NCCL_CHANNELS_MAX; i++) {
		const struct waits_nccl_function *f = receives_in(&blocks[i]);
		const struct nccl_function *work = f ? NULL : nccl_work_of(&blocks[i]);

		if (f)
			read_block(r, launch, f, i, to);
		else if (work)
			nccl_read_work(r, launch, work, &blocks[i], i, to);
	}
}

/* @return whether what the kernel was given was copied. */
static bool find_arguments(const struct nccl_reading *r, struct waits_nccl_launch *ret)
{
	for (size_t i = 0; i < r->waves->n_arguments; i++) {
		const struct target_arguments *k = &r->waves->arguments[i];

		if (k->gpu_id == r->wave->gpu_id && k->dispatch == r->wave->dispatch)
			return k->bytes && waits_nccl_launch_read(k->bytes, k->size, ret) == 0;
	}
	return false;
}

static void read_launch(struct nccl_reading *r, struct target_collective *to)
{
	struct waits_nccl_launch launch;
	struct waits_rccl_channel first = { 0 };
	uint32_t layouts;

	r->cut = false;
	if (!find_arguments(r, &launch) || !nccl_read_bytes(r, launch.comm, r->bytes, sizeof(r->bytes)))
		return;
	to->communicator = launch.comm;
	r->layout = waits_nccl_comm_read(r->bytes, sizeof(r->bytes), launch.comm, &r->comm, &layouts) < 0 ?
			    NO_LAYOUT :
			    find_layout(r, launch.comm, &r->comm, layouts);
	to->is_other = r->layout == NO_LAYOUT ||
		       !read_channel(r, launch.comm + waits_nccl_channel_at(r->layout, 0), &r->comm, &first);
	/* What was not tried says nothing of the layout. */
	if (r->cut) {
		to->is_other = false;
		to->communicator = 0;
		return;
	}
	if (to->is_other)
		return;
	r->at = launch.comm;
	r->order = first.order;
	r->is_aged = r->has_age = false;
	to->is_read = true;
	to->rank = r->comm.rank;
	to->ranks = r->comm.ranks;
	to->previous = first.previous;
	to->next = first.next;
	read_receives(r, &launch, to);
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
	struct nccl_reading r = { .from = from, .a = a, .waves = waves };

	waves->n_collectives = 0;
	waves->collectives = rpc_arena_array(a, NCCL_LAUNCHES_MAX, sizeof(*waves->collectives));
	waves->collectives_us = clock_wall_us();
	for (size_t i = 0; waves->collectives && i < waves->n_waves; i++) {
		const struct wave *w = &waves->waves[i];

		/* Neighbours are mostly of the same dispatch. */
		if (i && is_of(w, w - 1))
			continue;
		/* What is not listed was not read. */
		if (nccl_is_over(&r))
			break;
		if (!is_kernel(from, w) || is_known(waves, w))
			continue;
		if (waves->n_collectives == NCCL_LAUNCHES_MAX)
			break;
		nccl_read_by(&r, w);
		waves->collectives[waves->n_collectives] = (struct target_collective){ .wave = (uint32_t)i };
		read_launch(&r, &waves->collectives[waves->n_collectives++]);
	}
	nccl_reading_deinit(&r);
}
