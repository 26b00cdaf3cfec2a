/* SPDX-License-Identifier: MIT */
#include "agentd/frontend/method/hooks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/frontend/method/frontend.h"
#include "agentd/frontend/method/metrics.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/out.h"
#include "base/str.h"

#define LIST_MS 15000
/* Counts come at once, if the rules process is there; metrics do without them if it is not. */
#define COUNT_MS 2000
/* The hooks of others may run before the one to be tested. */
#define TEST_MS	    (2 * HOOK_TIMEOUT_MS_MAX)
#define ANSWER_MAX  ((size_t)1 << 20)
#define SAMPLE_LINE 42
/* Most requests at once: hooks may run for minutes, and nobody else shall wait for them. */
#define ASKED_MAX 16

static void expired(int fd, short what, void *user)
{
	struct request *r = user;
	struct agent_err err = { 0 };

	agent_err_set(&err, RPC_ERROR_TIMEOUT, 0, rpc_methods[r->method].name,
		      "see the agent's log", "no answer in time");
	request_fail(r, &err);
}

/* @param document_fd  Document for a test, borrowed; -1: a list is wanted. */
static int ask(struct request *r, const char *rule, uint32_t uid, int document_fd, uint32_t ms,
	       void (*late)(int, short, void *), struct agent_err *err)
{
	struct frontend *f = frontend_of(r);
	struct ipc_hooks m = { .type = IPC_HOOKS, .client = r->conn->id, .uid = uid };

	if (f->n_hooks_asked >= ASKED_MAX)
		return agent_err_set(err, RPC_ERROR_LIMIT, EBUSY, NULL, "try again later",
				     "the agent is busy with hooks that others asked for");
	f->n_hooks_asked++;
	m.request = start_wait(&f->starts, r);
	str_copy(m.rule, sizeof(m.rule), rule);
	monitor_link_send(&f->monitor, &m, sizeof(m), &document_fd, document_fd >= 0);
	request_deadline(r, ms, late);
	return RPC_LATER;
}

static void count_expired(int fd, short what, void *user)
{
	metrics_answer(user, NULL, 0);
}

int hooks_ask_counts(struct request *r)
{
	struct agent_err err = { 0 };

	return ask(r, "", IPC_HOOKS_COUNTS, -1, COUNT_MS, count_expired, &err);
}

int hooks_list(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
	       const struct rpc_hooks_list_params *params, struct rpc_hooks_list_result *ret,
	       struct agent_err *err)
{
	return ask(call->request, "", IPC_HOOKS_CALLER, -1, LIST_MS, expired, err);
}

/* ------------------------------------------------------------------ test --------------------- */

/* Make what a hook gets about a process whose kernel wrote where it may not; none of it is true. */
static int sample_document(uint32_t uid, int *ret_fd)
{
	static struct rpc_frame frame = { .function = "sample_kernel",
					  .file = "sample.hip",
					  .has_line = true,
					  .line = SAMPLE_LINE };
	static enum rpc_stop_reason reason = RPC_STOP_REASON_MEMORY_VIOLATION;
	static const char *missing = "this is a sample, made by hooks.test";
	struct rpc_group group = { .has_kernel = true,
				   .kernel = { .address = 0x7f0000001000, .name = "sample_kernel" },
				   .n_frames = 1,
				   .frames = &frame,
				   .pc = 0x7f0000001040,
				   .pcs = 1,
				   .state = RPC_WAVE_STATE_STOPPED,
				   .n_reasons = 1,
				   .reasons = &reason,
				   .waves = 1,
				   .lanes_min = 64,
				   .lanes_median = 64,
				   .lanes_max = 64 };
	const struct rpc_gpu_snapshot_result sample = {
		.schema = "gpu-agent.snapshot/1",
		.source = { .kind = "sample", .host = "", .agent = GPU_AGENT_VERSION },
		.time_us = clock_wall_us(),
		.process = { .uid = uid, .comm = "sample", .vendor = RPC_VENDOR_AMD },
		.interface_version = "0",
		.wave_count = 1,
		.n_groups = 1,
		.groups = &group,
		.n_missing = 1,
		.missing = &missing,
	};
	auto_out struct out text;
	int r;

	out_init(&text, 0);
	rpc_gpu_snapshot_result_encode(&text, &sample);
	r = out_error(&text);
	return r < 0 ? r : fd_memfd_sealed("gpu-agent-sample", text.data, text.size, ret_fd);
}

int hooks_test(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
	       const struct rpc_hooks_test_params *params, struct rpc_hooks_test_result *ret,
	       struct agent_err *err)
{
	uint32_t uid = params->has_uid ? params->uid : IPC_HOOKS_CALLER;
	auto_close int document_fd = -1;
	int r;

