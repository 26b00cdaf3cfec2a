/* SPDX-License-Identifier: MIT */
/*
 * What all verbs share: messages on standard error, the connection to the agent or to the program
 * that reads a core file, and the session.
 */
#include "ctl/ctl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "corefile/file.h"
#include "ctl/cli_words.h"
#include "ctl/signals.h"
#include "ctl/terminal/text.h"
#include "protocol/rpc_format.h"

/*
 * Milliseconds that an answer may come late.  The agent's own deadline for attaching passes first
 * then: its message says more than ours.
 */
#define REPLY_MARGIN_MS       500
/* Most milliseconds that the agent accepts for attaching. */
#define ATTACH_TIMEOUT_MAX_MS 60000
/* Milliseconds until it is asked again whether it is our turn. */
#define TURN_MS		      20

/* Write one line at once, so that lines of several programs do not mix. */
static void print_line(const char *prefix, const char *text)
{
	auto_out struct out o = { 0 };

	out_str(&o, prefix);
	text_put(&o, "", text, "\n");
	if (!out_error(&o))
		fd_write_all(STDERR_FILENO, o.data, o.size);
}

/* Print a message of ours, in the vendor's words. */
__attribute__((format(printf, 2, 0))) static void message(const struct ctl *c, const char *fmt, va_list ap)
{
	auto_out struct out words = { 0 };
	char text[512];

	vsnprintf(text, sizeof(text), fmt, ap);
	vendor_sentence(&words, c->vendor, text);
	print_line("", words.size ? words.data : text);
}

void ctl_note(const struct ctl *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (!c->quiet)
		message(c, fmt, ap);
	va_end(ap);
}

void ctl_debug(const struct ctl *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (c->verbose)
		message(c, fmt, ap);
	va_end(ap);
}

int ctl_usage(struct ctl *c, const char *fmt, ...)
{
	char text[200], hint[80];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	snprintf(hint, sizeof(hint), "gpu-agentctl %s%s--help tells how it is used",
		 c->verb ? c->verb : "", c->verb ? " " : "");
	agent_err_set(&c->err, RPC_ERROR_INVALID_PARAMS, 0, NULL, hint, "%s", text);
	return -EINVAL;
}

int ctl_fail(struct ctl *c, int err_no, const char *op)
{
	return agent_err_set(&c->err, RPC_ERROR_FAILED, err_no, op, NULL, "%s: %s", op,
			     strerror(err_no));
}

int ctl_make_file(struct ctl *c, const char *path, mode_t mode, bool replace,
		  struct corefile_file *ret)
{
	int r = corefile_file_open_path(path, mode, replace, ret);

	if (r == -ENOTSUP)
		return agent_err_set(&c->err, RPC_ERROR_FAILED, ENOTSUP, path,
				     "name a file: it is made anew and takes that name when it is whole",
				     "%.200s: not a regular file", path);
	if (r == -EEXIST)
		return agent_err_set(&c->err, RPC_ERROR_FAILED, EEXIST, path,
				     "-o FILE replaces one", "%.200s: %s", path, strerror(EEXIST));
	if (r < 0)
		return ctl_fail(c, -r, path);
	signals_watch_file(ret);
	return 0;
}

void ctl_close_file(struct corefile_file *f)
{
	corefile_file_close(f);
	signals_watch_file(NULL);
}

/*
 * Append the error document: the agent's own error object, if there is one, since a newer agent may
 * say more in it than this client decodes.
 */
static void error_document(struct ctl *c, struct out *o)
{
	struct out raw = { 0 };

	out_str(&raw, "{\"error\":");
	if (c->err_json.size)
		out_bytes(&raw, c->err_json.data, c->err_json.size);
	else
		agent_err_encode(&raw, &c->err);
	out_char(&raw, '}');
	if (!out_error(&raw))
		rpc_format(o, raw.data, raw.size,
			   c->output.json == OUTPUT_JSON_PRETTY && !c->output.stream
				   ? RPC_FORMAT_PRETTY
				   : RPC_FORMAT_SHORT);
	out_char(o, '\n');
	out_deinit(&raw);
}

/*
 * In a stream the document is one more line.  Everything else is taken back first, so that the
 * output is the document alone; it goes to standard output, and the file of -o is not made.
 */
static void report_json(struct ctl *c)
{
	if (!c->output.stream) {
		output_drop(&c->output);
		c->output.path = NULL;
	}
	error_document(c, &c->output.text);
	output_finish(&c->output);
}

