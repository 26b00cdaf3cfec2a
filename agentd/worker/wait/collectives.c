/* SPDX-License-Identifier: MIT */
/*
 * Which collective operation of which communicator the waves of a dispatch execute.  The arguments
 * of its kernel lead to both: they are what the process wrote, are read while the queues run, and
 * are believed only where they fit together.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "agentd/worker/wait/look.h"
#include "waits/collective/collective.h"
#include "waits/collective/nccl.h"
#include "waits/packet.h"
#include "waits/collective/rccl.h"

/* Most dispatches that are looked at: a process has few communicators, and each executes one at a
 * time. */
#define LAUNCHES_MAX 16u

static const char OTHER_RCCL[] = "they execute a collective operation of RCCL whose communicator is not laid out as known";
static const char OTHER_NCCL[] = "they execute a collective operation of NCCL whose communicator is not laid out as known";

/* The words of a name; "": it does not say this one, or no name was seen. */
struct words {
	char operation[32], algorithm[16], protocol[16], reduction[16], type[24];
	bool seen;
	bool differs; /* There are names of several operations. */
};

/* A dispatch of a kernel of RCCL, or of NCCL. */
struct launch {
	const struct wave *first;
	uint64_t arguments, dispatch; /* 0, and any, where it is not known. */
	uint32_t waves;
	uint32_t site;      /* Of the wave that was looked at last. */
	struct words functions; /* By the names of device functions. */
	struct words inside;    /* NVIDIA: of the function inside the kernel, where waves stand in the kernel itself. */
	bool is_elsewhere;  /* Some waves are in code that no name tells. */
	bool is_pair, is_ring; /* How the function of that site receives. */
	bool no_place;	       /* RCCL: of a wave it is not known which of its workgroup it is. */
	struct look_workgroup groups[WAITS_NCCL_CHANNELS_MAX];
};

struct launches {
	struct look *look;
	struct launch list[LAUNCHES_MAX];
	size_t n;
	uint32_t other_site; /* Of the wave that was last found to be in none. */
	bool cut;
};

static bool is_of(const struct wave *a, const struct wave *b)
{
	return a->gpu_id == b->gpu_id && a->queue_id == b->queue_id && a->has_dispatch == b->has_dispatch &&
	       (!a->has_dispatch || a->dispatch == b->dispatch);
}

/* Which operation the kernel or device function around a wave is of.  @param ret  Points into the name. */
static bool find_code(struct look *l, const struct wave *w, struct waits_collective *ret)
{
	struct code_symbol f;

	return code_function(&l->code, w->pc, &f) == 0 && waits_collective_read(f.raw, ret) == 0;
}

static bool find_function(struct look *l, const struct wave *w, struct waits_collective *ret)
{
	return find_code(l, w, ret) && ret->is_function;
}

/* A wave that does not say which packet it is of has no kernel either, where it is in a device function. */
static bool is_candidate(struct launches *s, const struct wave *w)
{
	const struct location_kernel *k = &s->look->places.kernels[w->kernel];
	const bool is_nvidia = look_is_nvidia(s->look);
	struct waits_collective c;
	bool is = is_nvidia ? waits_nccl_is_kernel(k->raw) : waits_rccl_is_kernel(k->raw);

	if (!is && !is_nvidia && !w->has_dispatch && !k->raw && w->site != s->other_site)
		is = find_function(s->look, w, &c);
	if (!is)
		s->other_site = w->site;
	return is;
}

static struct launch *launch_of(struct launches *s, const struct wave *w)
{
	for (size_t i = 0; i < s->n; i++)
		if (is_of(s->list[i].first, w))
			return &s->list[i];
	if (!is_candidate(s, w))
		return NULL;
	if (s->n == LAUNCHES_MAX) {
		s->cut = true;
		return NULL;
	}
	s->list[s->n] = (struct launch){ .first = w, .site = UINT32_MAX };
	return &s->list[s->n++];
}

/* Take a word of a name.  @return whether it is the one that was taken before, or the first. */
static bool take_word(char *to, size_t size, const struct waits_word_of_name *word, bool is_first)
{
	const size_t n = word->text && word->size < size ? word->size : 0;
	const bool is_same = is_first || (strlen(to) == n && (!n || !memcmp(to, word->text, n)));

	if (n && is_same)
		memcpy(to, word->text, n);
	to[is_same ? n : 0] = '\0';
	return is_same;
}

/* What functions of one operation do not have in common is not told. */
static void take_name(struct words *to, const struct waits_collective *c)
{
	const bool is_first = !to->seen;

	to->seen = true;
	if (!take_word(to->operation, sizeof(to->operation), &c->operation, is_first))
		to->differs = true;
	take_word(to->algorithm, sizeof(to->algorithm), &c->algorithm, is_first);
	take_word(to->protocol, sizeof(to->protocol), &c->protocol, is_first);
	take_word(to->reduction, sizeof(to->reduction), &c->reduction, is_first);
	take_word(to->type, sizeof(to->type), &c->type, is_first);
}

/*
 * The kernel is named after one operation of many: what it does is said by the device function around the wave.  A
 * kernel of NCCL's has the function that it is named after inside it, and waits in itself for waves that are in others.
 */
