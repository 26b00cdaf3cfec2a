/* SPDX-License-Identifier: MIT */
#include "agentd/worker/snapshot/arguments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/out.h"
#include "values/argument/arguments.h"

/* Most dispatches whose arguments are shown, unless all are wanted, and then. */
#define DISPATCHES_MAX     8u
#define DISPATCHES_ALL_MAX 1024u
/* Most bytes of a kernarg segment that are read when it was not copied. */
#define SEGMENT_MAX 16384u

/* A dispatch, and what was found. */
struct dispatch {
	const struct wave *wave; /* One of its waves. */
	struct rpc_argument *list;
	size_t n;
	bool told; /* Something is known of them. */
};

/* The bytes of one dispatch's arguments, from offset 0 on. */
struct passed {
	const uint8_t *bytes;
	size_t size;
	enum rpc_value_state why; /* There are not more. */
	bool tried; /* The memory was looked at; only a stop could have copied it otherwise. */
	uint8_t read[SEGMENT_MAX];
};

struct filling {
	struct code_set *set;
	const struct arguments_from *from;
	struct arguments_missing *missing;
	struct dispatch *dispatches;
	size_t n, max;
	struct passed *passed; /* Room for those of one dispatch. */
};

static void add_missing(struct filling *f, const char *text)
{
	for (size_t i = 0; text && i < f->missing->n; i++)
		if (strcmp(f->missing->list[i], text) == 0)
			return;
	if (text && f->missing->n < ARGUMENTS_MISSING_MAX)
		f->missing->list[f->missing->n++] = text;
}

/* ------------------------------------------------------------------ bytes -------------------- */

static bool is_same(const struct wave *a, const struct wave *b)
{
	return a->gpu_id == b->gpu_id && a->queue_id == b->queue_id && a->dispatch == b->dispatch;
}

static const struct target_arguments *find_copy(const struct filling *f, const struct wave *w)
{
	const struct target_waves *all = f->from->waves;

	for (size_t i = 0; i < all->n_arguments; i++) {
		const struct target_arguments *a = &all->arguments[i];

		if (a->gpu_id == w->gpu_id && a->queue_id == w->queue_id &&
		    a->dispatch == w->dispatch)
			return a;
	}
	return NULL;
}

/* Has the queue gone past the dispatch?  Then the program may have used its memory again. */
static bool is_over(const struct filling *f, const struct wave *w)
{
	uint64_t read;

	for (size_t i = 0; i < f->from->n_queues; i++) {
		const struct rpc_queue *q = &f->from->queues[i];

		if (q->queue_id == w->queue_id && q->gpu_id == w->gpu_id && q->has_read_pointer)
			return memory_read_exact(&f->set->target->memory, q->read_pointer, &read,
						 sizeof(read)) < 0 ||
			       read > w->dispatch;
	}
	return false;
}

/*
 * The memory of the process, while the queues run: what was read is of this dispatch only if that
 * was not over by then.
 */
static void read_segment(struct filling *f, const struct wave *w, uint32_t size, struct passed *p)
{
	ssize_t n = memory_read(&f->set->target->memory, w->arguments, p->read,
				size < SEGMENT_MAX ? size : SEGMENT_MAX);

	p->why = RPC_VALUE_STATE_UNREADABLE;
	if (n > 0 && is_over(f, w)) {
		p->why = RPC_VALUE_STATE_UNAVAILABLE;
		n = 0;
	}
	p->bytes = p->read;
	p->size = n > 0 ? (size_t)n : 0;
}

static void find_bytes(struct filling *f, const struct wave *w, uint32_t size, struct passed *p)
{
	const struct target_arguments *copy = find_copy(f, w);

	p->tried = copy || w->arguments;
	p->why = p->tried ? RPC_VALUE_STATE_UNREADABLE : RPC_VALUE_STATE_UNAVAILABLE;
	p->bytes = copy ? copy->bytes : NULL;
	p->size = p->bytes ? copy->size : 0;
	if (p->size < size && w->arguments)
		read_segment(f, w, size, p);
}

/* ------------------------------------------------------------------ one argument ------------- */

static const char *hex_text(struct rpc_arena *a, const uint8_t *bytes, size_t size)
{
	static const char digits[] = "0123456789abcdef";
	char *text = rpc_arena_array(a, 2 * size + 1, 1);

	for (size_t i = 0; text && i < size; i++) {
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 15];
	}
	return text;
}

static void fill_value(struct rpc_arena *a, const struct values_argument *v, const uint8_t *bytes,
		       struct rpc_argument *to)
{
	size_t size = to->size < VALUES_ARGUMENT_BYTES_MAX ? to->size : VALUES_ARGUMENT_BYTES_MAX;
	auto_out struct out o = { 0 };

	values_argument_print(v, bytes, &o);
	to->value = out_error(&o) || !o.data ? NULL : rpc_arena_strdup(a, o.data);
	to->state = size < to->size ? RPC_VALUE_STATE_PARTIAL : RPC_VALUE_STATE_OK;
	if (v->scalar.encoding == VALUES_RAW)
		to->raw = hex_text(a, bytes, size);
}

static void fill_argument(struct rpc_arena *a, const struct values_arguments *all,
			  const struct values_argument *v, const struct passed *p,
			  struct rpc_argument *to)
{
	size_t shown = v->scalar.size < VALUES_ARGUMENT_BYTES_MAX ? v->scalar.size
								  : VALUES_ARGUMENT_BYTES_MAX;

