/* SPDX-License-Identifier: MIT */
/*
 * Waves that have called the host and wait for its answer, as printf() and malloc() do.  Their loop has branches of
 * which nothing is known.  So it is seen by the buffer of their queue, to which an argument of the kernel leads: which
 * wave waits is not known, but what the host has not answered is.
 */
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentd/worker/snapshot/hash.h"
#include "agentd/worker/wait/look.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/out.h"
#include "base/str.h"
#include "waits/rocm/hostcall.h"
#include "waits/packet.h"

/* In history.h. */
#define NAME_HOSTCALL 9u
/* Most dispatches whose arguments are read, buffers, and packets of all of them: 3 MiB. */
#define DISPATCHES_MAX 64u
#define BUFFERS_MAX    16u
#define PACKETS_MAX    131072u
#define TRIES	       3
/* Threads whose names are looked at. */
#define THREADS_MAX 4096u

/* Whether a kernel has the argument, and where. */
struct argument {
	bool is_known, is_there;
	uint32_t offset;
};

/* A dispatch of a kernel that has it. */
struct launch {
	const struct wave *first;
	uint64_t buffer; /* 0: it was given none. */
};

/* A buffer, by the waves that may use it. */
struct caller {
	const struct wave *first;
	uint64_t buffer;
	uint32_t dispatches;
	uint32_t stopped; /* Waves. */
};

struct callers {
	struct look *look;
	struct argument *kernels; /* As the names of kernels in locations. */
	struct launch launches[DISPATCHES_MAX];
	size_t n_launches;
	struct caller list[BUFFERS_MAX];
	size_t n;
	uint32_t packets; /* Read so far. */
	bool is_cut;
};

/* A buffer as it was in one moment. */
struct calls {
	struct waits_hostcall buffer;
	struct waits_calls calls;
	bool has_doorbell;
	uint64_t doorbell; /* Its value. */
	uint64_t state;
};

/* ------------------------------------------------------------------ who may call ------------- */

static bool is_of(const struct wave *a, const struct wave *b)
{
	return a->gpu_id == b->gpu_id && a->queue_id == b->queue_id && a->dispatch == b->dispatch;
}

static const struct argument *argument_of(struct callers *c, const struct wave *w)
{
	struct argument *a = &c->kernels[w->kernel];

	if (!a->is_known)
		a->is_there = code_hidden_argument(&c->look->code, w->kernel_handle, WAITS_HOSTCALL_ARGUMENT,
						   &a->offset) == 0;
	a->is_known = true;
	return a;
}

/* @return the address of the buffer of a wave's queue, or 0. */
static uint64_t read_argument(struct look *l, const struct wave *w, const struct argument *a)
{
	uint64_t at;

	if (look_read(l, w->arguments + a->offset, &at, sizeof(at)))
		return le64toh(at);
	look_missing(l, "calls of the host: what kernels were given is not readable");
	return 0;
}

static struct caller *caller_of(struct callers *c, uint64_t buffer, const struct wave *w)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->list[i].buffer == buffer && c->list[i].first->gpu_id == w->gpu_id &&
		    c->list[i].first->queue_id == w->queue_id)
			return &c->list[i];
	if (c->n == BUFFERS_MAX) {
		c->is_cut = true;
		return NULL;
	}
	c->list[c->n] = (struct caller){ .first = w, .buffer = buffer };
	return &c->list[c->n++];
}

/* Waves of a dispatch mostly lie together: the last one that was found is looked at first. */
static const struct launch *launch_of(struct callers *c, const struct wave *w)
{
	const struct argument *a = argument_of(c, w);
	struct launch *to = &c->launches[c->n_launches];
	struct caller *caller;

	for (size_t i = c->n_launches; a->is_there && i-- > 0;)
		if (is_of(c->launches[i].first, w))
			return &c->launches[i];
	c->is_cut |= a->is_there && c->n_launches == DISPATCHES_MAX;
	if (!a->is_there || c->n_launches == DISPATCHES_MAX)
		return NULL;
	*to = (struct launch){ .first = w, .buffer = read_argument(c->look, w, a) };
	caller = to->buffer ? caller_of(c, to->buffer, w) : NULL;
	if (caller)
		caller->dispatches++;
	c->n_launches++;
	return to;
}

static bool may_call(const struct look *l, const struct wave *w)
{
	return w->has_dispatch && w->arguments && w->kernel && w->kernel < l->places.n_kernels;
}

