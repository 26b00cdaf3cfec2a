/* SPDX-License-Identifier: MIT */
/* gpu-agentctl doctor: every precondition of attaching, with the fix. */
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "ctl/cli_words.h"
#include "ctl/ctl.h"
#include "ctl/terminal/text.h"

/* Whether a check is about one GPU: its name is gpu_ and the kernel's id. */
static bool is_gpu(const struct rpc_check *check, uint32_t *ret_gpu_id)
{
	uint64_t id;

	if (!str_starts_with(check->name, "gpu_") || str_to_u64(check->name + 4, 0, UINT32_MAX, &id) < 0)
		return false;
	*ret_gpu_id = (uint32_t)id;
	return true;
}

/* The agent checks the GPUs of the process, in the order of `devices`. */
static void name_gpus(struct ctl *c, const struct rpc_process_doctor_result *result)
{
	struct rpc_device devices[GPU_NAMES_MAX] = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < result->n_checks && n < GPU_NAMES_MAX; i++)
		n += is_gpu(&result->checks[i], &devices[n].gpu_id);
	gpu_names_set(&c->gpus, devices, n);
}

/* What a check is called: those of GPUs, which the agent names by the kernel's ids, as other verbs call them. */
static const char *check_name(struct ctl *c, const struct rpc_check *check)
{
	uint32_t gpu_id;

	return is_gpu(check, &gpu_id) ? gpu_names_label(&c->gpus, &c->arena, gpu_id) : check->name;
}

static void print_fix(struct ctl *c, const char *name, const struct rpc_check *check)
{
	auto_out struct out text = { 0 };

	text_put(&text, "fix for ", name ? name : check->name, ": ");
	text_put(&text, "", cli_words(c, check->fix), "");
	if (text.size)
		text_wrap(&c->output.text, text.data, text.size, c->output.width, 2);
}

/* Append what mends each check that failed, where something does. */
static void print_fixes(struct ctl *c, const struct rpc_process_doctor_result *result)
{
	struct out *o = &c->output.text;
	bool first = true;

	for (size_t i = 0; i < result->n_checks; i++) {
		const struct rpc_check *check = &result->checks[i];

		if (!check->fix)
			continue;
		if (first)
			out_char(o, '\n');
		print_fix(c, check_name(c, check), check);
		first = false;
	}
}

static int print_checks(struct ctl *c, const struct rpc_process_doctor_result *result)
{
	static const struct table_column columns[] = {
		{ "VERDICT" },
		{ "CHECK" },
		{ "FOUND", .importance = 1, .min = 20, .wrap = true },
	};
	static const enum color_style styles[] = {
		[RPC_VERDICT_PASS] = COLOR_GOOD,
		[RPC_VERDICT_FAIL] = COLOR_BAD,
		[RPC_VERDICT_UNKNOWN] = COLOR_WARN,
	};
	auto_table struct table t;
	int r;

	name_gpus(c, result);
	table_init(&t, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < result->n_checks; i++) {
		const struct rpc_check *check = &result->checks[i];

		table_style(&t, styles[check->verdict],
			    show_name(&c->arena, &rpc_verdict_enum, check->verdict));
		table_str(&t, check_name(c, check));
		table_str(&t, cli_words(c, check->detail));
	}
	r = ctl_print_table(c, &t);
	print_fixes(c, result);
	return r;
}

static int run(struct ctl *c, int argc, char **argv)
{
	struct rpc_process_doctor_params p;
	struct rpc_process_doctor_result result;
	int r = args_pid(c, argv[0], &p.pid);

	if (r == 0)
		r = ctl_connect(c);
	if (r == 0)
		r = ctl_called(
			c, rpc_client_process_doctor(c->client, &p, &c->arena, &result, &c->err));
	if (r == 0)
		r = ctl_is_json(c) ? ctl_print_result(c) : print_checks(c, &result);
	if (r < 0)
		return r;
	if (!result.ok)
		ctl_note(c, "process %u cannot be debugged: see the failed checks", result.pid);
	return result.ok ? 0 : CTL_EXIT_NOT_DEBUGGABLE;
}

const struct ctl_verb ctl_verb_doctor = {
	.name = "doctor",
	.args = "PID",
	.summary = "Check every precondition of attaching to a process, without touching it",
	.min_args = 1,
	.max_args = 1,
	.run = run,
};
