/* SPDX-License-Identifier: MIT */
/* A wait in one line, as every client shows it, and which wait the waves of a group are in. */
#include <string.h>

#include "agentd/worker/wait/look.h"
#include "agentd/worker/wait/wait.h"
#include "base/out.h"
#include "base/str.h"
#include "protocol/wait_kind.h"

/* How many of those who are missing a line names. */
#define PARTIES_SHOWN 3u

/* Behind the number of a warp. */
static bool has_others(const char *who)
{
	const size_t n = strspn(who + strlen("warp "), "0123456789");

	return str_starts_with(who + strlen("warp ") + n, " and ");
}

const char *look_verb(const char *who)
{
	static const char *const plurals[] = { "lanes ", "waves ", "warps " };

	/* Where memory ends, which is told by the arena. */
	if (!who)
		return "waits";
	for (size_t i = 0; i < sizeof(plurals) / sizeof(plurals[0]); i++)
		if (str_starts_with(who, plurals[i]))
			return "wait";
	/* "warp 1 and lanes 2-31 of warp 0"; names of kernels may have any word, but what is in front of them has not. */
	return str_starts_with(who, "warp ") && has_others(who) ? "wait" : "waits";
}

static void put_what(struct out *o, const struct rpc_wait *w)
{
	const char *words = wait_kind_words(w->kind);
	const bool is_one = w->waves == 1 || w->kind == RPC_WAIT_KIND_QUEUE || w->kind == RPC_WAIT_KIND_MBARRIER;
	const char *verb = is_one ? look_verb(w->who) : "wait";

	out_fmt(o, "%s %s", w->who, verb);
	if (w->kind == RPC_WAIT_KIND_MBARRIER && w->has_object && w->has_condition)
		out_fmt(o, " on mbarrier 0x%llx (phase %d)", (unsigned long long)w->object.address,
			(int)(w->condition.value >> 63));
	else if (w->kind != RPC_WAIT_KIND_QUEUE)
		out_fmt(o, " %s a %s", wait_kind_joint(w->kind), words ? words : rpc_wait_kind_name(w->kind));
	if (w->has_at && w->at.place)
		out_fmt(o, ", at %s", w->at.place);
	else if (w->has_at)
		out_fmt(o, ", at 0x%llx", (unsigned long long)w->at.pc);
}

/* Arrivals and bytes are counted apart, and the phase ends when neither is missing. */
static void put_arrivals(struct out *o, const struct rpc_wait *w)
{
	const char *copies = NULL;

	for (size_t i = 0; i < w->n_evidence; i++)
		if (!strcmp(w->evidence[i].what, LOOK_COPIES))
			copies = w->evidence[i].value;
	if (w->expects == 1)
		out_str(o, ": the one arrival has come");
	else
		out_fmt(o, ": all %u arrivals have come", w->expects);
	/* There may be more than were expected so far: the count is signed. */
	if (copies && copies[0] != '-' && strcmp(copies, "0") != 0)
		out_fmt(o, ", and %s byte%s of copies %s not", copies, strcmp(copies, "1") ? "s" : "",
			strcmp(copies, "1") ? "have" : "has");
	else if (copies)
		out_fmt(o, ", and the count of bytes that copies lack is %s", copies);
}

static void put_parties(struct out *o, const struct rpc_wait *w, bool is_nvidia)
{
	if (w->has_has && w->has_expects && w->kind == RPC_WAIT_KIND_QUEUE)
		out_fmt(o, ": %u of %u signal%s given", w->has, w->expects, w->expects == 1 ? "" : "s");
	else if (w->has_has && w->has_expects && w->kind == RPC_WAIT_KIND_MBARRIER && w->has == w->expects)
		put_arrivals(o, w);
	else if (w->has_has && w->has_expects)
		out_fmt(o, ": %u of %u %s come", w->has, w->expects, w->has == 1 ? "has" : "have");
	for (size_t i = 0; i < w->n_missing && i < PARTIES_SHOWN; i++)
		out_fmt(o, "%s%s", i ? "; " : w->candidates ? "; missing may be: " : "; missing: ", w->missing[i].what);
	if (w->n_missing > PARTIES_SHOWN)
		out_fmt(o, "; and %zu more", w->n_missing - PARTIES_SHOWN);
	if (w->alike > 1)
		out_fmt(o, "; so %s %u more %s%s", w->alike == 2 ? "does" : "do", w->alike - 1,
			is_nvidia ? "block" : "workgroup", w->alike == 2 ? "" : "s");
}

static bool may_starve(const struct rpc_wait *w)
{
	for (size_t i = 0; i < w->n_evidence; i++)
		if (!strcmp(w->evidence[i].what, LOOK_STARVING))
			return true;
	return false;
}

/* Of those that their name tells. */
static const char *named_text(struct look *l, const struct rpc_wait *w)
{
	const char *text = may_starve(w) ?
		rpc_arena_printf(l->arena, "%s; in the sample before as well, and the word has changed since", w->who) :
		NULL;

	return text ? text : w->who;
}

const char *look_wait_text(struct look *l, const struct rpc_wait *w)
{
	auto_out struct out o = { 0 };
	const char *copy;

	if (wait_kind_is_told_by_name(w->kind))
		return named_text(l, w);
	put_what(&o, w);
	put_parties(&o, w, look_is_nvidia(l));
	copy = out_error(&o) ? NULL : rpc_arena_strdup(l->arena, o.data);
	return copy ? copy : w->who;
}

void wait_tell_groups(const uint32_t *of_wave, const uint32_t *group_of, size_t n_waves, struct rpc_group *groups,
		      size_t n_groups)
{
	for (size_t i = 0; i < n_waves; i++) {
		struct rpc_group *g = group_of[i] < n_groups ? &groups[group_of[i]] : NULL;

		if (!g || of_wave[i] == WAIT_NONE)
			continue;
		/* Waits with the most waves come first. */
		if (!g->has_wait || of_wave[i] < g->wait)
			g->wait = of_wave[i];
		g->has_wait = g->has_waiting = true;
		g->waiting++;
	}
}