static void take_operation(struct launches *s, struct launch *to, const struct wave *w)
{
	struct waits_collective c;

	if (w->site == to->site)
		return;
	to->site = w->site;
	to->is_pair = to->is_ring = false;
	if (!find_code(s->look, w, &c)) {
		to->is_elsewhere = true;
		return;
	}
	if (!c.is_function) {
		take_name(&to->inside, &c);
		return;
	}
	to->is_pair = waits_rccl_is_pair(&c);
	to->is_ring = waits_rccl_is_ring(&c);
	take_name(&to->functions, &c);
}

/* @return the words of the operation; NULL: it is not known, or there are several. */
static const struct words *words_of(struct look *l, const struct launch *from)
{
	if (from->functions.seen)
		return from->functions.differs ? NULL : &from->functions;
	return look_is_nvidia(l) && !from->is_elsewhere && !from->inside.differs && from->inside.operation[0] ?
		       &from->inside : NULL;
}

static const char *copy_word(struct look *l, const char *word)
{
	return word[0] ? rpc_arena_strdup(l->arena, word) : NULL;
}

/*
 * Names of the old form have all words: RING_SIMPLE_Sum_int8_t stands there as well for sends and receives, which have
 * none of that, and Sum_int8_t for operations that only move data.
 */
static void tell_operation(struct look *l, const struct words *w, struct rpc_collective *to)
{
	to->operation = copy_word(l, w->operation);
	if (!strcmp(w->operation, "SendRecv"))
		return;
	to->algorithm = copy_word(l, w->algorithm);
	to->protocol = copy_word(l, w->protocol);
	if (!strstr(w->operation, "Reduce"))
		return;
	to->reduction = copy_word(l, w->reduction);
	to->type = copy_word(l, w->type);
}

/* Where a wave is in its workgroup; the function around it was just looked up. */
static void take_place(const struct launches *s, struct launch *to, const struct wave *w)
{
	const uint32_t channels = look_is_nvidia(s->look) ? WAITS_NCCL_CHANNELS_MAX : WAITS_RCCL_CHANNELS_MAX;
	const uint8_t bit = (uint8_t)(w->wave_in_group < 8 ? 1u << w->wave_in_group : 0);
	struct look_workgroup *g;

	if (!w->has_workgroup || !w->has_wave_in_group || !bit || w->workgroup[0] >= channels ||
	    w->workgroup[1] || w->workgroup[2]) {
		to->no_place = true;
		return;
	}
	g = &to->groups[w->workgroup[0]];
	g->seen |= bit;
	g->pair |= to->is_pair ? bit : 0;
	g->ring |= to->is_ring ? bit : 0;
}

/* Read a packet of a queue, which is marked as invalid when its device has taken it. */
static bool read_packet(struct look *l, const struct rpc_queue *q, uint64_t id, struct symbols_aql_packet *ret)
{
	const uint64_t slots = q->ring_bytes / SYMBOLS_AQL_PACKET_SIZE;
	uint8_t bytes[SYMBOLS_AQL_PACKET_SIZE];

	if (!slots || !look_read(l, q->ring_base + id % slots * SYMBOLS_AQL_PACKET_SIZE, bytes, sizeof(bytes)))
		return false;
	bytes[0] = bytes[0] == SYMBOLS_AQL_INVALID ? SYMBOLS_AQL_KERNEL_DISPATCH : bytes[0];
	return symbols_aql_decode(bytes, sizeof(bytes), ret) == 0;
}

static bool read_counter(struct look *l, uint64_t address, uint64_t *ret)
{
	if (!address || !look_read(l, address, ret, sizeof(*ret)))
		return false;
	*ret = le64toh(*ret);
	return true;
}

/* The oldest packet that is not done, if it starts a kernel of RCCL and the next one waits for its end. */
static uint64_t oldest_arguments(struct look *l, const struct rpc_queue *q, uint64_t *ret_dispatch)
{
	struct code_symbol kernel;
	struct symbols_aql_packet first, next;
	uint64_t read, write, again;

	if (!read_counter(l, q->read_pointer, &read) || !read_counter(l, q->write_pointer, &write) || write <= read ||
	    !read_packet(l, q, read, &first) || code_kernel(&l->code, first.kernel_object, &kernel) < 0 ||
	    !waits_rccl_is_kernel(kernel.raw))
		return 0;
	if (write > read + 1 && (!read_packet(l, q, read + 1, &next) || !next.barrier))
		return 0;
	*ret_dispatch = read;
	return read_counter(l, q->read_pointer, &again) && again == read ? first.kernarg_address : 0;
}

/* Where the runtime has not asked for it, waves do not say which packet they are of. */
static void find_arguments(struct look *l, struct launch *to)
{
	const struct wave *w = to->first;

	to->arguments = w->has_dispatch ? w->arguments : 0;
	to->dispatch = w->dispatch;
	for (size_t i = 0; !w->has_dispatch && i < l->seen->n_queues; i++) {
		const struct rpc_queue *q = &l->seen->queues[i];

		if (q->queue_id == w->queue_id && q->gpu_id == w->gpu_id && q->type == RPC_QUEUE_TYPE_COMPUTE_AQL &&
		    q->has_ring_base && q->has_read_pointer && q->has_write_pointer)
			to->arguments = oldest_arguments(l, q, &to->dispatch);
	}
}

