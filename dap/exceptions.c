/* SPDX-License-Identifier: MIT */
/* The exception that stopped the process, or that was told while it runs, in the editor's words. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "dap/adapter.h"
#include "protocol/stop_reason.h"

bool dap_exception_is_fault(enum rpc_exception e)
{
	switch (e) {
	case RPC_EXCEPTION_WAVE_TRAP:
	case RPC_EXCEPTION_QUEUE_NEW:
	case RPC_EXCEPTION_DEVICE_QUEUE_DELETE:
	case RPC_EXCEPTION_DEVICE_NEW:
	case RPC_EXCEPTION_PROCESS_RUNTIME:
		return false;
	default:
		return true;
	}
}

/*
 * Whether waves raised all of it; their reasons say the same then.  The codes of waves come first,
 * but WAVE_FAULT was added behind the others.
 */
static bool is_of_waves(const struct rpc_exception_raised_params *e)
{
	for (size_t i = 0; i < e->n_exceptions; i++)
		if (e->exceptions[i] > RPC_EXCEPTION_WAVE_ADDRESS_ERROR &&
		    e->exceptions[i] != RPC_EXCEPTION_WAVE_FAULT)
			return false;
	return e->n_exceptions != 0;
}

/* ------------------------------------------------------------------ words -------------------- */

/* Append the agent's sentence without its period. */
static void put_words(struct out *o, const struct rpc_exception_raised_params *e)
{
	size_t n = e->text ? strlen(e->text) : 0;

	if (n && e->text[n - 1] == '.')
		n--;
	out_bytes(o, e->text, n);
}

/* Append where a fault was, and what was wrong with the access. */
static void put_address(struct out *o, const struct rpc_exception_raised_params *e)
{
	if (!e->has_address)
		return;
	out_fmt(o, "; the fault was at 0x%" PRIx64, e->address);
	if (e->has_not_present && e->not_present)
		out_str(o, ", where nothing is mapped");
	if (e->has_read_only && e->read_only)
		out_str(o, ", a write to read-only memory");
	if (e->has_no_execute && e->no_execute)
		out_str(o, ", a fetch from memory without code");
}

const char *dap_exception_text(struct rpc_arena *a, const struct dap *d,
			       const struct rpc_exception_raised_params *e)
{
	auto_out struct out o = { 0 };

	put_words(&o, e);
	if (e->has_queue_id)
		out_fmt(&o, ", queue %u", e->queue_id);
	if (e->has_gpu_id)
		out_fmt(&o, ", %s", dap_device_text(a, d, e->gpu_id));
	put_address(&o, e);
	return rpc_arena_strdup(a, o.data ? o.data : "");
}

/* ------------------------------------------------------------------ which thread ------------- */

/* Whether a group is one that the exception concerns. */
static bool is_concerned(const struct rpc_exception_raised_params *e, const struct rpc_group *g)
{
	for (size_t i = 0; i < e->n_groups; i++)
		if (e->groups[i].gpu_id == g->gpu_id && e->groups[i].pc == g->pc &&
		    e->groups[i].n_reasons == g->n_reasons &&
		    !memcmp(e->groups[i].reasons, g->reasons,
			    g->n_reasons * sizeof(*g->reasons)))
			return true;
	return false;
}

size_t dap_exception_thread(const struct dap *d)
{
	const struct rpc_exception_raised_params *e = &d->exception;
	const struct dap_snapshot *s = d->snap;

	for (size_t i = 0; i < s->n_threads; i++)
		if (is_concerned(e, s->threads[i].group))
			return i;
	/* Threads are in order, faulting ones first. */
	for (size_t i = 0; i < s->n_threads; i++)
		if (!e->has_gpu_id || e->gpu_id == s->threads[i].group->gpu_id)
			return i;
	return 0;
}

const char *dap_stop_text(struct rpc_arena *a, const struct dap *d, size_t thread)
{
	const struct dap_snapshot *s = d->snap;
	const char *why = thread < s->n_threads ? dap_group_reasons(a, s->threads[thread].group) :
						  NULL;

	/* What a multiprocessor has kept says more than the event that told of it. */
	if ((!why || !why[0]) && s->doc.n_exited)
		return s->doc.exited[0].exception;
	if (!d->has_exception || dap_exception_thread(d) != thread)
		return why;
	if (why && why[0] && is_of_waves(&d->exception))
		return why;
	return dap_exception_text(a, d, &d->exception);
}

