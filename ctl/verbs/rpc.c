/* SPDX-License-Identifier: MIT */
/* gpu-agentctl rpc: any method, by hand.  Its data is JSON whatever --json says. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "ctl/ctl.h"
#include "protocol/rpc_scan.h"

/* Bytes of the longest request that the agent accepts. */
#define REQUEST_MAX ((size_t)1 << 20)

static const char *pid;
static bool control;

static const struct argv_option options[] = {
	{ "pid", 0, ARGV_STRING, &pid, "PID", "attach first, and fill in \"session\"" },
	{ "control", 0, ARGV_FLAG, &control, NULL,
	  "with --pid: take the writer lease (implied by methods that need it)" },
	{ 0 },
};

/* Read standard input to its end, or to the limit of the buffer. */
static int read_input(struct ctl *c, struct out *o)
{
	char buffer[16384];
	ssize_t n;

	while ((n = read(STDIN_FILENO, buffer, sizeof(buffer))) != 0) {
		if (n < 0 && errno != EINTR)
			return ctl_fail(c, errno, "standard input");
		if (n > 0)
			out_bytes(o, buffer, (size_t)n);
	}
	return 0;
}

/*
 * Read the parameters, and check that they are one object; "" if there are none.  A mistake is
 * better told here, with its position, than by the agent.
 */
static int read_params(struct ctl *c, const char *text, struct out *o)
{
	struct rpc_scan s;
	enum rpc_token token;
	const char *value;
	size_t size;
	int r = 0;

	if (text && !strcmp(text, "-"))
		r = read_input(c, o);
	else if (text)
		out_str(o, text);
	if (r < 0)
		return r;
	if (out_error(o) || o->size > REQUEST_MAX)
		return ctl_usage(c, "JSON: more than %zu bytes", REQUEST_MAX);
	if (!text)
		return 0;
	rpc_scan_init(&s, o->data ? o->data : "", o->size, RPC_DEPTH_MAX);
	token = rpc_scan_next(&s);
	if (!rpc_scan_rest(&s, token, &value, &size) || rpc_scan_next(&s) != RPC_TOKEN_END)
		return ctl_usage(c, "JSON: %s at byte %zu", s.problem ? s.problem : "mistake",
				 s.pos);
	if (token != RPC_TOKEN_OBJECT)
		return ctl_usage(c, "JSON: parameters must be an object such as {\"pid\":42}");
	return 0;
}

/* Copy the object with the member "session" in front of its own.  The scanner has found a brace. */
static int add_session(struct ctl *c, const struct out *params, struct out *ret)
{
	const char *rest = params->size ? strchr(params->data, '{') + 1 : "}";

	out_json_fmt(ret, "{'session':%s", c->session.session);
	if (rest[strspn(rest, " \t\r\n")] != '}')
		out_char(ret, ',');
	out_str(ret, rest);
	return out_error(ret) ? ctl_fail(c, ENOMEM, "parameters") : 0;
}

static int call(struct ctl *c, const char *method, const struct out *params)
{
	int r = ctl_called(c, rpc_client_call(c->client, method, params->size ? params->data : "",
					      params->size, &c->err));

	return r < 0 ? r : ctl_print_result(c);
}

/*
 * Call a method in a session of its own.  The lease is taken where the schema says that the method
 * needs it.
 */
static int call_in_session(struct ctl *c, const char *method, const struct out *params)
{
	int m = rpc_method_find(method), r;
	auto_out struct out with = { 0 };

	r = ctl_attach(c, pid, control || (m >= 0 && rpc_methods[m].lease));
	if (r == 0)
		r = add_session(c, params, &with);
	if (r == 0)
		r = call(c, method, &with);
	ctl_detach(c);
	return r;
}

static int run(struct ctl *c, int argc, char **argv)
{
	auto_out struct out params;
	int r;

	if (!ctl_is_json(c))
		output_set_json(&c->output, "");
	out_init(&params, REQUEST_MAX + 1);
	r = read_params(c, argc > 1 ? argv[1] : NULL, &params);
	if (r == 0)
		r = ctl_connect(c);
	if (r < 0)
		return r;
	return pid ? call_in_session(c, argv[0], &params) : call(c, argv[0], &params);
}

const struct ctl_verb ctl_verb_rpc = {
	.name = "rpc",
	.args = "METHOD [JSON|-]",
	.summary = "Call a method of the agent with parameters in JSON and print the result",
	.options = options,
	.min_args = 1,
	.max_args = 2,
	.run = run,
};