/* @return the number of the operation, if all workgroups execute the same one. */
static int read_number(const struct waits_rccl_launch *launch, const uint8_t *work, uint64_t *ret)
{
	uint64_t number = 0;
	int r;

	for (uint32_t i = 0; i < launch->n; i++) {
		r = waits_rccl_work_read(work + (size_t)i * WAITS_RCCL_WORK, WAITS_RCCL_WORK, &number);
		if (r == 0 && i && number != *ret)
			r = -ENOENT;
		if (r < 0)
			return r;
		*ret = number;
	}
	return 0;
}

/* @return 0, -EINVAL (another layout), -EIO. */
static int read_launch(struct look *l, const struct launch *from, struct rpc_collective *to, struct look_awaits *ret)
{
	uint8_t bytes[WAITS_RCCL_COMM], work[WAITS_RCCL_CHANNELS_MAX * WAITS_RCCL_WORK];
	struct waits_rccl_launch launch;
	struct waits_rccl_comm comm;
	int r;

	if (!look_read(l, from->arguments, bytes, WAITS_RCCL_ARGUMENTS))
		return -EIO;
	if (waits_rccl_launch_read(bytes, WAITS_RCCL_ARGUMENTS, &launch) < 0)
		return -EINVAL;
	if (!look_read(l, launch.comm, bytes, sizeof(bytes)))
		return -EIO;
	if (waits_rccl_comm_read(bytes, sizeof(bytes), launch.comm, &comm) < 0)
		return -EINVAL;
	if (!look_read(l, launch.work, work, (size_t)launch.n * WAITS_RCCL_WORK))
		return -EIO;
	r = read_number(&launch, work, &to->number);
	to->has_number = r == 0;
	to->communicator = launch.comm;
	to->rank = comm.rank;
	to->ranks = comm.ranks;
	to->previous = comm.previous;
	to->next = comm.next;
	if (r < 0 && r != -ENOENT)
		return r;
	if (!from->no_place)
		look_at_receives(l, &launch, &comm, work, from->groups, ret);
	return 0;
}

static int read_any(struct look *l, struct launch *from, struct rpc_collective *to, struct look_awaits *ret)
{
	if (look_is_nvidia(l)) {
		to->dispatch = from->first->dispatch;
		return look_at_nccl(l, from->first, to, ret);
	}
	find_arguments(l, from);
	to->dispatch = from->dispatch;
	return from->arguments ? read_launch(l, from, to, ret) : -EIO;
}

static void add(struct launches *s, struct launch *from, struct rpc_why_get_result *ret)
{
	struct look *l = s->look;
	struct rpc_collective c = { .gpu_id = from->first->gpu_id,
				    .queue_id = from->first->queue_id,
				    .waves = from->waves,
				    .confidence = RPC_CONFIDENCE_INFERRED };
	struct look_awaits awaits = { 0 };
	const struct words *words;
	int r = read_any(l, from, &c, &awaits);

	if (r == -EINVAL)
		look_undecoded(l, look_is_nvidia(l) ? OTHER_NCCL : OTHER_RCCL, from->waves);
	if (r == -EIO)
		look_missing(l, "collective operations: what their kernels were given is not readable");
	if (r < 0)
		return;
	words = words_of(l, from);
	if (words)
		tell_operation(l, words, &c);
	look_tell_awaited(l, &awaits, &c);
	look_add_ranks(l, from->first, &awaits, &c);
	ret->collectives[ret->n_collectives++] = c;
}

/* Mark all waves of such kernels, those that are not told as well. */
static void mark(struct launches *s)
{
	const struct target_waves *t = &s->look->seen->waves;

	for (size_t i = 0; i < t->n_waves; i++) {
		const struct wave *w = &t->waves[i];
		size_t k = 0;

		while (k < s->n && !is_of(s->list[k].first, w))
			k++;
		s->look->is_collective[i] = k < s->n || (s->cut && is_candidate(s, w));
	}
}

void look_at_collectives(struct look *l, struct rpc_why_get_result *ret)
{
	const struct target_waves *t = &l->seen->waves;
	struct launches s = { .look = l, .other_site = UINT32_MAX };

	for (size_t i = 0; i < t->n_waves; i++) {
		const struct wave *w = &t->waves[i];
		struct launch *to = launch_of(&s, w);

		if (!to)
			continue;
		to->waves++;
		take_operation(&s, to, w);
		take_place(&s, to, w);
	}
	mark(&s);
	if (s.cut)
		look_missing(l, "collective operations: those of more than 16 dispatches");
	ret->collectives = rpc_arena_array(l->arena, s.n, sizeof(*ret->collectives));
	for (size_t i = 0; ret->collectives && i < s.n; i++)
		add(&s, &s.list[i], ret);
	ret->has_collectives = ret->n_collectives > 0;
}
