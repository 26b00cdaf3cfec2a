/* SPDX-License-Identifier: MIT */
/*
 * Queues whose next packet waits, and who gives what it waits for.  Packets and signals are read while the queues
 * run: what was read counts as of one moment when the read counter is the same before and after.
 */
#include <endian.h>
#include <string.h>

#include "agentd/worker/snapshot/hash.h"
#include "agentd/worker/wait/look.h"
#include "waits/packet.h"

/* Most queues, and packets of each, that are looked at. */
#define QUEUES_MAX  128u
#define PACKETS_MAX 256u
#define TRIES	    3

/* A queue as it was in one moment. */
struct look_line {
	const struct rpc_queue *queue;
	uint64_t read;
	uint32_t n; /* Packets that are not done, as many as are looked at. */
	bool whole; /* Those are all. */
	struct symbols_aql_packet *packets;
	bool *runs;	/* Waves of the packet are there. */
	uint32_t front; /* The first one that was not started; n: all were. */
	bool is_blank;	/* Nothing but the header has been written into the first one. */
	uint32_t *nodes; /* Of dispatches that run; LOOK_NONE: none yet. */
	struct waits_signal signals[SYMBOLS_AQL_DEPENDENCIES]; /* What that one waits for. */
	uint32_t node; /* What keeps the queue; LOOK_NONE: not known yet. */
	uint32_t behind; /* Threads that wait for packets which are not looked at. */
};

struct look_lines {
	struct look *look;
	struct look_line *list;
	size_t n;
	bool all; /* No packet was left out. */
	uint32_t unreadable; /* Threads of whose packets it is not known whether they are done. */
};

/* ------------------------------------------------------------------ reading ------------------ */

static bool get(const struct look_lines *s, uint64_t address, void *buf, size_t size)
{
	return address && look_read(s->look, address, buf, size);
}

static bool get_u64(const struct look_lines *s, uint64_t address, uint64_t *ret)
{
	if (!get(s, address, ret, sizeof(*ret)))
		return false;
	*ret = le64toh(*ret);
	return true;
}

static bool is_zero(const uint8_t *bytes, size_t n)
{
	while (n && !bytes[n - 1])
		n--;
	return !n;
}

/*
 * A packet that the device has taken is marked as invalid; its waves show that it was a dispatch.  Where it has none,
 * because none could start, or they are not known, only its content tells it from one that was not written.
 */
static void decode(struct look_line *q, uint8_t *bytes)
{
	q->is_blank = q->n && is_zero(bytes + 4, SYMBOLS_AQL_PACKET_SIZE - 4);
	for (uint32_t i = 0; i < q->n; i++) {
		uint8_t *p = bytes + (size_t)i * SYMBOLS_AQL_PACKET_SIZE;

		if (q->runs[i])
			p[0] = SYMBOLS_AQL_KERNEL_DISPATCH;
		(void)symbols_aql_decode(p, SYMBOLS_AQL_PACKET_SIZE, &q->packets[i]);
	}
	q->front = 0;
	while (q->front < q->n && q->runs[q->front])
		q->front++;
}

static void find_waves(const struct look_lines *s, struct look_line *q)
{
	const struct target_waves *t = &s->look->seen->waves;

	for (size_t i = 0; i < t->n_waves; i++) {
		const struct wave *w = &t->waves[i];

		if (w->queue_id == q->queue->queue_id && w->has_dispatch && w->dispatch - q->read < q->n)
			q->runs[w->dispatch - q->read] = true;
	}
}

static void read_signals(const struct look_lines *s, struct look_line *q)
{
	const struct symbols_aql_packet *p = &q->packets[q->front];

	memset(q->signals, 0, sizeof(q->signals));
	for (unsigned i = 0; q->front < q->n && i < SYMBOLS_AQL_DEPENDENCIES; i++) {
		uint64_t value = 0;

		q->signals[i].known = p->dependencies[i] &&
				      get_u64(s, p->dependencies[i] + WAITS_SIGNAL_VALUE, &value);
		q->signals[i].value = (int64_t)value;
	}
}

