/* SPDX-License-Identifier: MIT */
#include "agentd/frontend/method/metric_list.h"

#include <inttypes.h>
#include <string.h>

/* @return a place behind the @p n items of an array, which may have moved; NULL without memory. */
static void *add(struct rpc_arena *a, void *items, size_t n, size_t size, size_t *room, void **ret_items)
{
	void *more = items;

	if (n == *room) {
		*room = n ? 2 * n : 8;
		more = rpc_arena_array(a, *room, size);
		if (!more)
			return NULL;
		if (n)
			memcpy(more, items, n * size);
	}
	*ret_items = more;
	return (char *)more + n * size;
}

void metric_begin(struct metric_list *l, const char *name, enum rpc_metric_type type, const char *unit,
		  const char *help)
{
	void *items;
	struct rpc_metric *m = add(l->arena, l->metrics, l->n, sizeof(*m), &l->room, &items);

	if (!m)
		return;
	*m = (struct rpc_metric){ .name = name, .type = type, .unit = unit, .help = help };
	l->metrics = items;
	l->n++;
	l->sample_room = 0;
}

static void add_labels(struct rpc_arena *a, const struct metric_label *labels, struct rpc_metric_sample *s)
{
	s->labels = rpc_arena_array(a, METRIC_LABELS_MAX, sizeof(*s->labels));
	for (size_t i = 0; s->labels && labels && i < METRIC_LABELS_MAX; i++)
		if (labels[i].name && labels[i].value)
			s->labels[s->n_labels++] = (struct rpc_metric_label){ labels[i].name, labels[i].value };
}

static void add_sample(struct metric_list *l, const char *suffix, const struct metric_label *labels, const char *value)
{
	struct rpc_metric *m = &l->metrics[l->n - 1];
	struct rpc_metric_sample *s;
	void *items;

	/* The arena remembers that it was exhausted, and nothing is told. */
	if (rpc_arena_error(l->arena))
		return;
	s = add(l->arena, m->samples, m->n_samples, sizeof(*s), &l->sample_room, &items);
	if (!s)
		return;
	*s = (struct rpc_metric_sample){ .name = rpc_arena_printf(l->arena, "%s%s", m->name, suffix), .value = value };
	m->samples = items;
	m->n_samples++;
	add_labels(l->arena, labels, s);
}

void metric_u64(struct metric_list *l, const char *suffix, const struct metric_label *labels, uint64_t value)
{
	add_sample(l, suffix, labels, rpc_arena_printf(l->arena, "%" PRIu64, value));
}

void metric_us(struct metric_list *l, const char *suffix, const struct metric_label *labels, uint64_t us)
{
	add_sample(l, suffix, labels,
		   rpc_arena_printf(l->arena, "%" PRIu64 ".%06" PRIu64, us / 1000000, us % 1000000));
}