	*to = (struct rpc_argument){
		.name = rpc_arena_strdup(a, v->name),
		.type = v->type[0] ? rpc_arena_strdup(a, v->type) : NULL,
		.state = p->why,
		.at = RPC_VALUE_MOMENT_LAUNCH,
		.offset = v->offset,
		.size = v->scalar.size,
		.has_hidden = v->hidden,
		.hidden = v->hidden,
	};
	/* Nothing was passed there: the code object contradicts itself. */
	if (v->offset > all->size || v->scalar.size > all->size - v->offset)
		to->state = RPC_VALUE_STATE_UNAVAILABLE;
	else if (shown && v->offset <= p->size && shown <= p->size - v->offset)
		fill_value(a, v, p->bytes + v->offset, to);
}

/* ------------------------------------------------------------------ one dispatch ------------- */

/* Say why not all are known: the first reason counts, as the others mostly have the same cause. */
static void tell(struct filling *f, const struct dispatch *d, const struct values_arguments *all,
		 const char *kernel)
{
	if (all->n_all > all->n)
		add_missing(f, rpc_arena_printf(
				       f->set->arena,
				       "arguments of %.100s: it has %zu, of which %zu are shown",
				       kernel, all->n_all, all->n));
	for (size_t i = 0; i < d->n; i++) {
		const struct rpc_argument *a = &d->list[i];

		if (a->state == RPC_VALUE_STATE_OK || a->state == RPC_VALUE_STATE_PARTIAL)
			continue;
		if (a->offset > all->size || a->size > all->size - a->offset)
			add_missing(f, rpc_arena_printf(f->set->arena,
							"arguments of %.100s: what its code object "
							"says of them is broken",
							kernel));
		else if (!f->passed->tried)
			add_missing(
				f,
				rpc_arena_printf(
					f->set->arena,
					"arguments of %.100s: they were not copied during the stop",
					kernel));
		else if (a->state == RPC_VALUE_STATE_UNAVAILABLE)
			add_missing(f,
				    rpc_arena_printf(
					    f->set->arena,
					    "arguments of %.100s: it had ended when they were read",
					    kernel));
		else
			add_missing(f, rpc_arena_printf(
					       f->set->arena,
					       "arguments of %.100s: their memory is not readable",
					       kernel));
		return;
	}
}

static int read_dispatch(struct filling *f, struct dispatch *d, const char *kernel)
{
	struct values_arguments all = { 0 };
	int r = code_arguments(f->set, d->wave->kernel_handle, f->from->all, &all);

	if (r == 0) {
		find_bytes(f, d->wave, all.size, f->passed);
		d->list = rpc_arena_array(f->set->arena, all.n, sizeof(*d->list));
		d->told = d->list;
		for (d->n = 0; d->list && d->n < all.n; d->n++)
			fill_argument(f->set->arena, &all, &all.list[d->n], f->passed,
				      &d->list[d->n]);
		tell(f, d, &all, kernel);
	} else if (r == -EBADMSG) {
		add_missing(
			f,
			rpc_arena_printf(
				f->set->arena,
				"arguments of %.100s: what its code object says of them is broken",
				kernel));
	}
	values_arguments_deinit(&all);
	return r == -ENOMEM ? r : 0;
}

/* Find or make the dispatch of a wave.  @return NULL when there are enough. */
static struct dispatch *find_dispatch(struct filling *f, const struct wave *w)
{
	for (size_t i = 0; i < f->n; i++)
		if (is_same(f->dispatches[i].wave, w))
			return &f->dispatches[i];
	if (f->n == f->max)
		return NULL;
	f->dispatches[f->n] = (struct dispatch){ .wave = w };
	return &f->dispatches[f->n];
}

static int fill_group(struct filling *f, const struct wave *w, struct rpc_group *to)
{
	const struct rpc_runtime *runtime = &f->set->target->runtime;
	struct dispatch *d;
	int r = 0;

	/* Of NVIDIA's, all say it. */
	if (!w->has_dispatch && f->from->all && !runtime->ttmp_setup)
		add_missing(f, "arguments of kernels: the waves do not say of which dispatch they are; they do if the "
			       "program is started with HSA_ENABLE_DEBUG=1");
	/* Without the name of the kernel, nothing is known of its arguments either. */
	if (!w->has_dispatch || !w->kernel_handle || !to->has_kernel || !to->kernel.name)
		return 0;
	d = find_dispatch(f, w);
	if (!d) {
		if (f->from->all)
			add_missing(f, "arguments of kernels: there are more dispatches than those "
				       "of which they are told");
		return 0;
	}
	if (d == &f->dispatches[f->n]) {
		f->n++;
		r = read_dispatch(f, d, to->kernel.name);
	}
	to->has_arguments = d->told;
	to->arguments = d->list;
	to->n_arguments = d->n;
	return r;
}

int arguments_fill(struct code_set *s, const struct arguments_from *from,
		   const struct group *groups, struct rpc_group *to, size_t n,
		   struct arguments_missing *missing)
{
	size_t max = from->all ? DISPATCHES_ALL_MAX : DISPATCHES_MAX;
	auto_free struct dispatch *dispatches = calloc(max, sizeof(*dispatches));
	auto_free struct passed *passed = malloc(sizeof(*passed));
	struct filling f = { .set = s,
			     .from = from,
			     .missing = missing,
			     .dispatches = dispatches,
			     .max = max,
			     .passed = passed };
	int r = dispatches && passed ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = fill_group(&f, &from->waves->waves[groups[i].representative], &to[i]);
	return r;
}
