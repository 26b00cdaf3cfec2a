/* SPDX-License-Identifier: MIT */
/* gpu-agentctl version: this program's version, and the agent's when there is one. */
#include <string.h>

#include "ctl/ctl.h"
#include "ctl/terminal/text.h"

static int print_json(struct ctl *c, const struct rpc_agent_hello_result *hello)
{
	auto_out struct out doc = { 0 };
	int r;

	out_str(&doc,
		"{\"version\":\"" GPU_AGENT_VERSION "\",\"protocol\":\"" RPC_PROTOCOL_VERSION "\"");
	if (hello) {
		out_str(&doc, ",\"agent\":{\"version\":");
		out_json_str(&doc, hello->agent, strlen(hello->agent));
		out_str(&doc, ",\"protocol\":");
		out_json_str(&doc, hello->protocol, strlen(hello->protocol));
		out_char(&doc, '}');
	}
	out_char(&doc, '}');
	r = output_json(&c->output, doc.data, doc.size);
	return r < 0 ? ctl_fail(c, -r, "writing the result") : 0;
}

static int run(struct ctl *c, int argc, char **argv)
{
	struct rpc_agent_hello_result hello;
	struct out *o = &c->output.text;
	/* It is no failure that there is no agent. */
	bool reached = ctl_connect(c) == 0 &&
		       rpc_client_agent_hello(c->client, NULL, &c->arena, &hello, &c->err) == 0;

	if (ctl_is_json(c))
		return print_json(c, reached ? &hello : NULL);
	out_str(o, "gpu-agentctl " GPU_AGENT_VERSION "  protocol " RPC_PROTOCOL_VERSION "\n");
	if (reached) {
		out_str(o, "gpu-agentd   ");
		text_escape(o, hello.agent, strlen(hello.agent));
		out_str(o, "  protocol ");
		text_escape(o, hello.protocol, strlen(hello.protocol));
		out_char(o, '\n');
	} else {
		ctl_debug(c, "the agent: %s", c->err.message);
	}
	return 0;
}

const struct ctl_verb ctl_verb_version = {
	.name = "version",
	.args = "",
	.summary = "Print the versions of this program and of the agent",
	.run = run,
};