/* @return 1: read; 0: it has moved meanwhile; -1: it cannot be read. */
static int read_once(const struct look_lines *s, struct look_line *q)
{
	struct rpc_arena *a = s->look->arena;
	uint64_t slots = q->queue->ring_bytes / SYMBOLS_AQL_PACKET_SIZE, write, again, left;
	uint8_t *bytes;

	if (!slots || !get_u64(s, q->queue->read_pointer, &q->read) || !get_u64(s, q->queue->write_pointer, &write))
		return -1;
	left = write > q->read ? write - q->read : 0;
	left = left < slots ? left : slots;
	q->n = left < PACKETS_MAX ? (uint32_t)left : PACKETS_MAX;
	q->whole = left == q->n;
	bytes = rpc_arena_alloc(a, (size_t)q->n * SYMBOLS_AQL_PACKET_SIZE + 1);
	q->packets = rpc_arena_array(a, q->n + 1, sizeof(*q->packets));
	q->runs = rpc_arena_array(a, q->n + 1, sizeof(*q->runs));
	q->nodes = rpc_arena_array(a, q->n + 1, sizeof(*q->nodes));
	if (!bytes || !q->packets || !q->runs || !q->nodes)
		return -1;
	memset(q->nodes, 0xff, (q->n + 1) * sizeof(*q->nodes)); /* LOOK_NONE */
	for (uint32_t i = 0, run; i < q->n; i += run) {
		uint64_t at = (q->read + i) % slots;

		run = slots - at < q->n - i ? (uint32_t)(slots - at) : q->n - i;
		if (!get(s, q->queue->ring_base + at * SYMBOLS_AQL_PACKET_SIZE,
			 bytes + (size_t)i * SYMBOLS_AQL_PACKET_SIZE, (size_t)run * SYMBOLS_AQL_PACKET_SIZE))
			return -1;
	}
	find_waves(s, q);
	decode(q, bytes);
	read_signals(s, q);
	return get_u64(s, q->queue->read_pointer, &again) ? again == q->read : -1;
}

static void read_line(struct look_lines *s, const struct rpc_queue *queue)
{
	struct look_line q = { .queue = queue, .node = LOOK_NONE };
	int r = 0;

	for (int i = 0; i < TRIES && r == 0; i++)
		r = read_once(s, &q);
	if (r < 0)
		look_missing(s->look, rpc_arena_printf(s->look->arena, "queue %u: its packets are not readable",
						       queue->queue_id));
	if (r <= 0)
		s->all = false;
	else
		s->list[s->n++] = q;
	/* Who gives a signal may be among the rest, which is said where nobody else is found (word_node()). */
	s->all = s->all && q.whole;
}

/*
 * Each queue was read at another time.  Those that are still the same were so together, between the last read of the
 * first pass and the first one of this.
 */
static void keep_those_that_stand_still(struct look_lines *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->n; i++) {
		struct look_line q = s->list[i];
		struct waits_signal before[SYMBOLS_AQL_DEPENDENCIES];
		uint64_t read;

		memcpy(before, q.signals, sizeof(before));
		read_signals(s, &q);
		if (get_u64(s, q.queue->read_pointer, &read) && read == q.read &&
		    !memcmp(before, q.signals, sizeof(before)))
			s->list[kept++] = q;
		else
			s->all = false;
	}
	s->n = kept;
}

/* ------------------------------------------------------------------ who gives it ------------- */

static uint32_t keeper(struct look_lines *s, struct look_line *q);

static const char *kernel_of(struct look_lines *s, const struct symbols_aql_packet *p)
{
	struct code_symbol symbol;

	if (p->type != SYMBOLS_AQL_KERNEL_DISPATCH || code_kernel(&s->look->code, p->kernel_object, &symbol) < 0)
		return NULL;
	return symbol.name;
}

static const char *packet_text(struct look_lines *s, const struct look_line *q, uint32_t i)
{
	static const char *const names[] = {
		[SYMBOLS_AQL_VENDOR_SPECIFIC] = "a vendor's packet", [SYMBOLS_AQL_INVALID] = "not written",
		[SYMBOLS_AQL_KERNEL_DISPATCH] = "a kernel",	     [SYMBOLS_AQL_BARRIER_AND] = "a barrier-AND",
		[SYMBOLS_AQL_AGENT_DISPATCH] = "an agent dispatch",  [SYMBOLS_AQL_BARRIER_OR] = "a barrier-OR",
		[SYMBOLS_AQL_BARRIER_VALUE] = "a barrier-value",     [SYMBOLS_AQL_TYPE_COUNT] = "of unknown type",
	};
	const char *kernel = kernel_of(s, &q->packets[i]);

	return rpc_arena_printf(s->look->arena, "packet %llu of queue %u (%s)", (unsigned long long)(q->read + i),
				q->queue->queue_id, kernel ? kernel : names[q->packets[i].type]);
}

