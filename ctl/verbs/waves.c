/* SPDX-License-Identifier: MIT */
/*
 * gpu-agentctl waves: waves of a process one by one, those that are wanted.  The agent leaves out
 * other groups; the other conditions are applied here.
 */
#include <inttypes.h>
#include <string.h>

#include "ctl/cli_words.h"
#include "ctl/ctl.h"

#define REPLY_MEMORY_MAX ((size_t)512 << 20)

static const char *queue_option, *group_option, *state_option, *limit_option;

static const struct argv_option options[] = {
	{ "queue", 0, ARGV_STRING, &queue_option, "ID", "only waves of this queue", "context" },
	{ "group", 0, ARGV_STRING, &group_option, "N", "only those of row N (#) of snapshot" },
	{ "state", 0, ARGV_STRING, &state_option, "STATE",
	  "only running, halted or stopped ones; or those stopped for one reason" },
	{ "limit", 0, ARGV_STRING, &limit_option, "N", "no more than that" },
	{ 0 },
};

/* Which waves are asked for. */
struct filter {
	uint32_t queue_id, limit;
	uint32_t group; /* Position in the list of groups. */
	int64_t state, reason; /* -1 stands for any. */
};

/* A reason may be written as tables show it: `memory violation` for memory_violation. */
static int parse_state(struct ctl *c, struct filter *f)
{
	char *name = rpc_arena_strdup(&c->arena, state_option);

	for (char *p = name; p && *p; p++)
		if (*p == ' ' || *p == '-')
			*p = '_';
	if (name && (rpc_enum_value(&rpc_wave_state_enum, name, &f->state) == 0 ||
		     rpc_enum_value(&rpc_stop_reason_enum, name, &f->reason) == 0))
		return 0;
	return ctl_usage(c, "--state: \"%.40s\" is neither a state of waves nor a reason to stop one",
			 state_option);
}

static int parse(struct ctl *c, struct filter *f)
{
	int r = 0;

	*f = (struct filter){ .limit = UINT32_MAX, .state = -1, .reason = -1 };
	if (queue_option)
		r = args_u32(c, "--queue", queue_option, 0, UINT32_MAX, &f->queue_id);
	if (r == 0 && group_option) {
		r = args_u32(c, "--group", group_option, 1, UINT32_MAX, &f->group);
		f->group--;
	}
	if (r == 0 && limit_option)
		r = args_u32(c, "--limit", limit_option, 1, UINT32_MAX, &f->limit);
	return r == 0 && state_option ? parse_state(c, f) : r;
}

/* Whether a wave meets the conditions that are applied here. */
static bool passes(const struct filter *f, const struct rpc_wave *w)
{
	if (queue_option && w->ref.queue_id != f->queue_id)
		return false;
	if (f->state >= 0 && (int64_t)w->state != f->state)
		return false;
	for (size_t i = 0; f->reason >= 0 && i <= w->n_reasons; i++)
		if (i == w->n_reasons)
			return false;
		else if ((int64_t)w->reasons[i] == f->reason)
			break;
	return true;
}

/*
 * Keep the waves that pass, in their order.
 * @return how many would have passed without the limit.
 */
static size_t choose(const struct filter *f, struct rpc_gpu_snapshot_result *s)
{
	size_t kept = 0, passed = 0;

	for (size_t i = 0; i < s->n_waves; i++) {
		if (!passes(f, &s->waves[i]) || passed++ >= f->limit)
			continue;
		s->waves[kept++] = s->waves[i];
	}
	s->n_waves = kept;
	return passed;
}

static int check_filter(struct ctl *c, const struct filter *f, const struct rpc_gpu_snapshot_result *s)
{
	int r = ctl_check_stopped(c, s);

	if (r < 0)
		return r;
	if (group_option && f->group >= s->n_groups)
		return agent_err_set(&c->err, RPC_ERROR_NO_SUCH_WAVE, 0, "choose waves", NULL,
				     "there is no row %s: snapshot shows %zu", group_option, s->n_groups);
	return queue_option ? args_check_queue(c, s->process.vendor, f->queue_id, s->queues, s->n_queues) : 0;
}

/* The document has `matching` beside the waves, since --limit may leave some out. */
static int print_json(struct ctl *c, const struct rpc_gpu_snapshot_result *s, size_t passed)
{
	auto_out struct out o = { 0 };

	out_json_fmt(&o, "{'wave_count':%u,'matching':%zu,'waves':[", s->wave_count, passed);
	for (size_t i = 0; i < s->n_waves; i++) {
		out_str(&o, i ? "," : "");
		rpc_wave_encode(&o, &s->waves[i]);
	}
	out_json_fmt(&o, "],'stopped_us':%" PRIu64 ",'complete':%i,'missing':[", s->stopped_us,
		     s->complete);
	for (size_t i = 0; i < s->n_missing; i++)
		out_json_fmt(&o, ",%s", s->missing[i]);
	out_str(&o, "]}");
	return ctl_print_json(c, &o);
}

static int print(struct ctl *c, const struct filter *f, struct rpc_gpu_snapshot_result *s)
{
	size_t passed = choose(f, s);
	const char *words = vendor_word(s->process.vendor, "waves");

	ctl_name_gpus_of(c, s);
	if (ctl_is_json(c))
		return print_json(c, s, passed);
	if (!s->wave_count)
		ctl_note(c, "no %s: nothing runs on the GPUs of the process", words);
	else if (!passed)
		ctl_note(c, "no %s match; the process has %u", words, s->wave_count);
	else if (passed > s->n_waves)
		ctl_note(c, "%zu of %zu %s are shown", s->n_waves, passed, words);
	return passed ? show_snapshot_waves(c, s) : 0;
}

static int status_of(struct ctl *c, const struct rpc_gpu_snapshot_result *s)
{
	for (size_t i = 0; i < s->n_missing; i++)
		ctl_note(c, "missing: %s", cli_words(c, s->missing[i]));
	return ctl_status(s->complete, s->budget_exceeded);
}

static int run(struct ctl *c, int argc, char **argv)
{
	struct filter f;
	struct rpc_gpu_snapshot_params p = {
		.has_waves = true,
		.waves = true,
		.has_select = group_option,
		.select = { .groups = &f.group, .n_groups = 1 },
		.has_max_stop_ms = c->max_look_ms,
		.max_stop_ms = c->max_look_ms,
	};
	struct rpc_gpu_snapshot_result result;
	int r = parse(c, &f);

	if (r < 0)
		return r;
	c->arena.limit = REPLY_MEMORY_MAX;
	r = ctl_attach(c, argv[0], false);
	if (r < 0)
		return r;
	p.session = c->session.session;
	r = ctl_called(c, rpc_client_gpu_snapshot(c->client, &p, &c->arena, &result, &c->err));
	if (r == 0)
		r = check_filter(c, &f, &result);
	if (r == 0)
		r = print(c, &f, &result);
	ctl_detach(c);
	return r < 0 ? r : status_of(c, &result);
}

const struct ctl_verb ctl_verb_waves = {
	.name = "waves",
	.alias = "warps",
	.args = "PID",
	.summary = "Show waves one by one",
	.options = options,
	.min_args = 1,
	.max_args = 1,
	.takes_core = true,
	.run = run,
};