void ctl_report(struct ctl *c)
{
	char prefix[48];

	/* Only a failed allocation leaves no error behind. */
	if (!c->err.code)
		agent_err_set(&c->err, RPC_ERROR_INTERNAL, 0, NULL, NULL, "out of memory");
	if (ctl_is_json(c))
		report_json(c);
	snprintf(prefix, sizeof(prefix), "gpu-agentctl: %serror:%s ",
		 color_begin(COLOR_BAD, c->color_messages),
		 color_end(COLOR_BAD, c->color_messages));
	print_line(prefix, cli_words(c, c->err.message));
	if (c->err.hint[0])
		print_line("  hint: ", cli_words(c, c->err.hint));
	if (c->verbose && c->err.op[0])
		print_line("  operation: ", cli_words(c, c->err.op));
}

/* Start the program that reads the core file; from here on it answers as the agent would. */
static int open_core(struct ctl *c)
{
	int r = source_core_open(&c->source, c->core, &c->err);

	if (r < 0)
		return r;
	c->client = c->source.client;
	rpc_client_set_timeout(c->client, c->timeout_ms);
	ctl_debug(c, "process %d reads %s", (int)c->source.pid, c->core);
	return 0;
}

int ctl_connect(struct ctl *c)
{
	int r;

	if (c->client)
		return 0;
	if (c->core)
		return open_core(c);
	r = rpc_client_open(c->socket, &c->client, &c->err);
	if (r < 0) {
		bool refused = c->err.err == EACCES || c->err.err == EPERM;

		if (c->err.code == AGENT_ERR_UNREACHABLE && refused)
			str_copy(c->err.hint, sizeof(c->err.hint),
				 "an administrator can let you in with `adduser USER gpu-debug`; log in "
				 "again afterwards");
		else if (c->err.code == AGENT_ERR_UNREACHABLE)
			str_copy(c->err.hint, sizeof(c->err.hint),
				 "start the agent with `systemctl start gpu-agentd.socket`, or "
				 "`gpu-agentd --user` for your own processes; --socket or "
				 "GPU_AGENT_SOCKET names another place");
		return r;
	}
	rpc_client_set_timeout(c->client, c->timeout_ms);
	ctl_debug(c, "connected to %s", c->socket);
	return 0;
}

/* @return whether the agent has announced the end of the session, with the reason. */
static bool find_end(struct ctl *c, struct rpc_session_ended_params *ret)
{
	struct rpc_client_notification n;
	struct agent_err err = { 0 };

	while (rpc_client_next_notification(c->client, 0, &n, &err) == 0)
		if (!strcmp(n.method, rpc_notifications[RPC_NOTIFICATION_SESSION_ENDED].name) &&
		    rpc_client_decode(&n, &rpc_session_ended_params_struct, &c->arena, ret) == 0 &&
		    !strcmp(ret->session, c->session.session))
			return true;
	return false;
}

/*
 * The agent answers that it does not know the session: that is over, and this program did not ask for
 * it.  Say why, in place of an advice for clients that never attached.
 */
static void explain_end(struct ctl *c)
{
	struct rpc_session_ended_params p;

	if (!find_end(c, &p))
		agent_err_set(&c->err, RPC_ERROR_SESSION_ENDED, 0, NULL, "try again",
			      "the session on process %u is over", c->session.pid);
	else if ((c->exited = p.reason == RPC_END_REASON_EXITED))
		agent_err_set(&c->err, RPC_ERROR_SESSION_ENDED, 0, NULL, NULL,
			      "process %u has ended", c->session.pid);
	else
		agent_err_set(&c->err, RPC_ERROR_SESSION_ENDED, 0, NULL, "try again",
			      "the session on process %u is over: %s", c->session.pid,
			      ctl_end_reason(p.reason));
}

const char *ctl_end_reason(int32_t reason)
{
	for (size_t i = 0; i < rpc_end_reason_enum.n; i++)
		if (rpc_end_reason_enum.values[i].value == reason)
			return rpc_end_reason_enum.values[i].doc;
	return "The agent gave a reason that this client does not know.";
}

int ctl_called(struct ctl *c, int r)
{
	const char *text;
	size_t size = 0;

	if (r >= 0)
		return r;
	if (c->core)
		source_core_explain(&c->source, &c->err);
	text = rpc_client_last_error(c->client, &size);
	out_reset(&c->err_json);
	if (c->attached && c->err.code == RPC_ERROR_NO_SUCH_SESSION)
		explain_end(c);
	else if (text)
		out_bytes(&c->err_json, text, size);
	return r;
}

bool ctl_wait_for_turn(struct ctl *c)
{
	const struct timespec ts = { .tv_nsec = TURN_MS * 1000000L };

	/* A connection that was refused is over. */
	if (c->core || c->err.code != RPC_ERROR_LIMIT || !strcmp(c->err.op, "connect"))
		return false;
	if (!c->turn_end_ns)
		c->turn_end_ns = clock_deadline_ms(c->timeout_ms);
	if (!clock_left_ms(c->turn_end_ns))
		return false;
	c->err = (struct agent_err){ 0 };
	out_reset(&c->err_json);
	nanosleep(&ts, NULL);
	return true;
}