	if (!params->rule[0] || strlen(params->rule) >= HOOK_RULE_MAX)
		return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, 0, NULL, NULL,
				     "rule: not the name of a rule");
	r = sample_document(params->has_uid ? params->uid : call->conn->uid, &document_fd);
	if (r < 0)
		return agent_err_set(err, RPC_ERROR_INTERNAL, -r, NULL, NULL,
				     "cannot make the sample");
	return ask(call->request, params->rule, uid, document_fd, TEST_MS, expired, err);
}

/* ------------------------------------------------------------------ answers ------------------ */

static void fail(struct request *r, int e)
{
	struct agent_err err = { 0 };

	switch (e) {
	case -ENOENT:
		agent_err_set(&err, RPC_ERROR_NO_SUCH_RULE, 0, NULL,
			      "hooks.list names those that there are",
			      "there is no such rule, or it has no hook");
		break;
	case -EACCES:
		agent_err_set(&err, RPC_ERROR_NOT_PERMITTED, 0, NULL,
			      "administrators may test hooks, and root those of other users",
			      "you may not run this hook");
		break;
	case -ENOBUFS:
		agent_err_set(&err, RPC_ERROR_LIMIT, 0, NULL, "try again later",
			      "too many hooks wait");
		break;
	case -ESTALE:
		start_refuse_replaced(rpc_methods[r->method].name, &err);
		break;
	default:
		agent_err_set(&err, RPC_ERROR_FAILED, -e, rpc_methods[r->method].name,
			      "see the agent's log", "the hook cannot be run");
	}
	request_fail(r, &err);
}

static void describe(const struct hook_info *h, struct rpc_hook *ret)
{
	bool ran = h->counts.runs != 0;

	*ret = (struct rpc_hook){
		.rule = h->rule,
		.path = h->path,
		.user = h->user[0] ? h->user : NULL,
		.timeout_ms = h->timeout_ms,
		.acceptable = h->check == HOOK_END_EXIT,
		.problem = h->why[0] ? h->why : NULL,
		.checked_uid = h->checked_uid,
		.running = h->running,
		.waiting = h->waiting,
		.runs = h->counts.runs,
		.failures = h->counts.failures,
		.timeouts = h->counts.timeouts,
		.dropped = h->counts.dropped,
		.has_last_end = ran,
		.last_end = (enum rpc_hook_end)h->last_end,
		.has_last_status = ran,
		.last_status = h->last_status,
		.has_last_time_us = ran,
		.last_time_us = h->last_us,
		.has_last_duration_us = ran,
		.last_duration_us = h->last_duration_us,
	};
}

static int encode_list(const struct hook_info *list, size_t size, struct out *text)
{
	size_t n = size / sizeof(*list);
	auto_free struct rpc_hook *hooks = calloc(n ? n : 1, sizeof(*hooks));
	const struct rpc_hooks_list_result result = { .n_hooks = n, .hooks = hooks };

	if (!hooks)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		describe(&list[i], &hooks[i]);
	rpc_hooks_list_result_encode(text, &result);
	return out_error(text);
}

static int encode_report(const struct hook_report *h, size_t size, struct out *text)
{
	auto_free char *output = NULL;
	struct rpc_hooks_test_result result;

	if (size != sizeof(*h) || h->output_size > sizeof(h->output))
		return -EBADMSG;
	output = calloc(1, h->output_size + 1);
	if (!output)
		return -ENOMEM;
	/* A string ends at its first NUL. */
	for (uint32_t i = 0; i < h->output_size; i++)
		output[i] = h->output[i] ? h->output[i] : '?';
	result = (struct rpc_hooks_test_result){ .end = (enum rpc_hook_end)h->end,
						 .status = h->status,
						 .problem = h->why[0] ? h->why : NULL,
						 .uid = h->uid,
						 .duration_us = h->duration_us,
						 .output = output,
						 .output_bytes = h->output_total,
						 .left = h->left };
	rpc_hooks_test_result_encode(text, &result);
	return out_error(text);
}

void hooks_answered(struct frontend *f, const struct ipc_hooked *m, int take_fd)
{
	struct request *r = start_find(&f->starts, m->request);
	int status = m->status;
	auto_close int fd = take_fd;
	auto_out struct out text;
	const void *data = NULL;
	size_t size = 0;

	out_init(&text, 0);
	f->n_hooks_asked--;
	if (!r)
		return; /* The client got a timeout already. */
	if (status == 0 && fd >= 0)
		status = fd_memfd_map(fd, ANSWER_MAX, &data, &size);
	if (r->method == RPC_METHOD_AGENT_METRICS) {
		metrics_answer(r, data, size / sizeof(struct hook_info));
		fd_memfd_unmap(data, size);
		return;
	}
	if (status == 0)
		status = r->method == RPC_METHOD_HOOKS_LIST ? encode_list(data, size, &text) :
							      encode_report(data, size, &text);
	if (status == 0)
		request_reply(r, text.data, text.size);
	else
		fail(r, status);
	fd_memfd_unmap(data, size);
}
