/* SPDX-License-Identifier: MIT */
/*
 * gpu-agentctl watchpoint: set, list and clear watch points.  A watch point lasts as long as the
 * session, so `set` stays until it is told to let go.
 */
#include <string.h>

#include "base/str.h"
#include "ctl/ctl.h"
#include "ctl/stream.h"

/* Bytes of the largest range, and the highest id, that the agent accepts. */
#define WATCH_SIZE_MAX (UINT64_C(1) << 30)
#define WATCH_ID_MAX   3

static const char *mode, *gpu, *id, *for_text;
static bool until_eof;

static const struct argv_option options[] = {
	{ "mode", 0, ARGV_STRING, &mode, "MODE", "set: read, nonread, atomic or all (default)" },
	{ "gpu", 0, ARGV_STRING, &gpu, "GPU", "set, clear: only this device (default all)" },
	{ "id", 0, ARGV_STRING, &id, "N", "clear: only this watch point (default all)" },
	STREAM_OPTIONS(for_text, until_eof),
	{ 0 },
};

/*
 * Read the arguments of `set`.  Hardware compares masked addresses: sizes are powers of two, and
 * addresses multiples of the size.
 */
static int parse_set(struct ctl *c, char **argv, struct rpc_watchpoint_set_params *p)
{
	int r = args_address(c, "ADDRESS", argv[2], &p->address);

	if (r == 0)
		r = args_size(c, "SIZE", argv[3], WATCH_SIZE_MAX, &p->size);
	if (r < 0)
		return r;
	if (p->size & (p->size - 1))
		return ctl_usage(c, "SIZE: \"%.40s\" is not a power of two", argv[3]);
	if (p->address & (p->size - 1))
		return ctl_usage(c, "ADDRESS: \"%.40s\" is not a multiple of the size", argv[2]);
	p->has_gpu_id = gpu;
	p->has_mode = mode;
	if (mode && rpc_watch_mode_parse(mode, &p->mode) < 0)
		return ctl_usage(c, "--mode: \"%.40s\" is none of read, nonread, atomic, all",
				 mode);
	return 0;
}

static int run_set(struct ctl *c, char **argv)
{
	struct rpc_watchpoint_set_params p = { 0 };
	struct rpc_watchpoint_set_result result;
	enum stream_end end = STREAM_END_TIME;
	struct stream s;
	int r = parse_set(c, argv, &p);

	if (r == 0)
		r = stream_begin(c, &s, for_text, until_eof);
	if (r == 0)
		r = ctl_attach(c, argv[0], true);
	if (r < 0)
		return r;
	p.session = c->session.session;
	ctl_name_gpus_for_text(c);
	r = gpu ? args_gpu(c, "--gpu", gpu, &p.gpu_id) : 0;
	if (r == 0)
		r = ctl_called(c, rpc_client_watchpoint_set(c->client, &p, &c->arena, &result, &c->err));
	if (r == 0)
		r = ctl_is_json(c) ? ctl_print_result(c)
				   : show_watchpoints(c, result.watchpoints, result.n_watchpoints);
	if (r == 0) {
		str_copy(s.notice, sizeof(s.notice),
			 "the watch point lasts as long as this command; Ctrl-C removes it");
		r = stream_run(c, &s, &end);
	}
	ctl_detach(c);
	return r < 0 ? r : stream_status(c, &s, end);
}

static int print_list(struct ctl *c, const struct rpc_watchpoint_list_result *result)
{
	if (result->n_watchpoints)
		return show_watchpoints(c, result->watchpoints, result->n_watchpoints);
	ctl_note(c, "no watch points in the session");
	return 0;
}

static int run_list(struct ctl *c, char **argv)
{
	struct rpc_watchpoint_list_params p = { 0 };
	struct rpc_watchpoint_list_result result;
	int r = ctl_attach(c, argv[0], false);

	if (r < 0)
		return r;
	p.session = c->session.session;
	ctl_name_gpus_for_text(c);
	r = ctl_called(c, rpc_client_watchpoint_list(c->client, &p, &c->arena, &result, &c->err));
	if (r == 0)
		r = ctl_is_json(c) ? ctl_print_result(c) : print_list(c, &result);
	ctl_detach(c);
	return r;
}

static int run_clear(struct ctl *c, char **argv)
{
	struct rpc_watchpoint_clear_params p = { .has_gpu_id = gpu, .has_id = id };
	struct rpc_watchpoint_clear_result result;
	int r = id ? args_u32(c, "--id", id, 0, WATCH_ID_MAX, &p.id) : 0;

	if (r == 0)
		r = ctl_attach(c, argv[0], true);
	if (r < 0)
		return r;
	p.session = c->session.session;
	r = gpu ? args_gpu(c, "--gpu", gpu, &p.gpu_id) : 0;
	if (r == 0)
		r = ctl_called(c, rpc_client_watchpoint_clear(c->client, &p, &c->arena, &result, &c->err));
	if (r == 0 && ctl_is_json(c))
		r = ctl_print_result(c);
	if (r == 0)
		ctl_note(c, "%u watch point%s removed", result.cleared,
			 result.cleared == 1 ? "" : "s");
	ctl_detach(c);
	return r;
}

static int run(struct ctl *c, int argc, char **argv)
{
	static const struct {
		const char *name;
		int args;
		int (*run)(struct ctl *c, char **argv);
	} actions[] = { { "set", 4, run_set }, { "list", 2, run_list }, { "clear", 2, run_clear } };

	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		if (strcmp(argv[1], actions[i].name))
			continue;
		if (argc < actions[i].args)
			return ctl_usage(c, "watchpoint set needs PID set ADDRESS SIZE");
		if (argc > actions[i].args)
			return ctl_usage(c, "watchpoint %s: unexpected argument \"%.40s\"", argv[1],
					 argv[actions[i].args]);
		return actions[i].run(c, argv);
	}
	return ctl_usage(c, "watchpoint: \"%.40s\" is none of set, list, clear", argv[1]);
}

const struct ctl_verb ctl_verb_watchpoint = {
	.name = "watchpoint",
	.args = "PID set ADDRESS SIZE | PID list | PID clear",
	.summary = "Watch a range of addresses, list or remove watch points",
	.options = options,
	.min_args = 2,
	.max_args = 4,
	.run = run,
};
