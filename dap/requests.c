/* SPDX-License-Identifier: MIT */
/* The table of requests, and the handlers of those about the conversation itself. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "dap/adapter.h"

/* PID_MAX_LIMIT of a 64-bit Linux (include/linux/threads.h). */
#define PID_MAX	    4194304
/* The longest stop that the agent accepts. */
#define STOP_MAX_MS 60000

/* ------------------------------------------------------------------ initialize --------------- */

/* Append what the adapter can do. */
static void put_capabilities(struct out *o)
{
	static const char *const yes[] = {
		"supportsConfigurationDoneRequest", "supportsCancelRequest",
		"supportsReadMemoryRequest", "supportsDisassembleRequest",
		"supportsExceptionInfoRequest", "supportsDataBreakpoints",
		"supportsDataBreakpointBytes", "supportsTerminateRequest",
		"supportsEvaluateForHovers", "supportsCompletionsRequest",
		"supportsDelayedStackTraceLoading",
	};

	out_char(o, '{');
	for (size_t i = 0; i < ARRAY_SIZE(yes); i++)
		out_json_fmt(o, ",%s:true", yes[i]);
	out_json_fmt(o, ",'exceptionBreakpointFilters':");
	dap_put_filters(o);
	out_char(o, '}');
}

static int path_format(struct dap *d, struct dap_json v, struct agent_err *err)
{
	char text[8] = "path";

	if (dap_json_has(v) && !dap_json_str(v, text, sizeof(text)))
		text[0] = '\0';
	d->uris = !strcmp(text, "uri");
	if (!d->uris && strcmp(text, "path") != 0)
		return dap_invalid(err, "pathFormat: must be \"path\" or \"uri\"");
	return 0;
}

static int initialize(struct dap *d, const struct dap_request *q, struct dap_answer *ret)
{
	struct dap_json lines = dap_json_get(q->args, "linesStartAt1");
	struct dap_json columns = dap_json_get(q->args, "columnsStartAt1");

	if (d->state != DAP_NEW)
		return dap_invalid(&ret->err, "initialize: was sent before");
	if (path_format(d, dap_json_get(q->args, "pathFormat"), &ret->err) < 0)
		return -EINVAL;
	d->client_progress =
		dap_json_is_true(dap_json_get(q->args, "supportsProgressReporting"));
	d->client_type = dap_json_is_true(dap_json_get(q->args, "supportsVariableType"));
	d->client_invalidated =
		dap_json_is_true(dap_json_get(q->args, "supportsInvalidatedEvent"));
	/* The protocol's default is that lines and columns start at 1. */
	d->lines_from = !dap_json_has(lines) || dap_json_is_true(lines);
	d->columns_from = !dap_json_has(columns) || dap_json_is_true(columns);
	d->state = DAP_INITIALIZED;
	put_capabilities(&ret->body);
	return 0;
}

/* ------------------------------------------------------------------ attach ------------------- */

/*
 * Read an optional number.
 * @param ret    Untouched if it is not there.
 * @param found  Whether it is there.
 */
static int number_arg(struct dap_json args, const char *name, int64_t min, int64_t max,
		      uint32_t *ret, bool *found, struct agent_err *err)
{
	struct dap_json v = dap_json_get(args, name);
	int64_t n;

	*found = dap_json_has(v);
	if (!*found)
		return 0;
	if (!dap_json_i64(v, &n) || n < min || n > max)
		return dap_invalid(err, "%s: must be a number between %" PRId64 " and %" PRId64,
				   name, min, max);
	*ret = (uint32_t)n;
	return 0;
}

/* Read an optional boolean; false if it is not there. */
static int bool_arg(struct dap_json args, const char *name, bool *ret, struct agent_err *err)
{
	struct dap_json v = dap_json_get(args, name);

	*ret = dap_json_is_true(v);
	if (dap_json_has(v) && !*ret && !(v.size == 5 && !memcmp(v.text, "false", 5)))
		return dap_invalid(err, "%s: must be true or false", name);
	return 0;
}

