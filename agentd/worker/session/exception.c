/* SPDX-License-Identifier: MIT */
#include "agentd/worker/session/exception.h"

#include "agentd/worker/session/session.h"
#include "base/out.h"

/* What clients and the rule together want of one exception. */
struct wants {
	uint32_t look_ms; /* The longest stop that clients allow; 0: no client wants a look. */
	bool may_look;	  /* The throttle allows a look. */
	struct rule_verdict rule;
};

/* Ask clients and the rule.  A core of the rule may be refused: the target keeps one at a time. */
static struct wants ask(struct session *s, const struct target_event *e)
{
	const bool of_waves = e->source.exceptions & TARGET_EXCEPTIONS_OF_WAVES;
	struct wants w = {
		.look_ms = of_waves ? subscribers_sum(&s->subscribers).look_ms : 0,
		.may_look = s->target->ops->waves && exception_throttle_allows(&s->captures),
	};

	w.rule = rule_engine_judge(&s->rule, e, w.may_look);
	w.rule.core = w.rule.core && s->core_user == CORE_NOBODY;
	return w;
}

/*
 * The longest stop that one of them allows decides: it would be made for that one alone, too, and
 * a shorter one beside it would cut its waves short.
 */
static uint32_t longest_stop_ms(const struct wants *w)
{
	return w->rule.records && w->look_ms < RULE_STOP_MS ? RULE_STOP_MS : w->look_ms;
}

static void capture(struct session *s, const struct target_event *e, const struct wants *w,
		    struct exception_capture *ret)
{
	auto_out struct out head;
	const struct target_core_wanted core = { .full = w->rule.full, .ours = true, .head = &head };
	const bool why = w->rule.records && w->rule.why;
	struct exception_capture_wanted what = { .all_queues = w->rule.records, .mbarriers = why,
						 .registers = why && s->target->ops->vendor == RPC_VENDOR_AMD };
	uint32_t ms = longest_stop_ms(w);
	int r;

	out_init(&head, 0);
	what.max_stop_ms = w->rule.core ? session_core_stop_begin(s, ms) : session_look_begin(s, ms);
	r = exception_capture_begin(ret, s->target);
	if (r == 0 && w->rule.core &&
	    rule_engine_head(&s->rule, e, &ret->seen, &ret->arena, &head, &ret->core_err) == 0)
		what.core = &core;
	/* A core that is certain to be kept does not wait for the next look. */
	if (r == 0 && (w->may_look || what.core))
		exception_capture_take(ret, &s->captures, s->target, &e->source, &what);
	session_stop_end(s);
	if (ret->has_waves)
		session_note_stop(s, ret->seen.waves.stopped_us);
	if (ret->has_core)
		s->core_user = CORE_RULE;
}

static void announce(struct session *s, const struct target_event *e,
		     const struct exception_capture *seen)
{
	auto_rpc_arena struct rpc_arena arena;
	auto_out struct out text;
	struct rpc_exception_raised_params p;
	char id[16];

	rpc_arena_init(&arena, TARGET_ARENA_MAX);
	out_init(&text, 0);
	exception_report_fill(&s->reports, s->target, e, seen, &arena, &p);
	session_id(s, id);
	p.session = id;
	rpc_exception_raised_params_encode(&text, &p);
	session_notify(s, RPC_NOTIFICATION_EXCEPTION_RAISED, e->source.exceptions, &text);
}

/* End a core that the rule has not taken: the exception was like an earlier one. */
static void drop_core(struct session *s, struct exception_capture *seen)
{
	if (!seen->has_core)
		return;
	s->target->ops->core_end(s->target);
	s->core_user = CORE_NOBODY;
}

bool session_exception(struct session *s, const struct target_event *e)
{
	const struct wants w = ask(s, e);
	struct exception_capture seen;
	bool kept;

	exception_capture_init(&seen);
	if (w.rule.records || (w.look_ms && w.may_look))
		capture(s, e, &w, &seen);
	announce(s, e, w.look_ms ? &seen : NULL);
	kept = rule_engine_exception(&s->rule, e, &w.rule, &seen);
	drop_core(s, &seen);
	exception_capture_deinit(&seen);
	return kept;
}