/* The waves of a dispatch: it is done when all of them are. */
static uint32_t add_dispatch(struct look_lines *s, const struct look_line *q, uint32_t i)
{
	struct look *l = s->look;
	const struct target_waves *t = &l->seen->waves;
	uint64_t dispatch = q->read + i;
	uint32_t node = look_add_node(l, RPC_WAIT_NODE_KIND_DISPATCH, WAITS_END_RUNS,
				      rpc_arena_printf(l->arena, "%s, which runs", packet_text(s, q, i)));
	bool stopped = false;

	for (size_t k = 0; k < l->n_waits; k++) {
		const struct rpc_wait *w = &l->waits[k].rpc;

		if (w->kind != RPC_WAIT_KIND_QUEUE && w->queue_id == q->queue->queue_id && w->has_dispatch &&
		    w->dispatch == dispatch)
			look_add_edge(l, node, l->waits[k].node, WAITS_PROVEN, false);
	}
	for (size_t k = 0; k < t->n_waves && !stopped; k++) {
		const struct wave *w = &t->waves[k];
		struct rpc_wait_at at;

		stopped = w->queue_id == q->queue->queue_id && w->has_dispatch && w->dispatch == dispatch &&
			  w->state != RPC_WAVE_STATE_RUNNING;
		if (!stopped)
			continue;
		at = look_at(l, w);
		look_add_edge(l, node, look_add_wave(l, w, &at), WAITS_PROVEN, false);
	}
	return node;
}

static uint32_t dispatch_node(struct look_lines *s, struct look_line *q, uint32_t i)
{
	if (q->nodes[i] == LOOK_NONE)
		q->nodes[i] = add_dispatch(s, q, i);
	return q->nodes[i];
}

static bool is_barrier(const struct symbols_aql_packet *p)
{
	return p->type == SYMBOLS_AQL_BARRIER_AND || p->type == SYMBOLS_AQL_BARRIER_OR ||
	       p->type == SYMBOLS_AQL_BARRIER_VALUE;
}

/* A packet whose completion gives a signal. */
static void add_producer(struct look_lines *s, uint32_t word, struct look_line *q, uint32_t i, enum waits_confidence c)
{
	struct look *l = s->look;
	uint32_t node, behind;

	if (q->runs[i]) {
		look_add_edge(l, word, dispatch_node(s, q, i), c, false);
		return;
	}
	if (i == q->front) {
		look_add_edge(l, word, keeper(s, q), c, false);
		return;
	}
	node = look_add_node(l, RPC_WAIT_NODE_KIND_PACKET, WAITS_END_UNKNOWN, packet_text(s, q, i));
	behind = keeper(s, q);
	look_add_edge(l, word, node, c, false);
	/* Packets start in order, and one with the barrier bit when those before it are done. */
	look_add_edge(l, node, behind,
		      is_barrier(&q->packets[q->front]) || q->packets[i].barrier ? WAITS_PROVEN : WAITS_INFERRED,
		      false);
}

/* The word that a packet waits for, and who gives it. */
static uint32_t word_node(struct look_lines *s, uint64_t signal, int64_t value)
{
	struct look *l = s->look;
	uint32_t node = look_add_node(l, RPC_WAIT_NODE_KIND_WORD, WAITS_END_UNKNOWN,
				      rpc_arena_printf(l->arena, "signal 0x%llx (value %lld)",
						       (unsigned long long)signal, (long long)value));
	uint32_t found = 0;
	enum waits_confidence c;

	for (int pass = 0; pass < 2; pass++)
		for (size_t k = 0; k < s->n && node != LOOK_NONE; k++)
			for (uint32_t i = 0; i < s->list[k].n; i++) {
				if (s->list[k].packets[i].completion_signal != signal)
					continue;
				/* Others may give it as well, unless one packet is all that is left to do so. */
				c = s->all && found == 1 && value == 1 ? WAITS_PROVEN : WAITS_INFERRED;
				if (pass)
					add_producer(s, node, &s->list[k], i, c);
				else
					found++;
			}
	if (found || node == LOOK_NONE)
		return node;
	look_add_edge(l, node,
		      look_add_node(l, RPC_WAIT_NODE_KIND_HOST, s->all ? WAITS_END_HOST : WAITS_END_UNKNOWN,
				    s->all ? rpc_arena_printf(l->arena, "the host, a copy engine or another process: no packet in the queues of this process gives signal 0x%llx",
							      (unsigned long long)signal) :
					     "packets that were not seen, the host, a copy engine or another process"),
		      WAITS_INFERRED, false);
	return node;
}