static void find_callers(struct callers *c)
{
	const struct target_waves *t = &c->look->seen->waves;

	for (size_t i = 0; i < t->n_waves; i++) {
		const struct wave *w = &t->waves[i];
		const struct launch *from = may_call(c->look, w) ? launch_of(c, w) : NULL;
		struct caller *to = from && from->buffer ? caller_of(c, from->buffer, w) : NULL;

		if (to)
			to->stopped += w->state != RPC_WAVE_STATE_RUNNING;
	}
}

/* ------------------------------------------------------------------ what is not answered ----- */

static bool read_doorbell(struct look *l, uint64_t signal, uint64_t *ret)
{
	*ret = 0;
	if (!look_read(l, signal + WAITS_SIGNAL_VALUE, ret, sizeof(*ret)))
		return false;
	*ret = le64toh(*ret);
	return true;
}

/* All that moves when a wave calls the host, when the host takes that, and when it has answered. */
static void set_state(struct calls *to, const void *words, const void *packets)
{
	const size_t size = (size_t)to->buffer.packets * WAITS_HOSTCALL_PACKET_BYTES;

	to->state = hash_bytes(hash_secret(), words, WAITS_HOSTCALL_BYTES);
	to->state = hash_bytes(to->state ^ hash_mix(to->doorbell), packets, size);
}

/* @return whether what moves when a wave is answered could be read once more, and whether it is the same. */
static bool read_again(struct look *l, const struct waits_hostcall *b, const void *packets, bool *ret_is_same)
{
	const size_t size = waits_hostcall_again(b);
	auto_free uint8_t *again = size ? malloc(size) : NULL;

	*ret_is_same = true;
	if (!size)
		return true;
	if (!again) {
		l->failed = true;
		return false;
	}
	if (!look_read(l, b->at, again, size))
		return false;
	*ret_is_same = !memcmp(packets, again, size);
	return true;
}

/* @return 1: read; 0: it has moved meanwhile; -errno: it is no buffer that is known, or cannot be read (-EIO). */
static int read_once(struct callers *c, uint64_t address, struct calls *ret)
{
	uint8_t words[WAITS_HOSTCALL_BYTES], again[WAITS_HOSTCALL_BYTES];
	auto_free uint8_t *packets = NULL, *marks = NULL;
	struct look *l = c->look;
	uint64_t doorbell;
	bool is_same;
	size_t size;
	int r;

	if (!look_read(l, address, words, sizeof(words)))
		return -EIO;
	r = waits_hostcall_read(words, sizeof(words), address, &ret->buffer);
	if (r == 0 && ret->buffer.packets > PACKETS_MAX - c->packets)
		r = -E2BIG;
	if (r < 0)
		return r;
	c->packets += ret->buffer.packets;
	size = (size_t)ret->buffer.packets * WAITS_HOSTCALL_PACKET_BYTES;
	packets = malloc(size);
	marks = malloc(ret->buffer.packets);
	if (!packets || !marks) {
		l->failed = true;
		return -ENOMEM;
	}
	ret->has_doorbell = read_doorbell(l, ret->buffer.doorbell, &ret->doorbell);
	if (!look_read(l, ret->buffer.at, packets, size) || !look_read(l, address, again, sizeof(again)) ||
	    !read_again(l, &ret->buffer, packets, &is_same))
		return -EIO;
	if (read_doorbell(l, ret->buffer.doorbell, &doorbell) != ret->has_doorbell || doorbell != ret->doorbell ||
	    !is_same || memcmp(words, again, sizeof(words)) != 0)
		return 0;
	set_state(ret, words, packets);
	r = waits_hostcall_calls(&ret->buffer, packets, size, marks, &ret->calls);
	return r < 0 ? r : 1;
}

/* What kernels were given, and what is there, was written by the process. */
static void tell_problem(struct look *l, const struct caller *from, int error)
{
	const char *text = "is not laid out as known";

	if (error == -EBADMSG)
		text = "has packets that do not fit together";
	if (error == -EIO)
		text = "is not readable";
	if (error == -E2BIG)
		text = "has more packets than are looked at";
	look_missing(l, rpc_arena_printf(l->arena, "calls of the host: the buffer of queue %u %s", from->first->queue_id,
					 text));
}

/* ------------------------------------------------------------------ who should answer -------- */

