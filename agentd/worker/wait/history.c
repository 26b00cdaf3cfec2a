/* SPDX-License-Identifier: MIT */
#include "agentd/worker/wait/history.h"

#include <stdlib.h>

#include "base/vec.h"

#define LOOKS 8u
/* As many as waves and packets of a large process that somebody waits for; 1 MiB for each look. */
#define FACTS_MAX 65536u

struct fact {
	uint64_t name, state;
};

struct past {
	uint32_t number;
	uint64_t time_ns, stood_ns, finish_ns;
	struct fact *facts;
	size_t n, capacity;
	bool sorted;
};

struct history {
	uint32_t last;
	struct past looks[LOOKS];
};

static int compare(const void *x, const void *y)
{
	const struct fact *a = x, *b = y;

	if (a->name != b->name)
		return a->name < b->name ? -1 : 1;
	return a->state < b->state ? -1 : a->state > b->state;
}

struct past *history_begin(struct history **h, uint64_t now_ns, uint64_t stood_ns, uint32_t *ret_number)
{
	struct past *p;

	if (!*h)
		*h = calloc(1, sizeof(**h));
	if (!*h)
		return NULL;
	/* What is sorted is not added to any more. */
	for (unsigned i = 0; i < LOOKS; i++) {
		p = &(*h)->looks[i];
		if (!p->sorted && p->n)
			qsort(p->facts, p->n, sizeof(*p->facts), compare);
		p->sorted = true;
	}
	(*h)->last++;
	p = &(*h)->looks[(*h)->last % LOOKS];
	free(p->facts);
	*p = (struct past){ .number = (*h)->last, .time_ns = now_ns, .stood_ns = stood_ns };
	*ret_number = p->number;
	return p;
}

const struct past *history_find(const struct history *h, uint32_t number)
{
	const struct past *p;

	if (!h || !number)
		return NULL;
	p = &h->looks[number % LOOKS];
	return p->number == number && p->sorted ? p : NULL;
}

void history_free(struct history *h)
{
	for (unsigned i = 0; h && i < LOOKS; i++)
		free(h->looks[i].facts);
	free(h);
}

uint64_t past_time_ns(const struct past *p)
{
	return p->time_ns;
}

uint64_t past_stood_ns(const struct past *p)
{
	return p->stood_ns;
}

void past_finish(struct past *p, uint64_t now_ns)
{
	p->finish_ns = now_ns;
}

uint64_t past_finish_ns(const struct past *p)
{
	return p->finish_ns;
}

int past_add(struct past *p, uint64_t name, uint64_t state)
{
	if (p->n >= FACTS_MAX || vec_reserve(&p->facts, p->n, 1, &p->capacity, sizeof(*p->facts)) < 0)
		return -ENOMEM;
	p->facts[p->n++] = (struct fact){ name, state };
	return 0;
}

static int compare_names(const void *x, const void *y)
{
	const struct fact *a = x, *b = y;

	return a->name < b->name ? -1 : a->name > b->name;
}

bool past_knows(const struct past *p, uint64_t name)
{
	const struct fact key = { name, 0 };

	return p->n && bsearch(&key, p->facts, p->n, sizeof(*p->facts), compare_names);
}

bool past_has(const struct past *p, uint64_t name, uint64_t state)
{
	const struct fact key = { name, state };

	return p->n && bsearch(&key, p->facts, p->n, sizeof(*p->facts), compare);
}