/* ------------------------------------------------------------------ a queue that waits ------- */

static const char *condition_name(enum symbols_aql_condition c)
{
	static const char *const names[] = { "eq", "ne", "lt", "gte", "unknown" };

	return names[c];
}

static uint64_t name_of(const struct look_line *q)
{
	const uint64_t words[] = { q->queue->gpu_id, q->queue->queue_id, q->read + q->front, 1 };

	return hash_bytes(hash_secret(), words, sizeof(words));
}

static uint64_t state_of(const struct look_line *q)
{
	uint64_t h = hash_secret();

	for (unsigned i = 0; i < SYMBOLS_AQL_DEPENDENCIES; i++)
		h = hash_mix(h ^ q->packets[q->front].dependencies[i]) ^ (uint64_t)q->signals[i].value;
	return hash_mix(h ^ q->packets[q->front].type);
}

static struct look_wait *begin_wait(struct look_lines *s, struct look_line *q)
{
	struct look_wait *w = look_add_wait(s->look, RPC_WAIT_KIND_QUEUE, RPC_WAIT_NODE_KIND_PACKET,
					    packet_text(s, q, q->front), name_of(q), state_of(q));

	if (!w)
		return NULL;
	q->node = w->node;
	w->rpc.gpu_id = q->queue->gpu_id;
	w->rpc.queue_id = q->queue->queue_id;
	w->rpc.has_dispatch = true;
	w->rpc.dispatch = q->read + q->front;
	w->rpc.missing = rpc_arena_array(s->look->arena, SYMBOLS_AQL_DEPENDENCIES, sizeof(*w->rpc.missing));
	return w;
}

static void fill_signals(struct look_lines *s, struct look_line *q, struct rpc_wait *w, enum waits_packet state,
			 uint32_t open)
{
	const struct symbols_aql_packet *p = &q->packets[q->front];

	w->has_expects = w->has_has = true;
	for (unsigned i = 0; i < SYMBOLS_AQL_DEPENDENCIES; i++) {
		w->expects += p->dependencies[i] != 0;
		w->has_has = w->has_has && (!p->dependencies[i] || q->signals[i].known);
	}
	if (!w->has_has)
		look_missing(s->look, rpc_arena_printf(s->look->arena, "queue %u: signals that its packet waits for",
						       q->queue->queue_id));
	w->has = !w->has_has ? 0 : w->expects - (unsigned)__builtin_popcount(open);
	w->missing_count = state == WAITS_PACKET_ANY ? 1 : (unsigned)__builtin_popcount(open);
	w->has_candidates = w->candidates = state == WAITS_PACKET_ANY;
	w->has_object = true;
	w->object = (struct rpc_wait_object){ .address = p->dependencies[__builtin_ctz(open)], .bytes = 8,
					      .has_value = true,
					      .value = (uint64_t)q->signals[__builtin_ctz(open)].value };
	w->has_condition = true;
	w->condition = (struct rpc_wait_condition){ .op = "eq" };
	if (state == WAITS_PACKET_VALUE)
		w->condition = (struct rpc_wait_condition){ .op = condition_name(p->condition),
							    .value = (uint64_t)p->value, .has_mask = p->mask != -1,
							    .mask = (uint64_t)p->mask };
	look_add_evidence(s->look, w, "read counter",
			  rpc_arena_printf(s->look->arena, "%llu, before and after",
					   (unsigned long long)q->read));
}

/* A packet with the barrier bit waits for those before it as well. */
static void add_earlier(struct look_lines *s, struct look_line *q)
{
	for (uint32_t i = 0; i < q->front && q->packets[q->front].barrier; i++)
		if (q->runs[i])
			look_add_edge(s->look, q->node, dispatch_node(s, q, i), WAITS_PROVEN, false);
}

static bool is_giver_proven(const struct look *l, uint32_t word)
{
	for (size_t i = 0; i < l->n_edges; i++)
		if (l->edges[i].from == word && l->edges[i].confidence == WAITS_PROVEN)
			return true;
	return false;
}