/* ------------------------------------------------------------------ before the session ------- */

/* Make the faults of a list the exception; false if there are none. */
static bool take_latched(struct dap *d, const enum rpc_exception *list, size_t n)
{
	struct rpc_arena *a = &d->exception_arena;
	struct rpc_exception_raised_params *e = &d->exception;
	auto_out struct out text = { 0 };

	*e = (struct rpc_exception_raised_params){ 0 };
	rpc_arena_reset(a);
	e->exceptions = rpc_arena_array(a, n, sizeof(*e->exceptions));
	for (size_t i = 0; e->exceptions && i < n; i++) {
		if (!dap_exception_is_fault(list[i]))
			continue;
		e->exceptions[e->n_exceptions++] = list[i];
		for (size_t v = 0; v < rpc_exception_enum.n; v++)
			if (rpc_exception_enum.values[v].value == (int64_t)list[i])
				out_fmt(&text, "%s%s", text.size ? " " : "",
					rpc_exception_enum.values[v].doc);
	}
	e->text = rpc_arena_strdup(a, text.data ? text.data : "");
	d->has_exception = e->n_exceptions && e->text;
	return d->has_exception;
}

bool dap_exception_latched(struct dap *d)
{
	const struct rpc_gpu_snapshot_result *doc = &d->snap->doc;

	for (size_t i = 0; i < doc->n_devices; i++)
		if (take_latched(d, doc->devices[i].exceptions, doc->devices[i].n_exceptions)) {
			d->exception.has_gpu_id = true;
			d->exception.gpu_id = doc->devices[i].gpu_id;
			return true;
		}
	for (size_t i = 0; i < doc->n_queues; i++)
		if (take_latched(d, doc->queues[i].exceptions, doc->queues[i].n_exceptions)) {
			d->exception.has_gpu_id = d->exception.has_queue_id = true;
			d->exception.gpu_id = doc->queues[i].gpu_id;
			d->exception.queue_id = doc->queues[i].queue_id;
			return true;
		}
	return false;
}

/* ------------------------------------------------------------------ exceptionInfo ------------ */

/* Append the answer of exceptionInfo. */
static int put_info(struct out *body, const char *id, const char *text)
{
	out_json_fmt(body, "{'exceptionId':%s,'description':%s,'breakMode':'always',"
		     "'details':{'message':%s,'typeName':%s}}", id, text, text, id);
	return 0;
}

int dap_exception_info(struct dap *d, const struct dap_request *q, struct dap_answer *ret)
{
	struct rpc_arena *a = &d->arena;
	const struct rpc_gpu_snapshot_result *doc = &d->snap->doc;
	/* Without waves there is one thread in name only, but there may be an exception. */
	bool is_nobodys = !d->snap->n_all && (d->has_exception || doc->n_exited);
	const struct dap_thread *t = is_nobodys ? NULL : dap_thread_arg(d, q->args, &ret->err);
	size_t thread = t ? (size_t)(t - d->snap->threads) : 0;
	bool is_its = d->has_exception && dap_exception_thread(d) == thread;
	const char *why = t ? dap_group_reasons(a, t->group) : "";
	auto_out struct out text = { 0 };

	if (!t && !is_nobodys)
		return -EINVAL;
	if ((!why || !why[0]) && doc->n_exited)
		return put_info(&ret->body, doc->exited[0].exception, dap_exited_text(a, &doc->exited[0]));
	if (!is_its && (!why || !why[0]))
		return dap_invalid(&ret->err, "exceptionInfo: no exception stopped this group");
	if (why && why[0])
		out_fmt(&text, "%u wave%s stopped at 0x%" PRIx64 ": %s", t->group->waves,
			t->group->waves == 1 ? "" : "s", t->pc, why);
	if (is_its && why && why[0] && is_of_waves(&d->exception)) {
		put_address(&text, &d->exception);
	} else if (is_its) {
		out_fmt(&text, "%s%s", text.size ? "\n" : "",
			dap_exception_text(a, d, &d->exception));
		why = rpc_enum_join(a, &rpc_exception_enum, d->exception.exceptions,
				    d->exception.n_exceptions);
	}
	return put_info(&ret->body, why, text.data ? text.data : "");
}