static int group_by(struct dap *d, struct dap_json v, struct agent_err *err)
{
	char text[16] = "line";

	if (dap_json_has(v) && !dap_json_str(v, text, sizeof(text)))
		text[0] = '\0';
	d->by_kernel = !strcmp(text, "kernel");
	if (!d->by_kernel && strcmp(text, "line") != 0)
		return dap_invalid(err, "groupBy: must be \"line\" or \"kernel\"");
	return 0;
}

static int core_file(struct dap *d, struct dap_json v, struct agent_err *err)
{
	if (!dap_json_has(v))
		return 0;
	if (!dap_json_str(v, d->core_file, sizeof(d->core_file)) || !d->core_file[0])
		return dap_invalid(err, "coreFile: must be the path of a file");
	if (!dap_take_path(d, d->core_file))
		return dap_invalid(err, "coreFile: not the URI of a file of this machine");
	if (!d->options->core)
		return agent_err_set(err, RPC_ERROR_UNSUPPORTED, EOPNOTSUPP, NULL,
				     "gpu-agentctl dap does",
				     "coreFile: the agent's socket opens no core files");
	return 0;
}

/*
 * Read all arguments before the agent is asked for anything, so that a mistake leaves no half
 * session.
 */
static int attach_args(struct dap *d, struct dap_json args, struct agent_err *err)
{
	bool found = false, ignored;
	int r = number_arg(args, "pid", 1, PID_MAX, &d->pid, &found, err);

	if (r == 0 && !found)
		r = number_arg(args, "processId", 1, PID_MAX, &d->pid, &found, err);
	if (r == 0)
		r = number_arg(args, "maxStopMs", 1, STOP_MAX_MS, &d->max_stop_ms, &ignored, err);
	if (r == 0)
		r = number_arg(args, "stopIdleMs", 0, DAP_STOP_IDLE_MAX_MS, &d->stop_idle_ms, &ignored,
			       err);
	if (r == 0)
		r = number_arg(args, "maxThreads", 1, DAP_THREADS_MAX, &d->max_threads, &ignored,
			       err);
	if (r == 0)
		r = bool_arg(args, "stopOnAttach", &d->stop_on_attach, err);
	if (r == 0)
		r = bool_arg(args, "hostThreads", &d->host_threads, err);
	if (r == 0)
		r = dap_sources_arg(d, args, err);
	if (r == 0)
		r = group_by(d, dap_json_get(args, "groupBy"), err);
	if (r == 0)
		r = core_file(d, dap_json_get(args, "coreFile"), err);
	if (r < 0)
		return r;
	if (found && dap_is_core(d))
		return dap_invalid(err, "pid, coreFile: only one of them");
	if (found || dap_is_core(d))
		return 0;
	return dap_invalid(err, "attach: needs pid (or processId), the process to attach to, or "
				"coreFile");
}

/*
 * Milliseconds after which attach is answered, whatever comes: some editors wait four seconds, and
 * a driver may take longer.
 */
#define ATTACH_ANSWER_MS 3000

/*
 * Only note what is wanted: the loop calls dap_session_begin(), so that other requests are read
 * meanwhile.
 */
static int attach(struct dap *d, const struct dap_request *q, struct dap_answer *ret)
{
	int r;

	if (d->state != DAP_INITIALIZED)
		return dap_invalid(&ret->err, "attach: was sent before");
	d->core_file[0] = '\0';
	r = attach_args(d, q->args, &ret->err);
	if (r < 0) {
		d->core_file[0] = '\0';
		return r;
	}
	d->state = DAP_ATTACHING;
	d->attach_waits = true;
	d->attach_seq = q->seq;
	d->attach_ns = clock_deadline_ms(ATTACH_ANSWER_MS);
	return DAP_ANSWERED;
}

static int launch(struct dap *d, const struct dap_request *q, struct dap_answer *ret)
{
	return agent_err_set(&ret->err, RPC_ERROR_UNSUPPORTED, EOPNOTSUPP, NULL,
			     "use \"request\": \"attach\" with its pid",
			     "launch: gpu-agent attaches to processes that run already");
}