static void add_signal_wait(struct look_lines *s, struct look_line *q, enum waits_packet state, uint32_t open)
{
	struct look *l = s->look;
	size_t at = l->n_waits;

	if (!begin_wait(s, q))
		return;
	fill_signals(s, q, &l->waits[at].rpc, state, open);
	add_earlier(s, q);
	for (unsigned i = 0; i < SYMBOLS_AQL_DEPENDENCIES; i++) {
		uint32_t word;
		struct rpc_wait *w;

		if (!(open >> i & 1))
			continue;
		word = word_node(s, q->packets[q->front].dependencies[i], q->signals[i].value);
		look_add_edge(l, q->node, word, WAITS_PROVEN, state == WAITS_PACKET_ANY);
		w = &l->waits[at].rpc;
		if (state == WAITS_PACKET_ANY || !is_giver_proven(l, word))
			w->confidence = RPC_CONFIDENCE_INFERRED;
		if (word != LOOK_NONE && w->missing)
			w->missing[w->n_missing++] = (struct rpc_wait_party){ .what = l->nodes[word].rpc.text,
									      .state = RPC_WAIT_END_UNKNOWN };
	}
}

/* The next packet has not been written. */
static void add_slot_wait(struct look_lines *s, struct look_line *q)
{
	struct look *l = s->look;
	struct look_wait *w = begin_wait(s, q);

	if (!w)
		return;
	w->rpc.confidence = RPC_CONFIDENCE_INFERRED;
	w->rpc.missing_count = 1;
	look_add_evidence(l, &w->rpc, "packet", "invalid, and all zero");
	look_add_edge(l, q->node,
		      look_add_node(l, RPC_WAIT_NODE_KIND_HOST, WAITS_END_HOST,
				    rpc_arena_printf(l->arena, "a thread of the host: it has taken the place of packet %llu in queue %u, and not written it",
						     (unsigned long long)(q->read + q->front), q->queue->queue_id)),
		      WAITS_INFERRED, false);
}

/* Of a queue that is not known to wait. */
static uint32_t quiet_node(struct look_lines *s, struct look_line *q, bool unreadable)
{
	struct look *l = s->look;
	const char *text;

	if (!q->n)
		text = rpc_arena_printf(l->arena, "queue %u, which is empty", q->queue->queue_id);
	else if (q->packets[0].type == SYMBOLS_AQL_INVALID)
		text = rpc_arena_printf(l->arena, "packet %llu of queue %u, which is not written, or was taken and has no waves that are known",
					(unsigned long long)q->read, q->queue->queue_id);
	else
		text = rpc_arena_printf(l->arena, "%s, %s", packet_text(s, q, 0),
					unreadable ? "whose signals could not be read" :
						     "of which no waves are there");
	return look_add_node(l, RPC_WAIT_NODE_KIND_QUEUE,
			     unreadable || !q->n || q->packets[0].type == SYMBOLS_AQL_INVALID ? WAITS_END_UNKNOWN :
												WAITS_END_NOT_STARTED,
			     text);
}

/* What keeps a queue from going on. */
static uint32_t keeper(struct look_lines *s, struct look_line *q)
{
	const struct symbols_aql_packet *p = &q->packets[q->front];
	enum waits_packet state = WAITS_PACKET_GOES_ON;
	uint32_t open;

	if (q->node != LOOK_NONE)
		return q->node;
	if (q->front < q->n)
		state = waits_packet_state(p, q->signals, &open);
	if (state != WAITS_PACKET_GOES_ON && state != WAITS_PACKET_UNKNOWN)
		add_signal_wait(s, q, state, open);
	else if (q->front < q->n && !q->front && p->type == SYMBOLS_AQL_INVALID && q->is_blank)
		add_slot_wait(s, q);
	else if (q->front)
		q->node = dispatch_node(s, q, q->front - 1);
	else
		q->node = quiet_node(s, q, state == WAITS_PACKET_UNKNOWN);
	return q->node;
}

/* ------------------------------------------------------------------ threads that wait for it - */

/* A name may have the character that ends it in a text. */
static const char *thread_text(struct look *l, const struct look_waiter *w)
{
	char *text = rpc_arena_printf(l->arena, "thread %u (%s)", w->tid, w->name ? w->name : "");
	const size_t size = text ? strlen(text) : 0;

	for (size_t i = 0; i + 1 < size; i++)
		if (text[i] == ')')
			text[i] = '?';
	return text;
}

