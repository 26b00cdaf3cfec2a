/* SPDX-License-Identifier: MIT */
#include "agentd/frontend/session/rules.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/frontend/net/net.h"
#include "agentd/frontend/net/monitor_link.h"
#include "base/log.h"
#include "base/str.h"

struct front_rule *rules_find(struct sessions *all, const char *name)
{
	for (size_t i = 0; i < all->n_rules; i++)
		if (!strcmp(all->rules[i].name, name))
			return &all->rules[i];
	return NULL;
}

static void drop_earlier(struct sessions *all, uint32_t generation)
{
	size_t kept = 0;

	for (size_t i = 0; i < all->n_rules; i++)
		if (all->rules[i].generation == generation)
			all->rules[kept++] = all->rules[i];
	all->n_rules = kept;
}

/* Counters stay with the name as long as there is such a rule. */
void rules_named(struct sessions *all, const struct ipc_rule_name *m)
{
	struct front_rule *list, *r = rules_find(all, m->name);

	if (m->name[0] && !r) {
		list = realloc(all->rules, (all->n_rules + 1) * sizeof(*list));
		if (!list) {
			log_error("out of memory for rule %s: it is not counted", m->name);
			return;
		}
		all->rules = list;
		r = &list[all->n_rules++];
		*r = (struct front_rule){ 0 };
		str_copy(r->name, sizeof(r->name), m->name);
	}
	if (r)
		r->generation = m->generation;
	if (m->last)
		drop_earlier(all, m->generation);
	all->net->stays = all->n_rules > 0;
	net_update_idle(all->net);
}

void rules_release(struct session *s, const struct conn *by)
{
	if (!s->rule[0])
		return;
	monitor_link_release(s->all->monitor, s->worker, by->id);
	s->rule[0] = '\0';
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

void rules_count(struct session *s, const struct ipc_message *m)
{
	struct front_rule *r = rules_find(s->all, s->rule);
	struct ipc_counts c;
	uint64_t decided;

	if (!r || m->head.size != sizeof(c))
		return;
	memcpy(&c, m->text, sizeof(c));
	decided = c.recorded + c.duplicates + c.limited + c.lost;
	s->n_begun = minus(s->n_begun + c.begun, c.exceptions);
	/* The record of all those without one is of none in particular. */
	s->n_undecided = minus(s->n_undecided + c.exceptions, decided);
	r->counts.exceptions += c.exceptions;
	r->counts.recorded += c.recorded;
	r->counts.duplicates += c.duplicates;
	r->counts.limited += c.limited;
	r->counts.lost += c.lost;
}

void rules_over(struct session *s)
{
	struct front_rule *r = rules_find(s->all, s->rule);
	const uint64_t n = s->n_begun + s->n_undecided;

	if (!r || !n)
		return;
	log_warning("rule %s: %" PRIu64 " exception(s) of process %u are not recorded: session %s ended before",
		    r->name, n, s->pid, s->id);
	r->counts.exceptions += s->n_begun;
	r->counts.lost += n;
	s->n_begun = s->n_undecided = 0;
}

static uint32_t count_watched(const struct sessions *all, const char *name)
{
	const struct session *s;
	uint32_t n = 0;

	LIST_FOREACH(s, &all->list, link)
		n += s->kind == IPC_KIND_SESSION && !strcmp(s->rule, name);
	return n;
}

struct rpc_rule_status *rules_status(const struct sessions *all, struct rpc_arena *a, size_t *ret_n)
{
	struct rpc_rule_status *list = rpc_arena_array(a, all->n_rules, sizeof(*list));

	for (size_t i = 0; list && i < all->n_rules; i++) {
		const struct front_rule *r = &all->rules[i];

		list[i] = (struct rpc_rule_status){ .name = r->name,
						    .watching = count_watched(all, r->name),
						    .matched = r->matched,
						    .exceptions = r->counts.exceptions,
						    .recorded = r->counts.recorded,
						    .duplicates = r->counts.duplicates,
						    .limited = r->counts.limited,
						    .lost = r->counts.lost };
	}
	*ret_n = list ? all->n_rules : 0;
	return list;
}
