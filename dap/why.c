/* SPDX-License-Identifier: MIT */
/*
 * What the waves of a thread wait for, and who keeps others from going on.  It is asked for when the scope is opened:
 * the agent looks at all waves for it, and once more where the queues run.
 */
#include <errno.h>

#include "dap/values/values.h"

/* Most waits that are shown; those of the thread come first. */
#define WAITS_SHOWN 32u

static void put(struct dap_page *p, const char *name, const char *text, enum rpc_confidence confidence)
{
	const struct dap_row row = { .name = name, .read_only = true,
				     .value = rpc_arena_printf(&p->d->arena, "%s [%s]", text,
							       rpc_enum_name(&rpc_confidence_enum, confidence)) };

	dap_put_row(p, &row);
}

static void put_text(struct dap_page *p, const char *name, const char *text)
{
	const struct dap_row row = { .name = name, .read_only = true, .value = text };

	dap_put_row(p, &row);
}

/* Is it where waves of the thread are?  All waves of a dispatch are in a collective operation, wherever they are. */
static bool is_here(const struct dap_thread *t, const struct rpc_wait *w)
{
	if (w->gpu_id != t->group->gpu_id)
		return false;
	if (w->kind == RPC_WAIT_KIND_COLLECTIVE)
		return w->queue_id == t->wave.queue_id && w->has_dispatch && t->wave.has_dispatch &&
		       w->dispatch == t->wave.dispatch;
	return w->has_at && w->at.pc == t->pc;
}

static void put_waits(struct dap_page *p, const struct dap_thread *t, const struct rpc_why_get_result *r)
{
	uint32_t left = WAITS_SHOWN, here_n = 0;

	for (int here = 1; here >= 0; here--)
		for (size_t i = 0; i < r->n_waits && left; i++) {
			if (is_here(t, &r->waits[i]) != here)
				continue;
			put(p, here ? "waits" : "elsewhere", r->waits[i].text, r->waits[i].confidence);
			here_n += (uint32_t)here;
			left--;
		}
	if (!here_n)
		put_text(p, "waits", "not known of these waves");
	if (r->n_waits > WAITS_SHOWN)
		put_text(p, "more", rpc_arena_printf(&p->d->arena, "%zu wait%s", r->n_waits - WAITS_SHOWN,
						     r->n_waits - WAITS_SHOWN == 1 ? "" : "s"));
}

/*
 * Most causes take two samples.  They are not taken here: while the session keeps the queues stopped nothing moves, so
 * that this time does not count, and while they run the editor asks when it likes.
 */
static const char *samples_text(struct dap *d)
{
	if (dap_is_core(d))
		return "one, as of every core: it does not tell for how long anything waits";
	return rpc_arena_printf(&d->arena, "one, which does not tell for how long anything waits: "
					   "`gpu-agentctl why %u --twice` compares two when the GPU runs", d->pid);
}

int dap_open_why(struct dap_page *p, const struct dap_ref *ref, struct agent_err *err)
{
	struct dap *d = p->d;
	const struct rpc_why_get_params params = { .session = d->session, .has_max_stop_ms = d->max_stop_ms,
						   .max_stop_ms = d->max_stop_ms };
	struct rpc_why_get_result r;

	if (!d->client)
		return dap_invalid(err, "the session has ended");
	if (rpc_client_why_get(d->client, &params, &d->arena, &r, err) < 0)
		return -EIO;
	for (size_t i = 0; i < r.n_causes && r.causes[i].culprit; i++)
		put(p, "cause", r.causes[i].text, r.causes[i].confidence);
	put_waits(p, &ref->snap->threads[ref->thread], &r);
	put_text(p, "samples", samples_text(d));
	for (size_t i = 0; i < r.n_missing; i++)
		put_text(p, "missing", r.missing[i]);
	return 0;
}
