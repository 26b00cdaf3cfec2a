/* SPDX-License-Identifier: MIT */
/*
 * Arguments of verbs to values.  Every function says in its message what the argument is called and
 * what it may be, so that a mistake can be mended without the manual.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/out.h"
#include "base/str.h"
#include "ctl/ctl.h"

/* Most queues that a message lists. */
#define QUEUES_NAMED_MAX 16
/* PID_MAX_LIMIT of a 64-bit Linux (include/linux/threads.h). */
#define PID_MAX  4194304
/* Most numbers in a list of args_u32_list(). */
#define LIST_MAX 1024
/* What host.stacks accepts as max_stop_ms. */
#define STOPS_MAX_MS 1000

int args_u32(struct ctl *c, const char *name, const char *text, uint32_t min, uint32_t max,
	     uint32_t *ret)
{
	uint64_t v;

	if (str_to_u64(text, min, max, &v) < 0)
		return ctl_usage(c, "%s: \"%.40s\" is not a number between %u and %u", name, text,
				 min, max);
	*ret = (uint32_t)v;
	return 0;
}

int args_pid(struct ctl *c, const char *text, uint32_t *ret)
{
	return args_u32(c, "PID", text, 1, PID_MAX, ret);
}

int args_address(struct ctl *c, const char *name, const char *text, uint64_t *ret)
{
	if (str_to_u64_any(text, ret) < 0)
		return ctl_usage(c, "%s: \"%.40s\" is not an address such as 0x7f0012340000", name,
				 text);
	return 0;
}

int args_size(struct ctl *c, const char *name, const char *text, uint64_t max, uint64_t *ret)
{
	uint64_t v;

	if (str_to_bytes(text, &v) < 0 || !v || v > max)
		return ctl_usage(c,
				 "%s: \"%.40s\" is not a size between 1 and %llu such as 64, "
				 "0x40 or 4K",
				 name, text, (unsigned long long)max);
	*ret = v;
	return 0;
}

int args_duration(struct ctl *c, const char *name, const char *text, uint32_t max_ms,
		  uint32_t *ret_ms)
{
	uint64_t ms;

	if (str_to_ms(text, &ms) < 0 || !ms || ms > max_ms)
		return ctl_usage(c, "%s: \"%.40s\" is not a time such as 5s or 250ms, up to %us",
				 name, text, max_ms / 1000);
	*ret_ms = (uint32_t)ms;
	return 0;
}

int args_ms(struct ctl *c, const char *name, const char *text, uint32_t max_ms, uint32_t *ret_ms)
{
	uint64_t ms;

	/*
	 * A plain number is milliseconds here, as the options' help says; everything else is left
	 * to str_to_ms().
	 */
	if (str_to_u64(text, 1, max_ms, &ms) < 0 &&
	    (str_to_u64_any(text, &ms) == 0 || str_to_ms(text, &ms) < 0 || !ms || ms > max_ms))
		return ctl_usage(c, "%s: \"%.40s\" is not a time such as 500 (milliseconds) or 2s, up to %us",
				 name, text, max_ms / 1000);
	*ret_ms = (uint32_t)ms;
	return 0;
}

int args_u32_list(struct ctl *c, const char *name, const char *text, uint32_t **ret, size_t *ret_n)
{
	uint32_t *list = rpc_arena_array(&c->arena, LIST_MAX, sizeof(*list));
	auto_free char *copy = strdup(text);
	char *save, *word;
	size_t n = 0;
	int r;

	if (!list || !copy)
		return ctl_fail(c, ENOMEM, name);
	for (word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		if (n == LIST_MAX)
			return ctl_usage(c, "%s: more than %d numbers", name, LIST_MAX);
		r = args_u32(c, name, word, 0, UINT32_MAX, &list[n++]);
		if (r < 0)
			return r;
	}
	if (!n)
		return ctl_usage(c, "%s: needs numbers separated by commas", name);
	*ret = list;
	*ret_n = n;
	return 0;
}

int args_gpu(struct ctl *c, const char *name, const char *text, uint32_t *ret_gpu_id)
{
	int r = ctl_name_gpus(c);

	if (r < 0)
		return r;
	r = gpu_names_find(&c->gpus, text, ret_gpu_id);
	if (r == -EINVAL)
		return ctl_usage(c, "%s: \"%.40s\" is neither a GPU's number, id nor PCI address",
				 name, text);
	if (r < 0)
		return ctl_usage(c, "%s: the process has no GPU %.40s; it has %zu, from 0 on", name, text,
				 c->gpus.n);
	return 0;
}

