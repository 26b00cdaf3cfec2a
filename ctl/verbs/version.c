/* SPDX-License-Identifier: MIT */
/* gpu-agentctl version: this program's version, and the agent's when there is one. */
#include <string.h>

#include "ctl/ctl.h"
#include "ctl/terminal/text.h"

static int print_json(struct ctl *c, const struct rpc_agent_hello_result *hello)
{
	auto_out struct out doc = { 0 };

	out_json_fmt(&doc, "{'version':%s,'protocol':%s", GPU_AGENT_VERSION, RPC_PROTOCOL_VERSION);
	if (hello)
		out_json_fmt(&doc, ",'agent':{'version':%s,'protocol':%s}", hello->agent,
			     hello->protocol);
	out_char(&doc, '}');
	return ctl_print_json(c, &doc);
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
		text_put(o, "gpu-agentd   ", hello.agent, "");
		text_put(o, "  protocol ", hello.protocol, "\n");
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
