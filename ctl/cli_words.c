/* SPDX-License-Identifier: MIT */
/*
 * One table from the protocol's names to those of the command line.  ctl/check-client compares its
 * methods with the schema.
 */
#include "ctl/cli_words.h"

#include <ctype.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "ctl/ctl.h"

/* A name of the protocol, and what stands for it; of two that begin alike, the longer one is first. */
static const struct {
	const char *name;
	const char *verb; /* Behind `gpu-agentctl`; PID stands for the process.  NULL: see words. */
	const char *words;
} names[] = {
	{ "agent.hello", "status" },
	{ "agent.status", "status" },
	{ "agent.metrics", "metrics" },
	{ "rpc.discover", "help rpc" },
	{ "process.list", "list" },
	{ "process.doctor", "doctor PID" },
	{ "host.stacks", "stacks PID" },
	{ "session.attach with control", "attach PID --control" },
	{ "session.attach", "attach PID" },
	{ "session.control", "attach PID --take" },
	{ "session.detach", "detach PID" },
	{ "session.list", "status" },
	{ "runtime.info", "snapshot PID" },
	{ "gpu.devices", "devices PID" },
	{ "gpu.queues", "queues PID" },
	{ "gpu.snapshot with waves", "waves PID" },
	{ "gpu.snapshot", "snapshot PID" },
	{ "why.get", "why PID" },
	{ "gpu.suspend", "suspend PID" },
	{ "gpu.renew", "suspend PID --hold" },
	{ "gpu.resume", "resume PID" },
	{ "gpu.flags", NULL, "the debug flags" },
	{ "code.list", "snapshot PID" },
	{ "code.locate", "disassemble PID" },
	{ "code.source", NULL, "the sources in debug information" },
	{ "code.read", "disassemble PID" },
	{ "watchpoint.set", "watchpoint PID set" },
	{ "watchpoint.clear", "watchpoint PID clear" },
	{ "watchpoint.list", "watchpoint PID list" },
	{ "launch.override", NULL, "the launch override" },
	{ "launch.mode", NULL, "the launch mode" },
	{ "exception.subscribe", "events PID" },
	{ "exception.filter", "events PID --filter" },
	{ "exception.query", "events PID" },
	{ "exception.info", "events PID" },
	{ "exception.forward", "events PID" },
	{ "wave.registers", "registers PID" },
	{ "wave.variables", "variables PID" },
	{ "wave.evaluate", "print PID" },
	{ "wave.lanes", "lanes PID" },
	{ "memory.read", "memory PID" },
	{ "core.begin", "dump PID" },
	{ "core.read", "dump PID" },
	{ "core.write", "dump PID" },
	{ "core.end", "dump PID" },
	{ "cores.list", "cores list" },
	{ "cores.info", "cores info" },
	{ "cores.read", "cores export" },
	{ "cores.pin", "cores pin" },
	{ "cores.remove", "cores rm" },
	{ "cores.usage", "cores du" },
	{ "hooks.list", "hooks list" },
	{ "hooks.test", "hooks test" },

	{ "timeout_ms", NULL, "--timeout" },
	{ "max_stop_ms", NULL, "--max-stop" },
	{ "params.address", NULL, "ADDRESS" },
	{ "params.size", NULL, "SIZE" },
	{ "params.wave", NULL, "WAVE" },
	{ "params.expression", NULL, "EXPRESSION" },
	{ "params.frame", NULL, "--frame" },
	{ "params.queues", NULL, "--queues" },
	{ "params.gpu_id", NULL, "--gpu" },
	{ "params.lanes", NULL, "--lanes" },
	{ "params.lane", NULL, "--lane" },
	{ "params.columns", NULL, "EXPRESSION" },
	{ "params.bank", NULL, "--bank" },
	{ "params.since", NULL, "--twice" },
	{ "params.hold", NULL, "--hold" },
	{ "params.exceptions", NULL, "--subscribe" },
	{ "params.lease_ms", NULL, "--lease" },
	{ "params.grace", NULL, "--grace" },
	{ "params.pid", NULL, "PID" },
	{ "params.record", NULL, "RECORD" },
	{ "params.rule", NULL, "RULE" },
};

static bool is_part(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '/' || c == '-';
}

/*
 * Whether a name ends here: not as a part of a longer one, as in `gpu.queues.c`, but at the end of
 * a sentence.
 */
static bool ends_name(const char *s)
{
	return !is_part(*s) && !(*s == '.' && is_part(s[1]));
}

/* The row of the name at the beginning of a text; ARRAY_SIZE(names) if there is none. */
static size_t find_name(const char *s)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(names) && (!str_starts_with(s, names[i].name) ||
					 !ends_name(s + strlen(names[i].name))))
		i++;
	return i;
}

/* Append a command line, in quotes unless the text has some, with the process or core that it is about. */
static void put_verb(const struct ctl *c, struct out *o, const char *verb, bool quoted)
{
	const char *pid = strstr(verb, "PID");

	out_str(o, quoted ? "gpu-agentctl " : "`gpu-agentctl ");
	if (pid && c->core)
		out_fmt(o, "%.*s--core %s%s", (int)(pid - verb), verb, c->core, pid + strlen("PID"));
	else if (pid && c->session.pid)
		out_fmt(o, "%.*s%u%s", (int)(pid - verb), verb, c->session.pid, pid + strlen("PID"));
	else
		out_str(o, verb);
	out_str(o, quoted ? "" : "`");
}

/* Append what stands for the name at @p s.  @return bytes of the text that were replaced, or 0. */
static size_t put_name(const struct ctl *c, struct out *o, const char *s, char before)
{
	size_t i = find_name(s);

	if (i == ARRAY_SIZE(names))
		return str_starts_with(s, "params.") ? strlen("params.") : gpu_names_put(&c->gpus, o, s);
	if (names[i].verb)
		put_verb(c, o, names[i].verb, before == '`');
	else
		out_str(o, names[i].words);
	return strlen(names[i].name);
}

const char *cli_words(struct ctl *c, const char *text)
{
	auto_out struct out o = { 0 }, words = { 0 };
	const char *copy;
	size_t n;

	if (!text || (c->verb && !strcmp(c->verb, "rpc")))
		return text;
	for (const char *s = text; *s; s += n) {
		char before = s > text ? s[-1] : ' ';

		n = is_part(before) || before == '.' ? 0 : put_name(c, &o, s, before);
		if (!n) {
			out_char(&o, *s);
			n = 1;
		}
	}
	if (!out_error(&o) && o.size)
		vendor_sentence(&words, c->vendor, o.data);
	copy = out_error(&words) || !words.size ? NULL : rpc_arena_strndup(&c->arena, words.data, words.size);
	return copy ? copy : text;
}