int args_range(struct ctl *c, const char *name, const char *text, uint32_t max, uint32_t *ret_first,
	       uint32_t *ret_last)
{
	const char *dash = strchr(text, '-');
	auto_free char *first = strndup(text, dash ? (size_t)(dash - text) : strlen(text));
	int r;

	if (!first)
		return ctl_fail(c, ENOMEM, name);
	r = args_u32(c, name, first, 0, max, ret_first);
	if (r)
		return r;
	*ret_last = *ret_first;
	/* The second number must not be below the first. */
	return dash ? args_u32(c, name, dash + 1, *ret_first, max, ret_last) : 0;
}

/* Cut a word off the text, up to a separator, which is overwritten.  NULL when there is none. */
static char *cut(char **text, char separator)
{
	char *word = *text, *end = word ? strchr(word, separator) : NULL;

	if (!end)
		return NULL;
	*end = '\0';
	*text = end + 1;
	return word;
}

/* Whether the text, which may be NULL, is a decimal number up to max. */
static bool number(const char *text, uint64_t max, uint64_t *ret)
{
	return text && str_to_u64(text, 0, max, ret) == 0;
}

/*
 * Read `DISPATCH@X,Y,Z/N`: the dispatch, the workgroup, and the wave's number in it.  The name
 * lasts: a wave keeps it when it is saved elsewhere at the next stop.
 */
static bool lasting_name(char *text, uint32_t *workgroup, struct rpc_wave_name *ret)
{
	const char separators[] = { ',', ',', '/' };
	uint64_t v;

	if (!number(cut(&text, '@'), UINT64_MAX, &ret->dispatch))
		return false;
	for (size_t i = 0; i < sizeof(separators); i++) {
		if (!number(cut(&text, separators[i]), UINT32_MAX, &v))
			return false;
		workgroup[i] = (uint32_t)v;
	}
	if (!number(text, UINT32_MAX, &v))
		return false;
	ret->wave_in_group = (uint32_t)v;
	ret->has_dispatch = ret->has_workgroup = ret->has_wave_in_group = true;
	ret->n_workgroup = 3;
	ret->workgroup = workgroup;
	return true;
}

/* @return 1, 0 when the text is no wave, or negative with err. */
static int parse_wave(struct ctl *c, const char *name, const char *text, struct rpc_wave_name *ret)
{
	char *rest = rpc_arena_strdup(&c->arena, text);
	uint32_t *workgroup = rpc_arena_array(&c->arena, 3, sizeof(*workgroup));
	uint64_t queue = 0, unit = 0, index = 0;
	bool ok;

	if (!rest || !workgroup)
		return ctl_fail(c, ENOMEM, name);
	*ret = (struct rpc_wave_name){ 0 };
	if (number(rest, UINT32_MAX, &index) && index) {
		ret->index = (uint32_t)index;
		return 1;
	}
	ret->has_unit = true;
	/* The queue and the unit are the same in both forms. */
	ok = number(cut(&rest, ':'), UINT32_MAX, &queue) &&
	     number(cut(&rest, ':'), UINT32_MAX, &unit);
	if (ok && number(rest, UINT32_MAX, &index))
		ret->has_index = true;
	else
		ok = ok && lasting_name(rest, workgroup, ret);
	ret->queue_id = (uint32_t)queue;
	ret->unit = (uint32_t)unit;
	ret->index = (uint32_t)index;
	return ok;
}

int args_wave(struct ctl *c, const char *name, const char *text, struct rpc_wave_name *ret)
{
	int r = parse_wave(c, name, text, ret);

	if (r == 0)
		return ctl_usage(
			c,
			"%s: \"%.60s\" is not a wave such as 3:0:12 (queue, unit, index) or "
			"3:0:41@5,0,0/2 (queue, unit, dispatch, workgroup, number in it), nor the "
			"number of a row of snapshot",
			name, text);
	return r < 0 ? r : 0;
}

int args_wave_or_address(struct ctl *c, const char *name, const char *text, bool *ret_is_wave,
			 struct rpc_wave_name *ret_wave, uint64_t *ret_address)
{
	int r = parse_wave(c, name, text, ret_wave);

	*ret_is_wave = r == 1;
	if (r)
		return r < 0 ? r : 0;
	/* 0 is neither a row, which count from 1 on, nor an address that anybody means. */
	if (strcmp(text, "0") != 0 && str_to_u64_any(text, ret_address) == 0)
		return 0;
	return ctl_usage(c, "%s: \"%.40s\" is neither an address such as 0x7f0012340000, nor a wave such as 3:0:12, nor the "
			    "number of a row of snapshot",
			 name, text);
}

