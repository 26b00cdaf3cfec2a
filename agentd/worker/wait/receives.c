/* SPDX-License-Identifier: MIT */
/*
 * From which ranks a collective operation waits for data.  A connection that data comes by has a
 * count of what has come, and kernels note in it what they have taken when they end: a kernel that is
 * still in the function that receives, and of whose connection both are the same, waits for the other
 * rank.  All of it is what the process wrote.
 */
#include <endian.h>
#include <stdlib.h>

#include "agentd/worker/snapshot/hash.h"
#include "agentd/worker/wait/look.h"
#include "base/clock.h"
#include "waits/collective/rccl.h"

#define NO_LAYOUT WAITS_RCCL_LAYOUTS

struct receives {
	struct look *look;
	const struct waits_rccl_launch *launch;
	const struct waits_rccl_comm *comm;
	unsigned int layout;
	struct look_awaits *ret;
};

static bool read_u32(struct look *l, uint64_t address, uint32_t *ret)
{
	if (!look_read(l, address, ret, sizeof(*ret)))
		return false;
	*ret = le32toh(*ret);
	return true;
}

static bool read_u64(struct look *l, uint64_t address, uint64_t *ret)
{
	if (!look_read(l, address, ret, sizeof(*ret)))
		return false;
	*ret = le64toh(*ret);
	return true;
}

/* Read a channel, which has to have the ring that it says it has. */
static bool read_channel(struct receives *r, unsigned int layout, uint32_t channel, struct waits_rccl_channel *ret)
{
	uint8_t bytes[WAITS_RCCL_CHANNEL];
	uint32_t first, second, last, ranks = r->comm->ranks;

	return look_read(r->look, waits_rccl_channel_at(layout, r->launch->comm, channel), bytes, sizeof(bytes)) &&
	       waits_rccl_channel_read(bytes, sizeof(bytes), ranks, ret) == 0 &&
	       read_u32(r->look, ret->order, &first) && read_u32(r->look, ret->order + 4 * (1 % ranks), &second) &&
	       read_u32(r->look, ret->order + 4 * (uint64_t)(ranks - 1), &last) &&
	       waits_rccl_is_order(r->comm, ret, first, second, last);
}

/* Which release it is, the second channel says: it is where only one of them has it. */
static unsigned int find_layout(struct receives *r)
{
	unsigned int found = NO_LAYOUT;
	struct waits_rccl_channel channel;

	for (unsigned int i = 0; i < WAITS_RCCL_LAYOUTS; i++)
		if (read_channel(r, i, 1, &channel)) {
			if (found != NO_LAYOUT)
				return NO_LAYOUT;
			found = i;
		}
	return found;
}

static bool read_connection(struct receives *r, const struct waits_rccl_channel *channel,
			    const struct waits_rccl_receive *receive, struct look_awaited *ret)
{
	uint8_t bytes[WAITS_RCCL_CONNECTION];
	struct waits_rccl_connection c;
	bool is_pointer;
	uint64_t peer = waits_rccl_peer_at(r->layout, channel, receive->from, &is_pointer);

	if (is_pointer && !read_u64(r->look, peer, &peer))
		return false;
	if (!look_read(r->look, waits_rccl_connection_at(peer, receive->connection), bytes, sizeof(bytes)) ||
	    waits_rccl_connection_read(bytes, sizeof(bytes), &c) < 0 || !read_u64(r->look, c.arrived, &ret->arrived))
		return false;
	ret->from = receive->from;
	ret->connection = receive->connection;
	ret->taken = c.taken;
	ret->word = c.arrived;
	return true;
}

/* Are all waves that were seen of those that receive in the function that does?  One that has received is elsewhere. */
static bool is_receiving(const struct look_workgroup *g, bool is_pair, uint32_t waves)
{
	const uint8_t all = (uint8_t)((1u << waves) - 1), in = is_pair ? g->pair : g->ring;

	return (g->seen & all) && !(g->seen & all & ~in);
}