static int configuration_done(struct dap *d, const struct dap_request *q, struct dap_answer *ret)
{
	d->configured = true;
	dap_respond(d, q, NULL);
	dap_session_announce(d);
	return DAP_ANSWERED;
}

/* ------------------------------------------------------------------ leaving ------------------ */

static int disconnect(struct dap *d, const struct dap_request *q, struct dap_answer *ret)
{
	dap_session_end(d);
	d->state = DAP_OVER;
	return 0;
}

static int terminate(struct dap *d, const struct dap_request *q, struct dap_answer *ret)
{
	dap_session_end(d);
	/* Unlike disconnect, terminate is followed by the event and by disconnect. */
	d->leave = false;
	d->state = DAP_OVER;
	dap_respond(d, q, NULL);
	dap_terminated(d);
	return DAP_ANSWERED;
}

/* ------------------------------------------------------------------ running ------------------ */

/* The answer comes first: the event `stopped` must follow it. */
static int pause_gpu(struct dap *d, const struct dap_request *q, struct dap_answer *ret)
{
	int r = dap_need_control(d, &ret->err);

	if (r < 0)
		return r;
	dap_respond(d, q, NULL);
	r = dap_session_pause(d, "pause", &ret->err);
	if (r < 0 && !d->leave)
		dap_output(d, "important", "pause: %s", ret->err.message);
	return DAP_ANSWERED;
}

static int continue_gpu(struct dap *d, const struct dap_request *q, struct dap_answer *ret)
{
	int r = dap_session_continue(d, &ret->err);

	if (r < 0)
		return r;
	out_json_fmt(&ret->body, "{'allThreadsContinued':true}");
	return 0;
}

static int no_stepping(struct dap *d, const struct dap_request *q, struct dap_answer *ret)
{
	return agent_err_set(&ret->err, RPC_ERROR_UNSUPPORTED, EOPNOTSUPP, NULL,
			     "pause and continue stop and start whole queues",
			     "%s: waves of a running process cannot be stepped one by one",
			     q->command);
}

static int no_writing(struct dap *d, const struct dap_request *q, struct dap_answer *ret)
{
	return agent_err_set(&ret->err, RPC_ERROR_UNSUPPORTED, EOPNOTSUPP, NULL, NULL,
			     "%s: a running process is never written to", q->command);
}

/* ------------------------------------------------------------------ answered without GPU ----- */

/* Editors send the breakpoints of all files: each is answered, and none is verified. */
static int set_breakpoints(struct dap *d, const struct dap_request *q, struct dap_answer *ret)
{
	dap_put_refused(&ret->body, dap_json_get(q->args, "breakpoints"),
			"breakpoints in GPU code are not supported: a running process is never "
			"written to");
	return 0;
}

/* ------------------------------------------------------------------ table -------------------- */