static bool is_listener(int tasks, const char *tid)
{
	char path[64], name[sizeof(WAITS_HOSTCALL_THREAD) + 1];
	ssize_t n;

	if (snprintf(path, sizeof(path), "%s/comm", tid) >= (int)sizeof(path))
		return false;

	auto_close int fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);

	n = fd < 0 ? -1 : read(fd, name, sizeof(name));
	return n == sizeof(WAITS_HOSTCALL_THREAD) && !memcmp(name, WAITS_HOSTCALL_THREAD "\n", (size_t)n);
}

/* @return the thread of the process that has the name of the runtime's; 0: none has; -1: not known. */
static int64_t find_listener(const struct look *l)
{
	char path[32];
	uint64_t tid = 0;
	uint32_t n = 0;
	struct dirent *e;
	DIR *dir;

	if (l->target->origin)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)l->target->facts.pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir)) && n < THREADS_MAX) {
		if (str_to_u64(e->d_name, 1, INT32_MAX, &tid) < 0)
			continue;
		n++;
		if (!is_listener(dirfd(dir), e->d_name))
			continue;
		closedir(dir);
		return (int64_t)tid;
	}
	if (dir)
		closedir(dir);
	return dir && n && n < THREADS_MAX ? 0 : -1;
}

/* ------------------------------------------------------------------ in words ----------------- */

static const char *services_text(struct look *l, const struct waits_calls *c)
{
	auto_out struct out text = { 0 };
	const char *before = "";

	for (int i = WAITS_SERVICE_COUNT - 1; i >= 0; i--) {
		if (!c->services[i])
			continue;
		out_fmt(&text, "%s%s", before, waits_service_name((enum waits_service)i));
		before = ", ";
	}
	return rpc_arena_strdup(l->arena, text.data ? text.data : "");
}

/* @param whom  " of the host", or "" where that is said already. */
static const char *calls_text(struct look *l, const struct caller *from, const struct waits_calls *c, const char *whom)
{
	const uint32_t n = c->ready + c->taken;
	const char *of = from->dispatches > 1 ?
				 rpc_arena_printf(l->arena, "kernels in queue %u", from->first->queue_id) :
				 rpc_arena_printf(l->arena, "%s (packet %llu of queue %u)", look_kernel(l, from->first),
						  (unsigned long long)from->first->dispatch, from->first->queue_id);

	return rpc_arena_printf(l->arena, "%u call%s%s (%s) by %s", n, n == 1 ? "" : "s", whom, services_text(l, c), of);
}

static const char *host_text(struct look *l, const char *calls, int64_t listener)
{
	static const char name[] = WAITS_HOSTCALL_THREAD;

	if (listener > 0)
		return rpc_arena_printf(l->arena, "the host, whose thread %lld (%s) has not answered %s",
					(long long)listener, name, calls);
	if (listener == 0)
		return rpc_arena_printf(l->arena, "the host, which has not answered %s, and has no thread named %s", calls, name);
	return rpc_arena_printf(l->arena, "the host, which has not answered %s", calls);
}

static void add_evidence(struct look *l, struct rpc_wait *to, const struct caller *from, const struct calls *c)
{
	const bool has_stacks = c->buffer.layout == WAITS_HOSTCALL_STACKS;

	look_add_evidence(l, to, WAITS_HOSTCALL_ARGUMENT,
			  rpc_arena_printf(l->arena, "0x%llx", (unsigned long long)from->buffer));
	look_add_evidence(l, to, "packets",
			  rpc_arena_printf(l->arena, "%u, of which %u %s free%s", c->buffer.packets, c->calls.free,
					   c->calls.free == 1 ? "is" : "are", has_stacks ? "" : " or answered"));
	look_add_evidence(l, to, has_stacks ? "not answered, and not taken by the host" : "not answered",
			  rpc_arena_printf(l->arena, "%u", c->calls.ready));
	if (has_stacks)
		look_add_evidence(l, to, "not answered, and taken", rpc_arena_printf(l->arena, "%u", c->calls.taken));
	look_add_evidence(l, to, "lanes",
			  rpc_arena_printf(l->arena, "%llu", (unsigned long long)c->calls.lanes));
	if (c->has_doorbell)
		look_add_evidence(l, to, "doorbell",
				  rpc_arena_printf(l->arena, "%llu", (unsigned long long)c->doorbell));
	look_add_evidence(l, to, "value", "read when the queues ran again");
}

