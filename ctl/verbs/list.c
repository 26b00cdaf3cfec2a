/* SPDX-License-Identifier: MIT */
/* gpu-agentctl list: GPU processes, and why not when one cannot be debugged. */
#include <string.h>

#include "base/cleanup.h"
#include "base/out.h"
#include "ctl/cli_words.h"
#include "ctl/ctl.h"
#include "ctl/job/pods.h"

static const char *pod;
static bool pids_only, with_command_line;

static const struct argv_option options[] = {
	{ "pod-uid", 0, ARGV_STRING, &pod, "UID", "only processes of this pod of Kubernetes" },
	{ "pids", 0, ARGV_FLAG, &pids_only, NULL, "print process ids alone, one a line" },
	{ "command-line", 0, ARGV_FLAG, &with_command_line, NULL, "also show what processes were called with" },
	{ 0 },
};

/* The suspension of a process's queues, if a session has one that this user may see. */
static const char *suspension_of(struct ctl *c, const struct rpc_session_list_result *sessions,
				 uint32_t pid)
{
	for (size_t i = 0; i < sessions->n_sessions; i++)
		if (sessions->sessions[i].pid == pid && sessions->sessions[i].has_suspension)
			return show_suspension(&c->arena, sessions->sessions[i].vendor,
					       &sessions->sessions[i].suspension);
	return NULL;
}

/* `s3`, or `s3 (rule nightly)` when a watch rule holds that session. */
static const char *session_text(struct ctl *c, const struct rpc_session_list_result *sessions,
				const char *id)
{
	for (size_t i = 0; id && i < sessions->n_sessions; i++)
		if (!strcmp(sessions->sessions[i].session, id) && sessions->sessions[i].rule)
			return rpc_arena_printf(&c->arena, "%.20s (rule %.32s)", id,
						sessions->sessions[i].rule);
	return id;
}

static const char *rank_text(struct ctl *c, const struct rpc_process *p)
{
	if (!p->has_rank)
		return NULL;
	return p->rank.has_world_size ? rpc_arena_printf(&c->arena, "%u of %u", p->rank.rank, p->rank.world_size) :
					rpc_arena_printf(&c->arena, "%u", p->rank.rank);
}

static int print_processes(struct ctl *c, const struct rpc_process_list_result *list,
			   const struct rpc_session_list_result *sessions)
{
	/*
	 * What one came for stands first.  Reasons are cut early because nothing of them is lost:
	 * they go on below.
	 */
	static const struct table_column columns[] = {
		{ "PID", true },
		{ "USER", .importance = 6, .min = 8 },
		{ "COMMAND", .importance = 8, .min = 10 },
		{ "DEBUG" },
		{ "REASON", .optional = true, .importance = 2, .min = 26, .wrap = true },
		{ "VENDOR", .importance = 7 },
		{ "GPUS", true, true, 5 },
		{ "QUEUES", true, true, 5 },
		{ "SUSPENDED", .optional = true, .importance = 2, .min = 16, .wrap = true },
		{ "SESSION", .optional = true, .importance = 4 },
		{ "NSPID", true, true, 3 },
		{ "CONTAINER", .optional = true, .importance = 1 },
		{ "RANK", .optional = true, .importance = 5, .min = 4 },
		{ "COMMAND LINE", .optional = true, .importance = 1, .min = 12 },
	};
	auto_table struct table t;

	table_init(&t, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < list->n_processes; i++) {
		const struct rpc_process *p = &list->processes[i];

		table_u64(&t, p->pid);
		table_str(&t, show_user(&c->arena, p->uid));
		table_str(&t, p->comm);
		table_style(&t, p->debuggable ? COLOR_GOOD : COLOR_WARN,
			    p->debuggable ? "yes" : "no");
		table_str(&t, cli_words(c, p->reason));
		table_str(&t, show_name(&c->arena, &rpc_vendor_enum, p->vendor));
		/* What NVIDIA's processes have, only attaching tells. */
		table_u64_if(&t, p->n_gpu_ids > 0, p->n_gpu_ids);
		table_u64_if(&t, p->queues || p->vendor != RPC_VENDOR_NVIDIA, p->queues);
		table_style(&t, COLOR_WARN, suspension_of(c, sessions, p->pid));
		table_str(&t, session_text(c, sessions, p->session));
		table_u64_if(&t, p->has_ns_pid, p->ns_pid);
		table_str(&t, p->container);
		table_str(&t, rank_text(c, p));
		table_str(&t, with_command_line ? p->command_line : NULL);
	}
	return ctl_print_table(c, &t);
}

static bool is_of_pod(uint32_t pid)
{
	auto_free char *text = NULL;
	size_t size;

	/* One that has just ended belongs to nobody. */
	return pods_read_cgroup(pid, &text, &size) == 0 && pods_has_process(pod, text, size);
}

static void keep_those_of_pod(struct rpc_process_list_result *list)
{
	size_t n = 0;

	for (size_t i = 0; i < list->n_processes; i++)
		if (is_of_pod(list->processes[i].pid))
			list->processes[n++] = list->processes[i];
	list->n_processes = n;
}

static int print_json(struct ctl *c, const struct rpc_process_list_result *list)
{
	auto_out struct out text = { 0 };

	if (!pod)
		return ctl_print_result(c);
	rpc_process_list_result_encode(&text, list);
	return ctl_print_json(c, &text);
}

static int print_pids(struct ctl *c, const struct rpc_process_list_result *list)
{
	for (size_t i = 0; i < list->n_processes; i++)
		out_fmt(&c->output.text, "%u\n", list->processes[i].pid);
	return 0;
}

static int run(struct ctl *c, int argc, char **argv)
{
	struct rpc_process_list_result list;
	struct rpc_session_list_result sessions;
	int r = 0;

	if (pod && !pods_is_uid(pod))
		r = ctl_usage(c, "--pod-uid: \"%.60s\" is not the UID of a pod", pod);
	if (r == 0 && pids_only && ctl_is_json(c))
		r = ctl_usage(c, "--pids prints no JSON");
	if (r == 0)
		r = ctl_connect(c);
	if (r == 0)
		r = ctl_called(c,
			       rpc_client_process_list(c->client, NULL, &c->arena, &list, &c->err));
	if (r < 0)
		return r;
	if (pod)
		keep_those_of_pod(&list);
	if (ctl_is_json(c))
		return print_json(c, &list);
	for (size_t i = 0; i < list.n_missing; i++)
		ctl_note(c, "%s", list.missing[i]);
	if (!list.n_processes) {
		ctl_note(c, "no %sprocess%s uses a GPU", list.n_missing ? "other " : "", pod ? " of this pod" : "");
		return 0;
	}
	if (pids_only)
		return print_pids(c, &list);
	r = ctl_called(c, rpc_client_session_list(c->client, NULL, &c->arena, &sessions, &c->err));
	return r < 0 ? r : print_processes(c, &list, &sessions);
}

const struct ctl_verb ctl_verb_list = {
	.name = "list",
	.args = "",
	.summary = "List the processes that use a GPU, and why one cannot be debugged",
	.options = options,
	.run = run,
};
