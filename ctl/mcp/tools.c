/* SPDX-License-Identifier: MIT */
/* The list of tools, and how their command lines begin. */
#include "ctl/mcp/tools.h"

#include <errno.h>
#include <string.h>

#include "base/out.h"
#include "ctl/mcp/words.h"

static const struct mcp_tool *const tools[] = {
	&mcp_tool_list, &mcp_tool_doctor, &mcp_tool_snapshot, &mcp_tool_why, &mcp_tool_stacks,
	&mcp_tool_diff, &mcp_tool_wave, &mcp_tool_memory, &mcp_tool_disassemble, &mcp_tool_job_report,
	&mcp_tool_suspend, &mcp_tool_resume, &mcp_tool_dump,
};

bool mcp_tool_is_offered(const struct mcp_tool *tool, const struct mcp_options *o)
{
	return (o->allow_control || !tool->control) && (o->directory || !tool->writes_file);
}

const struct mcp_tool *mcp_tool_at(size_t i)
{
	return i < sizeof(tools) / sizeof(tools[0]) ? tools[i] : NULL;
}

const struct mcp_tool *mcp_tool_find(const char *name, const struct mcp_options *o)
{
	const struct mcp_tool *tool;

	for (size_t i = 0; (tool = mcp_tool_at(i)); i++)
		if (!strcmp(tool->name, name) && mcp_tool_is_offered(tool, o))
			return tool;
	return NULL;
}

void mcp_tool_describe(struct out *o, const struct mcp_tool *tool)
{
	out_json_fmt(o, ",{'name':%s,'title':%s,'description':%s,'inputSchema':", tool->name, tool->title, tool->text);
	mcp_args_schema(o, tool->args);
	/* All four are written: where one is absent, a client has to assume the worse. */
	out_json_fmt(o, ",'annotations':{'readOnlyHint':%i,'destructiveHint':%i,'idempotentHint':%i,'openWorldHint':%i}}",
		     !tool->changes, tool->destroys, tool->repeats_same, tool->open_world);
}

int mcp_tool_build(const struct mcp_input *in, struct mcp_command *ret, struct out *why)
{
	int r;

	*ret = (struct mcp_command){ .deadline_ms = MCP_DEADLINE_MS };
	r = in->tool->build(in, ret, why);
	if (r == 0 && ret->too_long) {
		out_str(why, "the arguments are too long");
		r = -EINVAL;
	}
	return r;
}

void mcp_tool_build_show(const struct mcp_options *o, struct mcp_command *ret)
{
	const struct mcp_input in = { .options = o };

	*ret = (struct mcp_command){ .deadline_ms = MCP_DEADLINE_MS };
	words_verb(&in, ret, "analyze");
	words_add(ret, "/dev/fd/3");
}