int ctl_host_stacks(struct ctl *c, const struct rpc_host_stacks_params *p, struct rpc_host_stacks_result *ret)
{
	int r;

	do
		r = ctl_called(c, rpc_client_host_stacks(c->client, p, &c->arena, ret, &c->err));
	while (r < 0 && ctl_wait_for_turn(c));
	return r;
}

/* Tell the user whom the lease was taken from, and at what cost. */
static void note_taken(const struct ctl *c)
{
	const struct rpc_taken_control *t = &c->session.taken;

	if (!c->session.has_taken)
		return;
	if (t->queues)
		ctl_note(c, "control taken from process %u (uid %u): %u queue%s resumed after %llu ms%s",
			 t->pid, t->uid, t->queues, t->queues == 1 ? "" : "s",
			 (unsigned long long)t->stopped_us / 1000,
			 t->worker_killed ? "; the session did not answer and was ended by force" : "");
	else
		ctl_note(c, "control taken from process %u (uid %u)%s", t->pid, t->uid,
			 t->worker_killed ? "; the session did not answer and was ended by force" : "");
}

int ctl_attach(struct ctl *c, const char *pid_text, bool control)
{
	struct rpc_session_attach_params p = { .has_control = control, .control = control,
					       .has_take = c->take, .take = c->take,
					       .has_force = c->force, .force = c->force };
	/*
	 * A core has one process, whichever was asked for; the program that reads it takes any id.
	 */
	int r = c->core ? 0 : args_pid(c, pid_text, &p.pid);

	if (c->core)
		p.pid = 1;

	if (r == 0)
		r = ctl_connect(c);
	if (r < 0)
		return r;
	p.has_timeout_ms = true;
	p.timeout_ms =
		c->timeout_ms < ATTACH_TIMEOUT_MAX_MS ? c->timeout_ms : ATTACH_TIMEOUT_MAX_MS;
	rpc_client_set_timeout(c->client, p.timeout_ms + REPLY_MARGIN_MS);
	r = ctl_called(c,
		       rpc_client_session_attach(c->client, &p, &c->arena, &c->session, &c->err));
	rpc_client_set_timeout(c->client, c->timeout_ms);
	if (r < 0)
		return r;
	c->attached = true;
	c->vendor = c->session.vendor;
	note_taken(c);
	ctl_debug(c, "%s session %s on process %u", c->session.joined ? "joined" : "opened",
		  c->session.session, c->session.pid);
	return 0;
}

void ctl_detach(struct ctl *c)
{
	struct rpc_session_detach_params p = { .session = c->session.session };
	struct rpc_session_detach_result result;
	struct agent_err err = { 0 };

	if (!c->attached)
		return;
	c->attached = false;
	if (rpc_client_session_detach(c->client, &p, &c->arena, &result, &err) < 0)
		ctl_debug(c, "detach: %s", cli_words(c, err.message));
	else
		ctl_debug(c, "left session %s%s", p.session, result.ended ? ", which is over" : "");
}

int ctl_name_gpus(struct ctl *c)
{
	const struct rpc_gpu_devices_params p = { .session = c->session.session };
	struct rpc_gpu_devices_result result;
	int r;

	if (c->gpus.n)
		return 0;
	r = ctl_called(c, rpc_client_gpu_devices(c->client, &p, &c->arena, &result, &c->err));
	if (r == 0)
		gpu_names_set(&c->gpus, result.devices, result.n_devices);
	return r;
}

void ctl_name_gpus_for_text(struct ctl *c)
{
	if (ctl_is_json(c) || ctl_name_gpus(c) == 0)
		return;
	c->err = (struct agent_err){ 0 };
	out_reset(&c->err_json);
}

void ctl_name_gpus_of(struct ctl *c, const struct rpc_gpu_snapshot_result *s)
{
	gpu_names_set(&c->gpus, s->devices, s->n_devices);
	c->vendor = s->process.vendor;
}

int ctl_print_result(struct ctl *c)
{
	size_t size;
	const char *text = rpc_client_last_result(c->client, &size);
	int r = text ? output_json(&c->output, text, size) : -EPROTO;

	return r < 0 ? ctl_fail(c, -r, "writing the result") : 0;
}

int ctl_print_json(struct ctl *c, const struct out *doc)
{
	int r = out_error(doc) ? out_error(doc) : output_json(&c->output, doc->data, doc->size);

	return r < 0 ? ctl_fail(c, -r, "writing the result") : 0;
}

int ctl_print_table(struct ctl *c, const struct table *t)
{
	const struct table_form form = ctl_table_form(c);
	int r = table_print(t, &c->output.text, &form);

	return r < 0 ? ctl_fail(c, -r, "writing the table") : 0;
}