/* Packets start in order: one behind another that runs or waits has not. */
static bool has_not_started(const struct look_line *q, uint32_t i, bool front_waits)
{
	if (front_waits && i > q->front)
		return true;
	for (uint32_t k = 0; k < i; k++)
		if (q->runs[k])
			return true;
	return false;
}

static const char *waiter_text(struct look_lines *s, const struct look_line *q, uint32_t i, const char *thread)
{
	const bool waits = q->node != LOOK_NONE && s->look->nodes[q->node].rpc.has_wait;
	const char *state = "of which no waves are known";

	if (q->runs[i])
		state = "which runs";
	else if (waits && i == q->front)
		state = "which waits";
	else if (has_not_started(q, i, waits))
		state = "which has not started";
	return rpc_arena_printf(s->look->arena, "%s waits for %s, %s", thread ? thread : "", packet_text(s, q, i), state);
}

/* @return how many packets that are not done give a signal. */
static uint32_t count_givers(const struct look_lines *s, uint64_t signal)
{
	uint32_t n = 0;

	for (size_t k = 0; k < s->n; k++)
		for (uint32_t i = 0; i < s->list[k].n; i++)
			n += s->list[k].packets[i].completion_signal == signal;
	return n;
}

/*
 * Is the packet still not done?  A thread that nobody has woken although it is, host.stacks tells.  The packet's place
 * may be another one's when the queue has gone on.
 * @return 1: it is not, and its signal has this value; 0: it is; -1: that cannot be read.
 */
static int is_open(const struct look_lines *s, const struct look_line *q, uint32_t i, int64_t *ret)
{
	uint64_t read, value;

	if (!get_u64(s, q->packets[i].completion_signal + WAITS_SIGNAL_VALUE, &value) ||
	    !get_u64(s, q->queue->read_pointer, &read))
		return -1;
	*ret = (int64_t)value;
	return *ret > 0 && read == q->read;
}

/* Of a packet behind those that are looked at as well. */
static struct look_line *line_of(const struct look_lines *s, const struct look_waiter *w)
{
	for (size_t k = 0; k < s->n; k++) {
		struct look_line *q = &s->list[k];

		if (q->queue->queue_id == w->queue_id && q->queue->gpu_id == w->gpu_id && w->dispatch >= q->read)
			return q;
	}
	return NULL;
}

static void tell_waiter(struct look_lines *s, const struct look_waiter *w, struct look_line *q, int64_t value,
			struct rpc_why_get_result *ret)
{
	const uint32_t i = (uint32_t)(w->dispatch - q->read);
	const uint64_t signal = q->packets[i].completion_signal;
	/* As word_node() says of a packet that waits for it. */
	const bool is_proven = s->all && value == 1 && count_givers(s, signal) == 1;
	const enum waits_confidence c = is_proven ? WAITS_PROVEN : WAITS_INFERRED;
	struct look *l = s->look;
	const char *text = thread_text(l, w);
	const uint32_t node = look_add_node(l, RPC_WAIT_NODE_KIND_THREAD, WAITS_END_UNKNOWN, text);

	if (node == LOOK_NONE)
		return;
	l->nodes[node].rpc.has_tid = true;
	l->nodes[node].rpc.tid = w->tid;
	add_producer(s, node, q, i, c);
	ret->threads[ret->n_threads++] = (struct rpc_wait_thread){
		.tid = w->tid, .name = w->name ? w->name : "", .text = waiter_text(s, q, i, text), .node = node,
		.gpu_id = w->gpu_id, .queue_id = w->queue_id, .dispatch = w->dispatch,
		.signal = signal, .confidence = (enum rpc_confidence)c,
	};
}

static void add_waiter(struct look_lines *s, const struct look_waiter *w, struct rpc_why_get_result *ret)
{
	struct look_line *q = line_of(s, w);
	int64_t value;
	int r;

	if (!q)
		return;
	if (w->dispatch - q->read >= q->n) {
		q->behind += !q->whole;
		return;
	}
	if (!q->packets[w->dispatch - q->read].completion_signal)
		return;
	r = is_open(s, q, (uint32_t)(w->dispatch - q->read), &value);
	s->unreadable += r < 0;
	if (r > 0)
		tell_waiter(s, w, q, value, ret);
}