/* clang-format off */
static const struct dap_handler handlers[] = {
	{ "initialize", initialize, DAP_WHEN_ALWAYS, false, DAP_NEW },
	{ "attach", attach, DAP_WHEN_ALWAYS, false, DAP_INITIALIZED, true },
	{ "launch", launch, DAP_WHEN_ALWAYS, false, DAP_INITIALIZED, true },
	{ "disconnect", disconnect, DAP_WHEN_TURN, false, DAP_NEW, true },
	{ "terminate", terminate, DAP_WHEN_TURN, false, DAP_INITIALIZED, true },
	{ "configurationDone", configuration_done, DAP_WHEN_ALWAYS, false, DAP_ATTACHING },
	{ "setBreakpoints", set_breakpoints, DAP_WHEN_ALWAYS, false, DAP_INITIALIZED },
	{ "setExceptionBreakpoints", dap_set_exception_breakpoints, DAP_WHEN_TURN, false, DAP_ATTACHED, true },
	{ "dataBreakpointInfo", dap_data_breakpoint_info, DAP_WHEN_TURN, true, DAP_ATTACHED },
	{ "setDataBreakpoints", dap_set_data_breakpoints, DAP_WHEN_TURN, false, DAP_ATTACHED, true },
	{ "threads", dap_threads, DAP_WHEN_SEEN, false, DAP_ATTACHED },
	{ "stackTrace", dap_stack_trace, DAP_WHEN_TURN, true, DAP_ATTACHED },
	{ "scopes", dap_scopes, DAP_WHEN_TURN, true, DAP_ATTACHED },
	{ "exceptionInfo", dap_exception_info, DAP_WHEN_SEEN, false, DAP_ATTACHED },
	{ "source", dap_source, DAP_WHEN_TURN, true, DAP_ATTACHED },
	{ "variables", dap_variables, DAP_WHEN_TURN, true, DAP_ATTACHED },
	{ "readMemory", dap_read_memory, DAP_WHEN_TURN, true, DAP_ATTACHED },
	{ "disassemble", dap_disassemble, DAP_WHEN_TURN, true, DAP_ATTACHED },
	{ "evaluate", dap_evaluate, DAP_WHEN_TURN, true, DAP_ATTACHED },
	{ "completions", dap_completions, DAP_WHEN_ALWAYS, false, DAP_ATTACHED },
	{ "pause", pause_gpu, DAP_WHEN_TURN, false, DAP_ATTACHED, true },
	{ "continue", continue_gpu, DAP_WHEN_TURN, false, DAP_ATTACHED, true },
	{ "next", no_stepping, DAP_WHEN_ALWAYS, false, DAP_INITIALIZED, true },
	{ "stepIn", no_stepping, DAP_WHEN_ALWAYS, false, DAP_INITIALIZED, true },
	{ "stepOut", no_stepping, DAP_WHEN_ALWAYS, false, DAP_INITIALIZED, true },
	{ "stepBack", no_stepping, DAP_WHEN_ALWAYS, false, DAP_INITIALIZED, true },
	{ "reverseContinue", no_stepping, DAP_WHEN_ALWAYS, false, DAP_INITIALIZED, true },
	{ "goto", no_stepping, DAP_WHEN_ALWAYS, false, DAP_INITIALIZED, true },
	{ "restartFrame", no_stepping, DAP_WHEN_ALWAYS, false, DAP_INITIALIZED, true },
	{ "setVariable", no_writing, DAP_WHEN_ALWAYS, false, DAP_INITIALIZED, true },
	{ "setExpression", no_writing, DAP_WHEN_ALWAYS, false, DAP_INITIALIZED, true },
	{ "writeMemory", no_writing, DAP_WHEN_ALWAYS, false, DAP_INITIALIZED, true },
	{ "gpuAgent/groups", dap_gpu_groups, DAP_WHEN_TURN, true, DAP_ATTACHED },
	{ "gpuAgent/waves", dap_gpu_waves, DAP_WHEN_TURN, true, DAP_ATTACHED },
	{ "gpuAgent/lanes", dap_gpu_lanes, DAP_WHEN_TURN, true, DAP_ATTACHED },
	{ "gpuAgent/takeControl", dap_gpu_take_control, DAP_WHEN_TURN, false, DAP_ATTACHED },
	{ "gpuAgent/focus", dap_gpu_focus, DAP_WHEN_TURN, true, DAP_ATTACHED },
};
/* clang-format on */

const struct dap_handler *dap_find_handler(const char *command)
{
	for (size_t i = 0; i < ARRAY_SIZE(handlers); i++)
		if (!strcmp(handlers[i].command, command))
			return &handlers[i];
	return NULL;
}

int dap_check_order(const struct dap *d, const struct dap_handler *h, struct agent_err *err)
{
	/* DAP_OVER is the last state; what needs a session is not allowed in it. */
	if (d->state == DAP_OVER && h->from == DAP_ATTACHED)
		return agent_err_set(err, RPC_ERROR_SESSION_ENDED, 0, NULL, NULL,
				     "%s: the session is over", h->command);
	if (d->state >= h->from)
		return 0;
	return agent_err_set(err, RPC_ERROR_INVALID_REQUEST, 0, NULL, NULL, "%s: send %s first",
			     h->command, h->from == DAP_INITIALIZED ? "initialize" : "attach");
}