/* The name of a wave that lasts, where all of it is known; its position lasts until its queue runs. */
static struct rpc_wave_name name_of(const struct rpc_wave_ref *r)
{
	struct rpc_wave_name n = { .queue_id = r->queue_id, .has_unit = true, .unit = r->unit };

	n.has_dispatch = n.has_workgroup = n.has_wave_in_group =
		r->has_dispatch && r->n_workgroup == 3 && r->has_wave_in_group;
	n.has_index = !n.has_dispatch;
	n.index = r->index;
	n.dispatch = r->dispatch;
	n.workgroup = r->workgroup;
	n.n_workgroup = n.has_workgroup ? r->n_workgroup : 0;
	n.wave_in_group = r->wave_in_group;
	return n;
}

int ctl_check_stopped(struct ctl *c, const struct rpc_gpu_snapshot_result *s)
{
	char later[48] = "";

	if (!s->no_stop)
		return 0;
	if (s->has_retry_ms)
		snprintf(later, sizeof(later), "; again in %u ms", s->retry_ms);
	return agent_err_set(&c->err, RPC_ERROR_TIMEOUT, 0, "look at waves", "gpu-agentctl queues needs no stop",
			     "those who may only look have had the queues stopped for as long as they may%s", later);
}

int args_check_queue(struct ctl *c, enum rpc_vendor vendor, uint32_t id, const struct rpc_queue *queues, size_t n)
{
	const char *one = vendor_word(vendor, "queue"), *many = vendor_word(vendor, "queues");
	auto_out struct out ids = { 0 };

	for (size_t i = 0; i < n; i++) {
		if (queues[i].queue_id == id)
			return 0;
		if (i < QUEUES_NAMED_MAX)
			out_fmt(&ids, "%s%u", i ? ", " : "", queues[i].queue_id);
	}
	if (n > QUEUES_NAMED_MAX)
		out_fmt(&ids, " and %zu more", n - QUEUES_NAMED_MAX);
	if (out_error(&ids))
		return agent_err_no_memory(&c->err, NULL);
	return agent_err_set(&c->err, RPC_ERROR_NO_SUCH_WAVE, 0, "find the queue", NULL,
			     "there is no %s %u: the process has %s%s%s", one, id, n ? many : "none", n ? " " : "",
			     n ? ids.data : "");
}

int args_check_queues(struct ctl *c, const uint32_t *ids, size_t n)
{
	const struct rpc_gpu_queues_params p = { .session = c->session.session };
	struct rpc_gpu_queues_result there;
	int r = ctl_called(c, rpc_client_gpu_queues(c->client, &p, &c->arena, &there, &c->err));

	for (size_t i = 0; r == 0 && i < n; i++)
		r = args_check_queue(c, c->vendor, ids[i], there.queues, there.n_queues);
	return r;
}

int args_find_wave_lane(struct ctl *c, struct rpc_wave_name *wave, bool *has_lane, uint32_t *lane)
{
	const struct rpc_gpu_snapshot_params p = { .session = c->session.session,
						   .has_max_stop_ms = c->max_look_ms,
						   .max_stop_ms = c->max_look_ms };
	struct rpc_gpu_snapshot_result s;
	const struct rpc_group *found;
	int r;

	if (wave->has_unit)
		return 0;
	r = ctl_called(c, rpc_client_gpu_snapshot(c->client, &p, &c->arena, &s, &c->err));
	if (r == 0)
		r = ctl_check_stopped(c, &s);
	if (r < 0)
		return r;
	if (wave->index > s.n_groups)
		return agent_err_set(&c->err, RPC_ERROR_NO_SUCH_WAVE, 0, "find the wave", NULL,
				     "there is no row %u: snapshot shows %zu", wave->index, s.n_groups);
	found = &s.groups[wave->index - 1];
	*wave = name_of(&found->representative);
	if (found->has_lane && !*has_lane) {
		*has_lane = true;
		*lane = found->lane;
	}
	return 0;
}

int args_find_wave(struct ctl *c, struct rpc_wave_name *wave)
{
	bool has_lane = false;
	uint32_t lane;

	return args_find_wave_lane(c, wave, &has_lane, &lane);
}

void args_stops(const struct ctl *c, bool stop, struct rpc_host_stacks_params *p)
{
	p->has_stop = p->stop = stop;
	p->has_max_stop_ms = stop && c->max_stop_ms;
	p->max_stop_ms = c->max_stop_ms < STOPS_MAX_MS ? c->max_stop_ms : STOPS_MAX_MS;
}