/* ------------------------------------------------------------------ one buffer --------------- */

/*
 * A wave that has stopped may have been writing its packet, which with stacks looks as if the host had taken it.
 * Without the doorbell, calls that were answered and made again look like those before.
 */
static bool is_firm(const struct caller *from, const struct calls *c)
{
	return c->has_doorbell && (c->calls.ready || c->calls.taken > from->stopped);
}

static void add_host(struct look *l, struct look_wait *w, const struct caller *from, const struct calls *c)
{
	const char *calls = calls_text(l, from, &c->calls, "");
	const bool firm = is_firm(from, c);
	const enum waits_end end = firm ? WAITS_END_HOST : WAITS_END_UNKNOWN;
	const int64_t listener = find_listener(l);
	const uint32_t node = look_add_node(l, RPC_WAIT_NODE_KIND_HOST, end, host_text(l, calls, listener));

	if (node == LOOK_NONE)
		return;
	l->nodes[node].rpc.has_tid = listener > 0;
	l->nodes[node].rpc.tid = listener > 0 ? (uint32_t)listener : 0;
	l->nodes[node].may_come = !firm;
	look_add_edge(l, w->node, node, WAITS_INFERRED, false);
	w->rpc.missing = rpc_arena_array(l->arena, 1, sizeof(*w->rpc.missing));
	if (w->rpc.missing)
		w->rpc.missing[w->rpc.n_missing++] = (struct rpc_wait_party){ .what = l->nodes[node].rpc.text,
									      .state = (enum rpc_wait_end)end };
	w->rpc.missing_count = 1;
}

static void add_wait(struct look *l, const struct caller *from, const struct calls *c)
{
	const uint64_t name[] = { from->first->gpu_id, from->first->queue_id, from->buffer, NAME_HOSTCALL };
	const char *who = rpc_arena_printf(l->arena, "%s %s for an answer%s", calls_text(l, from, &c->calls, " of the host"),
					   c->calls.ready + c->calls.taken == 1 ? "waits" : "wait",
					   c->calls.free ? "" : ", and no packet is free for another one");
	struct look_wait *w = look_add_wait(l, RPC_WAIT_KIND_HOST, RPC_WAIT_NODE_KIND_DISPATCH, who,
					    hash_bytes(hash_secret(), name, sizeof(name)), c->state);

	if (!w)
		return;
	w->rpc.confidence = RPC_CONFIDENCE_INFERRED;
	/* A wave makes one call at a time. */
	w->rpc.waves = c->calls.ready + c->calls.taken;
	w->rpc.gpu_id = from->first->gpu_id;
	w->rpc.queue_id = from->first->queue_id;
	if (from->dispatches == 1) {
		w->rpc.has_dispatch = true;
		w->rpc.dispatch = from->first->dispatch;
		w->rpc.kernel = from->first->kernel ? look_kernel(l, from->first) : NULL;
	}
	if (!c->has_doorbell)
		look_missing(l, "calls of the host: their doorbell is not readable, so that samples cannot be compared");
	add_evidence(l, &w->rpc, from, c);
	add_host(l, w, from, c);
}

static void look_at_caller(struct callers *c, const struct caller *from)
{
	struct calls calls = { 0 };
	int r = 0;

	for (int i = 0; i < TRIES && r == 0; i++)
		r = read_once(c, from->buffer, &calls);
	if (r < 0)
		tell_problem(c->look, from, r);
	/* What moves while it is read is being answered. */
	if (r > 0 && calls.calls.ready + calls.calls.taken)
		add_wait(c->look, from, &calls);
}

void look_at_hostcalls(struct look *l)
{
	struct argument *kernels = rpc_arena_array(l->arena, l->places.n_kernels + 1, sizeof(*kernels));
	struct callers *c = rpc_arena_alloc(l->arena, sizeof(*c));

	if (!c || !kernels)
		return;
	*c = (struct callers){ .look = l, .kernels = kernels };
	find_callers(c);
	if (c->is_cut)
		look_missing(l, "calls of the host: those of more than 64 dispatches, or 16 queues");
	for (size_t i = 0; i < c->n; i++) {
		/* One that is left out may be of this queue, and have stopped. */
		if (c->is_cut) {
			c->list[i].dispatches = UINT32_MAX;
			c->list[i].stopped = UINT32_MAX;
		}
		look_at_caller(c, &c->list[i]);
	}
}