static void tell_those_left_out(const struct look_lines *s)
{
	struct look *l = s->look;

	for (size_t k = 0; k < s->n; k++)
		if (s->list[k].behind)
			look_missing_thread(l, rpc_arena_printf(l->arena, "threads: %u wait%s for packets behind the first %u of queue %u",
								s->list[k].behind, s->list[k].behind == 1 ? "s" : "",
								PACKETS_MAX, s->list[k].queue->queue_id));
	if (s->unreadable)
		look_missing_thread(l, rpc_arena_printf(l->arena, "threads: whether packets that %u wait%s for are done is not readable",
							s->unreadable, s->unreadable == 1 ? "s" : ""));
}

/* Packets that are not looked at may be. */
static bool may_be_awaited(const struct look_line *q)
{
	for (uint32_t i = 0; i < q->n; i++)
		if (q->packets[i].completion_signal)
			return true;
	return !q->whole;
}

static size_t find_waiters(const struct look_lines *s, struct look_waiter **ret)
{
	struct look *l = s->look;
	struct rpc_queue *queues = rpc_arena_array(l->arena, s->n + 1, sizeof(*queues));
	size_t n = 0;

	if (!queues)
		l->failed = true;
	for (size_t k = 0; queues && k < s->n; k++)
		if (may_be_awaited(&s->list[k]))
			queues[n++] = *s->list[k].queue;
	return n ? look_find_waiters(l, queues, n, ret) : 0;
}

/* They are no waits of their own: they are at the end of those who are kept. */
void look_at_threads(struct look_lines *s, struct rpc_why_get_result *ret)
{
	struct look *l = s->look;
	const size_t before = l->n_missing;
	struct look_waiter *waiters = NULL;
	const size_t n = find_waiters(s, &waiters);

	if (!n)
		return;
	ret->threads = rpc_arena_array(l->arena, n, sizeof(*ret->threads));
	if (!ret->threads)
		l->failed = true;
	for (size_t i = 0; ret->threads && i < n; i++)
		add_waiter(s, &waiters[i], ret);
	tell_those_left_out(s);
	/* Without threads nobody would miss that. */
	for (size_t i = before; i < l->n_missing; i++)
		look_missing_thread(l, l->missing[i]);
	l->n_missing = before;
	ret->has_threads = ret->n_threads > 0;
}

static void find_lines(struct look_lines *s)
{
	const struct snapshot *seen = s->look->seen;

	for (size_t i = 0; i < seen->n_queues && s->n < QUEUES_MAX; i++) {
		if (seen->queues[i].type != RPC_QUEUE_TYPE_COMPUTE_AQL)
			continue;
		if (seen->queues[i].has_ring_base && seen->queues[i].has_read_pointer &&
		    seen->queues[i].has_write_pointer)
			read_line(s, &seen->queues[i]);
		else
			s->all = false;
	}
	keep_those_that_stand_still(s);
}

struct look_lines *look_at_queues(struct look *l)
{
	const struct snapshot *seen = l->seen;
	const struct target *t = l->target;
	const char *hidden = t->ops->hidden_queues ? t->ops->hidden_queues(l->target, l->arena) : NULL;
	struct look_lines *s = rpc_arena_alloc(l->arena, sizeof(*s));
	struct look_line *list = rpc_arena_array(l->arena, seen->n_queues + 1, sizeof(*list));

	look_missing(l, hidden);
	if (seen->n_queues > QUEUES_MAX)
		look_missing(l, rpc_arena_printf(l->arena, "packets of the queues behind the first %u", QUEUES_MAX));
	if (!s || !list)
		return NULL;
	*s = (struct look_lines){ .look = l, .list = list, .all = seen->n_queues <= QUEUES_MAX && !hidden };
	find_lines(s);
	for (size_t i = 0; i < s->n; i++) {
		struct look_line *q = &s->list[i];
		uint32_t open;

		if (q->front == q->n)
			continue;
		if (waits_packet_state(&q->packets[q->front], q->signals, &open) == WAITS_PACKET_UNKNOWN)
			look_missing(l, rpc_arena_printf(l->arena, "queue %u: the signals that its packet waits for are not readable",
							 q->queue->queue_id));
		if (open || (!q->front && q->packets[0].type == SYMBOLS_AQL_INVALID && q->is_blank))
			(void)keeper(s, q);
	}
	return s;
}
