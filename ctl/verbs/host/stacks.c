/* SPDX-License-Identifier: MIT */
/* gpu-agentctl stacks: what the threads of a process do on the processors. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "ctl/ctl.h"
#include "ctl/document/host/host.h"
#include "ctl/host_show.h"
#include "protocol/rpc_queue_place.h"

#define AGAIN_MAX_MS 600000u
/* Processes of a tree that are shown. */
#define TREE_MAX     64
#define REPLY_MEMORY_MAX ((size_t)512 << 20)

static const char *again;
static bool tree, queues, stop;

static const struct argv_option options[] = {
	{ "tree", 0, ARGV_FLAG, &tree, NULL, "also the processes that it has started, and theirs" },
	{ "queues", 0, ARGV_FLAG, &queues, NULL, "attach for a moment, to name queues that threads wait for (AMD)", "contexts" },
	{ "stop", 0, ARGV_FLAG, &stop, NULL,
	  "stop threads whose native frames cannot be read without, one at a time; --max-stop=10ms for all" },
	{ "again", 0, ARGV_STRING, &again, "MS", "look twice, so long apart, and say which threads have run meanwhile" },
	{ 0 },
};

/* What one process looked like earlier, and what is known of its queues. */
struct look {
	struct rpc_host_stacks_params params;
	struct rpc_host_stacks_result result;
	const struct rpc_host_stacks_result *before; /* NULL: it was looked at once. */
};

/* ------------------------------------------------------------------ asking ------------------- */

static int take_queues(struct ctl *c, struct rpc_host_stacks_params *p)
{
	const struct rpc_gpu_queues_params ask = { .session = c->session.session };
	struct rpc_gpu_queues_result r;
	int e = ctl_called(c, rpc_client_gpu_queues(c->client, &ask, &c->arena, &r, &c->err));

	if (e < 0)
		return e;
	e = rpc_queue_places(&c->arena, r.queues, r.n_queues, p);
	return e < 0 ? ctl_fail(c, -e, "queues") : 0;
}

/* Queues are known to a session alone; it is over before the threads are looked at. */
static int find_queues(struct ctl *c, const char *pid, struct rpc_host_stacks_params *p)
{
	int r = ctl_attach(c, pid, false);

	if (r < 0)
		return r;
	r = take_queues(c, p);
	ctl_detach(c);
	return r;
}

static int look(struct ctl *c, struct look *l)
{
	return ctl_host_stacks(c, &l->params, &l->result);
}

static void tell_missing(const struct ctl *c, const struct look *l)
{
	for (size_t i = 0; i < l->result.n_missing; i++)
		if (tree)
			ctl_note(c, "missing: process %u: %s", l->params.pid, l->result.missing[i]);
		else
			ctl_note(c, "missing: %s", l->result.missing[i]);
}

/* ------------------------------------------------------------------ processes ---------------- */

/* Processes that are still to be looked at, and the document about those that were. */
struct family {
	uint32_t pids[TREE_MAX];
	size_t n;
	struct out *json;
	bool is_partial;
};

static void add_children(struct ctl *c, struct family *f, const struct rpc_host_stacks_result *r)
{
	for (size_t i = 0; i < r->n_children; i++) {
		if (f->n < TREE_MAX) {
			f->pids[f->n++] = r->children[i];
			continue;
		}
		ctl_note(c, "missing: more than %d processes", TREE_MAX);
		f->is_partial = true;
		return;
	}
}

/* A child may have ended, and need not be one that may be looked at. */
static void forgive(struct ctl *c, struct family *f, uint32_t pid)
{
	if (c->err.code != RPC_ERROR_NO_SUCH_PROCESS) {
		ctl_note(c, "missing: process %u: %s", pid, c->err.message);
		f->is_partial = true;
	}
	c->err = (struct agent_err){ 0 };
	out_reset(&c->err_json);
}

static void tell_process(struct ctl *c, struct family *f, const struct look *l, bool is_first)
{
	const char *text;
	size_t size;

	f->is_partial |= !l->result.complete;
	tell_missing(c, l);
	if (!ctl_is_json(c)) {
		if (!is_first)
			out_char(&c->output.text, '\n');
		host_show_stacks(c, &l->result, l->before);
		return;
	}
	text = rpc_client_last_result(c->client, &size);
	out_str(f->json, is_first ? "{\"processes\":[" : ",");
	if (text)
		out_bytes(f->json, text, size);
}

static int look_at_tree(struct ctl *c, struct look *first)
{
	auto_out struct out json = { 0 };
	struct family f = { .pids = { first->params.pid }, .n = 1, .json = &json };

	for (size_t i = 0; i < f.n; i++) {
		struct look l = { .params = first->params };
		int r;

		l.params.pid = f.pids[i];
		if (i) {
			l.params.queues = NULL;
			l.params.n_queues = 0;
		}
		r = look(c, &l);
		if (r < 0 && i == 0)
			return r;
		if (r < 0) {
			forgive(c, &f, f.pids[i]);
			continue;
		}
		tell_process(c, &f, &l, i == 0);
		add_children(c, &f, &l.result);
	}
	out_fmt(&json, "],\"complete\":%s}", f.is_partial ? "false" : "true");
	return ctl_is_json(c) && ctl_print_json(c, &json) < 0 ? -EIO : ctl_status(!f.is_partial, false);
}

static int look_at_one(struct ctl *c, struct look *l, uint32_t ms)
{
	const struct timespec pause = { ms / 1000, ms % 1000 * 1000000L };
	struct look first = *l;
	int r = look(c, l);

	if (r == 0 && ms) {
		first = *l;
		nanosleep(&pause, NULL);
		r = look(c, l);
		l->before = &first.result;
	}
	if (r < 0)
		return r;
	if (!ctl_is_json(c))
		host_show_stacks(c, &l->result, l->before);
	else
		r = ctl_print_result(c);
	tell_missing(c, l);
	return r < 0 ? r : ctl_status(l->result.complete, false);
}

static int run(struct ctl *c, int argc, char **argv)
{
	struct look l = { .params = { .has_children = tree, .children = tree } };
	uint32_t ms = 0;
	int r = c->core ? 0 : args_pid(c, argv[0], &l.params.pid);

	c->arena.limit = REPLY_MEMORY_MAX;
	/* It has one process, and need not say which. */
	if (c->core)
		l.params.pid = 1;
	if (r == 0 && c->core && (again || tree || stop))
		return ctl_usage(c, "--again, --tree and --stop need a process: a core does not change, and has one");
	if (r == 0 && again && tree)
		return ctl_usage(c, "--again looks at one process, and --tree at several");
	if (r == 0 && again)
		r = args_ms(c, "--again", again, AGAIN_MAX_MS, &ms);
	args_stops(c, stop, &l.params);
	if (r == 0)
		r = ctl_connect(c);
	if (r == 0 && queues)
		r = find_queues(c, argv[0], &l.params);
	if (r < 0)
		return r;
	return tree ? look_at_tree(c, &l) : look_at_one(c, &l, ms);
}

const struct ctl_verb ctl_verb_stacks = {
	.name = "stacks",
	.args = "PID",
	.summary = "Show what the threads of a process do on the processors; none stops unasked",
	.options = options,
	.min_args = 1,
	.max_args = 1,
	.takes_core = true,
	.run = run,
};