static void look_at_workgroup(struct receives *r, uint32_t workgroup, uint32_t channel, const uint8_t *work,
			      const struct look_workgroup *g)
{
	const bool is_pair = g->pair != 0;
	struct waits_rccl_channel c;
	struct waits_rccl_receive receive;
	struct look_awaited *to = &r->ret->list[r->ret->n];

	if (!g->seen || (g->pair && g->ring) || !read_channel(r, r->layout, channel, &c) ||
	    waits_rccl_receive_read(r->layout, work, WAITS_RCCL_WORK, is_pair, r->comm, &c, &receive) < 0 ||
	    !is_receiving(g, is_pair, receive.waves) || !read_connection(r, &c, &receive, to))
		return;
	to->workgroup = workgroup;
	if (to->arrived <= to->taken)
		r->ret->n++;
}

static int compare_ranks(const void *x, const void *y)
{
	const uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

	return a < b ? -1 : a > b;
}

static void tell(struct look *l, const struct look_awaited *list, size_t n_list, struct rpc_collective *to)
{
	uint32_t *ranks = rpc_arena_array(l->arena, n_list, sizeof(*ranks));
	size_t n = 0;

	if (!ranks)
		return;
	for (size_t i = 0; i < n_list; i++)
		ranks[i] = (uint32_t)list[i].from;
	qsort(ranks, n_list, sizeof(*ranks), compare_ranks);
	for (size_t i = 0; i < n_list; i++)
		if (!i || ranks[i] != ranks[n - 1])
			ranks[n++] = ranks[i];
	to->waits_for = ranks;
	to->n_waits_for = n;
	to->has_waits_for = true;
}

/* Was the same so in the sample before?  Both ends of that time are told so that it is surely no longer. */
static void compare(struct look *l, const struct look_awaits *a, struct rpc_collective *to)
{
	const uint64_t name[] = { to->gpu_id, to->queue_id, to->dispatch, to->communicator, to->rank, 8 };
	const uint64_t now_ns = clock_now_ns(), now_us = clock_wall_us();
	uint64_t finish_ns;

	if (!look_is_same(l, hash_bytes(hash_secret(), name, sizeof(name)),
			  hash_bytes(hash_secret(), a->list, a->n * sizeof(*a->list))) ||
	    l->apart_ns < LOOK_STILL_NS)
		return;
	finish_ns = past_finish_ns(l->before);
	if (!finish_ns || finish_ns > now_ns)
		return;
	to->has_unchanged_since_us = to->has_seen_us = true;
	to->unchanged_since_us = now_us - (now_ns - finish_ns) / 1000;
	to->seen_us = a->wall_us;
}

void look_tell_awaited(struct look *l, const struct look_awaits *a, struct rpc_collective *to)
{
	if (!a->n)
		return;
	tell(l, a->list, a->n, to);
	compare(l, a, to);
}

void look_at_receives(struct look *l, const struct waits_rccl_launch *launch, const struct waits_rccl_comm *comm,
		      const uint8_t *work, const struct look_workgroup *groups, struct look_awaits *ret)
{
	struct receives r = { .look = l, .launch = launch, .comm = comm, .ret = ret };
	uint32_t workgroup = 0;
	bool any = false;

	/* Most kernels are in no function of which this is known: nothing is read of them. */
	for (uint32_t i = 0; i < launch->n; i++)
		any |= groups[i].pair || groups[i].ring;
	if (!any || comm->ranks < 2)
		return;
	ret->wall_us = clock_wall_us();
	ret->list = rpc_arena_array(l->arena, WAITS_RCCL_CHANNELS_MAX, sizeof(*ret->list));
	r.layout = find_layout(&r);
	if (r.layout == NO_LAYOUT || !ret->list)
		return;
	for (uint32_t channel = 0; channel < WAITS_RCCL_CHANNELS_MAX; channel++)
		if (launch->channels >> channel & 1) {
			look_at_workgroup(&r, workgroup, channel, work + (size_t)workgroup * WAITS_RCCL_WORK,
					  &groups[workgroup]);
			workgroup++;
		}
}
